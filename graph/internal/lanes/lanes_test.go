package lanes

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"zerogcn/internal/philox"
)

func drawVector(t *rapid.T, name string, lo, hi uint32) (v Vector) {
	copy(v[:], rapid.SliceOfN(rapid.Uint32Range(lo, hi), Width, Width).Draw(t, name))
	return v
}

// TestKernels compares the kernels that this machine runs with their plain
// forms, between vectors that must stay as they are.
func TestKernels(t *testing.T) {
	t.Logf("assembly: %v", Assembly)
	rapid.Check(t, func(t *rapid.T) {
		s := NewStream(rapid.Uint64().Draw(t, "seed"), philox.Sample, rapid.IntRange(0, 9).Draw(t, "hop"), rapid.Uint64().Draw(t, "step"))
		k := rapid.IntRange(0, Max).Draw(t, "k")
		items := drawVector(t, "items", 0, 1<<32-1)
		degrees := drawVector(t, "degrees", uint32(k)+1, rapid.SampledFrom([]uint32{uint32(k) + 1, 64, 1 << 31}).Draw(t, "most"))
		const guard = 0xDEADBEEF

		var got, want struct {
			before Vector
			w      [4]Vector
			x      [Max]Vector
			after  Vector
		}
		for lane := range Width {
			got.before[lane], got.after[lane] = guard, guard
		}
		blocks := drawVector(t, "blocks", 0, 1<<32-1)
		words(&s, &items, &blocks, &got.w)
		wordsPlain(&s, &items, &blocks, &want.w)
		for i := range got.x {
			got.x[i] = drawVector(t, "words", 0, 1<<32-1)
		}
		want.x = got.x
		want.before, want.after = got.before, got.after
		same := func(what string) {
			if got != want {
				t.Fatalf("%s: got %v, want %v", what, got, want)
			}
		}
		same("words")
		if rapid.Bool().Draw(t, "replace") {
			below(&got.x, &degrees, k)
			belowPlain(&want.x, &degrees, k)
			same("below")
		} else {
			floyd(&got.x, &degrees, k)
			floydPlain(&want.x, &degrees, k)
			same("floyd")
		}
		sort(&got.x, Network(k))
		sortPlain(&want.x, Network(k))
		same("sort")
	})
}

// TestDraws compares whole draws with the definition, one target at a time.
func TestDraws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed, step, hop := rapid.Uint64().Draw(t, "seed"), rapid.Uint64().Draw(t, "step"), rapid.IntRange(0, 9).Draw(t, "hop")
		k := rapid.IntRange(1, Max).Draw(t, "k")
		d := Draws{Items: drawVector(t, "items", 0, 1<<32-1), Degrees: drawVector(t, "degrees", uint32(k)+1, 200)}
		s := NewStream(seed, philox.Evaluation, hop, step)
		stream := philox.NewStream(seed, philox.Evaluation, uint32(hop), step)
		replace := rapid.Bool().Draw(t, "replace")
		if replace {
			d.Replace(&s, k, Network(k))
		} else {
			d.Floyd(&s, k, Network(k))
		}
		for lane := range Width {
			var got, want []uint32
			for i := range k {
				got = append(got, d.Positions[i][lane])
				j := d.Degrees[lane] - uint32(k) + uint32(i)
				word := stream.Word(d.Items[lane], uint32(i))
				x := philox.Below(word, j+1)
				if replace {
					x = philox.Below(word, d.Degrees[lane])
				} else if slices.Contains(want, x) {
					x = j
				}
				want = append(want, x)
			}
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Fatalf("lane %d: %v, want %v", lane, got, want)
			}
		}
	})
}

func TestRun(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed, step := rapid.Uint64().Draw(t, "seed"), rapid.Uint64().Draw(t, "step")
		hop := rapid.IntRange(0, 1<<24-1).Draw(t, "hop")
		item, n := rapid.Uint32().Draw(t, "item"), rapid.Uint32Range(0, 1<<27-1).Draw(t, "n")
		stream := philox.NewStream(seed, philox.Evaluation, uint32(hop), step)
		s := NewStream(seed, philox.Evaluation, hop, step)
		var r Run
		r.Fill(&s, item, n)
		for i := range RunLen {
			if got, want := r.Word(i), stream.Word(item, RunLen*n+uint32(i)); got != want {
				t.Fatalf("word %d is %x, want %x", i, got, want)
			}
		}
	})
}

// TestNetwork uses the 0-1 principle (Knuth, section 5.3.4, theorem Z): a
// network that sorts all sequences of 0 and 1 sorts everything.
func TestNetwork(t *testing.T) {
	for n := range Max + 1 {
		net := Network(n)
		check := func(bits *Vector) {
			var x [Max]Vector
			for i := range n {
				for lane, b := range bits {
					x[i][lane] = b >> i & 1
				}
			}
			sort(&x, net)
			for i := 1; i < n; i++ {
				for lane := range bits {
					if x[i-1][lane] > x[i][lane] {
						t.Fatalf("the network for %d does not sort %b", n, bits[lane])
					}
				}
			}
		}
		var bits Vector
		if n <= 14 {
			for b := uint32(0); b < 1<<n; b += Width {
				for lane := range bits {
					bits[lane] = b + uint32(lane)
				}
				check(&bits)
			}
			continue
		}
		for i := range uint32(4000) {
			for lane := range bits { // of all densities of ones
				w := philox.Block([4]uint32{i, uint32(lane), uint32(n)}, [2]uint32{})
				bits[lane] = w[0]
				if w[3]&1 != 0 {
					bits[lane] &= w[1]
				}
				if w[3]&2 != 0 {
					bits[lane] |= w[2]
				}
			}
			check(&bits)
		}
	}
}

func BenchmarkFloyd(b *testing.B) {
	for _, k := range []int{5, 10, 15, 32} {
		b.Run("k="+string(rune('0'+k/10))+string(rune('0'+k%10)), func(b *testing.B) {
			s := NewStream(1, philox.Sample, 0, 0)
			net := Network(k)
			var d Draws
			for lane := range Width {
				d.Degrees[lane] = uint32(50 + 30*lane)
			}
			for b.Loop() {
				d.Items[0]++
				d.Floyd(&s, k, net)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(Width*k), "ns/draw")
		})
	}
}
