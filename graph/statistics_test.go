package graph

import (
	"context"
	"math"
	"testing"

	"zerogcn/internal/philox"
)

// star returns a graph in which node 0 aggregates from nodes 1 to d (and from
// itself, twice, for DropSelfLoops to leave out), edge e having weight(e).
func star(t *testing.T, d int, weight func(i int) float32) *CSR {
	t.Helper()
	var e Edges
	for i := 1; i <= d; i++ {
		e.append(Edges{[]int32{int32(i)}, []int32{0}, []float32{weight(i)}})
	}
	e.append(Edges{[]int32{0, 0}, []int32{0, 0}, []float32{9, 9}})
	c, err := Builder{NumNodes: d + 1}.FromEdges(context.Background(), e.Sources, e.Targets, e.Weights)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// chiSquareLimit is the 99.99 % quantile of the chi-square distribution (Wilson
// and Hilferty, 1931). Seeds are fixed, so a test either always passes or never.
func chiSquareLimit(freedom int) float64 {
	k := float64(freedom)
	z := 1 - 2/(9*k) + 3.719*math.Sqrt(2/(9*k))
	return k * z * z * z
}

// TestUniform tests that single neighbours and pairs of them are drawn equally
// often, where positions come from a bitmap (d ≤ 64), from a network and from
// insertion (k > 32).
func TestUniform(t *testing.T) {
	const rounds = 20_000
	for _, c := range []struct {
		d, k    int
		replace bool
	}{{7, 3, false}, {70, 4, false}, {70, 40, false}, {12, 5, true}} {
		g := star(t, c.d, func(int) float32 { return 1 })
		s, err := NewSampler(g, Options{Fanouts: []int{c.k}, DropSelfLoops: true, EdgeIDs: true, Replace: c.replace, Workers: 1})
		if err != nil {
			t.Fatal(err)
		}
		single, pairs := make([]float64, c.d), make([]float64, c.d*c.d)
		var b Batch
		for step := range uint64(rounds) {
			if err := s.Sample(11, philox.Sample, step, []int32{0}, &b); err != nil {
				t.Fatal(err)
			}
			ids := b.Blocks[0].EdgeIDs
			for i, e := range ids {
				single[e-2]++ // two self loops come first
				for _, f := range ids[:i] {
					pairs[(f-2)*int64(c.d)+e-2]++
				}
			}
		}
		// Without replacement draws repel each other, which makes the statistic
		// smaller by (d-k)/(d-1).
		expect := float64(rounds*c.k) / float64(c.d)
		chi := 0.0
		for _, n := range single {
			chi += (n - expect) * (n - expect) / expect
		}
		if !c.replace {
			chi *= float64(c.d-1) / float64(c.d-c.k)
		}
		if limit := chiSquareLimit(c.d - 1); chi > limit {
			t.Errorf("%d of %d: chi-square of neighbours %.1f, limit %.1f", c.k, c.d, chi, limit)
		}
		if c.replace {
			continue
		}
		expect = float64(rounds*c.k*(c.k-1)) / float64(c.d*(c.d-1))
		worst := 0.0
		for i := range c.d {
			for j := i + 1; j < c.d; j++ {
				worst = max(worst, math.Abs(pairs[i*c.d+j]-expect)/math.Sqrt(expect))
			}
		}
		if worst > 5 {
			t.Errorf("%d of %d: a pair is %.1f standard errors from its expectation", c.k, c.d, worst)
		}
	}
}

// TestEstimator is the promise behind Scale and EdgeScale: over 10,000
// samplings the mean of the scaled sum of x over the sampled neighbours is the
// sum over all neighbours, within three standard errors. Weighted draws
// estimate the sum of w·x too, whatever the weights.
func TestEstimator(t *testing.T) {
	const rounds = 10_000
	x := func(v int32) float64 { return math.Sin(float64(v)) + 0.3*float64(v%5) }
	equal := func(int) float32 { return 1 }
	skewed := func(i int) float32 {
		if i%6 == 0 {
			return 0
		}
		return float32(math.Exp(2 * math.Sin(float64(7*i))))
	}
	for _, c := range []struct {
		name   string
		d      int
		weight func(int) float32
		opt    Options
	}{
		{"uniform", 30, equal, Options{Fanouts: []int{5}}},
		{"uniform, covering", 4, equal, Options{Fanouts: []int{5}}},
		{"uniform, full", 30, equal, Options{Fanouts: []int{0}}},
		{"uniform, long", 90, equal, Options{Fanouts: []int{40}}},
		{"replace", 30, equal, Options{Fanouts: []int{5}, Replace: true}},
		{"replace, more than all", 4, equal, Options{Fanouts: []int{9}, Replace: true}},
		{"weighted", 30, skewed, Options{Fanouts: []int{5}, Weighted: true}},
		{"weighted, most", 30, skewed, Options{Fanouts: []int{24}, Weighted: true}},
		{"weighted, covering", 30, skewed, Options{Fanouts: []int{25}, Weighted: true}},
		{"weighted, full", 30, skewed, Options{Fanouts: []int{0}, Weighted: true}},
		{"weighted, replace", 30, skewed, Options{Fanouts: []int{5}, Weighted: true, Replace: true}},
	} {
		for _, drop := range []bool{true, false} {
			g := star(t, c.d, c.weight)
			o := c.opt
			o.Scale, o.EdgeIDs, o.DropSelfLoops, o.Workers = true, true, drop, 1
			s, err := NewSampler(g, o)
			if err != nil {
				t.Fatal(err)
			}
			full := 0.0
			for e, v := range g.Indices {
				if !drop || v != 0 {
					full += float64(g.Weights[e]) * x(v)
				}
			}
			sum, squares := 0.0, 0.0
			var b Batch
			for step := range uint64(rounds) {
				if err := s.Sample(5, philox.Sample, step, []int32{0}, &b); err != nil {
					t.Fatal(err)
				}
				estimate := estimateSum(g, &b, x)
				sum += estimate
				squares += estimate * estimate
			}
			mean := sum / rounds
			deviation := math.Sqrt(max(0, squares/rounds-mean*mean) / rounds)
			if math.Abs(mean-full) > 3*deviation+1e-5*math.Abs(full) {
				t.Errorf("%s, drop self loops %v: mean %.4f, full sum %.4f, standard error %.4f", c.name, drop, mean, full, deviation)
			}
			if exact := c.opt.Fanouts[0] <= 0 || c.name == "weighted, covering" && drop; exact && deviation > 1e-6*math.Abs(full) {
				t.Errorf("%s: takes every edge, yet has the standard error %.3g", c.name, deviation)
			}
		}
	}
}

// estimateSum returns the scaled sum of weight times x over the only target's
// sampled edges.
func estimateSum(g *CSR, b *Batch, x func(int32) float64) float64 {
	block := &b.Blocks[0]
	sum := 0.0
	for j, e := range block.EdgeIDs {
		term := float64(g.Weights[e]) * x(b.Nodes[block.Indices[j]])
		if block.EdgeScale != nil {
			term *= float64(block.EdgeScale[j])
		}
		sum += term
	}
	if block.Scale != nil {
		sum *= float64(block.Scale[0])
	}
	return sum
}

// TestWeightedFrequencies compares how often edges are drawn with replacement
// with their weights.
func TestWeightedFrequencies(t *testing.T) {
	const d, k, rounds = 20, 8, 20_000
	weight := func(i int) float32 { return float32(i % 7) }
	g := star(t, d, weight)
	s, err := NewSampler(g, Options{Fanouts: []int{k}, Weighted: true, Replace: true, DropSelfLoops: true, EdgeIDs: true, Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	total := 0.0
	for i := 1; i <= d; i++ {
		total += float64(weight(i))
	}
	counts := make([]float64, d+1)
	var b Batch
	for step := range uint64(rounds) {
		if err := s.Sample(2, philox.Sample, step, []int32{0}, &b); err != nil {
			t.Fatal(err)
		}
		for _, e := range b.Blocks[0].EdgeIDs {
			counts[g.Indices[e]]++
		}
	}
	chi, freedom := 0.0, -1
	for i := 1; i <= d; i++ {
		expect := float64(weight(i)) / total * k * rounds
		if expect == 0 {
			if counts[i] != 0 {
				t.Errorf("edge from %d of weight 0 was drawn", i)
			}
			continue
		}
		freedom++
		chi += (counts[i] - expect) * (counts[i] - expect) / expect
	}
	if limit := chiSquareLimit(freedom); chi > limit {
		t.Errorf("chi-square %.1f, limit %.1f", chi, limit)
	}
}
