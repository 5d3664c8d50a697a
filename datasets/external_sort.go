package datasets

// digitBits is the most that one pass of sortKeys looks at: its counters fit the
// first-level cache.
const digitBits = 11

// sortKeys sorts a leaf's keys, with their weights, by their lowest bits, stably
// (least-significant-digit radix sort: Knuth, The Art of Computer Programming,
// volume 3, section 5.2.5, algorithm R). spare has the same lengths, and they
// may have changed places afterwards.
func sortKeys(l, spare *leaf, low uint) {
	passes := (low + digitBits - 1) / digitBits
	if passes == 0 || len(l.keys) < 2 {
		return
	}
	digit := (low + passes - 1) / passes
	mask := uint64(1)<<digit - 1
	next := make([]int, 1<<digit)
	for p := range passes {
		shift := p * digit
		clear(next)
		for _, k := range l.keys {
			next[k>>shift&mask]++
		}
		if next[l.keys[0]>>shift&mask] == len(l.keys) {
			continue // all alike
		}
		sum := 0
		for i, n := range next {
			next[i] = sum
			sum += n
		}
		if len(l.weights) == 0 {
			for _, k := range l.keys {
				at := &next[k>>shift&mask]
				spare.keys[*at] = k
				*at++
			}
		} else {
			for i, k := range l.keys {
				at := &next[k>>shift&mask]
				spare.keys[*at], spare.weights[*at] = k, l.weights[i]
				*at++
			}
		}
		l.keys, spare.keys = spare.keys, l.keys
		l.weights, spare.weights = spare.weights, l.weights
	}
}

// arena lends the memory of leaves, and takes it back all at once.
type arena struct {
	keys    []uint64
	weights []float32
	used    int
}

// reset makes room for so many keys twice over.
func (a *arena) reset(keys int, weighted bool) {
	if a.used = 0; cap(a.keys) < 2*keys {
		a.keys = make([]uint64, 2*keys)
	}
	if weighted && cap(a.weights) < 2*keys {
		a.weights = make([]float32, 2*keys)
	}
}

// take lends room for n keys and, if there are weights, as many of those.
func (a *arena) take(n int) ([]uint64, []float32) {
	lo, hi := a.used, a.used+n
	a.used = hi
	if cap(a.weights) == 0 {
		return a.keys[:cap(a.keys)][lo:hi:hi], nil
	}
	return a.keys[:cap(a.keys)][lo:hi:hi], a.weights[:cap(a.weights)][lo:hi:hi]
}
