package safetensors

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"unicode/utf8"
)

const (
	// MaxHeader is the largest header that is read or written, in bytes: the
	// limit of the reference implementation.
	MaxHeader = 100_000_000

	lengthBytes = 8
	metadataKey = "__metadata__"
	// alignment of the data's beginning; the header is padded with spaces.
	alignment = 8
)

// Info describes a tensor in a file.
type Info struct {
	Name  string
	DType DType
	Shape []int
	// Begin and End are offsets in bytes from the beginning of the data.
	Begin, End int64
}

// entry is a tensor in the header's JSON.
type entry struct {
	DType   string  `json:"dtype"`
	Shape   []int   `json:"shape"`
	Offsets []int64 `json:"data_offsets"`
}

// header is a checked header, its tensors in order of their data.
type header struct {
	tensors  []Info
	metadata map[string]string
	data     int64 // where the data begins in the file
}

// parseHeader reads and checks the header of a file of size bytes.
func parseHeader(r io.ReaderAt, size int64) (*header, error) {
	if size < lengthBytes {
		return nil, fmt.Errorf("safetensors: %d bytes are no file of this format: the length of its header takes %d", size, lengthBytes)
	}
	var length [lengthBytes]byte
	if _, err := io.ReadFull(io.NewSectionReader(r, 0, lengthBytes), length[:]); err != nil {
		return nil, fmt.Errorf("safetensors: byte 0: %w", err)
	}
	n := binary.LittleEndian.Uint64(length[:])
	switch {
	case n > MaxHeader:
		return nil, fmt.Errorf("safetensors: byte 0: a header of %d bytes is above the limit of %d; not a file of this format", n, MaxHeader)
	case int64(n) > size-lengthBytes:
		return nil, fmt.Errorf("safetensors: byte 0: a header of %d bytes does not fit the file of %d; it is cut short, or not of this format", n, size)
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(io.NewSectionReader(r, lengthBytes, int64(n)), text); err != nil {
		return nil, fmt.Errorf("safetensors: byte %d: %w", lengthBytes, err)
	}
	h := &header{data: lengthBytes + int64(n)}
	if err := h.parseJSON(text); err != nil {
		return nil, err
	}
	return h, h.checkLayout(size - h.data)
}

// parseJSON reads the header token by token, since a map would hide names that
// occur twice.
func (h *header) parseJSON(text []byte) error {
	if !utf8.Valid(text) {
		return errors.New("safetensors: the header is not valid UTF-8")
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	at := func(err error) error {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = errors.New("the JSON ends too early")
		}
		return fmt.Errorf("safetensors: header, byte %d: %w", lengthBytes+dec.InputOffset(), err)
	}
	if t, err := dec.Token(); err != nil {
		return at(err)
	} else if t != json.Delim('{') {
		return at(errors.New("not a JSON object"))
	}
	seen := map[string]bool{}
	for dec.More() {
		t, err := dec.Token()
		if err != nil {
			return at(err)
		}
		name := t.(string) // the decoder accepts no other keys
		if seen[name] {
			return at(fmt.Errorf("tensor %q occurs twice", name))
		}
		seen[name] = true
		if name == metadataKey {
			if err := dec.Decode(&h.metadata); err != nil {
				return at(fmt.Errorf("%s: %w", metadataKey, err))
			}
			continue
		}
		var e entry
		if err := dec.Decode(&e); err != nil {
			return at(fmt.Errorf("tensor %q: %w", name, err))
		}
		info, err := e.info(name)
		if err != nil {
			return at(err)
		}
		h.tensors = append(h.tensors, info)
	}
	if _, err := dec.Token(); err != nil {
		return at(err)
	}
	if t, err := dec.Token(); !errors.Is(err, io.EOF) {
		return at(fmt.Errorf("%v after the header's object", cmp.Or[any](err, t)))
	}
	return nil
}

// info checks an entry by itself.
func (e *entry) info(name string) (Info, error) {
	d, ok := parseDType(e.DType)
	if !ok {
		return Info{}, fmt.Errorf("tensor %q: data type %q is not supported (F64, F32, F16, BF16, I64, I32 and U8 are)", name, e.DType)
	}
	if e.Shape == nil || len(e.Offsets) != 2 {
		return Info{}, fmt.Errorf("tensor %q: needs a shape and two data_offsets", name)
	}
	begin, end := e.Offsets[0], e.Offsets[1]
	if begin < 0 || end < begin {
		return Info{}, fmt.Errorf("tensor %q: data_offsets [%d, %d] are no range", name, begin, end)
	}
	if n, ok := elements(e.Shape, (end-begin)/int64(d.Size())); !ok || n*int64(d.Size()) != end-begin {
		return Info{}, fmt.Errorf("tensor %q: %s of shape %v does not take the %d bytes of data_offsets [%d, %d]", name, d, e.Shape, end-begin, begin, end)
	}
	return Info{Name: name, DType: d, Shape: e.Shape, Begin: begin, End: end}, nil
}

// checkLayout sorts the tensors by their data and makes sure that they cover
// all of it without gaps or overlaps.
func (h *header) checkLayout(dataBytes int64) error {
	slices.SortFunc(h.tensors, func(a, b Info) int {
		return cmp.Or(cmp.Compare(a.Begin, b.Begin), cmp.Compare(a.End, b.End), cmp.Compare(a.Name, b.Name))
	})
	var end int64
	for _, t := range h.tensors {
		switch {
		case t.End > dataBytes:
			return fmt.Errorf("safetensors: tensor %q: data_offsets [%d, %d] go beyond the %d bytes of data; the file is cut short", t.Name, t.Begin, t.End, dataBytes)
		case t.Begin > end:
			return fmt.Errorf("safetensors: byte %d: %d bytes of data belong to no tensor, before %q", h.data+end, t.Begin-end, t.Name)
		case t.Begin < end:
			return fmt.Errorf("safetensors: byte %d: tensor %q overlaps the one before it", h.data+t.Begin, t.Name)
		}
		end = t.End
	}
	if end != dataBytes {
		return fmt.Errorf("safetensors: byte %d: %d bytes of data belong to no tensor, at the end", h.data+end, dataBytes-end)
	}
	return nil
}

// encodeHeader returns the length and the header for tensors in the order of
// their data, as the reference implementation writes it.
func encodeHeader(tensors []Info, metadata map[string]string) ([]byte, error) {
	var b bytes.Buffer
	b.Write(make([]byte, lengthBytes))
	b.WriteByte('{')
	if len(metadata) > 0 {
		b.WriteString(`"` + metadataKey + `":{`)
		for i, key := range slices.Sorted(maps.Keys(metadata)) {
			if i > 0 {
				b.WriteByte(',')
			}
			writeString(&b, key)
			b.WriteByte(':')
			writeString(&b, metadata[key])
		}
		b.WriteByte('}')
	}
	for i, t := range tensors {
		if i > 0 || len(metadata) > 0 {
			b.WriteByte(',')
		}
		writeString(&b, t.Name)
		fmt.Fprintf(&b, `:{"dtype":"%s","shape":[`, t.DType)
		for k, s := range t.Shape {
			if k > 0 {
				b.WriteByte(',')
			}
			fmt.Fprint(&b, s)
		}
		fmt.Fprintf(&b, `],"data_offsets":[%d,%d]}`, t.Begin, t.End)
	}
	b.WriteByte('}')
	for b.Len()%alignment != 0 {
		b.WriteByte(' ')
	}
	n := b.Len() - lengthBytes
	if n > MaxHeader {
		return nil, fmt.Errorf("safetensors: a header of %d bytes is above the limit of %d", n, MaxHeader)
	}
	binary.LittleEndian.PutUint64(b.Bytes(), uint64(n))
	return b.Bytes(), nil
}

// writeString writes a JSON string without the escapes that encoding/json adds
// for HTML.
func writeString(b *bytes.Buffer, s string) {
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s)       // a string into memory cannot fail
	b.Truncate(b.Len() - 1) // the newline of Encode
}
