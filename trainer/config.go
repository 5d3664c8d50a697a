package trainer

import (
	"errors"
	"fmt"
	"slices"

	"zerogcn/internal/par"
	"zerogcn/loader"
	"zerogcn/model"
	"zerogcn/model/optim"
)

// Config says how to train. It is stored in checkpoints, so that evaluate and
// resume need no flags. The fields of Model that depend on the dataset (In,
// Classes, SparseInput, FullGraph) are filled in by New.
type Config struct {
	Model model.Config `json:"model"`
	// Fanouts has one fan-out per layer from the seeds outwards; none means
	// whole neighbourhoods.
	Fanouts []int `json:"fanouts"`
	// Sampling is how neighbours are drawn, in training and in sampled
	// evaluation.
	Sampling loader.Sampling `json:"sampling,omitempty"`
	// Batch is the number of seeds of a mini-batch; 0 means all of them.
	Batch  int    `json:"batch"`
	Epochs int    `json:"epochs"`
	Seed   uint64 `json:"seed"`

	Optimizer optim.Kind `json:"optimizer"` // default adam
	Momentum  float64    `json:"momentum"`  // SGD only
	LR        float64    `json:"lr"`
	// Schedule changes the rate from epoch to epoch.
	Schedule optim.Schedule `json:"schedule"`
	// WeightDecay is one value for all layers, or one per layer from the input.
	WeightDecay []float64 `json:"weight_decay"`

	// EvalEvery is the number of epochs between evaluations, default 1. The last
	// epoch is always evaluated.
	EvalEvery int `json:"eval_every"`
	// EvalFanouts evaluates on sampled neighbourhoods, one fan-out per layer from
	// the seeds outwards; none means exactly, by layer-wise inference.
	EvalFanouts []int `json:"eval_fanouts,omitempty"`
	// Patience ends training after that many evaluations without a better
	// validation metric; 0 never does.
	Patience int `json:"patience"`

	// CheckpointEvery is the number of steps between checkpoints; 0 writes one
	// at the end of an epoch if the last is at least CheckpointSeconds old. The
	// end of a run, and its interruption, always write one.
	CheckpointEvery int `json:"-"`
	// Workers bounds the goroutines of each stage; 0 means GOMAXPROCS. Results
	// do not depend on it.
	Workers int `json:"-"`
}

// CheckpointSeconds is the least time between two checkpoints that are not asked
// for by number of steps.
const CheckpointSeconds = 30

// EnsureDefaults fills in what is empty.
func (c *Config) EnsureDefaults() {
	c.Model.EnsureDefaults()
	if c.Optimizer == "" {
		c.Optimizer = optim.Adam
	}
	if c.EvalEvery == 0 {
		c.EvalEvery = 1
	}
	if len(c.WeightDecay) == 0 {
		c.WeightDecay = []float64{0}
	}
}

// Validate lists all faults in one error. What the dataset decides is checked by
// New.
func (c *Config) Validate() error {
	var faults []error
	bad := func(wrong bool, format string, args ...any) {
		if wrong {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	layers := c.Model.Layers
	bad(len(c.Fanouts) != 0 && len(c.Fanouts) != layers && c.Model.Arch != model.MLP,
		"%d fan-outs for %d layers: give one per layer", len(c.Fanouts), layers)
	bad(c.Sampling != "" && !slices.Contains(loader.Samplings(), c.Sampling), "unknown sampling %q (uniform, replace or weighted)", c.Sampling)
	bad(len(c.EvalFanouts) != 0 && len(c.EvalFanouts) != layers && c.Model.Arch != model.MLP,
		"%d evaluation fan-outs for %d layers: give one per layer", len(c.EvalFanouts), layers)
	bad(len(c.WeightDecay) > 1 && len(c.WeightDecay) != layers,
		"%d weight decays for %d layers: give one, or one per layer", len(c.WeightDecay), layers)
	for _, d := range c.WeightDecay {
		bad(!(d >= 0), "weight decay %g is negative", d)
	}
	bad(c.Batch < 0, "batch of %d seeds", c.Batch)
	bad(c.Epochs < 1, "%d epochs, want at least 1", c.Epochs)
	bad(!(c.LR > 0), "learning rate %g, want above 0", c.LR)
	bad(c.EvalEvery < 0, "evaluation every %d epochs", c.EvalEvery)
	bad(c.Patience < 0, "patience of %d evaluations", c.Patience)
	bad(c.CheckpointEvery < 0, "a checkpoint every %d steps", c.CheckpointEvery)
	return errors.Join(faults...)
}

// sampled reports whether any hop leaves neighbours out.
func (c *Config) sampled() bool {
	for _, k := range c.Fanouts {
		if k > 0 {
			return true
		}
	}
	return false
}

// fanouts returns one fan-out per block of the network.
func (c *Config) fanouts() []int {
	n := c.Model.Needs().Blocks
	if n == 0 {
		return nil
	}
	if len(c.Fanouts) > 0 {
		return c.Fanouts
	}
	return make([]int, n)
}

// optimizer returns the options of the optimiser.
func (c *Config) optimizer() optim.Options {
	return optim.Options{Kind: c.Optimizer, Momentum: c.Momentum, Workers: par.Workers(c.Workers)}
}

// segments divides the flat parameter buffer by weight decay.
func (c *Config) segments(p *model.Params) []optim.Segment {
	var s []optim.Segment
	for i := range p.List {
		q := &p.List[i]
		d := c.WeightDecay[min(q.Layer, len(c.WeightDecay)-1)]
		if k := len(s) - 1; k >= 0 && s[k].WeightDecay == d {
			s[k].Hi = q.Offset + q.Len()
		} else {
			s = append(s, optim.Segment{Lo: q.Offset, Hi: q.Offset + q.Len(), WeightDecay: d})
		}
	}
	return s
}
