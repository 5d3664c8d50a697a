package zerocopy

import (
	"encoding/binary"
	"math"
	"testing"

	"zerogcn/dtype"
)

// TestWidenEveryValue compares with package dtype on every bit pattern of each
// narrow type, NaN payloads and subnormals included.
func TestWidenEveryValue(t *testing.T) {
	halves := make([]byte, 2<<16)
	for i := range 1 << 16 {
		binary.LittleEndian.PutUint16(halves[2*i:], uint16(i))
	}
	bytes := make([]byte, 256)
	for i := range bytes {
		bytes[i] = byte(i)
	}
	for _, c := range []struct {
		dt  dtype.Type
		src []byte
	}{{dtype.BFloat16, halves}, {dtype.Float16, halves}, {dtype.Int8, bytes}} {
		n := len(c.src) / c.dt.Size()
		got, want := make([]float32, n), make([]float32, n)
		widen(c.dt, got, c.src, 0.1)
		c.dt.Widen(want, c.src, 0.1)
		for i := range want {
			if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
				t.Fatalf("%v %#x: got %#x, want %#x", c.dt, i, math.Float32bits(got[i]), math.Float32bits(want[i]))
			}
		}
	}
}

// TestWidenBounds checks every length around the vector width, at unaligned
// sources, with guards on both sides of the destination.
func TestWidenBounds(t *testing.T) {
	const guard, mark = 8, 7.25
	for _, dt := range allTypes {
		for n := range 40 {
			for shift := range 3 {
				src := make([]byte, shift+n*dt.Size())
				for i := range src {
					src[i] = pattern(i)
				}
				buf := make([]float32, n+2*guard)
				for i := range buf {
					buf[i] = mark
				}
				widen(dt, buf[guard:guard+n], src[shift:], 3)
				want := make([]float32, n)
				dt.Widen(want, src[shift:], 3)
				if i := diffBits(buf[guard:guard+n], want, dt); i >= 0 {
					t.Fatalf("%v, %d values, shift %d: value %d differs", dt, n, shift, i)
				}
				for i := range guard {
					if buf[i] != mark || buf[guard+n+i] != mark {
						t.Fatalf("%v, %d values: wrote outside", dt, n)
					}
				}
			}
		}
	}
}
