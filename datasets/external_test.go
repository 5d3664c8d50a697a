package datasets

import (
	"context"
	"errors"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"zerogcn/graph"
	"zerogcn/internal/par"
)

// inPieces yields e in chunks of a size, and spoils each after use.
func inPieces(e graph.Edges, size int) graph.EdgeSource {
	return func(yield func(graph.Edges, error) bool) {
		for lo := 0; lo < e.Len(); lo += size {
			hi := min(e.Len(), lo+size)
			c := graph.Edges{Sources: append([]int32(nil), e.Sources[lo:hi]...), Targets: append([]int32(nil), e.Targets[lo:hi]...)}
			if e.Weights != nil {
				c.Weights = append([]float32(nil), e.Weights[lo:hi]...)
			}
			if !yield(c, nil) {
				return
			}
			for i := range c.Sources {
				c.Sources[i] = -7
			}
		}
	}
}

func buildExternally(t testing.TB, b graph.Builder, src graph.EdgeSource, memory int64, dir string) (*graph.CSR, error) {
	t.Helper()
	g, release, err := buildExternal(context.Background(), b, src, spill{memory, dir})
	if err != nil {
		return nil, err
	}
	c := &graph.CSR{Indptr: append([]int64(nil), g.Indptr...), Indices: append([]int32{}, g.Indices...)}
	if g.Weights != nil {
		c.Weights = append([]float32{}, g.Weights...)
	}
	if err := release(); err != nil {
		t.Error(err)
	}
	return c, nil
}

// TestExternalAgainstBuilder builds the same graphs in memory and out of core,
// with room for a handful of edges, so that files are dealt again and again.
func TestExternalAgainstBuilder(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 300).Draw(t, "nodes")
		m := rapid.IntRange(0, 100).Draw(t, "edges")
		id := rapid.Int32Range(0, int32(rapid.IntRange(0, n-1).Draw(t, "largest id")))
		e := graph.Edges{
			Sources: rapid.SliceOfN(id, m, m).Draw(t, "sources"),
			Targets: rapid.SliceOfN(id, m, m).Draw(t, "targets"),
		}
		if rapid.Bool().Draw(t, "weighted") {
			e.Weights = rapid.SliceOfN(rapid.Float32Range(-3, 3), m, m).Draw(t, "weights")
		}
		b := graph.Builder{NumNodes: n,
			Symmetrize:      rapid.Bool().Draw(t, "symmetrize"),
			RemoveSelfLoops: rapid.Bool().Draw(t, "remove"),
			AddSelfLoops:    rapid.Bool().Draw(t, "add"),
			Deduplicate:     rapid.Bool().Draw(t, "deduplicate"),
			Workers:         par.Workers(rapid.IntRange(1, 3).Draw(t, "workers")),
		}
		src := inPieces(e, rapid.IntRange(1, 250).Draw(t, "chunk"))
		want, err := b.Build(context.Background(), src)
		if err != nil {
			t.Fatal(err)
		}
		memory := rapid.Int64Range(1, 100*2*bytesPerKey).Draw(t, "memory")
		g, release, err := buildExternal(context.Background(), b, src, spill{memory, dir})
		if err != nil {
			t.Fatal(err)
		}
		defer release()
		if d := cmp.Diff(want.Indptr, g.Indptr); d != "" {
			t.Fatalf("offsets: %s", d)
		}
		if len(want.Indices) != len(g.Indices) || len(want.Indices) > 0 && cmp.Diff(want.Indices, g.Indices) != "" {
			t.Fatalf("sources: %s", cmp.Diff(want.Indices, g.Indices))
		}
		if (want.Weights == nil) != (g.Weights == nil) || len(want.Weights) > 0 && cmp.Diff(want.Weights, g.Weights) != "" {
			t.Fatalf("weights: %s", cmp.Diff(want.Weights, g.Weights))
		}
	})
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestExternalLarger builds a skewed graph of several segments in memory for a
// fraction of it.
func TestExternalLarger(t *testing.T) {
	d, err := Open(t.Context(), "synthetic:products?scale=0.003&dim=1", Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	b := graph.Builder{NumNodes: d.NumNodes, Symmetrize: true, Deduplicate: true, AddSelfLoops: true}
	want, err := b.Build(t.Context(), graphEdges(d.Graph))
	if err != nil {
		t.Fatal(err)
	}
	for _, memory := range []int64{want.NumEdges() / 5, 1 << 40} {
		got, err := buildExternally(t, b, graphEdges(d.Graph), memory, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(want.Indptr, got.Indptr) || !slices.Equal(want.Indices, got.Indices) {
			t.Errorf("%d bytes: another graph", memory)
		}
	}
}

// TestExternalErrors finds what the builder finds, in the same words.
func TestExternalErrors(t *testing.T) {
	inf := float32(math.Inf(1))
	for name, c := range map[string]struct {
		b graph.Builder
		e graph.Edges
	}{
		"nodes":      {graph.Builder{NumNodes: -1}, graph.Edges{}},
		"source":     {graph.Builder{NumNodes: 3}, graph.Edges{Sources: []int32{0, 3, 9}, Targets: []int32{1, 1, 1}}},
		"target":     {graph.Builder{NumNodes: 3}, graph.Edges{Sources: []int32{0, 0}, Targets: []int32{1, -1}}},
		"no nodes":   {graph.Builder{}, graph.Edges{Sources: []int32{0}, Targets: []int32{0}}},
		"lengths":    {graph.Builder{NumNodes: 3}, graph.Edges{Sources: []int32{0, 0}, Targets: []int32{1}}},
		"weight Inf": {graph.Builder{NumNodes: 3}, graph.Edges{Sources: []int32{0, 1}, Targets: []int32{0, 2}, Weights: []float32{1, inf}}},
	} {
		_, want := c.b.Build(t.Context(), c.e.One())
		_, got := buildExternally(t, c.b, c.e.One(), 1, t.TempDir())
		if want == nil || got == nil || want.Error() != got.Error() {
			t.Errorf("%s: %v, and in memory %v", name, got, want)
		}
	}
	boom := errors.New("boom")
	if _, err := buildExternally(t, graph.Builder{NumNodes: 1}, func(yield func(graph.Edges, error) bool) { yield(graph.Edges{}, boom) }, 1, t.TempDir()); !errors.Is(err, boom) {
		t.Errorf("error %v, want the source's", err)
	}
	mixed := func(yield func(graph.Edges, error) bool) {
		_ = yield(graph.Edges{Sources: []int32{0}, Targets: []int32{0}, Weights: []float32{1}}, nil) && yield(graph.Edges{Sources: []int32{0}, Targets: []int32{0}}, nil)
	}
	if _, err := buildExternally(t, graph.Builder{NumNodes: 1}, mixed, 1, t.TempDir()); err == nil || !strings.Contains(err.Error(), "edge 1: some chunks") {
		t.Errorf("error %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := buildExternal(ctx, graph.Builder{NumNodes: 2}, graph.Edges{Sources: []int32{0}, Targets: []int32{1}}.One(), spill{1, t.TempDir()}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: error %v", err)
	}
	if _, err := buildExternally(t, graph.Builder{NumNodes: 2}, graph.Edges{Sources: []int32{0}, Targets: []int32{1}}.One(), 1, os.Args[0]); err == nil {
		t.Error("no error without a folder")
	}
}

func BenchmarkExternal(b *testing.B) {
	d, err := Open(b.Context(), "synthetic:products?scale=0.05&dim=1", Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	bld := graph.Builder{NumNodes: d.NumNodes, Symmetrize: true, Deduplicate: true}
	run := func(name string, f func() error) {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if err := f(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)*float64(d.NumEdges)/b.Elapsed().Seconds()/1e6, "Medges/s")
		})
	}
	run("memory", func() error { _, err := bld.Build(b.Context(), graphEdges(d.Graph)); return err })
	run("external", func() error {
		_, release, err := buildExternal(b.Context(), bld, graphEdges(d.Graph), spill{32 << 20, b.TempDir()})
		if err != nil {
			return err
		}
		return release()
	})
}
