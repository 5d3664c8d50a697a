package graph

// DeviceBlock holds the arrays of a Block in GPU memory, as device addresses; 0
// stands for a part that the block lacks. Element types are those of the Block's
// fields of the same names. Whoever made it owns the memory and says how long it
// lives.
type DeviceBlock struct {
	NumEdges                  int
	Indptr, Indices           uintptr
	Scale, EdgeScale, Degree  uintptr
	TIndptr, TIndices, TEdges uintptr
}
