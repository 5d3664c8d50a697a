package datasets

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"zerogcn/dtype"
	"zerogcn/graph"
	"zerogcn/internal/sharedtest"
)

func TestConvertFeatures(t *testing.T) {
	d, err := Open(t.Context(), "synthetic:products?nodes=500&edges=4000&dim=21", Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := make([]float32, 500*21)
	if err := d.Features.Float32Rows(t.Context(), 0, 500, want); err != nil {
		t.Fatal(err)
	}
	for ft, tol := range map[dtype.Type]float64{dtype.Float16: 1.0 / 2048, dtype.BFloat16: 1.0 / 256, dtype.Int8: 1.0 / 254} {
		c, err := ConvertFeatures(t.Context(), d, ft, 2)
		if err != nil {
			t.Fatal(err)
		}
		r, err := Open(t.Context(), writeFolder(t, c), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if r.FeatureType != ft.String() || r.Features.RowBytes() != 21*ft.Size() {
			t.Errorf("%s: %+v", ft, r.Meta)
		}
		got := make([]float32, len(want))
		if err := r.Features.Float32Rows(t.Context(), 0, 500, got); err != nil {
			t.Fatal(err)
		}
		for i := range want {
			top := math.Abs(float64(want[i]))
			if ft == dtype.Int8 { // relative to the row's largest
				for _, v := range want[i/21*21 : i/21*21+21] {
					top = max(top, math.Abs(float64(v)))
				}
			}
			if math.Abs(float64(got[i]-want[i])) > tol*top {
				t.Fatalf("%s: value %d is %v, was %v", ft, i, got[i], want[i])
			}
		}
		if err := Verify(t.Context(), r, 0); err != nil {
			t.Error(err)
		}
		r.Close()
	}
	x, _ := DenseFeatures([]float32{1, 2, 70000, 4}, 2, 2)
	g, err := graph.Builder{NumNodes: 2}.FromEdges(t.Context(), nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	big := &Dataset{Meta: Meta{Name: "big", Task: Multiclass}, Graph: g, Features: x}
	if err := big.seal(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	c, err := ConvertFeatures(t.Context(), big, dtype.Float16, 0)
	if err != nil {
		t.Fatal(err)
	}
	wantFault(t, "float16", c.Features.CheckFinite(t.Context(), 0), "row 1, column 0 is 70000", "bf16")
}

func TestRowNormalize(t *testing.T) {
	d, err := Open(t.Context(), sharedtest.Path(t, "data/planetoid-citeseer"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	n, err := RowNormalize(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	for v := range n.NumNodes {
		_, vals := n.Features.Sparse().Row(v)
		sum := 0.0
		for _, x := range vals {
			sum += float64(x)
		}
		if len(vals) == 0 && d.Labels.Labelled(v) && len(mustRow(d, v)) != 0 || len(vals) > 0 && math.Abs(sum-1) > 1e-5 {
			t.Fatalf("row %d sums to %v", v, sum)
		}
	}
	if first := d.Features.Sparse().Vals[0]; first != 1 {
		t.Errorf("the set that was normalised has changed: %v", first)
	}
	// Densely and from a file, zero rows stay too.
	x, _ := DenseFeatures([]float32{1, 3, 0, 0, -2, 2}, 3, 2)
	s := &Dataset{Meta: Meta{Name: "x"}, Features: x}
	m, err := RowNormalize(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	got := make([]float32, 6)
	if err := m.Features.Float32Rows(t.Context(), 0, 3, got); err != nil || fmt.Sprint(got) != "[0.25 0.75 0 0 -2 2]" {
		t.Errorf("%v, %v", got, err)
	}
	q := small(t, Multiclass, dtype.Int8, 0)
	_, err = RowNormalize(t.Context(), q)
	wantFault(t, "int8", err, "int8")
}

func mustRow(d *Dataset, v int) []int32 { c, _ := d.Features.Sparse().Row(v); return c }

func TestTransformGraph(t *testing.T) {
	d := small(t, Multiclass, dtype.Float32, 1) // 1→0 2→0 4→0 0→1 4→3, weighted
	s, err := TransformGraph(t.Context(), d, GraphOptions{Symmetrize: true, SelfLoops: AddSelfLoops})
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(s.Graph.Indptr, s.Graph.Indices, s.NumEdges); got != "[0 4 6 8 10 13] [0 1 2 4 0 1 0 2 3 4 0 3 4] 13" {
		t.Error(got)
	}
	r, err := TransformGraph(t.Context(), s, GraphOptions{SelfLoops: RemoveSelfLoops})
	if err != nil || r.NumEdges != 8 {
		t.Error(r, err)
	}
	if d.NumEdges != 5 || s.Fingerprint != d.Fingerprint {
		t.Error("the set that was transformed has changed")
	}
}

// TestGraphEdges gives back any graph, in chunks.
func TestGraphEdges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 50).Draw(t, "n")
		m := rapid.IntRange(0, 300).Draw(t, "m")
		var src, dst []int32
		for range m {
			src = append(src, rapid.Int32Range(0, int32(n-1)).Draw(t, "s"))
			dst = append(dst, rapid.Int32Range(0, int32(n-1)).Draw(t, "d"))
		}
		b := graph.Builder{NumNodes: n}
		g, err := b.FromEdges(t.Context(), src, dst, nil)
		if err != nil {
			t.Fatal(err)
		}
		h, err := b.Build(t.Context(), graphEdges(g))
		if err != nil || !slices.Equal(g.Indptr, h.Indptr) || !slices.Equal(g.Indices, h.Indices) {
			t.Fatal(g, h, err)
		}
	})
}

func TestReorder(t *testing.T) {
	for _, task := range []Task{Multiclass, Multilabel, Regression, Link} {
		d := small(t, task, dtype.Int8, 2)
		order := []int32{3, 1, 4, 0, 2}
		r, err := Reorder(t.Context(), d, order, ByAccess, 0)
		if err != nil {
			t.Fatal(err)
		}
		// Back again it is the set that it was, but for the original ids, which
		// both keep.
		inv, err := inverse(order, 5)
		if err != nil {
			t.Fatal(err)
		}
		back, err := Reorder(t.Context(), r, inv, Original, 0)
		if err != nil {
			t.Fatal(err)
		}
		back.Fingerprint = d.Fingerprint
		sameSet(t, d, back)
		if err := Verify(t.Context(), back, 0); err != nil {
			t.Error(err)
		}
		if r.OriginalID(0) != d.OriginalID(3) || r.Order != ByAccess {
			t.Errorf("ids %v", r.NodeIDs)
		}
		w, err := Open(t.Context(), writeFolder(t, r), Options{})
		if err != nil {
			t.Fatal(err)
		}
		r.Fingerprint = w.Fingerprint
		sameSet(t, r, w)
		w.Close()
	}
	for _, order := range [][]int32{{0, 1}, {0, 1, 2, 3, 3}, {0, 1, 2, 3, 5}, {0, 1, 2, 3, -1}} {
		if _, err := Reorder(t.Context(), small(t, Multiclass, dtype.Float32, 0), order, ByDegree, 0); err == nil {
			t.Errorf("%v was taken", order)
		}
	}
}

func TestOrders(t *testing.T) {
	d, err := Open(t.Context(), "synthetic:products?nodes=4000&edges=60000&dim=4&classes=4", Options{})
	if err != nil {
		t.Fatal(err)
	}
	order, err := DegreeOrder(t.Context(), d, 0)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Reorder(t.Context(), d, order, ByDegree, 0)
	if err != nil {
		t.Fatal(err)
	}
	out, err := r.Graph.OutDegrees(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.IsSortedFunc(out, func(a, b int64) int { return int(b - a) }) {
		t.Error("degrees do not fall")
	}
	if err := Verify(t.Context(), r, 0); err != nil {
		t.Error(err)
	}
	s, err := d.Split(0)
	if err != nil {
		t.Fatal(err)
	}
	access, err := AccessOrder(t.Context(), d, AccessOptions{Seeds: s.Train, Fanouts: []int{5, 3}, Batch: 32, Epochs: 2})
	if err != nil {
		t.Fatal(err)
	}
	// The nodes that come first are the frequent ones: the first tenth has far
	// more than a tenth of the degrees.
	sum := int64(0)
	full, err := d.Graph.OutDegrees(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range access[:400] {
		sum += full[v]
	}
	if share := float64(sum) / float64(d.NumEdges); share < 0.25 {
		t.Errorf("the first tenth has %.3f of the edges", share)
	}
	if _, err := inverse(access, 4000); err != nil {
		t.Error(err)
	}
	again, err := AccessOrder(t.Context(), d, AccessOptions{Seeds: s.Train, Fanouts: []int{5, 3}, Batch: 32, Epochs: 2, Workers: 3})
	if err != nil || !slices.Equal(access, again) {
		t.Error("depends on the workers", err)
	}
}

func TestInspect(t *testing.T) {
	d, err := Open(t.Context(), sharedtest.Path(t, "data/planetoid-citeseer"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := Inspect(t.Context(), d, 0)
	if err != nil {
		t.Fatal(err)
	}
	g := r.Graph
	if g.SelfLoops != 0 || g.Duplicates != 0 || !g.Symmetric || g.Isolated != 48 || g.Homophily == nil || *g.Homophily < 0.73 || *g.Homophily > 0.745 {
		t.Errorf("%+v %v", g, *g.Homophily)
	}
	if r.Features.Min != 0 || r.Features.Max != 1 || r.Features.ZeroRows != 15 {
		t.Errorf("%+v", r.Features)
	}
	if r.Labels.Labelled != 3312 || fmt.Sprint(r.Splits[0].TrainCounts) != "[20 20 20 20 20 20]" || r.Splits[0].Test != 1000 {
		t.Errorf("%+v %+v", r.Labels, r.Splits)
	}
	for _, want := range []string{"48 nodes have no neighbour", "15 nodes have no label", "15 nodes have nothing but zeros as features"} {
		if !slices.Contains(r.Warnings, want) && !slices.ContainsFunc(r.Warnings, func(w string) bool { return len(w) > len(want) && w[:len(want)] == want }) {
			t.Errorf("no warning %q in %q", want, r.Warnings)
		}
	}
	c, err := Open(t.Context(), sharedtest.Path(t, "data/cora-text"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if r, err = Inspect(t.Context(), c, 0); err != nil {
		t.Fatal(err)
	}
	// 5,429 edges, 5,278 undirected: 151 pairs go both ways.
	if r.Graph.Unpaired != 5429-2*151 || r.Graph.Symmetric {
		t.Errorf("%+v", r.Graph)
	}
	for _, task := range []Task{Multilabel, Regression, Link} {
		if _, err := Inspect(t.Context(), small(t, task, dtype.BFloat16, 1), 0); err != nil {
			t.Error(err)
		}
	}
}
