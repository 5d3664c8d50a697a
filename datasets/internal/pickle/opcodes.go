package pickle

import (
	"bytes"
	"encoding/binary"
	"math"
	"strconv"
	"unicode/utf8"
)

func (m *machine) numbers(op byte) error {
	switch op {
	case 'J': // BININT
		v, err := m.uint(4)
		m.push(int64(int32(v)))
		return err
	case 'K': // BININT1
		v, err := m.uint(1)
		m.push(int64(v))
		return err
	case 'M': // BININT2
		v, err := m.uint(2)
		m.push(int64(v))
		return err
	case 'G': // BINFLOAT, big-endian
		b, err := m.take(8)
		if err == nil {
			m.push(math.Float64frombits(binary.BigEndian.Uint64(b)))
		}
		return err
	case 0x8a: // LONG1
		b, err := m.counted(1)
		if err != nil {
			return err
		}
		if len(b) > 8 {
			return m.faultf("an integer of %d bytes: at most 8 are read", len(b))
		}
		var w [8]byte
		copy(w[:], b)
		v := int64(binary.LittleEndian.Uint64(w[:]))
		if n := len(b); n > 0 && n < 8 { // two's complement: extend the sign
			v = v << (64 - 8*n) >> (64 - 8*n)
		}
		m.push(v)
		return nil
	}
	// INT, LONG and FLOAT of protocol 0: text.
	b, err := m.line(maxName)
	if err != nil {
		return err
	}
	s := string(bytes.TrimSpace(b))
	switch {
	case op == 'F':
		v, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return m.faultf("%.40q is not a float", s)
		}
		m.push(v)
		return nil
	case op == 'I' && (s == "00" || s == "01"):
		m.push(s == "01")
		return nil
	}
	if op == 'L' && len(s) > 0 && s[len(s)-1] == 'L' {
		s = s[:len(s)-1]
	}
	v, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return m.faultf("%.40q is not an integer of 64 bits", s)
	}
	m.push(v)
	return nil
}

func (m *machine) strings(op byte) error {
	width := map[byte]int{'U': 1, 'C': 1, 0x8c: 1, 'T': 4, 'B': 4, 'X': 4, 0x8e: 8, 0x8d: 8}[op]
	var b []byte
	var err error
	if width == 0 { // STRING and UNICODE of protocol 0
		b, err = m.line(1 << 20)
		if err == nil && op == 'S' {
			if n := len(b); n < 2 || b[0] != b[n-1] || b[0] != '\'' && b[0] != '"' || bytes.IndexByte(b, '\\') >= 0 {
				return m.faultf("a string of protocol 0 that is not plain text in quotes: save the pickle with protocol 2")
			}
			b = b[1 : len(b)-1]
		}
	} else {
		b, err = m.counted(width)
	}
	if err != nil {
		return err
	}
	switch op {
	case 'X', 0x8c, 0x8d, 'V': // unicode
		if !utf8.Valid(b) {
			return m.faultf("a unicode string that is not UTF-8")
		}
		m.push(string(b))
	default: // SHORT_BINSTRING, BINSTRING, STRING, SHORT_BINBYTES, BINBYTES, BINBYTES8
		m.push(Bytes(b))
	}
	return nil
}

func (m *machine) containers(op byte) error {
	switch op {
	case ')': // EMPTY_TUPLE
		m.push(Tuple{})
	case 0x85, 0x86, 0x87: // TUPLE1 to TUPLE3
		return m.popTuple(int(op) - 0x84)
	case ']': // EMPTY_LIST
		m.push(&List{})
	case '}': // EMPTY_DICT
		m.push(&Dict{})
	case 'a': // APPEND
		v, err := m.pop()
		if err != nil {
			return err
		}
		return m.extend([]Value{v})
	case 's': // SETITEM
		v, err := m.pop()
		if err != nil {
			return err
		}
		k, err := m.pop()
		if err != nil {
			return err
		}
		return m.set([]Value{k, v})
	default:
		items, err := m.popMark()
		if err != nil {
			return err
		}
		switch op {
		case 't': // TUPLE
			m.push(Tuple(items))
		case 'l': // LIST
			m.push(&List{items})
		case 'e': // APPENDS
			return m.extend(items)
		case 'd': // DICT
			m.push(&Dict{})
			return m.set(items)
		case 'u': // SETITEMS
			return m.set(items)
		}
	}
	return nil
}

// extend adds items to the list on top.
func (m *machine) extend(items []Value) error {
	v, err := m.top()
	if err != nil {
		return err
	}
	switch to := v.(type) {
	case *List:
		to.Items = append(to.Items, items...)
	case *Object:
		to.List.Items = append(to.List.Items, items...)
	default:
		return m.faultf("items are added to %s", describe(v))
	}
	return nil
}

// set adds alternating keys and values to the dict on top.
func (m *machine) set(items []Value) error {
	if len(items)%2 != 0 {
		return m.faultf("a key without a value")
	}
	v, err := m.top()
	if err != nil {
		return err
	}
	var d *Dict
	switch to := v.(type) {
	case *Dict:
		d = to
	case *Object:
		d = &to.Dict
	default:
		return m.faultf("keys are set on %s", describe(v))
	}
	for i := 0; i < len(items); i += 2 {
		d.Keys = append(d.Keys, items[i])
		d.Vals = append(d.Vals, items[i+1])
	}
	return nil
}

func (m *machine) memory(op byte) error {
	var at uint64
	var err error
	switch op {
	case 'q', 'h': // BINPUT, BINGET
		at, err = m.uint(1)
	case 'r', 'j': // LONG_BINPUT, LONG_BINGET
		at, err = m.uint(4)
	case 0x94: // MEMOIZE
		at = uint64(len(m.memo))
	default: // PUT, GET
		var b []byte
		if b, err = m.line(maxName); err == nil {
			if at, err = strconv.ParseUint(string(b), 10, 32); err != nil {
				err = m.faultf("%.40q is not a place in the memo", b)
			}
		}
	}
	if err != nil {
		return err
	}
	switch op {
	case 'q', 'r', 'p', 0x94:
		v, err := m.top()
		if err != nil {
			return err
		}
		m.memo[at] = v
	default:
		v, ok := m.memo[at]
		if !ok {
			return m.faultf("nothing was kept in place %d of the memo", at)
		}
		m.push(v)
	}
	return nil
}

func (m *machine) objects(op byte) error {
	switch op {
	case 'c': // GLOBAL
		module, err := m.line(maxName)
		if err != nil {
			return err
		}
		name, err := m.line(maxName)
		if err != nil {
			return err
		}
		return m.global(string(module), string(name))
	case 'b': // BUILD
		state, err := m.pop()
		if err != nil {
			return err
		}
		v, err := m.top()
		if err != nil {
			return err
		}
		o, ok := v.(*Object)
		if !ok {
			return m.faultf("a state for %s", describe(v))
		}
		o.State = state
		return nil
	}
	second, err := m.pop()
	if err != nil {
		return err
	}
	first, err := m.pop()
	if err != nil {
		return err
	}
	if op == 0x93 { // STACK_GLOBAL
		module, ok1 := first.(string)
		name, ok2 := second.(string)
		if !ok1 || !ok2 {
			return m.faultf("a global named by %s and %s", describe(first), describe(second))
		}
		return m.global(module, name)
	}
	// REDUCE, NEWOBJ
	g, ok := first.(Global)
	if !ok {
		return m.faultf("%s is called, which is no function", describe(first))
	}
	args, ok := second.(Tuple)
	if !ok {
		return m.faultf("%s is called with %s: want a tuple", g, describe(second))
	}
	m.push(&Object{Callable: g, Args: args})
	return nil
}

func (m *machine) global(module, name string) error {
	g := Global{module, name}
	for _, a := range m.allow {
		if a == g {
			m.push(g)
			return nil
		}
	}
	return m.faultf("the pickle names %.60q of module %.60q: refused, since unpickling it could run code; data sets need no such name", name, module)
}
