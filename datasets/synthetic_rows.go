package datasets

import (
	"context"
	"math/bits"
	"slices"

	"zerogcn/graph"
	"zerogcn/internal/philox"
)

// rank turns 48 random bits into the rank of a node by weight, drawn in
// proportion to weight. The quantile's function is interpolated linearly.
func (s *synthetic) rank(u uint64) uint32 {
	i := u >> (rankBits - quantileBits)
	frac := u & (1<<(rankBits-quantileBits) - 1)
	a := s.quantile[i]
	hi, lo := bits.Mul64(s.quantile[i+1]-a, frac)
	q := a + (hi<<(64-rankBits+quantileBits) | lo>>(rankBits-quantileBits))
	hi, lo = bits.Mul64(min(q, 1<<rankBits-1), uint64(s.nodes))
	return uint32(hi<<(64-rankBits) | lo>>rankBits)
}

// A node's class is its rank modulo the number of classes, so that all classes
// have the same weights.

// edge draws edge e. It may be a self loop, or an edge that was drawn before.
func (s *synthetic) edge(e int64, stream philox.Stream, inside uint32) (source, target int32) {
	r := stream.Words(uint32(e), 0)
	u := s.rank(uint64(r[0])<<16 | uint64(r[3]>>16))
	v := s.rank(uint64(r[1])<<16 | uint64(r[3]&0xFFFF))
	if r[2] < inside {
		c := uint32(s.classes)
		v = v - v%c + u%c
		if int64(v) >= s.nodes {
			v -= c
		}
	}
	return int32(s.number.at(u)), int32(s.number.at(v))
}

// edgeSource yields the drawn edges, the same each time.
func (s *synthetic) edgeSource(ctx context.Context) graph.EdgeSource {
	const chunk, tile = 1 << 19, 1 << 14
	inside := philox.Threshold(syntheticInside)
	return func(yield func(graph.Edges, error) bool) {
		n := min(chunk, s.draws)
		src, dst := make([]int32, n), make([]int32, n)
		for at := int64(0); at < s.draws; at += chunk {
			if err := ctx.Err(); err != nil {
				yield(graph.Edges{}, err)
				return
			}
			n := int(min(chunk, s.draws-at))
			s.w.Range(n, tile, func(_, lo, hi int) {
				for i := lo; i < hi; i++ {
					e := at + int64(i)
					stream := philox.NewStream(s.seed, philox.Generator, siteDraws, uint64(e)>>32)
					src[i], dst[i] = s.edge(e, stream, inside)
				}
			})
			if !yield(graph.Edges{Sources: src[:n], Targets: dst[:n]}, nil) {
				return
			}
		}
	}
}

// readRows computes feature rows; it makes synthetic a rowReader.
func (s *synthetic) readRows(lo, hi int, dst []byte) error {
	row := make([]float32, s.dim)
	for v := lo; v < hi; v++ {
		normalRow(row, s.noise, uint32(v))
		mean := s.means[s.class(v)*s.dim:][:s.dim]
		for j, m := range mean {
			row[j] += m
		}
		dst = dst[copy(dst, bytesOf(row)):]
	}
	return nil
}

func (s *synthetic) class(v int) int { return int(s.number.of(uint32(v)) % uint32(s.classes)) }

// labels returns the class of each node, none for nodes of no part where the
// shape says so.
func (s *synthetic) labels() []int32 {
	class := make([]int32, s.nodes)
	known := s.train + s.valid + s.test
	s.w.Range(len(class), 1<<14, func(_, lo, hi int) {
		for v := lo; v < hi; v++ {
			class[v] = NoClass
			if !s.unlabelledRest || int64(s.part.at(uint32(v))) < known {
				class[v] = int32(s.class(v))
			}
		}
	})
	return class
}

// split takes the nodes whose places are the first for training, the next for
// validation and testing.
func (s *synthetic) split() Split {
	take := func(from, n int64) []int32 {
		ids := make([]int32, n)
		for i := range ids {
			ids[i] = int32(s.part.of(uint32(from + int64(i))))
		}
		slices.Sort(ids)
		return ids
	}
	return Split{take(0, s.train), take(s.train, s.valid), take(s.train+s.valid, s.test)}
}
