package datasets

import (
	"bytes"
	"errors"
	"io"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"zerogcn/internal/usage"
)

// jsonFile is a JSON text that is read as a stream: tokens for what may be
// large, whole values, which jsontext has checked, for their small members.
// Errors name the file and the byte.
type jsonFile struct {
	path string
	dec  *jsontext.Decoder
}

// newJSONFile reads JSON of r. Names that come twice are for the caller to
// find: jsontext would keep a table of all names of an object.
func newJSONFile(path string, r io.Reader) *jsonFile {
	return &jsonFile{path, jsontext.NewDecoder(r, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))}
}

// maxJSONValue bounds a value that is read as a whole.
const maxJSONValue = 64 << 20

// fault marks an error of reading.
func (j *jsonFile) fault(err error) error {
	if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
		return j.faultf("the JSON ends too early: the file is cut short")
	}
	var se *jsontext.SyntacticError
	if errors.As(err, &se) {
		return usageErrorf("%s: byte %d: %.200v", j.path, se.ByteOffset, se.Err)
	}
	return usage.Wrap(&readError{j.path, err})
}

// faultf is an error of the user's at the present byte.
func (j *jsonFile) faultf(format string, args ...any) error {
	return usageErrorf("%s: byte %d: "+format, append([]any{j.path, j.dec.InputOffset()}, args...)...)
}

func (j *jsonFile) token() (jsontext.Token, error) {
	t, err := j.dec.ReadToken()
	if err != nil {
		return t, j.fault(err)
	}
	return t, nil
}

// value reads a whole value, valid until the next read.
func (j *jsonFile) value() ([]byte, error) {
	v, err := j.dec.ReadValue()
	if err != nil {
		return nil, j.fault(err)
	}
	if len(v) > maxJSONValue {
		return nil, j.faultf("a value of %d bytes: at most %d are read at once", len(v), maxJSONValue)
	}
	return v, nil
}

// open reads the beginning of an object or array.
func (j *jsonFile) open(kind jsontext.Kind, want string) error {
	t, err := j.token()
	if err != nil {
		return err
	}
	if t.Kind() != kind {
		return j.faultf("want %s", want)
	}
	return nil
}

// object calls f for every member of the object that comes next; f reads the
// value. want says in an error what the object is.
func (j *jsonFile) object(want string, f func(key string) error) error {
	if err := j.open('{', want); err != nil {
		return err
	}
	for {
		t, err := j.token()
		if err != nil {
			return err
		}
		if t.Kind() == '}' {
			return nil
		}
		if err := f(t.String()); err != nil {
			return err
		}
	}
}

// array calls f for every element of the array that comes next.
func (j *jsonFile) array(want string, f func(v []byte) error) error {
	if err := j.open('[', want); err != nil {
		return err
	}
	for j.dec.PeekKind() != ']' {
		v, err := j.value()
		if err != nil {
			return err
		}
		if err := f(v); err != nil {
			return err
		}
	}
	_, err := j.token()
	return err
}

// skip passes over a value of any size.
func (j *jsonFile) skip() error {
	if err := j.dec.SkipValue(); err != nil {
		return j.fault(err)
	}
	return nil
}

// end checks that nothing follows.
func (j *jsonFile) end() error {
	if _, err := j.dec.ReadToken(); err != io.EOF {
		if err != nil {
			return j.fault(err)
		}
		return j.faultf("text after the end")
	}
	return nil
}

// The functions below walk a value that jsontext has checked already.

func jsonSpace(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == ',' || b[0] == ':' || b[0] == '\n' || b[0] == '\t' || b[0] == '\r') {
		b = b[1:]
	}
	return b
}

// jsonCut cuts the first value off b.
func jsonCut(b []byte) (v, rest []byte) {
	b = jsonSpace(b)
	if len(b) == 0 {
		return nil, nil
	}
	switch b[0] {
	case '"':
		n := jsonString(b)
		return b[:n], b[n:]
	case '[', '{':
		depth := 0
		for i := 0; i < len(b); i++ {
			switch b[i] {
			case '"':
				i += jsonString(b[i:]) - 1
			case '[', '{':
				depth++
			case ']', '}':
				if depth--; depth == 0 {
					return b[:i+1], b[i+1:]
				}
			}
		}
		return b, nil
	}
	i := 0
	for i < len(b) && b[i] != ',' && b[i] != ']' && b[i] != '}' && b[i] > ' ' {
		i++
	}
	return b[:i], b[i:]
}

// jsonString returns the length of the string at the beginning of b.
func jsonString(b []byte) int {
	for i := 1; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(b)
}

// jsonMembers calls f for each member of an object; names are as they are
// written, without quotes.
func jsonMembers(obj []byte, f func(name, v []byte) error) error {
	b := obj[1 : len(obj)-1]
	for {
		var name, v []byte
		name, b = jsonCut(b)
		if len(name) == 0 {
			return nil
		}
		v, b = jsonCut(b)
		if err := f(name[1:len(name)-1], v); err != nil {
			return err
		}
	}
}

// jsonInts appends the whole numbers of an array to out, booleans as 0 and 1;
// bad is the first element that is none.
func jsonInts(out []int64, arr []byte) (all []int64, bad []byte) {
	b := arr[1 : len(arr)-1]
	for {
		for len(b) > 2 && b[1] == ',' && b[0]-'0' <= 9 { // 0, 1, …: most of a list of labels
			out = append(out, int64(b[0]-'0'))
			if b = b[2:]; b[0] == ' ' {
				b = b[1:]
			}
		}
		b = jsonSpace(b)
		if len(b) == 0 {
			return out, nil
		}
		i, v := 0, int64(0)
		for i < len(b) && b[i]-'0' <= 9 && i < 18 {
			v = v*10 + int64(b[i]-'0')
			i++
		}
		if i > 0 && (i == len(b) || b[i] == ',' || b[i] <= ' ') {
			out, b = append(out, v), b[i:]
			continue
		}
		var e []byte
		e, b = jsonCut(b)
		v, ok := jsonInt(e)
		if !ok {
			return out, e
		}
		out = append(out, v)
	}
}

// jsonInt reads a whole number, or a boolean.
func jsonInt(v []byte) (int64, bool) {
	n := int64(0)
	for i, c := range v {
		if c -= '0'; c > 9 || i == 18 {
			break
		}
		if n = n*10 + int64(c); i == len(v)-1 {
			return n, true
		}
	}
	switch {
	case bytes.Equal(v, []byte("true")):
		return 1, true
	case bytes.Equal(v, []byte("false")):
		return 0, true
	case len(v) == 0 || v[0] == '"':
		return 0, false
	}
	return wholeNumber(v)
}

// jsonText returns a string or a number as text: ids come as either.
func jsonText(v []byte) (string, bool) {
	switch {
	case len(v) == 0:
		return "", false
	case v[0] == '"':
		if bytes.IndexByte(v, '\\') < 0 {
			return string(v[1 : len(v)-1]), true
		}
		b, err := jsontext.AppendUnquote(nil, v)
		return string(b), err == nil
	}
	n, ok := wholeNumber(v)
	return strconv.FormatInt(n, 10), ok
}
