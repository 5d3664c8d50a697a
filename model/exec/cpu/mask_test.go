package cpu

import (
	"math"
	"math/rand/v2"
	"testing"

	"zerogcn/model/op"
	"zerogcn/sparse"
)

// Vector and scalar code draw op.Mask's words, at every width and in place.
func TestMaskRow(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, p := range []float64{0, 0.3, 0.5, 0.999} {
		for n := range 300 {
			key := &op.Key{Seed: rng.Uint64(), Step: rng.Uint64()}
			site, item := rng.Uint32N(1<<24), rng.Uint32()
			ref := op.NewMask(key, p, site)
			var m mask
			m.set(key, p, site)
			src := make([]float32, n)
			for i := range src {
				src[i] = float32(rng.NormFloat64())
			}
			for _, vector := range []bool{false, hasVector()} {
				m.vector = vector
				got := append([]float32(nil), src...)
				m.row(got, got, item)
				for i, v := range got {
					want := float32(0)
					if ref.Keep(item, i) {
						want = src[i] * ref.Scale
					}
					if math.Float32bits(v) != math.Float32bits(want) {
						t.Fatalf("p %g, %d elements, vector %t: element %d is %g, want %g", p, n, vector, i, v, want)
					}
				}
			}
		}
	}
}

func TestMaskEntries(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		rows, cols := 1+rng.IntN(20), 1+rng.IntN(40)
		dense := make([]float32, rows*cols)
		for i := range dense {
			if rng.IntN(4) == 0 {
				dense[i] = float32(rng.NormFloat64())
			}
		}
		x := sparse.FromDense(dense, rows, cols)
		key := &op.Key{Seed: rng.Uint64(), Step: rng.Uint64()}
		if rng.IntN(2) == 0 {
			for range rows {
				key.Rows = append(key.Rows, rng.Int32())
			}
		}
		ref := op.NewMask(key, 0.5, 9)
		var m mask
		m.set(key, 0.5, 9)
		lo := rng.IntN(rows)
		hi := lo + 1 + rng.IntN(rows-lo)
		for _, vector := range []bool{false, hasVector()} {
			m.vector = vector
			got := make([]float32, x.Indptr[hi]-x.Indptr[lo])
			m.entries(got, x, key, lo, hi)
			at := 0
			for r := lo; r < hi; r++ {
				cs, vs := x.Row(r)
				for i, c := range cs {
					want := float32(0)
					if ref.Keep(key.Item(r), int(c)) {
						want = vs[i] * ref.Scale
					}
					if got[at] != want {
						t.Fatalf("vector %t: row %d, column %d is %g, want %g", vector, r, c, got[at], want)
					}
					at++
				}
			}
		}
	}
}

func BenchmarkMaskRow(b *testing.B) {
	for _, vector := range []bool{false, true} {
		name := "scalar"
		if vector {
			name = "vector"
		}
		b.Run(name, func(b *testing.B) {
			if vector && !hasVector() {
				b.Skip("no vector instructions")
			}
			var m mask
			m.set(&op.Key{Seed: 1}, 0.5, 1)
			m.vector = vector
			x := make([]float32, 256)
			b.SetBytes(int64(8 * len(x)))
			item := uint32(0)
			for b.Loop() {
				m.row(x, x, item)
				item++
			}
		})
	}
}
