package zerocopy

import (
	"math"
	"unsafe"

	"zerogcn/dtype"
)

// prefetchAhead is how many rows before its use a row is requested from
// memory. A row's reads overlap only as far as the processor's reorder window
// reaches, a fraction of a row; requesting rows ahead keeps all of a core's
// line-fill buffers busy.
const prefetchAhead = 8

// copier reads rows of a table. It is a value so that hot loops hold it in
// registers and nothing is allocated.
type copier struct {
	data     []byte
	scales   []float32
	rows     uint32
	width    int
	rowBytes int
	dt       dtype.Type
}

func (t *Table) copier() copier {
	return copier{t.data, t.scales, uint32(t.rows), t.width, t.rowBytes(), t.dt}
}

// copyRow widens row id, which must be valid, into dst.
func (c *copier) copyRow(dst []float32, id int32) {
	src := c.data[int(id)*c.rowBytes : (int(id)+1)*c.rowBytes]
	scale := float32(1)
	if c.dt == dtype.Int8 {
		scale = c.scales[id]
	}
	widen(c.dt, dst[:c.width], src, scale)
}

// gather widens the rows ids into dst in order and returns the position of the
// first id that is not a row, or -1.
func (c *copier) gather(dst []float32, ids []int32) int {
	w := c.width
	for i, id := range ids {
		if i+prefetchAhead < len(ids) {
			c.prefetch(ids[i+prefetchAhead])
		}
		if uint32(id) >= c.rows {
			return i
		}
		c.copyRow(dst[i*w:(i+1)*w], id)
	}
	return -1
}

// gatherRaw copies the rows ids as stored into dst, rowBytes apart, and returns
// the position of the first id that is not a row, or -1.
func (c *copier) gatherRaw(dst []byte, ids []int32) int {
	n := c.rowBytes
	for i, id := range ids {
		if i+prefetchAhead < len(ids) {
			c.prefetch(ids[i+prefetchAhead])
		}
		if uint32(id) >= c.rows {
			return i
		}
		copy(dst[i*n:(i+1)*n], c.data[int(id)*n:])
	}
	return -1
}

// prefetch requests the lines of a row; an id that is not a row is left for the
// check that follows.
func (c *copier) prefetch(id int32) {
	if uint32(id) < c.rows && c.rowBytes > 0 {
		prefetchLines(unsafe.Pointer(&c.data[int(id)*c.rowBytes]), uintptr(c.rowBytes))
	}
}

// hostLittleEndian: rows are little-endian, and so is every platform that has
// a GPU driver; there float32 rows are copied as bytes.
var hostLittleEndian = *(*byte)(unsafe.Pointer(&[]uint16{1}[0])) == 1

// widen is dtype.Type.Widen with fast paths.
func widen(dt dtype.Type, dst []float32, src []byte, scale float32) {
	if dt == dtype.Float32 && hostLittleEndian && len(dst) > 0 {
		copy(unsafe.Slice((*byte)(unsafe.Pointer(&dst[0])), 4*len(dst)), src)
		return
	}
	n := widenVector(dt, dst, src, scale)
	dt.Widen(dst[n:], src[n*dt.Size():], scale)
}

// firstBad is an atomic minimum's neutral element: no bad id seen.
const firstBad = math.MaxInt64
