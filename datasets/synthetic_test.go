package datasets

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"zerogcn/dtype"
)

func TestPermutation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Uint32Range(1, 5000).Draw(t, "n")
		p := newPermutation(n, rapid.Uint64().Draw(t, "seed"), 3)
		seen := make([]bool, n)
		for x := range n {
			y := p.at(x)
			if y >= n || seen[y] || p.of(y) != x {
				t.Fatalf("n=%d: %d goes to %d, back to %d", n, x, y, p.of(y))
			}
			seen[y] = true
		}
	})
	p := newPermutation(1<<31, 1, 3)
	for _, x := range []uint32{0, 1, 1<<31 - 1, 123456789} {
		if y := p.at(x); y >= 1<<31 || p.of(y) != x {
			t.Errorf("%d goes to %d, back to %d", x, y, p.of(y))
		}
	}
	// Neighbours in rank land far apart: the mean distance of random pairs in
	// [0, n) is n/3.
	const n = 100_000
	q := newPermutation(n, 7, 3)
	sum := 0.0
	for x := range uint32(n - 1) {
		sum += math.Abs(float64(q.at(x)) - float64(q.at(x+1)))
	}
	if mean := sum / n / n; mean < 0.30 || mean > 0.36 {
		t.Errorf("mean distance of neighbours is %.3f n, want 0.333", mean)
	}
}

func TestSyntheticProducts(t *testing.T) {
	d, err := Open(t.Context(), "synthetic:products?scale=0.01&seed=3", Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if d.NumNodes != 24490 || d.NumFeatures != 100 || d.NumClasses != 47 {
		t.Errorf("%+v", d.Meta)
	}
	if r := float64(d.NumEdges) / 1_237_183; r < 0.985 || r > 1.015 {
		t.Errorf("%d edges, want about 1237183", d.NumEdges)
	}
	s, err := d.Split(0)
	if err != nil || len(s.Train) != 1966 || len(s.Valid) != 393 || len(s.Test) != 22131 {
		t.Errorf("split %d/%d/%d, %v", len(s.Train), len(s.Valid), len(s.Test), err)
	}
	if err := Verify(t.Context(), d, 2); err != nil {
		t.Error(err)
	}
	// Symmetric, without self loops.
	for v := range d.NumNodes {
		for _, u := range d.Graph.Row(int32(v)) {
			if _, ok := slices.BinarySearch(d.Graph.Row(u), int32(v)); !ok || int(u) == v {
				t.Fatalf("edge from %d to %d has no reverse, or is a loop", u, v)
			}
		}
	}
	// Numbering is random: ids and degrees have nothing to do with each other.
	low := 0
	for v := range d.NumNodes / 2 {
		low += d.Graph.InDegree(int32(v))
	}
	if share := float64(low) / float64(d.NumEdges); share < 0.47 || share > 0.53 {
		t.Errorf("the lower half of the nodes has %.3f of the edges", share)
	}
}

// TestSyntheticLaw looks at degrees and homophily where the graph is so sparse
// that hardly an edge is drawn twice.
func TestSyntheticLaw(t *testing.T) {
	d, err := Open(t.Context(), "synthetic:products?nodes=60000&edges=3000000&dim=1&classes=4", Options{})
	if err != nil {
		t.Fatal(err)
	}
	// In the middle, where neither the Poisson noise of small degrees nor the
	// saturation of the largest matters, quantiles of a log-normal law are sigma
	// apart per standard deviation.
	deg := degrees(d)
	hi, mid := float64(deg[len(deg)*8413/10000]), float64(deg[len(deg)/2])
	if sigma := math.Log(hi / mid); sigma < 1.17 || sigma > 1.22 {
		t.Errorf("the logarithm of the degree has the deviation %.3f, want 1.2 (median %.0f)", sigma, mid)
	}
	if top := deg[len(deg)-1]; top < 2000 {
		t.Errorf("the largest degree is %d", top)
	}
	if h := homophily(t, d); math.Abs(h-0.775) > 0.01 { // 0.7, and a quarter of the rest
		t.Errorf("homophily %.3f", h)
	}
	if r := float64(d.NumEdges) / 3e6; r < 0.99 || r > 1.01 {
		t.Errorf("%d edges, want about 3000000", d.NumEdges)
	}
}

func TestSyntheticLearnable(t *testing.T) {
	d, err := Open(t.Context(), "synthetic:products?nodes=6000&edges=150000&dim=64&classes=10", Options{})
	if err != nil {
		t.Fatal(err)
	}
	x := make([]float32, d.NumNodes*d.NumFeatures)
	class := make([]int32, d.NumNodes)
	if err := errors.Join(d.Features.Float32Rows(t.Context(), 0, d.NumNodes, x), d.Labels.Classes(class, nil)); err != nil {
		t.Fatal(err)
	}
	s, err := MakeSplit(d, "random:0.6,0.2,0.2", 0)
	if err != nil {
		t.Fatal(err)
	}
	own := centroidAccuracy(x, 64, class, 10, s)
	near := centroidAccuracy(neighbourMean(d, x, 64), 64, class, 10, s)
	t.Logf("nearest centroid: own features %.3f, with neighbours %.3f", own, near)
	if own < 0.3 || near < own+0.2 {
		t.Errorf("own features %.3f, with neighbours %.3f", own, near)
	}
}

func TestSyntheticShapes(t *testing.T) {
	p, err := Open(t.Context(), "synthetic:papers100m?scale=0.0003", Options{})
	if err != nil {
		t.Fatal(err)
	}
	labelled, loops, back := 0, 0, 0
	for v := range p.NumNodes {
		if p.Labels.Labelled(v) {
			labelled++
		}
		for _, u := range p.Graph.Row(int32(v)) {
			if int(u) == v {
				loops++
			}
			if _, ok := slices.BinarySearch(p.Graph.Row(u), int32(v)); ok {
				back++
			}
		}
	}
	s, err := p.Split(0)
	if err != nil || labelled != len(s.Train)+len(s.Valid)+len(s.Test) || p.NumClasses != 172 || loops != 0 {
		t.Errorf("%d labelled, %d loops, %+v, %v", labelled, loops, p.Meta, err)
	}
	if float64(back) > 0.2*float64(p.NumEdges) {
		t.Errorf("%d of %d directed edges have a reverse", back, p.NumEdges)
	}
	r, err := Open(t.Context(), "synthetic:reddit?scale=0.02&edges=300000&dim=8", Options{})
	if err != nil {
		t.Fatal(err)
	}
	if e := float64(r.NumEdges) / 300_000; r.NumNodes != 4659 || r.NumFeatures != 8 || e < 0.97 || e > 1.03 {
		t.Errorf("%+v: %.3f of the edges", r.Meta, e)
	}
}

// TestSyntheticWorkers makes the same set with 1 and 5 workers, and writes and
// reads it.
func TestSyntheticWorkers(t *testing.T) {
	const name = "synthetic:products?nodes=3000&edges=60000&dim=10&seed=9"
	a, err := Open(t.Context(), name, Options{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	b, err := Open(t.Context(), name, Options{Workers: 5})
	if err != nil {
		t.Fatal(err)
	}
	sameSet(t, a, b)
	c, err := Open(t.Context(), writeFolder(t, a), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	sameSet(t, a, c)
	other, err := Open(t.Context(), name[:len(name)-1]+"8", Options{})
	if err != nil {
		t.Fatal(err)
	}
	if other.Fingerprint == a.Fingerprint {
		t.Error("the seed does nothing")
	}
}

func TestSyntheticParameters(t *testing.T) {
	for _, name := range []string{
		"synthetic", "synthetic:", "synthetic:product", "synthetic:products?", // the last is fine
		"synthetic:products?scale=0", "synthetic:products?scale=x", "synthetic:products?scale=1e9", "synthetic:products?scale=1e-9",
		"synthetic:products?nodes=0", "synthetic:products?nodes=3000000000", "synthetic:products?edges=-1", "synthetic:products?dim=0",
		"synthetic:products?seed=-1", "synthetic:products?sed=1", "synthetic:products?nodes=1&nodes=2", "synthetic:products?%zz",
		"synthetic:products?nodes=100&edges=9000",
	} {
		err := Find(name, Options{})
		if name == "synthetic:products?" {
			if err != nil {
				t.Error(err)
			}
			continue
		}
		wantFault(t, name, err, name)
	}
	wantFault(t, "near", Find("synthetic:product", Options{}), "did you mean products?")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Open(ctx, "synthetic:products?scale=0.001", Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestNormalRow(t *testing.T) {
	s := &synthetic{}
	row := make([]float32, 99_999)
	normalRow(row, s.noise, 1)
	var sum, square float64
	for _, x := range row {
		sum += float64(x)
		square += float64(x) * float64(x)
	}
	n := float64(len(row))
	if mean, v := sum/n, square/n; math.Abs(mean) > 0.01 || math.Abs(v-1) > 0.015 {
		t.Errorf("mean %.4f, variance %.4f", mean, v)
	}
}

func TestBytesSum(t *testing.T) {
	for _, c := range []struct {
		w    uint32
		want int32
	}{{0, 0}, {0xFFFFFFFF, 1020}, {0x01020304, 10}, {0xFF0000FF, 510}, {0x00FF00FF, 510}, {0xFF00FF00, 510}} {
		if got := bytesSum(c.w); got != c.want {
			t.Errorf("%08x: %d, want %d", c.w, got, c.want)
		}
	}
}

func BenchmarkSyntheticEdges(b *testing.B) {
	s, err := parseSynthetic(":products?scale=0.1")
	if err != nil {
		b.Fatal(err)
	}
	s.prepare(1)
	s.draws = 1 << 20
	for b.Loop() {
		for _, err := range s.edgeSource(b.Context()) {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.N)*float64(s.draws)/b.Elapsed().Seconds(), "edges/s")
}

func BenchmarkSyntheticRows(b *testing.B) {
	s, err := parseSynthetic(":products?scale=0.1")
	if err != nil {
		b.Fatal(err)
	}
	s.prepare(1)
	dst := make([]byte, 1024*s.dim*dtype.Float32.Size())
	b.SetBytes(int64(len(dst)))
	for b.Loop() {
		if err := s.readRows(0, 1024, dst); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkOpenSynthetic(b *testing.B) {
	for b.Loop() {
		d, err := Open(b.Context(), "synthetic:products?scale=0.1", Options{})
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(d.NumEdges), "edges")
	}
}
