package graph

// maxNetwork is the largest fan-out whose draws are kept in registers and
// sorted by a network; larger ones go through a bitmap (see bigRow).
const maxNetwork = 32

// comparator orders two elements of a sorting network.
type comparator struct{ lo, hi uint8 }

// sortingNetwork returns Batcher's odd-even merge sort for n elements (Knuth,
// The Art of Computer Programming, volume 3, section 5.2.2, algorithm M). A
// network has no unpredictable branches, which for the few elements of a
// fan-out cost more than the comparisons.
func sortingNetwork(n int) []comparator {
	var net []comparator
	top := 1
	for top < n {
		top *= 2
	}
	top /= 2
	for p := top; p > 0; p /= 2 {
		q, r, d := top, 0, p
		for {
			for i := 0; i < n-d; i++ {
				if i&p == r {
					net = append(net, comparator{uint8(i), uint8(i + d)})
				}
			}
			if q == p {
				break
			}
			d, q, r = q-p, q/2, p
		}
	}
	return net
}

// run sorts the first elements of x by the network.
func runNetwork(net []comparator, x *[maxNetwork]uint32) {
	for _, c := range net {
		a, b := x[c.lo%maxNetwork], x[c.hi%maxNetwork]
		x[c.lo%maxNetwork], x[c.hi%maxNetwork] = min(a, b), max(a, b)
	}
}
