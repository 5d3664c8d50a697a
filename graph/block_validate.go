package graph

import "fmt"

// Validate checks every invariant of the type, the transposed form included.
// Its error names the first fault. A block that Sample filled is valid; the
// check is for tests and for blocks made by hand.
func (b *Block) Validate() error {
	if b.NumDst < 0 || b.NumSrc < b.NumDst || b.NumSrc > MaxNodes {
		return fmt.Errorf("graph: block of %d targets and %d sources", b.NumDst, b.NumSrc)
	}
	if err := checkOffsets("target", b.Indptr, b.NumDst, len(b.Indices)); err != nil {
		return err
	}
	for e, s := range b.Indices {
		if s < 0 || int(s) >= b.NumSrc {
			return fmt.Errorf("graph: block edge %d: source %d is not in [0, %d)", e, s, b.NumSrc)
		}
	}
	for _, f := range []struct {
		name      string
		got, want int
		isNil     bool
	}{
		{"edge ids", len(b.EdgeIDs), len(b.Indices), b.EdgeIDs == nil},
		{"scales", len(b.Scale), b.NumDst, b.Scale == nil},
		{"edge scales", len(b.EdgeScale), len(b.Indices), b.EdgeScale == nil},
		{"degrees", len(b.Degree), b.NumSrc, b.Degree == nil},
	} {
		if !f.isNil && f.got != f.want {
			return fmt.Errorf("graph: block has %d %s, want %d", f.got, f.name, f.want)
		}
	}
	for i, s := range b.Scale {
		if !(s > 0) {
			return fmt.Errorf("graph: block target %d: scale %v is not positive", i, s)
		}
	}
	for e, s := range b.EdgeScale {
		if !(s > 0) {
			return fmt.Errorf("graph: block edge %d: scale %v is not positive", e, s)
		}
	}
	return b.validateTranspose()
}

func (b *Block) validateTranspose() error {
	if b.TIndptr == nil {
		if b.TIndices != nil || b.TEdges != nil {
			return fmt.Errorf("graph: block has half a transposed form")
		}
		return nil
	}
	if len(b.TIndices) != len(b.Indices) || len(b.TEdges) != len(b.Indices) {
		return fmt.Errorf("graph: block of %d edges has %d and %d in its transposed form",
			len(b.Indices), len(b.TIndices), len(b.TEdges))
	}
	if err := checkOffsets("source", b.TIndptr, b.NumSrc, len(b.TIndices)); err != nil {
		return err
	}
	// Edges ascend strictly within a source and lie in the row they claim, so
	// none appears twice and, the counts being equal, all appear.
	for s := range b.NumSrc {
		last := int32(-1)
		for j := b.TIndptr[s]; j < b.TIndptr[s+1]; j++ {
			e, t := b.TEdges[j], b.TIndices[j]
			if e <= last || int(e) >= len(b.Indices) {
				return fmt.Errorf("graph: block source %d: transposed entry %d is edge %d after %d", s, j, e, last)
			}
			if t < 0 || int(t) >= b.NumDst || e < b.Indptr[t] || e >= b.Indptr[t+1] || int(b.Indices[e]) != s {
				return fmt.Errorf("graph: block source %d: transposed entry %d: edge %d does not lead to target %d", s, j, e, t)
			}
			last = e
		}
	}
	return nil
}

func checkOffsets(what string, indptr []int32, rows, edges int) error {
	if len(indptr) != rows+1 || indptr[0] != 0 || int(indptr[rows]) != edges {
		return fmt.Errorf("graph: block of %d %ss and %d edges has %d offsets", rows, what, edges, len(indptr))
	}
	for i := range rows {
		if indptr[i+1] < indptr[i] {
			return fmt.Errorf("graph: block %s %d: offsets %d, %d descend", what, i, indptr[i], indptr[i+1])
		}
	}
	return nil
}
