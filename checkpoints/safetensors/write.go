package safetensors

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"unicode/utf8"
)

// chunk is how many bytes of data are converted at a time.
const chunk = 1 << 18

// Write writes tensors and metadata (which may be nil) as a file. Data is laid
// out as the reference implementation does it: by type, the largest elements
// first, then by name, so that every tensor is aligned to its elements. The tensors'
// own order does not matter. Names must differ, be valid UTF-8 and not be
// __metadata__; nothing is written if one is not, or if a shape does not match
// its data.
func Write(w io.Writer, tensors []Tensor, metadata map[string]string) error {
	sorted, infos, err := layout(tensors)
	if err != nil {
		return err
	}
	for key, value := range metadata {
		if !utf8.ValidString(key) || !utf8.ValidString(value) {
			return fmt.Errorf("safetensors: metadata %q is not valid UTF-8", key)
		}
	}
	head, err := encodeHeader(infos, metadata)
	if err != nil {
		return err
	}
	if _, err := w.Write(head); err != nil {
		return err
	}
	var buf []byte
	for _, t := range sorted {
		size := t.Data.DType().Size()
		for at, n := 0, t.Data.Len(); at < n; {
			step := min(n-at, chunk/size)
			buf = slices.Grow(buf[:0], step*size)[:step*size]
			t.Data.encode(buf, at)
			if _, err := w.Write(buf); err != nil {
				return err
			}
			at += step
		}
	}
	return nil
}

// layout checks tensors, sorts them and gives them their places.
func layout(tensors []Tensor) ([]Tensor, []Info, error) {
	for _, t := range tensors {
		switch {
		case t.Data == nil:
			return nil, nil, fmt.Errorf("safetensors: tensor %q has no data", t.Name)
		case t.Name == metadataKey || !utf8.ValidString(t.Name):
			return nil, nil, fmt.Errorf("safetensors: %q cannot be the name of a tensor", t.Name)
		}
		if n, ok := elements(t.Shape, math.MaxInt); !ok || n != int64(t.Data.Len()) {
			return nil, nil, fmt.Errorf("safetensors: tensor %q: shape %v does not match its %d elements", t.Name, t.Shape, t.Data.Len())
		}
	}
	sorted := slices.SortedFunc(slices.Values(tensors), func(a, b Tensor) int {
		return cmp.Or(cmp.Compare(b.Data.DType(), a.Data.DType()), cmp.Compare(a.Name, b.Name))
	})
	seen := make(map[string]bool, len(sorted))
	infos := make([]Info, len(sorted))
	var end int64
	for i, t := range sorted {
		if seen[t.Name] {
			return nil, nil, fmt.Errorf("safetensors: tensor %q is given twice", t.Name)
		}
		seen[t.Name] = true
		bytes := int64(t.Data.Len()) * int64(t.Data.DType().Size())
		if end > math.MaxInt64-bytes {
			return nil, nil, errors.New("safetensors: more than 2^63-1 bytes of data")
		}
		infos[i] = Info{Name: t.Name, DType: t.Data.DType(), Shape: t.Shape, Begin: end, End: end + bytes}
		end += bytes
	}
	return sorted, infos, nil
}
