package dtype

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestFloat16RoundTrip(t *testing.T) {
	for h := range 1 << 16 {
		f := Float16ToFloat32(uint16(h))
		back := Float32ToFloat16(f)
		if f != f {
			if g := Float16ToFloat32(back); g == g {
				t.Fatalf("%#04x: NaN came back as %#04x", h, back)
			}
			continue
		}
		if back != uint16(h) {
			t.Fatalf("%#04x -> %g -> %#04x", h, f, back)
		}
	}
}

func TestFloat16Values(t *testing.T) {
	inf := float32(math.Inf(1))
	for _, c := range []struct {
		v    float32
		want uint16
	}{
		{0, 0}, {1, 0x3C00}, {-2, 0xC000}, {65504, 0x7BFF}, {65519.99, 0x7BFF}, {65520, 0x7C00}, {inf, 0x7C00},
		{1 + 1.0/2048, 0x3C00}, {1 + 3.0/2048, 0x3C02}, // ties go to even
		{5.9604645e-08, 1}, {2.9802322e-08, 0}, {6.1035156e-05, 0x0400}, {6.1e-05, 0x03FF},
	} {
		if got := Float32ToFloat16(c.v); got != c.want {
			t.Errorf("Float32ToFloat16(%g) = %#04x, want %#04x", c.v, got, c.want)
		}
	}
}

// A narrow value is the nearest one: no neighbour is closer.
func TestNearest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.Float32Range(-60000, 60000).Draw(t, "v")
		h := Float32ToFloat16(v)
		best := math.Abs(float64(Float16ToFloat32(h)) - float64(v))
		for _, n := range []uint16{h - 1, h + 1} {
			if f := Float16ToFloat32(n); f == f && math.Abs(float64(f)-float64(v)) < best {
				t.Fatalf("%g became %#04x, but %#04x is nearer", v, h, n)
			}
		}
		b := Float32ToBFloat16(v)
		wide := func(b uint16) float64 { return float64(math.Float32frombits(uint32(b) << 16)) }
		for _, n := range []uint16{b - 1, b + 1} {
			if math.Abs(wide(n)-float64(v)) < math.Abs(wide(b)-float64(v)) {
				t.Fatalf("%g became bf16 %#04x, but %#04x is nearer", v, b, n)
			}
		}
	})
}

func TestRows(t *testing.T) {
	src := []float32{0, 1, -2.5, 127, -127, 0.5}
	for _, ty := range []Type{Float32, Float16, BFloat16, Int8} {
		buf := make([]byte, len(src)*ty.Size())
		scale := ty.Narrow(buf, src)
		got := make([]float32, len(src))
		ty.Widen(got, buf, scale)
		for i := range src {
			tol := 0.0
			if ty == Int8 {
				tol = 0.5 * float64(scale)
			}
			if d := math.Abs(float64(got[i] - src[i])); d > tol {
				t.Errorf("%v: element %d is %g, want %g within %g", ty, i, got[i], src[i], tol)
			}
		}
		if p, err := Parse(ty.String()); err != nil || p != ty {
			t.Errorf("Parse(%q) = %v, %v", ty.String(), p, err)
		}
	}
}

func TestInt8NotFinite(t *testing.T) {
	for _, bad := range []float32{float32(math.NaN()), float32(math.Inf(-1))} {
		if s := Int8.Narrow(make([]byte, 3), []float32{1, bad, 2}); s == s {
			t.Errorf("a row with %g has scale %g, want NaN", bad, s)
		}
	}
	if s := Int8.Narrow(make([]byte, 2), []float32{0, 0}); s != 0 {
		t.Errorf("zero row: scale %g", s)
	}
}
