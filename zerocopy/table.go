package zerocopy

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"unsafe"

	"zerogcn/dtype"
	"zerogcn/internal/usage"
)

// Errors that callers tell apart with errors.Is.
var (
	// ErrClosed is returned by every use of a closed table or gatherer.
	ErrClosed = errors.New("closed")
	// ErrInUse is returned by Table.Close while gatherers or a Fill use the
	// table; nothing has been released then.
	ErrInUse = errors.New("in use")
	// ErrTruncated is returned when the file behind a mapped table has become
	// shorter since it was opened, or its disk cannot be read.
	ErrTruncated = errors.New("the mapped file cannot be read: it was truncated after it was opened, or its disk fails")
)

// Options adjusts a table. The zero value is ready for use.
type Options struct {
	// Name is what error messages call the table; empty means "table". A file
	// name is a good choice.
	Name string
	// Workers bounds the goroutines of Fill; 0 means GOMAXPROCS.
	Workers int
	// Scales has the float32 scale of each row of an int8 table (value = scale ×
	// q). FromBytes and OpenFile keep it, NewTable and NewShared copy it; those
	// two also take nil, for scales that are filled in later (Table.Scales).
	Scales []float32
	// Owner, for FromBytes, is kept reachable until Close: the object whose
	// finalizer or cleanup would release the bytes.
	Owner any
	// SkipMemoryCheck lets NewTable map more memory than seems to be
	// available.
	SkipMemoryCheck bool
}

// source says where the bytes of a table come from, which decides whether a
// GPU may read them.
type source uint8

const (
	anonymous source = iota
	foreign
	mappedFile
	sharedMemory
)

// Table is rows × width values in host memory, row after row without gaps.
// Its methods may be called by several goroutines at the same time, except
// that the bytes of rows being written must not be gathered meanwhile.
type Table struct {
	shape
	name    string
	workers int
	source  source
	owner   any
	part    string // NewShared: the file until Publish, then empty
	path    string // and its name afterwards

	mem    *memory
	data   []byte    // rows × rowBytes
	scales []float32 // int8 only: one per row

	mu     sync.Mutex
	users  int // open gatherers and running fills
	closed bool
	leased bool // Memory was called: the mapping is left to the collector
}

// NewTable maps zeroed memory for rows × width values of type dt: anonymous,
// on huge pages where the kernel grants them, spread over the NUMA nodes if
// there are several. Fill brings the rows in.
//
// Sizes that overflow, or that exceed the memory available to the process, are
// errors of usage; no memory is taken then.
func NewTable(rows, width int, dt dtype.Type, opt Options) (*Table, error) {
	s, err := newShape(rows, width, dt)
	if err != nil {
		return nil, err
	}
	if opt.Scales != nil {
		if err := opt.checkScales(s); err != nil {
			return nil, err
		}
	}
	if !opt.SkipMemoryCheck {
		if err := checkAvailable(s, availableMemory); err != nil {
			return nil, fmt.Errorf("%s: %w", opt.name(), err)
		}
	}
	// The scales lie behind the rows in the same mapping, page-aligned, so that
	// one registration covers both.
	rowsEnd := roundUp(s.bytes(), pageSize)
	mem, err := mapAnonymous(rowsEnd + s.scaleBytes())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", opt.name(), err)
	}
	t := &Table{shape: s, name: opt.name(), workers: opt.Workers, source: anonymous, mem: mem, data: []byte{}}
	if s.bytes() > 0 {
		t.data = mem.data[:s.bytes():s.bytes()]
	}
	if s.scaleBytes() > 0 {
		t.scales = unsafe.Slice((*float32)(unsafe.Pointer(&mem.data[rowsEnd])), s.rows)
		copy(t.scales, opt.Scales)
	}
	return t, nil
}

// pageSize aligns the parts of a table's mapping.
const pageSize = 4096

// FromBytes makes a table over bytes that the caller owns, such as a shared
// memory mapping: exactly rows × width × dt.Size() of them, little-endian. The
// bytes are used in place and must stay valid and mapped until Close; see
// [Options.Owner] and [Options.Scales].
func FromBytes(data []byte, rows, width int, dt dtype.Type, opt Options) (*Table, error) {
	s, err := newShape(rows, width, dt)
	if err != nil {
		return nil, err
	}
	if len(data) != s.bytes() {
		return nil, usage.Errorf("%s: %v need %d bytes, but %d were given", opt.name(), s, s.bytes(), len(data))
	}
	if err := opt.checkScales(s); err != nil {
		return nil, err
	}
	return &Table{shape: s, name: opt.name(), workers: opt.Workers, source: foreign, owner: opt.Owner,
		mem: &memory{}, data: data, scales: opt.Scales}, nil
}

func (o *Options) name() string {
	if o.Name == "" {
		return "table"
	}
	return o.Name
}

func (o *Options) checkScales(s shape) error {
	switch {
	case s.dt == dtype.Int8 && len(o.Scales) != s.rows:
		return usage.Errorf("%s: an int8 table of %d rows needs as many scales, but %d were given", o.name(), s.rows, len(o.Scales))
	case s.dt != dtype.Int8 && o.Scales != nil:
		return usage.Errorf("%s: scales belong to int8 tables, this one is %v", o.name(), s.dt)
	}
	return nil
}

// Rows returns the number of rows.
func (t *Table) Rows() int { return t.rows }

// Width returns the values in a row.
func (t *Table) Width() int { return t.width }

// Type returns the storage type.
func (t *Table) Type() dtype.Type { return t.dt }

// RowBytes returns the bytes of a row as stored, without its scale.
func (t *Table) RowBytes() int { return t.rowBytes() }

// Name returns what messages call the table.
func (t *Table) Name() string { return t.name }

// Bytes returns all rows as stored, nil once the table is closed. The slice
// aliases the table's memory and is valid until Close; it must not be written
// if the table maps a file.
func (t *Table) Bytes() []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.data
}

// Scales returns the scales of an int8 table, one per row, nil for other types
// and once the table is closed. It aliases the table's memory.
func (t *Table) Scales() []float32 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.scales
}

// Row returns the stored bytes of row i, which alias the table's memory and are
// valid until Close. Reading a row of a mapped file that was truncated faults;
// ReadRow does not.
func (t *Table) Row(i int) ([]byte, error) {
	data := t.Bytes()
	if data == nil {
		return nil, t.closedError()
	}
	if err := t.checkID(0, int64(i)); err != nil {
		return nil, err
	}
	n := t.rowBytes()
	return data[i*n : (i+1)*n : (i+1)*n], nil
}

// ReadRow widens row i into dst, which must have Width values.
func (t *Table) ReadRow(dst []float32, i int) (err error) {
	if len(dst) != t.width {
		return fmt.Errorf("%s: destination has %d values, a row %d", t.name, len(dst), t.width)
	}
	if err := t.checkID(0, int64(i)); err != nil {
		return err
	}
	if err := t.acquire(); err != nil {
		return err
	}
	defer t.release()
	return t.guard(func() error {
		c := t.copier()
		c.copyRow(dst, int32(i))
		return nil
	})
}

// Close releases the table's memory, unless it is leased (see Memory). While gatherers are open or a Fill runs
// it releases nothing and returns an error that wraps ErrInUse. Closing a
// closed table does nothing.
func (t *Table) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil
	}
	if t.users > 0 {
		return fmt.Errorf("%s: %w by %d gatherer(s) or fill(s): close those first", t.name, ErrInUse, t.users)
	}
	t.closed = true
	t.data, t.scales, t.owner = nil, nil, nil
	var errs []error
	if t.part != "" { // never published
		errs = append(errs, os.Remove(t.part))
	}
	if t.leased {
		t.mem = nil
		return errors.Join(errs...)
	}
	if err := t.mem.free(); err != nil {
		errs = append(errs, fmt.Errorf("%s: unmapping: %w", t.name, err))
	}
	return errors.Join(errs...)
}

// acquire keeps the table open until release.
func (t *Table) acquire() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return t.closedError()
	}
	t.users++
	return nil
}

func (t *Table) release() {
	t.mu.Lock()
	t.users--
	t.mu.Unlock()
}

func (t *Table) closedError() error { return fmt.Errorf("%s: %w", t.name, ErrClosed) }

func (t *Table) checkID(position int, id int64) error {
	if id < 0 || id >= int64(t.rows) {
		return t.idError(position, id)
	}
	return nil
}

func (t *Table) idError(position int, id int64) error {
	return usage.Wrap(&IDError{Table: t.name, Position: position, ID: id, Rows: t.rows})
}

// IDError reports the first id of a gather that names no row of the table. It
// comes marked as an error of input; find it with errors.As.
type IDError struct {
	Table    string
	Position int   // index in the list of ids
	ID       int64 // the id found there
	Rows     int   // rows of the table
}

func (e *IDError) Error() string {
	return fmt.Sprintf("%s: id %d at position %d is not a row (the table has %d rows): verify the graph with dataset verify",
		e.Table, e.ID, e.Position, e.Rows)
}
