package npy

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// Kind is NumPy's letter for a family of element types.
type Kind byte

// The kinds that are understood. Others are Other and can only be skipped.
const (
	Bool   Kind = 'b'
	Int    Kind = 'i'
	Uint   Kind = 'u'
	Float  Kind = 'f'
	Text   Kind = 'U' // fixed-width UCS-4
	Bytes  Kind = 'S' // fixed-width bytes
	Object Kind = 'O' // a pickle: never read
	Other  Kind = '?'
)

// Type is the type of an array's elements.
type Type struct {
	Kind Kind
	Size int // bytes of one element
	Big  bool
	text string
}

// String returns NumPy's description, such as <f4.
func (t Type) String() string { return t.text }

// Numeric reports whether elements are bool, integer or floating-point numbers
// of a width that is read.
func (t Type) Numeric() bool {
	switch t.Kind {
	case Bool, Int, Uint, Float:
		return true
	}
	return false
}

// maxElement bounds the width of a text element: 1 MiB.
const maxElement = 1 << 20

// parseType reads a description such as '<f4', '|b1', '>U17'.
func parseType(s string) (Type, error) {
	t := Type{Kind: Other, text: printable(s)}
	if s == "" {
		return t, fmt.Errorf("empty element type")
	}
	order, rest := s[0], s[1:]
	switch order {
	case '<', '|', '=':
	case '>', '!':
		t.Big = true
	default: // no order: single bytes and some old writers
		rest = s
	}
	if rest == "" {
		return t, fmt.Errorf("element type %q has no kind", t.text)
	}
	kind := Kind(rest[0])
	size := int64(1)
	if rest[1:] != "" {
		var err error
		if size, err = strconv.ParseInt(rest[1:], 10, 32); err != nil {
			if kind == 'M' || kind == 'm' { // datetime64[ns] and the like
				return t, nil
			}
			return t, fmt.Errorf("element type %q has no width", t.text)
		}
	}
	ok := false
	switch kind {
	case Bool:
		ok = size == 1
	case '?': // NumPy's other name of bool
		kind, ok = Bool, size == 1
	case Int, Uint:
		ok = size == 1 || size == 2 || size == 4 || size == 8
	case Float:
		ok = size == 2 || size == 4 || size == 8
	case Text:
		size *= 4
		ok = true
	case Bytes, 'a':
		kind, ok = Bytes, true
	case Object:
		size, ok = 8, true
	}
	if !ok {
		return t, nil
	}
	if size < 0 || size > maxElement {
		return t, fmt.Errorf("element type %q has a width of %d bytes: at most %d are read", t.text, size, maxElement)
	}
	t.Kind, t.Size = kind, int(size)
	return t, nil
}

// printable makes a description fit for a message.
func printable(s string) string {
	if len(s) > 64 {
		s = s[:61] + "..."
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, s)
}

// Element lists the element types that Read converts to.
type Element interface {
	int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64 | float32 | float64
}

// typeOf returns the array type of T in this machine's memory, little-endian.
func typeOf[T Element]() Type {
	var z T
	var k Kind
	var n int
	switch any(z).(type) {
	case int8:
		k, n = Int, 1
	case int16:
		k, n = Int, 2
	case int32:
		k, n = Int, 4
	case int64:
		k, n = Int, 8
	case uint8:
		k, n = Uint, 1
	case uint16:
		k, n = Uint, 2
	case uint32:
		k, n = Uint, 4
	case uint64:
		k, n = Uint, 8
	case float32:
		k, n = Float, 4
	case float64:
		k, n = Float, 8
	}
	order := "<"
	if n == 1 {
		order = "|"
	}
	return Type{Kind: k, Size: n, text: order + string(byte(k)) + strconv.Itoa(n)}
}
