package exectest

import (
	"errors"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"zerogcn/model/exec"
	"zerogcn/model/op"
)

// Run checks every kind of operation on the device, but for those that it calls
// exec.ErrUnsupported.
func Run(t *testing.T, d Device) {
	for _, kind := range op.Kinds() {
		t.Run(kind.String(), func(t *testing.T) {
			skipUnsupported(t, d, kind)
			ks := newKernels(d)
			rapid.Check(t, func(r *rapid.T) {
				c := draw(r, kind)
				got := ks.run(t, r, c)
				c.compare(r, got)
			})
		})
	}
}

// skipUnsupported skips a kind that the device does not offer by design.
func skipUnsupported(t *testing.T, d Device, kind op.Kind) {
	t.Helper()
	if _, err := d.Kernel(op.New(kind, op.Attr{})); errors.Is(err, exec.ErrUnsupported) {
		t.Skip(err)
	}
}

// Same checks that other devices give the same bits as the first, in the kinds
// that the first offers.
func Same(t *testing.T, first Device, others ...Device) {
	for _, kind := range op.Kinds() {
		t.Run(kind.String(), func(t *testing.T) {
			skipUnsupported(t, first, kind)
			ks := newKernels(first)
			var more []*kernels
			for _, d := range others {
				more = append(more, newKernels(d))
			}
			rapid.Check(t, func(r *rapid.T) {
				c := draw(r, kind)
				want := ks.run(t, r, c)
				for i, k := range more {
					got := k.run(t, r, c)
					if j := differ(got, want); j >= 0 {
						r.Fatalf("%v: element %d is %g on device %d (%s), %g on the first (%s)",
							c, j, got[j], i+1, k.d.Name(), want[j], ks.d.Name())
					}
				}
			})
		})
	}
}

// kernels keeps one kernel for each operation, as programs do.
type kernels struct {
	d    Device
	made map[op.Op]exec.Kernel
}

func newKernels(d Device) *kernels { return &kernels{d, map[op.Op]exec.Kernel{}} }

func (k *kernels) of(r *rapid.T, o *op.Op) exec.Kernel {
	if k.made[*o] == nil {
		kernel, err := k.d.Kernel(o)
		if err != nil {
			r.Fatalf("%v: %v", o, err)
		}
		k.made[*o] = kernel
	}
	return k.made[*o]
}

// Guard zones are wide enough to keep results at the alignment of whole lines.
const (
	guard      = 64
	guardValue = -12345.25
)

// run computes c between guard zones, then once more in place if that is
// allowed, and returns the result.
func (k *kernels) run(t testing.TB, r *rapid.T, c *testCase) []float32 {
	in := make([]*op.Value, len(c.in))
	for i := range c.in {
		v := k.d.Upload(t, c.in[i])
		in[i] = &v
	}
	nan := slices.Repeat([]float32{float32(math.NaN())}, c.rows*c.cols)
	got := k.guarded(t, r, c, nan, in, false)
	for i, v := range in {
		if c.in[i].Data != nil {
			if j := differ(k.d.Download(t, *v), c.in[i].Data[:v.Len()]); j >= 0 {
				r.Fatalf("%v: changed element %d of operand %d", c, j, i)
			}
		}
	}
	if c.op.InPlace() {
		again := k.guarded(t, r, c, c.in[0].Data, in, true)
		if i := differ(got, again); i >= 0 {
			r.Fatalf("%v: element %d is %g in place, else %g", c, i, again[i], got[i])
		}
	}
	return got
}

// guarded runs the kernel on memory that held initial before, and is operand 0
// as well if inPlace.
func (k *kernels) guarded(t testing.TB, r *rapid.T, c *testCase, initial []float32, in []*op.Value, inPlace bool) []float32 {
	n := c.rows * c.cols
	mem := slices.Repeat([]float32{guardValue}, n+2*guard)
	copy(mem[guard:], initial[:n])
	all := k.d.Upload(t, op.Matrix(1, len(mem), mem))
	out := part(all, guard, c.rows, c.cols)
	if inPlace {
		in = slices.Clone(in)
		first := out
		in[0] = &first
	}
	kernel := k.of(r, c.op)
	if p, ok := kernel.(exec.Preparer); ok {
		if err := p.Prepare(&out, in); err != nil {
			r.Fatalf("%v: %v", c, err)
		}
	}
	if err := kernel.Run(&out, in); err != nil {
		r.Fatalf("%v: %v", c, err)
	}
	mem = k.d.Download(t, all)
	for i, v := range mem {
		if (i < guard || i >= guard+n) && v != guardValue {
			r.Fatalf("%v: wrote %g outside the result of %d elements, at %d", c, v, n, i-guard)
		}
	}
	return mem[guard : guard+n]
}

// differ returns the first place where the bits differ, or -1. Any two NaNs are
// equal.
func differ(a, b []float32) int {
	for i := range a {
		if math.Float32bits(a[i]) != math.Float32bits(b[i]) && (a[i] == a[i] || b[i] == b[i]) {
			return i
		}
	}
	return -1
}

// compare checks a result against the reference loop: bit by bit for operations
// that do not sum; else with a tolerance relative to the sum of magnitudes,
// which is the reference of the operands' magnitudes.
func (c *testCase) compare(r *rapid.T, got []float32) {
	want := c.reference(false)
	if c.exact {
		if i := differ(got, want); i >= 0 {
			r.Fatalf("%v: element %d is %g, want %g", c, i, got[i], want[i])
		}
		return
	}
	bound := c.bound
	if bound == nil {
		bound = c.reference(true)
	}
	for i, w := range want {
		tol := float64(c.terms+16) * math.Exp2(-24) * float64(bound[i])
		if d := math.Abs(float64(got[i]) - float64(w)); !(d <= tol) {
			r.Fatalf("%v: element %d is %g, want %g within %g", c, i, got[i], w, tol)
		}
	}
}

// reference runs the operation's plain loop, on magnitudes if asked.
func (c *testCase) reference(magnitudes bool) []float32 {
	in := make([]*op.Value, len(c.in))
	for i := range c.in {
		v := c.in[i]
		if magnitudes {
			v = abs(v)
		}
		in[i] = &v
	}
	out := op.Matrix(c.rows, c.cols, make([]float32, c.rows*c.cols))
	c.op.Reference(&out, in)
	return out.Data
}
