package datasets

import (
	"context"
	"errors"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"zerogcn/dtype"
	"zerogcn/graph"
	"zerogcn/internal/par"
	"zerogcn/internal/philox"
)

// shape is what a synthetic set imitates.
type shape struct {
	name           string
	nodes          int64
	edges          int64 // directed, as stored
	dim, classes   int
	train, valid   int64
	test           int64
	directed       bool // else each edge is there both ways
	describe       string
	unlabelledRest bool // nodes of no part have no label
}

// shapes are the published sizes of the sets.
var shapes = []shape{
	{name: "products", nodes: 2_449_029, edges: 123_718_280, dim: 100, classes: 47, train: 196_615, valid: 39_323, test: 2_213_091,
		describe: "ogbn-products' shape: 2.4M nodes, 124M edges, 100 features, 47 classes"},
	{name: "papers100m", nodes: 111_059_956, edges: 1_615_685_872, dim: 128, classes: 172, train: 1_207_179, valid: 125_265, test: 214_338, directed: true, unlabelledRest: true,
		describe: "ogbn-papers100M's shape: 111M nodes, 1.6G directed edges, 128 features, 172 classes"},
	{name: "reddit", nodes: 232_965, edges: 114_615_892, dim: 602, classes: 41, train: 153_431, valid: 23_831, test: 55_703,
		describe: "Reddit's shape: 233k nodes, 115M edges, 602 features, 41 classes"},
}

var syntheticGenerator = Generator{
	Name:     "synthetic",
	Describe: "synthetic:products, synthetic:papers100m, synthetic:reddit, with ?nodes=&edges=&dim=&classes=&scale=&seed=",
	Check:    func(args string) error { _, err := parseSynthetic(args); return err },
	Open:     openSynthetic,
}

const (
	// syntheticSigma is the standard deviation of the logarithm of a node's
	// weight, in proportion to which it is drawn as an end of edges.
	syntheticSigma = 1.2
	// syntheticInside of the edges stay in their class on purpose.
	syntheticInside = 0.7
	// syntheticSignal is the length of a class's mean, in standard deviations of
	// the noise of one column.
	syntheticSignal = 1.5
)

// Sites of the generator's streams, apart from the demo's.
const (
	siteDraws = 16 + iota
	siteNumbering
	siteParts
	siteClassMeans
	siteRowNoise
)

// synthetic makes a graph and features of a given shape. It holds tables of a
// megabyte; edges and rows are functions of their number.
type synthetic struct {
	shape
	seed uint64
	w    par.Workers

	draws    int64         // edges to draw, so that enough different ones remain
	quantile []uint64      // see rank
	number   permutation   // from rank to node
	part     permutation   // from node to its place in the split
	means    []float32     // classes × dim
	noise    philox.Stream // of features
}

// openSynthetic makes a set whose sizes are those of a published one, or as the
// parameters say. It is random throughout, and not the published set.
//
// Ends of edges are drawn in proportion to log-normal weights (sigma 1.2), which
// gives degrees from a few to tens of thousands. Seven edges in ten have both
// ends in one class, the others join any two nodes; self loops and repeated
// edges are removed, and so many edges are drawn that the wanted number is
// expected to remain. Features are a class's mean, a random sign vector, under
// noise. Nodes are numbered randomly.
//
// Everything is a function of the parameters and the seed, whatever the number
// of cores. The graph is built in two passes over the drawn edges, and feature
// rows are computed when they are read, so nothing is held twice.
func openSynthetic(ctx context.Context, args string, o Options) (*Dataset, error) {
	s, err := parseSynthetic(args)
	if err != nil {
		return nil, err
	}
	if err := o.checkMemory(); err != nil {
		return nil, err
	}
	s.prepare(o.Workers)
	b := graph.Builder{NumNodes: int(s.nodes), Symmetrize: !s.directed, RemoveSelfLoops: true, Deduplicate: true, Workers: o.Workers}
	d := &Dataset{
		Meta:     Meta{Name: "synthetic-" + s.name, Source: "synthetic:" + s.spec(), Task: Multiclass},
		Features: &Features{Rows: int(s.nodes), Dim: s.dim, Type: dtype.Float32, name: "synthetic features", file: s},
		Labels:   NewClassLabels(s.labels(), s.classes),
		splits:   memorySplits{s.split()},
		spill:    o.spill(),
	}
	if d.Graph, err = o.buildGraph(ctx, d, b, s.edgeSource(ctx)); err == nil {
		err = d.seal(ctx, o.Workers)
	}
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// spec returns the full parameters.
func (s *synthetic) spec() string {
	return s.name + "?" + strings.Join([]string{
		"nodes=" + strconv.FormatInt(s.nodes, 10), "edges=" + strconv.FormatInt(s.edges, 10), "dim=" + strconv.Itoa(s.dim),
		"classes=" + strconv.Itoa(s.classes), "seed=" + strconv.FormatUint(s.seed, 10),
	}, "&")
}

// parseSynthetic reads ":NAME?key=value&…".
func parseSynthetic(args string) (*synthetic, error) {
	name, query, _ := strings.Cut(strings.TrimPrefix(args, ":"), "?")
	fault := func(format string, a ...any) error {
		return usageErrorf("dataset synthetic%s: "+format, append([]any{args}, a...)...)
	}
	var names []string
	s := &synthetic{}
	for _, sh := range shapes {
		names = append(names, sh.name)
		if sh.name == name {
			s.shape = sh
		}
	}
	if s.name == "" {
		return nil, fault("unknown shape %q%s: want %s", name, didYouMean(name, names), strings.Join(names, ", "))
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return nil, fault("%w", err)
	}
	keys := []string{"nodes", "edges", "dim", "classes", "scale", "seed"}
	given := func(key string) (string, bool) { v, ok := values[key]; return strings.Join(v, ","), ok }
	scale := 1.0
	if v, ok := given("scale"); ok {
		if scale, err = strconv.ParseFloat(v, 64); err != nil || !(scale > 0 && scale <= 100) {
			return nil, fault("scale=%s: want a number above 0, at most 100", v)
		}
	}
	real := s.shape
	s.nodes = int64(math.Round(float64(s.nodes) * scale))
	s.edges = int64(math.Round(float64(s.edges) * scale))
	var asked []string
	for key := range values {
		asked = append(asked, key)
	}
	slices.Sort(asked)
	for _, key := range asked {
		v, _ := given(key)
		var low, high int64 = 1, 1 << 40
		var n int64
		switch key {
		case "scale":
			continue
		case "seed":
			if s.seed, err = strconv.ParseUint(v, 10, 64); err != nil {
				return nil, fault("seed=%s: want a whole number from 0 on", v)
			}
			continue
		case "nodes":
			low, high = 10, graph.MaxNodes
		case "edges":
		case "dim":
			high = 1 << 16
		case "classes":
			low, high = 2, 1<<16
		default:
			return nil, fault("unknown parameter %q%s: want %s", key, didYouMean(key, keys), strings.Join(keys, ", "))
		}
		if n, err = strconv.ParseInt(v, 10, 64); err != nil || n < low || n > high {
			return nil, fault("%s=%s: want a whole number from %d to %d", key, v, low, high)
		}
		switch key {
		case "nodes":
			s.nodes = n
		case "edges":
			s.edges = n
		case "dim":
			s.dim = int(n)
		case "classes":
			s.classes = int(n)
		}
	}
	if s.nodes < 10 || s.nodes > graph.MaxNodes {
		return nil, fault("%d nodes: want 10 to %d", s.nodes, graph.MaxNodes)
	}
	s.classes = int(min(int64(s.classes), s.nodes/2))
	if s.edges < 1 || s.edges > 1<<40 {
		return nil, fault("%d edges: want 1 to 2^40", s.edges)
	}
	ratio := float64(s.nodes) / float64(real.nodes)
	s.train = max(1, int64(math.Round(float64(real.train)*ratio)))
	s.valid = int64(math.Round(float64(real.valid) * ratio))
	s.test = min(int64(math.Round(float64(real.test)*ratio)), s.nodes-s.train-s.valid)
	if s.draws = drawsFor(&s.shape); s.draws == 0 {
		return nil, fault("%d edges among %d nodes are too many: with this law of degrees most would be drawn again and again; ask for fewer edges or classes, or more nodes", s.edges, s.nodes)
	}
	return s, nil
}

// drawsFor returns how many edges to draw so that the expected number of
// different ones is the shape's, 0 if that takes more than four times as many.
// The expectation is the integral of 1-exp(-rate) over pairs of weights.
func drawsFor(s *shape) int64 {
	const step, reach = 0.1, 6.0
	var weight, share []float64
	total := 0.0
	for z := -reach; z <= reach; z += step {
		weight = append(weight, math.Exp(syntheticSigma*z-syntheticSigma*syntheticSigma/2))
		share = append(share, math.Exp(-z*z/2))
		total += share[len(share)-1]
	}
	n, c := float64(s.nodes), float64(s.classes)
	ways := 2.0 // an undirected edge can be drawn from either end
	if s.directed {
		ways = 1
	}
	distinct := func(draws float64) float64 {
		sum := 0.0
		for i, wi := range weight {
			for j, wj := range weight {
				rate := ways * draws * wi * wj / (n * n)
				inside := -math.Expm1(-rate * (1 - syntheticInside + syntheticInside*c))
				across := -math.Expm1(-rate * (1 - syntheticInside))
				sum += share[i] * share[j] / (total * total) * (inside/c + across*(1-1/c))
			}
		}
		return sum * n * n / ways
	}
	want := float64(s.edges) / ways
	lo, hi := want, 4*want
	if distinct(hi) < want {
		return 0
	}
	for range 40 {
		if mid := (lo + hi) / 2; distinct(mid) < want {
			lo = mid
		} else {
			hi = mid
		}
	}
	return int64(math.Ceil(hi))
}

// rankBits is the resolution of quantiles; quantileBits that of their table.
const (
	rankBits     = 48
	quantileBits = 16
)

// prepare makes the tables.
func (s *synthetic) prepare(w par.Workers) {
	s.w = w
	s.number = newPermutation(uint32(s.nodes), s.seed, siteNumbering)
	s.part = newPermutation(uint32(s.nodes), s.seed, siteParts)
	s.noise = philox.NewStream(s.seed, philox.Generator, siteRowNoise, 0)
	// Let nodes be ranked by weight. If ranks' quantiles q have log-normal
	// weights exp(sigma z(q)), z the normal quantile, then a draw in proportion
	// to weight has z shifted by sigma: its rank's quantile is
	// Phi(Phi^-1(u) + sigma) for uniform u. No table of the nodes is needed.
	s.quantile = make([]uint64, 1<<quantileBits+1)
	for i := range s.quantile {
		u := float64(i) / (1 << quantileBits)
		z := math.Sqrt2 * math.Erfinv(2*u-1)
		s.quantile[i] = uint64(math.Round(math.Ldexp(math.Erfc(-(z+syntheticSigma)/math.Sqrt2)/2, rankBits)))
	}
	signs := philox.NewStream(s.seed, philox.Generator, siteClassMeans, 0)
	size := float32(syntheticSignal / math.Sqrt(float64(s.dim)))
	s.means = make([]float32, s.classes*s.dim)
	for i := range s.means {
		s.means[i] = size
		if signs.Word(uint32(i/s.dim), uint32(i%s.dim))&1 == 0 {
			s.means[i] = -size
		}
	}
}
