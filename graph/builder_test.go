package graph

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"zerogcn/internal/par"
)

// chunked yields e in chunks of the given size, overwriting each chunk after
// use, as a reader that reuses its buffer does.
func chunked(e Edges, size int) EdgeSource {
	return func(yield func(Edges, error) bool) {
		for lo := 0; lo < e.Len(); lo += size {
			var c Edges
			c.append(e.slice(lo, min(e.Len(), lo+size)))
			if e.Weights == nil {
				c.Weights = nil
			}
			if !yield(c, nil) {
				return
			}
			for i := range c.Sources {
				c.Sources[i], c.Targets[i] = -1, -1
			}
		}
	}
}

func drawEdges(t *rapid.T, n int) Edges {
	m := rapid.IntRange(0, 200).Draw(t, "edges")
	id := rapid.Int32Range(0, int32(n-1))
	e := Edges{
		Sources: rapid.SliceOfN(id, m, m).Draw(t, "sources"),
		Targets: rapid.SliceOfN(id, m, m).Draw(t, "targets"),
	}
	if rapid.Bool().Draw(t, "weighted") {
		e.Weights = rapid.SliceOfN(rapid.Float32Range(-3, 3), m, m).Draw(t, "weights")
	}
	return e
}

func TestBuildAgainstReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 600).Draw(t, "nodes")
		e := drawEdges(t, n)
		b := Builder{NumNodes: n,
			Symmetrize:      rapid.Bool().Draw(t, "symmetrize"),
			RemoveSelfLoops: rapid.Bool().Draw(t, "remove"),
			AddSelfLoops:    rapid.Bool().Draw(t, "add"),
			Deduplicate:     rapid.Bool().Draw(t, "deduplicate"),
		}
		want := refBuild(b, e)
		chunk := rapid.IntRange(1, 250).Draw(t, "chunk")
		for _, w := range []par.Workers{1, 2, 8} {
			b.Workers = w
			got, err := b.Build(context.Background(), chunked(e, chunk))
			if err != nil {
				t.Fatal(err)
			}
			if e.Len() == 0 {
				want.Weights = nil // no chunk said whether there are any
			}
			if d := diffCSR(want, got); d != "" {
				t.Fatalf("%d workers: %s", w, d)
			}
			if err := got.Validate(context.Background(), w); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestBuildSegments builds a graph of several segments and tiles.
func TestBuildSegments(t *testing.T) {
	n, s, d := productsLike(0.009)
	w := make([]float32, len(s))
	for i := range w {
		w[i] = float32(i)
	}
	e := Edges{s, d, w}
	for _, b := range []Builder{
		{NumNodes: n},
		{NumNodes: n, Symmetrize: true, AddSelfLoops: true, Deduplicate: true},
	} {
		want := refBuild(b, e)
		for _, chunk := range []int{1000, segmentEdges + 5} {
			b.Workers = 3
			got, err := b.Build(context.Background(), chunked(e, chunk))
			if err != nil {
				t.Fatal(err)
			}
			if d := diffCSR(want, got); d != "" {
				t.Errorf("chunks of %d: %s", chunk, d)
			}
		}
	}
}

func TestBuildErrors(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	ctx := context.Background()
	for name, c := range map[string]struct {
		b    Builder
		e    Edges
		want string
	}{
		"nodes":         {Builder{NumNodes: -1}, Edges{}, "-1 nodes"},
		"source":        {Builder{NumNodes: 3}, Edges{[]int32{0, 3, 9}, []int32{1, 1, 1}, nil}, "edge 1 (3 -> 1): source 3 is not in [0, 3)"},
		"target":        {Builder{NumNodes: 3}, Edges{[]int32{0, 0}, []int32{1, -1}, nil}, "edge 1 (0 -> -1): target -1 is not in [0, 3)"},
		"no nodes":      {Builder{}, Edges{[]int32{0}, []int32{0}, nil}, "edge 0 (0 -> 0): source 0 is not in [0, 0)"},
		"lengths":       {Builder{NumNodes: 3}, Edges{[]int32{0, 0}, []int32{1}, nil}, "2 sources, 1 targets"},
		"weights":       {Builder{NumNodes: 3}, Edges{[]int32{0}, []int32{1}, []float32{1, 2}}, "2 weights"},
		"weight NaN":    {Builder{NumNodes: 3}, Edges{[]int32{0, 1}, []int32{1, 2}, []float32{1, nan}}, "edge 1 (1 -> 2): weight NaN"},
		"weight Inf":    {Builder{NumNodes: 3}, Edges{[]int32{0}, []int32{1}, []float32{inf}}, "edge 0 (0 -> 1): weight +Inf"},
		"late, chunked": {Builder{NumNodes: 5}, Edges{[]int32{0, 1, 2, 3, 4, 5, 6}, make([]int32, 7), nil}, "edge 5 (5 -> 0)"},
	} {
		for _, w := range []par.Workers{1, 4} {
			c.b.Workers = w
			src := c.e.One()
			if name == "late, chunked" {
				src = chunked(c.e, 2)
			}
			if _, err := c.b.Build(ctx, src); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: error %v, want %q", name, err, c.want)
			}
		}
	}
	boom := errors.New("boom")
	_, err := Builder{NumNodes: 2}.Build(ctx, func(yield func(Edges, error) bool) { yield(Edges{}, boom) })
	if !errors.Is(err, boom) {
		t.Errorf("error %v, want the source's", err)
	}
	mixed := func(yield func(Edges, error) bool) {
		_ = yield(Edges{[]int32{0}, []int32{0}, []float32{1}}, nil) && yield(Edges{[]int32{0}, []int32{0}, nil}, nil)
	}
	if _, err := (Builder{NumNodes: 2}).Build(ctx, mixed); err == nil || !strings.Contains(err.Error(), "edge 1: some chunks") {
		t.Errorf("mixed weights: error %v", err)
	}
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := (Builder{NumNodes: 2}).FromEdges(cancelled, []int32{0}, []int32{1}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: error %v", err)
	}
}

func TestBuildSourceChanged(t *testing.T) {
	base := Edges{[]int32{0, 1, 2}, []int32{1, 2, 0}, nil}
	for name, second := range map[string]Edges{
		"more":     {[]int32{0, 1, 2, 2}, []int32{1, 2, 0, 2}, nil},
		"fewer":    {[]int32{0, 1}, []int32{1, 2}, nil},
		"source":   {[]int32{0, 0, 2}, []int32{1, 2, 0}, nil},
		"target":   {[]int32{0, 1, 2}, []int32{1, 2, 2}, nil},
		"weighted": {[]int32{0, 1, 2}, []int32{1, 2, 0}, []float32{1, 1, 1}},
	} {
		reads := 0
		src := func(yield func(Edges, error) bool) {
			if reads++; reads == 1 {
				yield(base, nil)
			} else {
				yield(second, nil)
			}
		}
		if _, err := (Builder{NumNodes: 3}).Build(context.Background(), src); !errors.Is(err, ErrSourceChanged) {
			t.Errorf("%s: error %v, want ErrSourceChanged", name, err)
		}
	}
}
