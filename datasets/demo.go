package datasets

import (
	"context"

	"zerogcn/graph"
	"zerogcn/internal/par"
	"zerogcn/internal/philox"
)

// The demo's shape. A node's own features tell its class about one time in
// three; the mean over its neighbours and theirs, nine times in ten.
const (
	demoNodes   = 12_000
	demoClasses = 8
	demoDim     = 64
	demoEdges   = 90_000 // undirected, before duplicates go: mean degree 15
	// demoInside of 2^32 edges stay in their class on purpose.
	demoInside = 0.62
	// demoSignal is the length of a class's mean in units of the noise's
	// standard deviation per column, times 8 (the root of demoDim).
	demoSignal = 1.0
	demoSeed   = 20210101
	demoSplit  = "random:0.6,0.2,0.2"
)

// Sites of the generator's streams.
const (
	siteClass = iota
	siteEdges
	siteMeans
	siteNoise
)

var demoGenerator = Generator{
	Name:     "demo",
	Describe: "synthetic: 12,000 nodes in 8 planted communities, 64 noisy features; made on the spot",
	Check:    checkDemo,
	Open:     openDemo,
}

func checkDemo(args string) error {
	if args != "" {
		return usageErrorf("dataset demo%s: demo takes no parameters; see synthetic:products?nodes=…", args)
	}
	return nil
}

// openDemo makes the demo: a planted-partition graph (Condon and Karp,
// "Algorithms for graph partitioning on the planted partition model", Random
// Structures & Algorithms 18, 2001) whose features are its class's mean, a
// random sign vector, under noise that is far louder. It is synthetic and the
// same everywhere: all of it comes from Philox words by integer arithmetic and
// single multiplications.
func openDemo(ctx context.Context, args string, o Options) (*Dataset, error) {
	if err := checkDemo(args); err != nil {
		return nil, err
	}
	class, members := demoClassOf()
	g, err := demoGraph(ctx, class, members, o.Workers)
	if err != nil {
		return nil, err
	}
	x, err := DenseFeatures(demoFeatures(class, o.Workers), demoNodes, demoDim)
	if err != nil {
		return nil, err
	}
	d := &Dataset{
		Meta:     Meta{Name: "demo", Source: "synthetic: planted partition, made on the spot", Task: Multiclass},
		Graph:    g,
		Features: x,
		Labels:   NewClassLabels(class, demoClasses),
	}
	d.NumNodes = demoNodes
	s, err := MakeSplit(d, demoSplit, demoSeed)
	if err != nil {
		return nil, err
	}
	d.splits = memorySplits{s}
	return d, d.seal(ctx, o.Workers)
}

func demoClassOf() (class []int32, members [demoClasses][]int32) {
	s := philox.NewStream(demoSeed, philox.Generator, siteClass, 0)
	class = make([]int32, demoNodes)
	for v := range class {
		c := philox.Below(s.Word(uint32(v), 0), demoClasses)
		class[v] = int32(c)
		members[c] = append(members[c], int32(v))
	}
	return class, members
}

func demoGraph(ctx context.Context, class []int32, members [demoClasses][]int32, w par.Workers) (*graph.CSR, error) {
	s := philox.NewStream(demoSeed, philox.Generator, siteEdges, 0)
	inside := philox.Threshold(demoInside)
	src, dst := make([]int32, demoEdges), make([]int32, demoEdges)
	for e := range src {
		r := s.Words(uint32(e), 0)
		u := int32(philox.Below(r[0], demoNodes))
		v := int32(philox.Below(r[1], demoNodes))
		if r[2] < inside {
			m := members[class[u]]
			v = m[philox.Below(r[1], uint32(len(m)))]
		}
		src[e], dst[e] = u, v
	}
	b := graph.Builder{NumNodes: demoNodes, Symmetrize: true, RemoveSelfLoops: true, Deduplicate: true, Workers: w}
	return b.FromEdges(ctx, src, dst, nil)
}

func demoFeatures(class []int32, w par.Workers) []float32 {
	means := philox.NewStream(demoSeed, philox.Generator, siteMeans, 0)
	noise := philox.NewStream(demoSeed, philox.Generator, siteNoise, 0)
	x := make([]float32, demoNodes*demoDim)
	w.Range(demoNodes, 1024, func(_, lo, hi int) {
		for v := lo; v < hi; v++ {
			row := x[v*demoDim : (v+1)*demoDim]
			normalRow(row, noise, uint32(v))
			for j := range row {
				if means.Word(uint32(class[v]), uint32(j))&1 == 0 {
					row[j] += demoSignal / 8
				} else {
					row[j] -= demoSignal / 8
				}
			}
		}
	})
	return x
}

// normalRow fills row with nearly normal values of mean 0 and variance 1: sums
// of four bytes (Irwin-Hall), which integers add exactly on every machine. A
// Philox block gives four.
func normalRow(row []float32, s philox.Stream, item uint32) {
	// The sum of four uniforms on {0 … 255} has mean 510 and variance
	// (256² - 1)/3.
	const scale = 1 / 147.8005413
	for j := uint32(0); len(row) > 0; j++ {
		r := s.Words(item, j)
		if len(row) >= 4 {
			row[0], row[1] = scale*float32(bytesSum(r[0])-510), scale*float32(bytesSum(r[1])-510)
			row[2], row[3] = scale*float32(bytesSum(r[2])-510), scale*float32(bytesSum(r[3])-510)
			row = row[4:]
			continue
		}
		for i := range row {
			row[i] = scale * float32(bytesSum(r[i])-510)
		}
		return
	}
}

// bytesSum adds the four bytes of a word.
func bytesSum(w uint32) int32 {
	const even = 0x00FF00FF
	pairs := w&even + w>>8&even
	return int32(pairs&0xFFFF + pairs>>16)
}
