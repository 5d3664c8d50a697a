package graph

import (
	"slices"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"zerogcn/internal/philox"
)

// TestOffsetsBeyond32Bits samples rows that begin after edge 2^31. The edge
// array is 8.6 GB of address space, of which a few pages are ever touched.
func TestOffsetsBeyond32Bits(t *testing.T) {
	const n, edges, first = 1000, 1<<31 + 5000, 1<<31 + 100
	mem, err := unix.Mmap(-1, 0, 4*edges, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		t.Skipf("no address space of 8.6 GB: %v", err)
	}
	defer func() {
		if err := unix.Munmap(mem); err != nil {
			t.Error(err)
		}
	}()
	c := &CSR{Indptr: make([]int64, n+1), Indices: unsafe.Slice((*int32)(unsafe.Pointer(&mem[0])), edges)}
	// Row 0 takes 2^31-1 zeros, row 1 another hundred, row 2 the edges from
	// first on: every third node. Row 999 has the rest.
	c.Indptr[1], c.Indptr[2] = 1<<31-1, first
	for v := 3; v < n; v++ {
		c.Indptr[v] = first + 300
	}
	c.Indptr[n] = edges
	for i := range 300 {
		c.Indices[first+i] = int32(3 * i)
	}
	for _, o := range []Options{
		{Fanouts: []int{20, 3}, EdgeIDs: true, Degrees: true},
		{Fanouts: []int{0}, EdgeIDs: true, Degrees: true},
		{Fanouts: []int{100}, EdgeIDs: true, Degrees: true, Replace: true},
	} {
		s, err := NewSampler(c, o)
		if err != nil {
			t.Fatal(err)
		}
		var b Batch
		if err := s.Sample(1, philox.Sample, 0, []int32{2}, &b); err != nil {
			t.Fatal(err)
		}
		seeds := &b.Blocks[len(b.Blocks)-1]
		if k := o.Fanouts[0]; k > 0 && seeds.NumEdges() != k || k == 0 && seeds.NumEdges() != 300 {
			t.Errorf("fan-outs %v: %d edges", o.Fanouts, seeds.NumEdges())
		}
		if !slices.IsSorted(seeds.EdgeIDs) {
			t.Errorf("fan-outs %v: edge ids %v", o.Fanouts, seeds.EdgeIDs)
		}
		for i, e := range seeds.EdgeIDs {
			if e < first || e >= first+300 || b.Nodes[seeds.Indices[i]] != int32(3*(e-first)) {
				t.Errorf("fan-outs %v: edge %d leads from node %d", o.Fanouts, e, b.Nodes[seeds.Indices[i]])
			}
		}
	}
}
