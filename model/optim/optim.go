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
	z := &Optimizer{opt: o}
	z.tileFn = z.tile
	at := 0
	for _, s := range segments {
		if s.Lo < at || s.Hi < s.Lo || s.Hi > n {
			return nil, fmt.Errorf("optim: segment [%d, %d) of a buffer of %d does not follow %d", s.Lo, s.Hi, n, at)
		}
		if !(s.WeightDecay >= 0) {
			return nil, fmt.Errorf("optim: weight decay %g is negative", s.WeightDecay)
		}
		if s.Lo > at {
			z.segments = append(z.segments, Segment{Lo: at, Hi: s.Lo})
		}
		z.segments = append(z.segments, s)
		at = s.Hi
	}
	if at < n {
		z.segments = append(z.segments, Segment{Lo: at, Hi: n})
	}
	switch o.Kind {
	case Adam, AdamW:
		z.m, z.v = make([]float32, n), make([]float32, n)
	case SGD:
		if o.Nesterov && o.Momentum == 0 {
			return nil, fmt.Errorf("optim: Nesterov's momentum needs a momentum above 0")
		}
		if o.Momentum != 0 {
			z.m = make([]float32, n)
		}
	default:
		return nil, fmt.Errorf("optim: unknown optimiser %q (adam, adamw or sgd)", o.Kind)
	}
	return z, nil
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
	t := float64(z.steps)
	b1, b2 := float32(z.opt.Beta1), float32(z.opt.Beta2)
	c1, c2 := float32(1-z.opt.Beta1), float32(1-z.opt.Beta2)
	size := float32(lr / (1 - math.Pow(z.opt.Beta1, t)))
	root := float32(1 / math.Sqrt(1-math.Pow(z.opt.Beta2, t)))
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
	switch {
	case z.v != nil:
		return map[string][]float32{"exp_avg": z.m, "exp_avg_sq": z.v}
	case z.m != nil:
		return map[string][]float32{"momentum_buffer": z.m}
	}
	return nil
}
