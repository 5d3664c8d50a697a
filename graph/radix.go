package graph

// Rows from radixMin keys on are sorted by counting, with six-bit digits; wider
// digits pay from radixWide and radixWidest keys on. BenchmarkRowSort shows
// the crossings.
const (
	radixMin    = 32
	radixWide   = 128
	radixWidest = 512
)

// radixSorter sorts rows by a stable least-significant-digit radix sort (Knuth,
// The Art of Computer Programming, volume 3, section 5.2.5, algorithm R). It
// has no branches that depend on the keys, and those are most of the cost of
// sorting a row by comparisons. Its memory is reused.
type radixSorter[T int32 | uint64] struct {
	other  []T
	counts [1 << 11]uint32
}

// sort sorts keys by their bits from low on, stably. Bits from low+width on
// must be zero.
func (r *radixSorter[T]) sort(keys []T, low, width int) {
	digit := 6
	switch {
	case len(keys) >= radixWidest:
		digit = 11
	case len(keys) >= radixWide:
		digit = 8
	}
	passes := (width + digit - 1) / digit
	if passes == 0 {
		return
	}
	digit = (width + passes - 1) / passes
	r.other = resize(r.other, len(keys))
	from, to := keys, r.other
	next := r.counts[:1<<digit]
	for p := range passes {
		shift := (low + p*digit) & 63
		clear(next)
		for _, k := range from {
			next[uint64(k)>>shift&uint64(len(next)-1)]++
		}
		sum := uint32(0)
		for i, n := range next {
			next[i] = sum
			sum += n
		}
		for _, k := range from {
			at := &next[uint64(k)>>shift&uint64(len(next)-1)]
			to[*at] = k
			*at++
		}
		from, to = to, from
	}
	if passes%2 == 1 {
		copy(keys, from)
	}
}
