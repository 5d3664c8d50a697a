package optim

import (
	"fmt"
	"math"

	"zerogcn/internal/par"
)

// Kind names an optimiser.
type Kind string

// The optimisers.
const (
	Adam  Kind = "adam"  // Kingma and Ba, ICLR 2015; weight decay joins the gradient
	AdamW Kind = "adamw" // Loshchilov and Hutter, ICLR 2019; weight decay is decoupled
	SGD   Kind = "sgd"   // stochastic gradient descent, with momentum if asked
)

// Kinds lists the optimisers by the names that flags use.
func Kinds() []string { return []string{string(Adam), string(AdamW), string(SGD)} }

// Options describes an optimiser. Zero fields take PyTorch's defaults.
type Options struct {
	Kind     Kind    // default Adam
	Beta1    float64 // Adam: decay of the first moment, default 0.9
	Beta2    float64 // Adam: decay of the second moment, default 0.999
	Epsilon  float64 // Adam: added outside the root, default 1e-8
	Momentum float64 // SGD: default 0
	Nesterov bool    // SGD: Nesterov's momentum
	Workers  par.Workers
}

// Segment is a range of the flat buffers with its weight decay.
type Segment struct {
	Lo, Hi      int
	WeightDecay float64
}

// Optimizer holds the moments of one parameter buffer.
type Optimizer struct {
	opt      Options
	segments []Segment
	steps    int64
	m, v     []float32 // first and second moment; SGD: m is the velocity
	step     step
	tileFn   func(tile, lo, hi int)
}

// step is the Step under way, for the goroutines that work on it.
type step struct {
	params, grad []float32
	lr           float64
	segment      Segment
}

// tileSize is the number of elements of a tile: 16,384 of four streams are 256 KB.
const tileSize = 1 << 14

// New returns an optimiser for buffers of n elements. Segments must be ascending,
// disjoint and within [0, n); elements in none have no weight decay.
func New(n int, segments []Segment, o Options) (*Optimizer, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	segments, err := cover(n, segments)
	if err != nil {
		return nil, err
	}
	z := &Optimizer{opt: o, segments: segments}
	z.tileFn = z.tile
	switch o.moments() {
	case 2:
		z.m, z.v = make([]float32, n), make([]float32, n)
	case 1:
		z.m = make([]float32, n)
	}
	return z, nil
}

// complete fills in defaults and reports what does not go together.
func (o *Options) complete() error {
	if o.Kind == "" {
		o.Kind = Adam
	}
	if o.Beta1 == 0 {
		o.Beta1 = 0.9
	}
	if o.Beta2 == 0 {
		o.Beta2 = 0.999
	}
	if o.Epsilon == 0 {
		o.Epsilon = 1e-8
	}
	switch o.Kind {
	case Adam, AdamW:
	case SGD:
		if o.Nesterov && o.Momentum == 0 {
			return fmt.Errorf("optim: Nesterov's momentum needs a momentum above 0")
		}
	default:
		return fmt.Errorf("optim: unknown optimiser %q (adam, adamw or sgd)", o.Kind)
	}
	return nil
}

// moments returns how many buffers the optimiser keeps.
func (o *Options) moments() int {
	switch {
	case o.Kind != SGD:
		return 2
	case o.Momentum != 0:
		return 1
	}
	return 0
}

// momentNames are the names of State, by the number of moments.
var momentNames = [...][]string{nil, {"momentum_buffer"}, {"exp_avg", "exp_avg_sq"}}

// cover checks segments and fills the gaps with ones without decay.
func cover(n int, segments []Segment) ([]Segment, error) {
	var all []Segment
	at := 0
	for _, s := range segments {
		if s.Lo < at || s.Hi < s.Lo || s.Hi > n {
			return nil, fmt.Errorf("optim: segment [%d, %d) of a buffer of %d does not follow %d", s.Lo, s.Hi, n, at)
		}
		if !(s.WeightDecay >= 0) {
			return nil, fmt.Errorf("optim: weight decay %g is negative", s.WeightDecay)
		}
		if s.Lo > at {
			all = append(all, Segment{Lo: at, Hi: s.Lo})
		}
		all = append(all, s)
		at = s.Hi
	}
	if at < n {
		all = append(all, Segment{Lo: at, Hi: n})
	}
	return all, nil
}

// Step updates the parameters by the gradients at learning rate lr. It
// allocates nothing.
func (z *Optimizer) Step(params, grad []float32, lr float64) {
	z.steps++
	for _, s := range z.segments {
		z.step = step{params, grad, lr, s}
		z.opt.Workers.Range(s.Hi-s.Lo, tileSize, z.tileFn)
	}
	z.step = step{}
}

// tile updates elements [lo, hi) of the segment.
func (z *Optimizer) tile(_, lo, hi int) {
	s := &z.step
	lo, hi = s.segment.Lo+lo, s.segment.Lo+hi
	if z.opt.Kind == SGD {
		z.sgd(s.params[lo:hi], s.grad[lo:hi], lo, s.lr, s.segment.WeightDecay)
		return
	}
	z.adam(s.params[lo:hi], s.grad[lo:hi], z.m[lo:hi], z.v[lo:hi], s.lr, s.segment.WeightDecay)
}

// adam is algorithm 1 of Kingma and Ba with the two bias corrections folded
// into the step size and the root, as PyTorch has it:
// p -= lr/(1-β1ᵗ) · m / (√v/√(1-β2ᵗ) + ε).
func (z *Optimizer) adam(p, g, m, v []float32, lr, decay float64) {
	g, m, v = g[:len(p)], m[:len(p)], v[:len(p)]
	b1, b2 := float32(z.opt.Beta1), float32(z.opt.Beta2)
	c1, c2 := float32(1-z.opt.Beta1), float32(1-z.opt.Beta2)
	size, root := z.opt.corrected(z.steps, lr)
	eps := float32(z.opt.Epsilon)
	join, shrink := float32(decay), float32(1)
	if z.opt.Kind == AdamW {
		join, shrink = 0, float32(1-lr*decay)
	}
	for i, x := range p {
		x *= shrink
		d := g[i] + join*x
		m[i] = b1*m[i] + c1*d
		v[i] = b2*v[i] + c2*d*d
		p[i] = x - size*m[i]/(float32(math.Sqrt(float64(v[i])))*root+eps)
	}
}

// corrected returns Adam's step size and the factor of the root at step t, with
// the bias corrections in them.
func (o *Options) corrected(t int64, lr float64) (size, root float32) {
	return float32(lr / (1 - math.Pow(o.Beta1, float64(t)))), float32(1 / math.Sqrt(1-math.Pow(o.Beta2, float64(t))))
}

func (z *Optimizer) sgd(p, g []float32, lo int, lr, decay float64) {
	mu, rate, wd := float32(z.opt.Momentum), float32(lr), float32(decay)
	for i, x := range p {
		d := g[i] + wd*x
		if z.m != nil {
			// PyTorch starts the velocity at the first gradient, which a zero
			// velocity gives as well since it takes no dampening.
			u := mu*z.m[lo+i] + d
			z.m[lo+i] = u
			if z.opt.Nesterov {
				d += mu * u
			} else {
				d = u
			}
		}
		p[i] = x - rate*d
	}
}

// Steps returns the number of steps so far; SetSteps restores it.
func (z *Optimizer) Steps() int64 { return z.steps }

// SetSteps sets the number of steps so far, on resuming.
func (z *Optimizer) SetSteps(n int64) { z.steps = n }

// State returns the moments by name: "exp_avg" and "exp_avg_sq" of Adam,
// "momentum_buffer" of SGD with momentum. The slices alias the optimiser's own:
// copying into them restores a state.
func (z *Optimizer) State() map[string][]float32 {
	names := momentNames[z.opt.moments()]
	if len(names) == 0 {
		return nil
	}
	state := map[string][]float32{names[0]: z.m}
	if z.v != nil {
		state[names[1]] = z.v
	}
	return state
}
