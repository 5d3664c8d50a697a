package loader_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"zerogcn/datasets"
	"zerogcn/loader"
	"zerogcn/sparse"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t testing.TB) (*datasets.Dataset, *loader.Features, []int32) {
	t.Helper()
	ds, err := datasets.Open(context.Background(), "demo", datasets.Options{})
	if err != nil {
		t.Fatal(err)
	}
	f, err := loader.OpenFeatures(context.Background(), ds, loader.FeatureOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(f.Close(), f.Close(), ds.Close()); err != nil {
			t.Error(err)
		}
	})
	split, err := ds.Split(0)
	if err != nil {
		t.Fatal(err)
	}
	return ds, f, split.Train
}

// digest is a hash of all that a batch holds.
func digest(b *loader.Batch) uint64 {
	h := fnv.New64a()
	fmt.Fprint(h, b.Epoch, b.Index, b.Step, b.Seeds, b.Nodes, b.Class, b.GlobalLabelled)
	for _, k := range b.Blocks {
		fmt.Fprint(h, k.NumDst, k.NumSrc, k.Indptr, k.Indices, k.TIndptr, k.TIndices, k.Scale, k.Degree)
	}
	for _, v := range b.X.Dense {
		x := math.Float32bits(v)
		h.Write([]byte{byte(x), byte(x >> 8), byte(x >> 16), byte(x >> 24)})
	}
	return h.Sum64()
}

func epoch(t *testing.T, l *loader.Loader, e, from int) []uint64 {
	t.Helper()
	var ds []uint64
	for b, err := range l.EpochFrom(t.Context(), e, from) {
		if err != nil {
			t.Fatal(err)
		}
		ds = append(ds, digest(b))
	}
	return ds
}

// Batches are the same for any number of workers and any depth, after other
// epochs or not, and from any batch on.
func TestBatchesAreReproducible(t *testing.T) {
	ds, f, train := open(t)
	var want []uint64
	for i, o := range []loader.Options{{Workers: 1, Depth: 1}, {Workers: 2}, {Workers: 8, Depth: 5}} {
		o.Fanouts, o.BatchSize, o.Seed = []int{10, 5}, 500, 7
		o.Scale, o.Degrees, o.DropSelfLoops = true, true, true
		l, err := loader.New(ds, f, train, o)
		if err != nil {
			t.Fatal(err)
		}
		if i == 2 {
			epoch(t, l, 0, 0)
		}
		got := epoch(t, l, 3, 0)
		if want == nil {
			want = got
		}
		if !slices.Equal(got, want) {
			t.Fatalf("options %+v give other batches", o)
		}
		if len(got) != l.NumBatches() || len(got) != 15 {
			t.Fatalf("%d batches, want 15", len(got))
		}
		if rest := epoch(t, l, 3, 11); !slices.Equal(rest, want[11:]) {
			t.Error("starting at batch 11 gives other batches")
		}
		if next := epoch(t, l, 4, 0); next[0] == want[0] {
			t.Error("the next epoch has the same first batch")
		}
	}
}

// Every seed comes once an epoch; ranks partition what one rank would do with a
// batch of all their sizes, and its last short batch.
func TestRanksPartitionTheGlobalBatch(t *testing.T) {
	ds, f, train := open(t)
	const batch, world = 300, 4
	one, err := loader.New(ds, f, train, loader.Options{Fanouts: []int{3}, BatchSize: batch * world})
	if err != nil {
		t.Fatal(err)
	}
	var global [][]int32
	for b, err := range one.Epoch(t.Context(), 2) {
		if err != nil {
			t.Fatal(err)
		}
		global = append(global, slices.Clone(b.Seeds))
	}
	seen := slices.Sorted(slices.Values(slices.Concat(global...)))
	if !slices.Equal(seen, train) {
		t.Fatal("an epoch does not visit every training node once")
	}
	got := make([][]int32, len(global))
	for r := range world {
		l, err := loader.New(ds, f, train, loader.Options{Fanouts: []int{3}, BatchSize: batch, World: world, Rank: r})
		if err != nil {
			t.Fatal(err)
		}
		if l.NumBatches() != len(global) {
			t.Fatalf("rank %d has %d batches, want %d", r, l.NumBatches(), len(global))
		}
		for b, err := range l.Epoch(t.Context(), 2) {
			if err != nil {
				t.Fatal(err)
			}
			if b.GlobalLabelled != len(global[b.Index]) {
				t.Errorf("rank %d, batch %d: %d labelled in the global batch, want %d", r, b.Index, b.GlobalLabelled, len(global[b.Index]))
			}
			got[b.Index] = append(got[b.Index], b.Seeds...)
		}
	}
	for i := range global {
		slices.Sort(got[i])
		if !slices.Equal(got[i], global[i]) {
			t.Errorf("batch %d: the ranks' seeds are not those of the global batch", i)
		}
	}
}

// Features and classes are those of the nodes.
func TestRowsBelongToNodes(t *testing.T) {
	ds, f, train := open(t)
	l, err := loader.New(ds, f, train, loader.Options{Fanouts: []int{4, 4}, BatchSize: 2000})
	if err != nil {
		t.Fatal(err)
	}
	row := make([]float32, ds.NumFeatures)
	class := make([]int32, ds.NumNodes)
	if err := ds.Labels.Classes(class, nil); err != nil {
		t.Fatal(err)
	}
	for b, err := range l.Epoch(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range b.Nodes {
			if err := ds.Features.Float32Rows(t.Context(), int(v), int(v)+1, row); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(row, b.X.Dense[i*b.X.Width:(i+1)*b.X.Width]) {
				t.Fatalf("row %d is not that of node %d", i, v)
			}
		}
		for i, v := range b.Seeds {
			if b.Nodes[i] != v || b.Class[i] != class[v] {
				t.Fatalf("seed %d: node %d, class %d; want %d, %d", i, b.Nodes[i], b.Class[i], v, class[v])
			}
		}
		for _, k := range b.Blocks {
			if err := k.Validate(); err != nil {
				t.Fatal(err)
			}
		}
		break
	}
}

// A full batch is sampled and gathered once.
func TestFullBatch(t *testing.T) {
	ds, f, train := open(t)
	l, err := loader.New(ds, f, train, loader.Options{Fanouts: []int{0, 0}})
	if err != nil {
		t.Fatal(err)
	}
	var x *float32
	for e := range 3 {
		n := 0
		for b, err := range l.Epoch(t.Context(), e) {
			if err != nil {
				t.Fatal(err)
			}
			n++
			if b.Step != uint64(e) || !slices.Equal(b.Seeds, train) {
				t.Errorf("epoch %d: step %d with %d seeds", e, b.Step, len(b.Seeds))
			}
			if x == nil {
				x = &b.X.Dense[0]
			} else if x != &b.X.Dense[0] {
				t.Error("a fixed batch was made anew")
			}
		}
		if n != 1 {
			t.Errorf("%d batches", n)
		}
	}
}

// Leaving the loop and cancelling end all goroutines (goleak checks), and the
// loader works afterwards.
func TestLeavingEarly(t *testing.T) {
	ds, f, train := open(t)
	l, err := loader.New(ds, f, train, loader.Options{Fanouts: []int{5, 5}, BatchSize: 100})
	if err != nil {
		t.Fatal(err)
	}
	for b, err := range l.Epoch(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if b.Index == 3 {
			break
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var last error
	n := 0
	for _, err := range l.Epoch(ctx, 0) {
		if last != nil {
			t.Fatal("the loop goes on after an error")
		}
		last = err
		if n++; n == 5 {
			cancel()
		}
	}
	if !errors.Is(last, context.Canceled) {
		t.Errorf("a cancelled epoch ended with %v", last)
	}
	if got := len(epoch(t, l, 1, 0)); got != l.NumBatches() {
		t.Errorf("%d batches after that, want %d", got, l.NumBatches())
	}
}

func TestOneEpochAtATime(t *testing.T) {
	ds, f, train := open(t)
	l, err := loader.New(ds, f, train, loader.Options{Fanouts: []int{5}, BatchSize: 1000})
	if err != nil {
		t.Fatal(err)
	}
	for range l.Epoch(t.Context(), 0) {
		for b, err := range l.Epoch(t.Context(), 1) {
			if b != nil || !errors.Is(err, loader.ErrBusy) {
				t.Errorf("a second epoch gave %v, %v", b, err)
			}
		}
		break
	}
}

// An error of a stage ends the epoch and names the stage and the batch.
func TestStageErrors(t *testing.T) {
	ds, f, train := open(t)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	l, err := loader.New(ds, f, train, loader.Options{Fanouts: []int{5}, BatchSize: 1000})
	if err != nil {
		t.Fatal(err)
	}
	var got error
	for b, err := range l.Epoch(t.Context(), 4) {
		if b != nil {
			t.Fatal("a batch without features")
		}
		got = err
	}
	if got == nil || !strings.Contains(got.Error(), "gather: epoch 4, batch 0") {
		t.Errorf("closed features gave %v", got)
	}
}

func TestBadOptions(t *testing.T) {
	ds, f, train := open(t)
	for name, o := range map[string]loader.Options{
		"negative batch": {BatchSize: -1},
		"rank":           {BatchSize: 10, World: 2, Rank: 2},
		"full, ranks":    {World: 2},
	} {
		if _, err := loader.New(ds, f, train, o); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if _, err := loader.New(ds, f, []int32{5, 5}, loader.Options{}); err == nil {
		t.Error("a seed listed twice was accepted")
	}
	if _, err := loader.New(ds, f, nil, loader.Options{}); err == nil {
		t.Error("no seeds were accepted")
	}
}

// Memory does not grow from epoch to epoch.
func TestSteadyState(t *testing.T) {
	ds, f, train := open(t)
	l, err := loader.New(ds, f, train, loader.Options{Fanouts: []int{10, 5}, BatchSize: 500})
	if err != nil {
		t.Fatal(err)
	}
	run := func() {
		for _, err := range l.Epoch(t.Context(), 0) {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	run()
	run()
	// Goroutines, channels and the shuffle: a bounded number an epoch, none a batch.
	if a := testing.AllocsPerRun(5, run); a > 100 {
		t.Errorf("%v allocations an epoch of %d batches", a, l.NumBatches())
	}
}

func TestMostlyZeroFeaturesBecomeSparse(t *testing.T) {
	const n, d = 300, 50
	x := make([]float32, n*d)
	for v := range n {
		x[v*d+v%d] = float32(v + 1)
	}
	feats, err := datasets.DenseFeatures(x, n, d)
	if err != nil {
		t.Fatal(err)
	}
	asSparse := datasets.SparseFeatures(sparse.FromDense(x, n, d))
	for i, dense := range []bool{false, true, false, true} {
		ds := &datasets.Dataset{Features: feats}
		if i >= 2 {
			ds.Features = asSparse
		}
		f, err := loader.OpenFeatures(t.Context(), ds, loader.FeatureOptions{Dense: dense})
		if err != nil {
			t.Fatal(err)
		}
		var r loader.Rows
		ids := []int32{7, 299, 7}
		if err := f.Gather(t.Context(), ids, &r); err != nil {
			t.Fatal(err)
		}
		if f.IsSparse() == dense || r.N != 3 || r.Width != d {
			t.Errorf("dense=%t: sparse is %t, %d×%d", dense, f.IsSparse(), r.N, r.Width)
		}
		row := make([]float32, d)
		for i, v := range ids {
			if dense {
				copy(row, r.Dense[i*d:])
			} else {
				r.Sparse.Dense(row, i)
			}
			if !slices.Equal(row, x[int(v)*d:(int(v)+1)*d]) {
				t.Errorf("dense=%t: row %d is %v", dense, i, row)
			}
		}
		if err := f.Gather(t.Context(), []int32{n}, &r); err == nil {
			t.Errorf("dense=%t: an id out of range was accepted", dense)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func BenchmarkEpoch(b *testing.B) {
	ds, f, train := open(b)
	l, err := loader.New(ds, f, train, loader.Options{Fanouts: []int{15, 10, 5}, BatchSize: 1024})
	if err != nil {
		b.Fatal(err)
	}
	edges := 0
	for b.Loop() {
		for bt, err := range l.Epoch(context.Background(), 0) {
			if err != nil {
				b.Fatal(err)
			}
			for _, k := range bt.Blocks {
				edges += k.NumEdges()
			}
		}
	}
	b.ReportMetric(float64(edges)/b.Elapsed().Seconds()/1e6, "Medges/s")
}
