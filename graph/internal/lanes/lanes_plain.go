//go:build !amd64 || noasm

package lanes

// Assembly reports whether the AVX2 kernels run.
const Assembly = false

func words(s *Stream, items, blocks *Vector, w *[4]Vector) { wordsPlain(s, items, blocks, w) }
func floyd(x *[Max]Vector, degrees *Vector, k int)         { floydPlain(x, degrees, k) }
func below(x *[Max]Vector, degrees *Vector, k int)         { belowPlain(x, degrees, k) }
func sort(x *[Max]Vector, net []Comparator)                { sortPlain(x, net) }

// Prefetch asks for the cache lines of indices[p] for every p of positions,
// which need not be in range: a hint, without effect on results.
func Prefetch(indices []int32, positions []int64) {}
