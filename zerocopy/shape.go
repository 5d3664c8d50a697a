package zerocopy

import (
	"fmt"
	"math"
	"math/bits"

	"zerogcn/dtype"
	"zerogcn/internal/usage"
)

// maxWidth bounds the values of one row. It keeps row sizes within int32
// arithmetic on the device; the widest features in use have some thousands.
const maxWidth = 1 << 24

// shape is the checked size of a table.
type shape struct {
	rows, width int
	dt          dtype.Type
}

// newShape checks the sizes, which may come from a file's header.
func newShape(rows, width int, dt dtype.Type) (shape, error) {
	switch {
	case dt > dtype.Int8:
		return shape{}, usage.Errorf("table: unknown data type %v", dt)
	case rows < 0 || width < 0:
		return shape{}, usage.Errorf("table: negative size (%d rows × %d values)", rows, width)
	case rows > math.MaxInt32:
		return shape{}, usage.Errorf("table: %d rows, but ids are int32, so at most %d fit", rows, math.MaxInt32)
	case width > maxWidth:
		return shape{}, usage.Errorf("table: rows of %d values, but at most %d are supported", width, maxWidth)
	}
	// rows < 2^31, rowBytes ≤ 2^26: the product is below 2^57, and with the
	// scales still far below 2^63. The check stays for 32-bit platforms.
	hi, lo := bits.Mul64(uint64(rows), uint64(width*dt.Size()))
	if hi != 0 || lo > math.MaxInt-1<<16 {
		return shape{}, usage.Errorf("table: %d rows × %d values of %v do not fit the address space", rows, width, dt)
	}
	return shape{rows, width, dt}, nil
}

func (s shape) rowBytes() int { return s.width * s.dt.Size() }
func (s shape) bytes() int    { return s.rows * s.rowBytes() }

// scaleBytes is the room for the scales of int8 rows.
func (s shape) scaleBytes() int {
	if s.dt != dtype.Int8 {
		return 0
	}
	return 4 * s.rows
}

func (s shape) String() string { return fmt.Sprintf("%d rows × %d %v", s.rows, s.width, s.dt) }

// formatBytes writes a size in decimal units, as storage and link rates are
// given: 56.9 GB.
func formatBytes(n int64) string {
	if n < 1000 {
		return fmt.Sprintf("%d B", n)
	}
	v, units := float64(n), "kMGTPE"
	for i := 0; ; i++ {
		v /= 1000
		if v < 999.5 || i == len(units)-1 {
			return fmt.Sprintf("%.3g %cB", v, units[i])
		}
	}
}
