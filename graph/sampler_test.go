package graph

import (
	"context"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"zerogcn/internal/par"
	"zerogcn/internal/philox"
)

// drawGraph draws a graph of up to 400 nodes with some hubs, parallel edges and
// self loops.
func drawGraph(t *rapid.T, weighted bool) *CSR {
	n := rapid.IntRange(1, 400).Draw(t, "nodes")
	m := rapid.IntRange(0, 3000).Draw(t, "edges")
	seed := rapid.Uint64().Draw(t, "graph seed")
	stream := philox.NewStream(seed, philox.Generator, 0, 0)
	e := Edges{Sources: make([]int32, m), Targets: make([]int32, m)}
	if weighted {
		e.Weights = make([]float32, m)
	}
	hubs := min(n, 3)
	for i := range m {
		w := stream.Words(uint32(i), 0)
		e.Sources[i], e.Targets[i] = int32(philox.Below(w[0], uint32(n))), int32(philox.Below(w[1], uint32(n)))
		switch philox.Below(w[2], 4) {
		case 0:
			e.Targets[i] = int32(philox.Below(w[3], uint32(hubs)))
		case 1:
			if w[3]%8 == 0 {
				e.Sources[i] = e.Targets[i]
			}
		}
		if weighted {
			e.Weights[i] = float32(philox.Below(w[3], 5)) * 0.7
		}
	}
	c, err := Builder{NumNodes: n}.FromEdges(context.Background(), e.Sources, e.Targets, e.Weights)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func drawSeeds(t *rapid.T, n int) []int32 {
	seeds := rapid.SliceOfNDistinct(rapid.Int32Range(0, int32(n-1)), 0, min(n, 40), rapid.ID[int32]).Draw(t, "seeds")
	slices.Sort(seeds)
	return seeds
}

// TestSampleAgainstReference compares whole batches, for several numbers of
// workers, with the plain form of the algorithm.
func TestSampleAgainstReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		weighted := rapid.Bool().Draw(t, "weighted")
		c := drawGraph(t, weighted)
		o := Options{
			Weighted:      weighted && rapid.Bool().Draw(t, "draw by weight"),
			Scale:         rapid.Bool().Draw(t, "scale"),
			Fanouts:       rapid.SliceOfN(rapid.SampledFrom([]int{-1, 0, 1, 2, 3, 5, 10, 15, 31, 32, 33, 70}), 1, 4).Draw(t, "fanouts"),
			Replace:       rapid.Bool().Draw(t, "replace"),
			DropSelfLoops: rapid.Bool().Draw(t, "drop self loops"),
			EdgeIDs:       true, Degrees: true,
		}
		seeds := drawSeeds(t, c.NumNodes())
		seed, step := rapid.Uint64().Draw(t, "seed"), rapid.Uint64().Draw(t, "step")
		want := refSample(c, o, seed, philox.Sample, step, seeds)
		others := drawSeeds(t, c.NumNodes())
		for _, w := range []par.Workers{1, 2, 8} {
			o.Workers = w
			s, err := NewSampler(c, o)
			if err != nil {
				t.Fatal(err)
			}
			var got Batch
			for range 2 { // the second time in used memory
				if err := s.Sample(seed, philox.Sample, step+1, others, &got); err != nil {
					t.Fatal(err)
				}
				if err := s.Sample(seed, philox.Sample, step, seeds, &got); err != nil {
					t.Fatal(err)
				}
				if d := diffBatchNear(want, &got); d != "" {
					t.Fatalf("%d workers: %s", w, d)
				}
			}
		}
	})
}

// TestSampleWideGraph reaches what small graphs do not: many spans of the rank
// sets, tiles of every stage, and rows longer than the buffer.
func TestSampleWideGraph(t *testing.T) {
	const n, m = 300_000, 400_000
	stream := philox.NewStream(5, philox.Generator, 0, 0)
	src, dst := make([]int32, m), make([]int32, m)
	for i := range m {
		w := stream.Words(uint32(i), 0)
		src[i], dst[i] = int32(philox.Below(w[0], n)), int32(philox.Below(w[1], n))
		if i < m/4 {
			dst[i] = int32(i%7) * (n / 7)
		}
		if i%1000 == 0 { // self loops of hubs
			src[i] = dst[i]
		}
	}
	c, err := Builder{NumNodes: n}.FromEdges(context.Background(), src, dst, nil)
	if err != nil {
		t.Fatal(err)
	}
	seeds := make([]int32, 0, 3000)
	for v := int32(0); v < n; v += 211 {
		seeds = append(seeds, v)
	}
	seeds = append(seeds, n/7*2, n/7*5)
	slices.Sort(seeds)
	seeds = slices.Compact(seeds)
	for _, fanouts := range [][]int{{4, 2, 3}, {1100, 1}, {bufferEdges + 1, 1}, {-1, 1}} {
		for _, replace := range []bool{false, true} {
			o := Options{Fanouts: fanouts, EdgeIDs: true, Degrees: true, Replace: replace, Scale: true, DropSelfLoops: true}
			want := refSample(c, o, 1, philox.Evaluation, 0, seeds)
			for _, w := range []par.Workers{1, 8} {
				o.Workers = w
				s, err := NewSampler(c, o)
				if err != nil {
					t.Fatal(err)
				}
				var got Batch
				if err := s.Sample(1, philox.Evaluation, 0, seeds, &got); err != nil {
					t.Fatal(err)
				}
				if d := diffBatch(want, &got); d != "" {
					t.Fatalf("fan-outs %v, %d workers: %s", fanouts, w, d)
				}
			}
		}
	}
}

func mustBuild(t testing.TB, b Builder, sources, targets []int32, weights []float32) *CSR {
	t.Helper()
	c, err := b.FromEdges(context.Background(), sources, targets, weights)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestSampleErrors(t *testing.T) {
	ring := mustBuild(t, Builder{NumNodes: 4, Symmetrize: true}, []int32{0, 1, 2, 3}, []int32{1, 2, 3, 0}, nil)
	nan := float32(math.NaN())
	for name, c := range map[string]struct {
		g     *CSR
		o     Options
		seeds []int32
		want  string
	}{
		"no fan-outs":     {ring, Options{}, nil, "at least one fan-out"},
		"huge fan-out":    {ring, Options{Fanouts: []int{1 << 40}}, nil, "fan-out 1099511627776 is above"},
		"no weights":      {ring, Options{Fanouts: []int{2}, Weighted: true}, nil, "without edge weights"},
		"negative weight": {&CSR{[]int64{0, 2}, []int32{0, 0}, []float32{1, -1}}, Options{Fanouts: []int{1}, Weighted: true}, nil, "row 0, edge 1: weighted sampling with weight -1"},
		"NaN weight":      {&CSR{[]int64{0, 2}, []int32{0, 0}, []float32{nan, 1}}, Options{Fanouts: []int{1}, Weighted: true}, nil, "row 0, edge 0"},
		"seed range":      {ring, Options{Fanouts: []int{2}}, []int32{1, 4}, "seed 1: node 4 is not in [0, 4)"},
		"negative seed":   {ring, Options{Fanouts: []int{2}}, []int32{-1}, "seed 0: node -1"},
		"order":           {ring, Options{Fanouts: []int{2}}, []int32{2, 1}, "seed 1: node 1 after 2"},
		"twice":           {ring, Options{Fanouts: []int{2}}, []int32{0, 2, 2}, "seed 2: node 2 after 2"},
		"too many edges":  {ring, Options{Fanouts: []int{1 << 30}, Replace: true}, []int32{0, 1, 2}, "hop 0 has 3221225472 edges for 3 targets"},
		"bad id": {&CSR{[]int64{0, 1, 2, 4}, []int32{1, 1, 0, 3}, nil}, Options{Fanouts: []int{2}}, []int32{0, 2},
			"row 2, edge 3: source 3 is not in [0, 3)"},
		"bad offset": {&CSR{[]int64{0, 2, 1, 2}, []int32{0, 0}, nil}, Options{Fanouts: []int{2}}, []int32{0, 1}, "row 1: offsets 2, 1"},
		"bad size":   {&CSR{[]int64{0, 2}, []int32{0}, nil}, Options{Fanouts: []int{2}}, nil, "offsets run from 0 to 2"},
	} {
		for _, w := range []par.Workers{1, 4} {
			c.o.Workers = w
			s, err := NewSampler(c.g, c.o)
			var b Batch
			if err == nil {
				err = s.Sample(1, philox.Sample, 0, c.seeds, &b)
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: error %v, want %q", name, err, c.want)
			}
			if s == nil || c.o.Fanouts[0] > 100 {
				continue
			}
			// A failed call leaves nothing behind.
			fresh, err := NewSampler(c.g, c.o)
			if err != nil {
				t.Fatal(err)
			}
			var again, want Batch
			errs := [2]error{s.Sample(1, philox.Sample, 0, []int32{0}, &again), fresh.Sample(1, philox.Sample, 0, []int32{0}, &want)}
			if (errs[0] == nil) != (errs[1] == nil) {
				t.Errorf("%s: after an error: %v", name, errs)
			} else if d := diffBatch(&want, &again); d != "" && errs[0] == nil {
				t.Errorf("%s: after an error: %s", name, d)
			}
		}
	}
}

func TestSampleEmpty(t *testing.T) {
	ring := mustBuild(t, Builder{NumNodes: 4}, []int32{0, 1, 2, 3}, []int32{1, 2, 3, 0}, nil)
	for _, g := range []*CSR{ring, {}, {Indptr: []int64{0}}} {
		s, err := NewSampler(g, Options{Fanouts: []int{2, 2}, TransposeAll: true, Degrees: true, Scale: true})
		if err != nil {
			t.Fatal(err)
		}
		var b Batch
		if err := s.Sample(1, philox.Sample, 0, nil, &b); err != nil {
			t.Fatal(err)
		}
		if len(b.Nodes) != 0 || len(b.Blocks) != 2 || b.NumEdges() != 0 || len(b.Seeds()) != 0 {
			t.Errorf("batch of no seeds: %+v", b)
		}
		for i := range b.Blocks {
			if err := b.Blocks[i].Validate(); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestTransposed checks which blocks get a transposed form, and all of a
// block's invariants.
func TestTransposed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawGraph(t, false)
		o := Options{
			Fanouts:      rapid.SliceOfN(rapid.IntRange(0, 6), 1, 3).Draw(t, "fanouts"),
			Replace:      rapid.Bool().Draw(t, "replace"),
			Transpose:    rapid.Bool().Draw(t, "transpose"),
			TransposeAll: rapid.Bool().Draw(t, "all"),
		}
		s, err := NewSampler(c, o)
		if err != nil {
			t.Fatal(err)
		}
		var b Batch
		if err := s.Sample(3, philox.Sample, 1, drawSeeds(t, c.NumNodes()), &b); err != nil {
			t.Fatal(err)
		}
		for i := range b.Blocks {
			if err := b.Blocks[i].Validate(); err != nil {
				t.Fatal(err)
			}
			if got, want := b.Blocks[i].TIndptr != nil, o.TransposeAll || o.Transpose && i > 0; got != want {
				t.Fatalf("block %d has a transposed form: %v, want %v", i, got, want)
			}
			if i > 0 && b.Blocks[i].NumSrc != b.Blocks[i-1].NumDst {
				t.Fatalf("block %d has %d sources, the one before %d targets", i, b.Blocks[i].NumSrc, b.Blocks[i-1].NumDst)
			}
		}
	})
}

// TestOptionsTakenBack reuses a batch, filled with everything, for samplers that
// record less.
func TestOptionsTakenBack(t *testing.T) {
	ring := mustBuild(t, Builder{NumNodes: 4, Symmetrize: true}, []int32{0, 1, 2, 3}, []int32{1, 2, 3, 0}, []float32{1, 2, 3, 4})
	var b Batch
	for _, o := range []Options{
		{Fanouts: []int{1, 1, 1}, EdgeIDs: true, Degrees: true, Scale: true, TransposeAll: true},
		{Fanouts: []int{1, 1}, Weighted: true, Scale: true},
		{Fanouts: []int{1, 1}},
	} {
		s, err := NewSampler(ring, o)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Sample(1, philox.Sample, 0, []int32{1}, &b); err != nil {
			t.Fatal(err)
		}
		if len(b.Blocks) != len(o.Fanouts) {
			t.Fatalf("%d blocks", len(b.Blocks))
		}
		x := b.Blocks[0]
		if (x.EdgeIDs != nil) != o.EdgeIDs || (x.Degree != nil) != o.Degrees || (x.Scale != nil) != (o.Scale && !o.Weighted) ||
			(x.EdgeScale != nil) != (o.Scale && o.Weighted) || (x.TIndptr != nil) != o.TransposeAll {
			t.Errorf("options %+v gave %+v", o, x)
		}
	}
}

// TestClone samples on many clones at the same time.
func TestClone(t *testing.T) {
	n, src, dst := productsLike(0.002)
	w := make([]float32, len(src))
	for i := range w {
		w[i] = float32(i % 4)
	}
	g := mustBuild(t, Builder{NumNodes: n}, src, dst, w)
	for _, weighted := range []bool{false, true} {
		s, err := NewSampler(g, Options{Fanouts: []int{5, 5}, Weighted: weighted, DropSelfLoops: true, Workers: 2})
		if err != nil {
			t.Fatal(err)
		}
		seeds := []int32{1, 5, 100, 1000}
		var wg sync.WaitGroup
		batches := make([]Batch, 4)
		for i := range batches {
			c := s
			if i > 0 {
				c = s.Clone()
			}
			wg.Go(func() {
				for range 20 {
					if err := c.Sample(1, philox.Sample, 7, seeds, &batches[i]); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		for i := range batches {
			if d := diffBatch(&batches[0], &batches[i]); d != "" {
				t.Errorf("clone %d: %s", i, d)
			}
		}
	}
}

// TestSampleSteadyState guards that sampling does not allocate once its buffers
// have grown.
func TestSampleSteadyState(t *testing.T) {
	n, src, dst := productsLike(0.002)
	w := make([]float32, len(src))
	for i := range w {
		w[i] = 1
	}
	g := mustBuild(t, Builder{NumNodes: n, Symmetrize: true}, src, dst, w)
	seeds := []int32{1, 5, 100, 1000, 2000, 3000, 4000}
	for _, o := range []Options{
		{Fanouts: []int{15, 10, 5}},
		{Fanouts: []int{40, 3}, EdgeIDs: true, Degrees: true, Scale: true, TransposeAll: true, DropSelfLoops: true},
		{Fanouts: []int{0, 4}, Replace: true, Transpose: true},
		{Fanouts: []int{10, 5}, Weighted: true, Scale: true},
		{Fanouts: []int{10, 5}, Weighted: true, Replace: true, Scale: true},
	} {
		o.Workers = 1
		s, err := NewSampler(g, o)
		if err != nil {
			t.Fatal(err)
		}
		var b Batch
		step := uint64(0)
		sample := func() {
			if err := s.Sample(1, philox.Sample, step%8, seeds, &b); err != nil {
				t.Fatal(err)
			}
			step++
		}
		for range 8 {
			sample()
		}
		if a := testing.AllocsPerRun(40, sample); a >= 1 {
			t.Errorf("%+v: %.1f allocations a batch", o, a)
		}
	}
}
