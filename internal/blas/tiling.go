package blas

// tiling is the size of a product's tiles: rows×cols of C, and how much of the
// inner dimension k one tile sums. Where depth is below k, the partial sums
// are added in the order of k.
type tiling struct{ rows, cols, depth int }

// How products are cut. All that may enter are shapes: the bits of the result
// depend on the cut.
const (
	maxRows, maxCols = 256, 512
	// wantTiles is how many tiles are enough to keep the cores busy.
	wantTiles = 32
	// minWork is the multiply-adds of a tile below which starting a goroutine
	// costs more than it saves.
	minWork = 1 << 19
	// minDepth keeps the cost of adding a partial sum, 12 bytes of memory
	// traffic an element, small beside its 2·depth floating-point operations.
	minDepth = 512
	// maxPartials bounds the scratch: (maxPartials-1)·m·n elements.
	maxPartials = 64
)

// cut covers an m×n×k product, all at least 1, with nearly equal tiles. It
// cuts k as well if the tiles of C alone are too few and k is long: gradients
// of weights have a small C, and a k that counts the rows of a batch.
func cut(m, n, k int) tiling {
	t := tiling{cols: even(n, maxCols, 16), depth: k}
	rows := max(ceil(m, wantTiles), ceil(minWork, t.cols*k), 16)
	t.rows = even(m, min(maxRows, ceil(rows, 4)*4), 4)
	if k >= 2*max(m, n) { // rows of C are worth keeping together: cut k instead
		t.rows = even(m, maxRows, 4)
	}
	if tiles := ceil(m, t.rows) * ceil(n, t.cols); tiles < wantTiles {
		least := max(minDepth, ceil(minWork, t.rows*t.cols))
		parts := min(ceil(wantTiles, tiles), k/least, maxPartials)
		if parts > 1 {
			t.depth = even(k, ceil(k, parts), 16)
		}
	}
	return t
}

// even returns the size of nearly equal parts of n, at most limit each and a
// multiple of unit where that is no more than limit.
func even(n, limit, unit int) int {
	if n <= limit {
		return n
	}
	size := ceil(n, ceil(n, limit))
	return min(limit, ceil(size, unit)*unit)
}

func ceil(a, b int) int { return (a + b - 1) / b }
