package graph

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"testing"

	"zerogcn/internal/par"
	"zerogcn/internal/philox"
)

// FuzzBuilder builds from any bytes: the first gives options, the second the
// number of nodes, the third the chunk size, the rest edges of two signed bytes
// and, if weighted, a float32. The result is that of the reference, for any
// number of workers, and can be sampled; a bad edge is an error.
func FuzzBuilder(f *testing.F) {
	f.Add([]byte{0, 5, 1, 1, 0, 2, 0, 0, 0, 4, 3})
	f.Add([]byte{0b1111, 9, 2, 1, 0, 0, 1, 8, 8, 7, 7})
	f.Add([]byte{0b10001, 4, 3, 1, 0, 0, 0, 128, 63, 0, 1, 0, 0, 0, 64})
	f.Add([]byte{0b10000, 4, 1, 1, 0, 0, 0, 192, 127}) // a NaN
	f.Add([]byte{0, 3, 1, 0, 3})
	f.Add([]byte{0, 0, 1, 0, 0})
	f.Add([]byte{0, 3, 1, 255, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) < 3 {
			return
		}
		flags, n, chunk, rest := data[0], int(data[1]), int(data[2])+1, data[3:]
		b := Builder{NumNodes: n, Symmetrize: flags&1 != 0, Deduplicate: flags&2 != 0,
			RemoveSelfLoops: flags&4 != 0, AddSelfLoops: flags&8 != 0}
		weighted, bad := flags&16 != 0, false
		var e Edges
		for len(rest) >= 2 && (!weighted || len(rest) >= 6) {
			s, d := int32(int8(rest[0])), int32(int8(rest[1]))
			bad = bad || s < 0 || int(s) >= n || d < 0 || int(d) >= n
			e.Sources, e.Targets = append(e.Sources, s), append(e.Targets, d)
			rest = rest[2:]
			if weighted {
				w := math.Float32frombits(binary.LittleEndian.Uint32(rest))
				bad = bad || math.IsNaN(float64(w)) || math.IsInf(float64(w), 0)
				e.Weights, rest = append(e.Weights, w), rest[4:]
			}
		}
		for _, w := range []par.Workers{1, 3} {
			b.Workers = w
			c, err := b.Build(context.Background(), chunked(e, chunk))
			if bad {
				if err == nil || errors.Is(err, ErrSourceChanged) {
					t.Fatalf("a bad edge gave the error %v", err)
				}
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			if d := diffCSR(refBuild(b, e), c); d != "" {
				t.Fatal(d)
			}
			if n == 0 {
				continue
			}
			s, err := NewSampler(c, Options{Fanouts: []int{2, 3}, DropSelfLoops: true, TransposeAll: true, Workers: w})
			if err != nil {
				t.Fatal(err)
			}
			var batch Batch
			if err := s.Sample(1, philox.Sample, 0, []int32{int32(n - 1)}, &batch); err != nil {
				t.Fatal(err)
			}
			for i := range batch.Blocks {
				if err := batch.Blocks[i].Validate(); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}
