//go:build !noasm

package lanes

import "golang.org/x/sys/cpu"

// Assembly reports whether the AVX2 kernels run.
var Assembly = cpu.X86.HasAVX2

func words(s *Stream, items, blocks *Vector, w *[4]Vector) {
	if Assembly {
		wordsAVX2(s, items, blocks, w)
	} else {
		wordsPlain(s, items, blocks, w)
	}
}

func floyd(x *[Max]Vector, degrees *Vector, k int) {
	if Assembly {
		floydAVX2(x, degrees, k)
	} else {
		floydPlain(x, degrees, k)
	}
}

func below(x *[Max]Vector, degrees *Vector, k int) {
	if Assembly {
		belowAVX2(x, degrees, k)
	} else {
		belowPlain(x, degrees, k)
	}
}

func sort(x *[Max]Vector, net []Comparator) {
	if Assembly {
		sortAVX2(x, net)
	} else {
		sortPlain(x, net)
	}
}

// wordsAVX2 is wordsPlain.
//
//go:noescape
func wordsAVX2(s *Stream, items, blocks *Vector, w *[4]Vector)

// floydAVX2 is floydPlain.
//
//go:noescape
func floydAVX2(x *[Max]Vector, degrees *Vector, k int)

// belowAVX2 is belowPlain.
//
//go:noescape
func belowAVX2(x *[Max]Vector, degrees *Vector, k int)

// sortAVX2 is sortPlain, without its bounds: a network has none but numbers
// below Max.
//
//go:noescape
func sortAVX2(x *[Max]Vector, net []Comparator)

// Prefetch asks for the cache lines of indices[p] for every p of positions,
// which need not be in range: a hint, without effect on results.
func Prefetch(indices []int32, positions []int64) {
	if len(indices) > 0 && len(positions) > 0 {
		prefetch(&indices[0], &positions[0], len(positions))
	}
}

//go:noescape
func prefetch(indices *int32, positions *int64, n int)
