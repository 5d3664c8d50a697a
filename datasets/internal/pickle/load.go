package pickle

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// Fault is a fault of a pickle at a byte.
type Fault struct {
	At  int
	Msg string
}

func (f *Fault) Error() string { return fmt.Sprintf("byte %d: %s", f.At, f.Msg) }

// mark is the stack's marker.
type mark struct{}

// maxName bounds the lines that names and numbers of protocol 0 are read from.
const maxName = 256

// Load reads the first pickle in data. allow lists the globals that it may
// name. The error is a *Fault.
func Load(data []byte, allow []Global) (Value, error) {
	m := machine{data: data, memo: map[uint64]Value{}, allow: allow}
	v, err := m.run()
	if err != nil {
		return nil, err
	}
	return v, nil
}

type machine struct {
	data  []byte
	i     int // next byte
	op    int // position of the opcode at work
	stack []Value
	marks []int // positions of marks on the stack
	memo  map[uint64]Value
	allow []Global
}

func (m *machine) faultf(format string, args ...any) error {
	return &Fault{m.op, fmt.Sprintf(format, args...)}
}

// take returns the next n bytes, which alias the input.
func (m *machine) take(n uint64) ([]byte, error) {
	if n > uint64(len(m.data)-m.i) {
		return nil, m.faultf("the pickle wants %d bytes, and %d are left: the file is cut short", n, len(m.data)-m.i)
	}
	b := m.data[m.i : m.i+int(n)]
	m.i += int(n)
	return b, nil
}

// line returns the bytes up to the next newline.
func (m *machine) line(limit int) ([]byte, error) {
	rest := m.data[m.i:]
	n := bytes.IndexByte(rest[:min(len(rest), limit+1)], '\n')
	if n < 0 {
		return nil, m.faultf("a line without an end in %d bytes", min(len(rest), limit))
	}
	m.i += n + 1
	return rest[:n], nil
}

// uint reads a little-endian number of n bytes.
func (m *machine) uint(n int) (uint64, error) {
	b, err := m.take(uint64(n))
	if err != nil {
		return 0, err
	}
	var w [8]byte
	copy(w[:], b)
	return binary.LittleEndian.Uint64(w[:]), nil
}

// counted reads a length of n bytes and as many bytes as it says.
func (m *machine) counted(n int) ([]byte, error) {
	k, err := m.uint(n)
	if err != nil {
		return nil, err
	}
	return m.take(k)
}

func (m *machine) push(v Value) { m.stack = append(m.stack, v) }

// pop takes the top value, which no mark may be.
func (m *machine) pop() (Value, error) {
	n := len(m.stack)
	if n == 0 {
		return nil, m.faultf("the stack is empty")
	}
	v := m.stack[n-1]
	if _, ok := v.(mark); ok {
		return nil, m.faultf("a mark where a value is wanted")
	}
	m.stack = m.stack[:n-1]
	return v, nil
}

func (m *machine) top() (Value, error) {
	v, err := m.pop()
	if err == nil {
		m.push(v)
	}
	return v, err
}

// popMark takes all values above the last mark, and the mark. The slice is
// fresh.
func (m *machine) popMark() ([]Value, error) {
	if len(m.marks) == 0 {
		return nil, m.faultf("no mark on the stack")
	}
	at := m.marks[len(m.marks)-1]
	m.marks = m.marks[:len(m.marks)-1]
	items := append([]Value(nil), m.stack[at+1:]...)
	m.stack = m.stack[:at]
	return items, nil
}

func (m *machine) popTuple(n int) error {
	t := make(Tuple, n)
	for i := n - 1; i >= 0; i-- {
		v, err := m.pop()
		if err != nil {
			return err
		}
		t[i] = v
	}
	m.push(t)
	return nil
}

func (m *machine) run() (Value, error) {
	for {
		m.op = m.i
		b, err := m.take(1)
		if err != nil {
			return nil, m.faultf("the pickle ends without its STOP: the file is cut short")
		}
		if b[0] == '.' { // STOP
			v, err := m.pop()
			if err == nil && len(m.stack) != 0 {
				err = m.faultf("%d values are left on the stack", len(m.stack))
			}
			return v, err
		}
		if err := m.step(b[0]); err != nil {
			return nil, err
		}
	}
}

// step runs one opcode. Names in comments are those of Python's pickletools.
func (m *machine) step(op byte) error {
	switch op {
	case 0x80: // PROTO
		v, err := m.uint(1)
		if err == nil && v > 5 {
			err = m.faultf("protocol %d: 0 to 5 are known; is this a pickle?", v)
		}
		return err
	case 0x95: // FRAME
		_, err := m.uint(8)
		return err
	case '(': // MARK
		m.marks = append(m.marks, len(m.stack))
		m.push(mark{})
	case 'N': // NONE
		m.push(nil)
	case 0x88: // NEWTRUE
		m.push(true)
	case 0x89: // NEWFALSE
		m.push(false)
	case 'J', 'K', 'M', 'I', 'L', 0x8a, 'G', 'F':
		return m.numbers(op)
	case 'U', 'T', 'S', 'C', 'B', 0x8e, 'X', 0x8c, 0x8d, 'V':
		return m.strings(op)
	case ')', 't', 0x85, 0x86, 0x87, ']', 'l', 'a', 'e', '}', 'd', 's', 'u':
		return m.containers(op)
	case 'q', 'r', 'p', 0x94, 'h', 'j', 'g':
		return m.memory(op)
	case 'c', 0x93, 'R', 0x81, 'b':
		return m.objects(op)
	case 'Q': // BINPERSID
		id, err := m.pop()
		m.push(Persistent{id})
		return err
	case '0': // POP
		if n := len(m.marks); n > 0 && m.marks[n-1] == len(m.stack)-1 {
			m.marks = m.marks[:n-1]
			m.stack = m.stack[:len(m.stack)-1]
			return nil
		}
		_, err := m.pop()
		return err
	default:
		return m.faultf("opcode 0x%02x is not read here: no data set needs it", op)
	}
	return nil
}
