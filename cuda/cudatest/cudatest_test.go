package cudatest_test

import (
	"math"
	"slices"
	"testing"

	"zerogcn/cuda"
	"zerogcn/cuda/cudatest"
	"zerogcn/cuda/cudatest/fake"
)

// The helpers do on the fake what the GPU tests use them for.
func TestHelpersOnFake(t *testing.T) {
	dev, f := cudatest.Fake(t)
	f.Kernel("fill_u32", func(l fake.Launch) {
		v := fake.Slice[uint32](l.Args[0], int(l.Args[1]))
		for i := range v {
			v[i] = uint32(l.Args[2])
		}
	})
	s := cudatest.Stream(t, dev)
	y := cudatest.Upload(t, s, []float32{1, 2, 3})
	fill := cudatest.Kernel(t, dev, "basic", "fill_u32")
	if err := fill.Launch(s, cuda.Linear(1, 32), y.Ptr().Arg(), cuda.I64(2), cuda.U32(math.Float32bits(7))); err != nil {
		t.Fatal(err)
	}
	if got := cudatest.Download[float32](t, s, y.Ptr(), 3); !slices.Equal(got, []float32{7, 7, 3}) {
		t.Errorf("%v", got)
	}
	if f.Calls("cuLaunchKernel") != 1 || f.Leaks() == "" {
		t.Errorf("%d launches, alive: %q", f.Calls("cuLaunchKernel"), f.Leaks())
	}
}
