package main

import (
	"math"
	"math/bits"

	"zerogcn/internal/philox"
)

// stream gives random words one after another.
type stream struct {
	s    philox.Stream
	item uint32
	draw uint32
}

func newStream(seed uint64, site uint32) *stream {
	return &stream{s: philox.NewStream(seed, philox.Generator, site, 0)}
}

func (r *stream) below(n int) int {
	w := r.s.Word(r.item, r.draw)
	if r.draw++; r.draw == 4 {
		r.item, r.draw = r.item+1, 0
	}
	return int(philox.Below(w, uint32(n)))
}

// uniqueIDs draws n different ids below rows, uniformly, ascending.
func uniqueIDs(n, rows int, r *stream) []int32 {
	set := make([]uint64, (rows+63)/64)
	// Of a dense draw it is cheaper to draw what stays out.
	out := n > rows/2
	want := n
	if out {
		want = rows - n
	}
	for drawn := 0; drawn < want; {
		v := r.below(rows)
		if bit := uint64(1) << (v % 64); set[v/64]&bit == 0 {
			set[v/64] |= bit
			drawn++
		}
	}
	ids := make([]int32, 0, n)
	for w, word := range set {
		if out {
			word = ^word
		}
		for ; word != 0; word &= word - 1 {
			if v := w*64 + bits.TrailingZeros64(word); v < rows {
				ids = append(ids, int32(v))
			}
		}
	}
	return ids
}

// shuffle permutes ids (Fisher-Yates).
func shuffle(ids []int32, r *stream) {
	for i := len(ids) - 1; i > 0; i-- {
		j := r.below(i + 1)
		ids[i], ids[j] = ids[j], ids[i]
	}
}

// hotSigma is the spread of log-normal access weights, as measured products
// graphs have it.
const hotSigma = 1.2

// hotIDs draws about n different ids of rows that are numbered by descending
// access weight, ascending. Weights are log-normal; a row is in the batch with
// probability 1 - exp(-λw), as the frontier of many independent draws is, with λ
// such that n are expected.
func hotIDs(n, rows int, r *stream) []int32 {
	const buckets = 4096
	k := min(buckets, rows)
	weight := make([]float64, k)
	size := make([]int, k)
	for b := range k {
		lo, hi := b*rows/k, (b+1)*rows/k
		size[b] = hi - lo
		q := (float64(b) + 0.5) / float64(k) // quantile from the top
		weight[b] = math.Exp(hotSigma * -math.Sqrt2 * math.Erfinv(2*q-1))
	}
	expected := func(lambda float64) float64 {
		sum := 0.0
		for b := range k {
			sum += float64(size[b]) * -math.Expm1(-lambda*weight[b])
		}
		return sum
	}
	lo, hi := 0.0, 1.0
	for expected(hi) < float64(n) && hi < 1e9 {
		hi *= 2
	}
	for range 60 {
		if mid := (lo + hi) / 2; expected(mid) < float64(n) {
			lo = mid
		} else {
			hi = mid
		}
	}
	var ids []int32
	carry := 0.0
	for b := range k {
		want := float64(size[b])*-math.Expm1(-hi*weight[b]) + carry
		take := min(size[b], int(want))
		carry = want - float64(take)
		first := int32(b * rows / k)
		for _, id := range uniqueIDs(take, size[b], r) {
			ids = append(ids, first+id)
		}
	}
	return ids
}

// draw makes the ids of one batch.
func draw(o order, n, rows int, seed uint64, batch int) []int32 {
	r := newStream(seed, uint32(batch))
	n = min(n, max(1, rows/2))
	switch o {
	case hot:
		return hotIDs(n, rows, r)
	case random:
		ids := uniqueIDs(n, rows, r)
		shuffle(ids, r)
		return ids
	default:
		return uniqueIDs(n, rows, r)
	}
}
