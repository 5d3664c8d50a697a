package model

import (
	"errors"
	"fmt"
	"slices"

	"zerogcn/model/op"
)

// Arch is a family of networks.
type Arch string

// The architectures.
const (
	SAGE Arch = "sage"
	GCN  Arch = "gcn"
	MLP  Arch = "mlp"
)

// Archs lists the architectures by the names that flags use.
func Archs() []string { return []string{string(SAGE), string(GCN), string(MLP)} }

// Aggregators lists SAGE's aggregators by name.
func Aggregators() []string { return []string{"mean", "gcn", "sum", "max"} }

// GCNNorms lists GCN's normalisations by name.
func GCNNorms() []string { return []string{"sym", "row"} }

// Config describes a network. It is stored in checkpoints.
type Config struct {
	Arch       Arch   `json:"arch"`
	Aggregator string `json:"aggregator,omitempty"` // SAGE: "mean" (default), "gcn", "sum" or "max"
	GCNNorm    string `json:"gcn_norm,omitempty"`   // GCN: "sym" (default) or "row"

	In      int `json:"in"`      // input features
	Hidden  int `json:"hidden"`  // width of every hidden layer
	Classes int `json:"classes"` // outputs
	Layers  int `json:"layers"`  // number of layers, at least 1

	// Dropout is the drop probability on the input of every layer but the
	// first, InputDropout on the features themselves.
	Dropout      float64 `json:"dropout"`
	InputDropout float64 `json:"input_dropout"`

	// MultiLabel says that outputs are independent labels, learnt by binary
	// cross-entropy, rather than one class.
	MultiLabel bool `json:"multi_label,omitempty"`
	// SparseInput says that features come as a sparse matrix.
	SparseInput bool `json:"sparse_input"`
	// FullGraph says that blocks hold full neighbourhoods rather than samples;
	// it decides the order of projection and aggregation, not the result.
	FullGraph bool `json:"full_graph"`
}

// EnsureDefaults fills in what is empty.
func (c *Config) EnsureDefaults() {
	if c.Arch == SAGE && c.Aggregator == "" {
		c.Aggregator = "mean"
	}
	if c.Arch == GCN && c.GCNNorm == "" {
		c.GCNNorm = "sym"
	}
}

// Validate lists all faults of a configuration in one error.
func (c *Config) Validate() error {
	var faults []error
	bad := func(wrong bool, format string, args ...any) {
		if wrong {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	switch c.Arch {
	case SAGE:
		bad(!slices.Contains(Aggregators(), c.Aggregator), "unknown aggregator %q (mean, gcn, sum or max)", c.Aggregator)
	case GCN:
		bad(c.GCNNorm != "sym" && c.GCNNorm != "row", "unknown normalisation %q (sym or row)", c.GCNNorm)
	case MLP:
	default:
		bad(true, "unknown model %q (sage, gcn or mlp)", c.Arch)
	}
	bad(c.isMax() && c.SparseInput, "the max aggregator takes dense features: it cannot be projected first")
	bad(c.Layers < 1, "%d layers, want at least 1", c.Layers)
	bad(c.In < 1, "%d input features: the model needs at least one", c.In)
	bad(c.Layers > 1 && c.Hidden < 1, "hidden width %d, want at least 1", c.Hidden)
	bad(c.Classes < 1, "%d classes, want at least 1", c.Classes)
	bad(!(c.Dropout >= 0 && c.Dropout < 1), "dropout %g is outside [0, 1)", c.Dropout)
	bad(!(c.InputDropout >= 0 && c.InputDropout < 1), "input dropout %g is outside [0, 1)", c.InputDropout)
	return errors.Join(faults...)
}

// Needs says what the blocks of a batch must carry for a network.
type Needs struct {
	// Blocks is the number of blocks, one per layer; 0 for networks without a graph.
	Blocks int
	// DropSelfLoops: the layer adds one self loop itself, stored ones must go.
	DropSelfLoops bool
	// Degree: blocks need the full in-degree of every source node.
	Degree bool
	// Scale: sums over sampled neighbours must be scaled to estimate full sums.
	Scale bool
	// TransposeInput: a gradient flows to the source rows of the outermost
	// block, so that it needs its transposed form like the others.
	TransposeInput bool
}

// Needs returns what the configuration's blocks must carry.
func (c *Config) Needs() Needs {
	if c.Arch == MLP {
		return Needs{}
	}
	a := c.agg() // Mean, of which nothing is needed, where layers take the maximum
	self := a == op.SelfMean || a == op.SymNorm
	return Needs{
		Blocks:         c.Layers,
		DropSelfLoops:  self,
		Degree:         self,
		Scale:          self || a == op.Sum,
		TransposeInput: c.projectFirst(0),
	}
}

// agg returns the aggregation of the architecture's layers.
func (c *Config) agg() op.Agg {
	switch {
	case c.Arch == GCN && c.GCNNorm == "row", c.Arch == SAGE && c.Aggregator == "gcn":
		return op.SelfMean
	case c.Arch == GCN:
		return op.SymNorm
	case c.Aggregator == "sum":
		return op.Sum
	default:
		return op.Mean
	}
}

// widths returns the input and output width of layer l.
func (c *Config) widths(l int) (in, out int) {
	in, out = c.Hidden, c.Hidden
	if l == 0 {
		in = c.In
	}
	if l == c.Layers-1 {
		out = c.Classes
	}
	return in, out
}

// isMax reports whether layers aggregate by maximum.
func (c *Config) isMax() bool { return c.Arch == SAGE && c.Aggregator == "max" }

// projectFirst tells whether layer l multiplies by its weights before it
// aggregates; see the package comment.
func (c *Config) projectFirst(l int) bool {
	if c.isMax() {
		return false // a maximum does not commute with the projection
	}
	in, out := c.widths(l)
	return l == 0 && c.SparseInput || c.FullGraph && in > out
}
