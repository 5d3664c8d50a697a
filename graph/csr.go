package graph

// CSR is a directed graph by incoming edges: row v lists the sources of the
// edges that end in v, ascending, Indices[Indptr[v]:Indptr[v+1]]. Messages flow
// from source to target, so a row is what node v aggregates.
//
// Indptr has NumNodes+1 offsets (64-bit: edges may outnumber 2^31), Indices one
// source id per edge. Weights is nil or has one weight per edge. A CSR is
// read-only once shared.
type CSR struct {
	Indptr  []int64
	Indices []int32
	Weights []float32
}
