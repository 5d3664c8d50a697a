package emulator_test

import (
	"testing"

	"zerogcn/cuda"
	"zerogcn/cuda/cudatest"
	"zerogcn/cuda/cudatest/emulator"
)

// Integer, 64-bit and float arguments arrive, on a grid smaller than the work.
func TestArguments(t *testing.T) {
	dev, _ := emulator.Device(t)
	s := cudatest.Stream(t, dev)
	const n = 1000
	x, y := make([]float32, n), make([]float32, n)
	for i := range x {
		x[i], y[i] = float32(i), 1
	}
	xs, ys := cudatest.Upload(t, s, x), cudatest.Upload(t, s, y)
	saxpy := cudatest.Kernel(t, dev, "basic", "saxpy")
	if err := saxpy.Launch(s, cuda.Linear(2, 64), ys.Ptr().Arg(), xs.Ptr().Arg(), cuda.I64(n), cuda.F32(0.5)); err != nil {
		t.Fatal(err)
	}
	for i, v := range cudatest.Download[float32](t, s, ys.Ptr(), n) {
		if v != 0.5*float32(i)+1 {
			t.Fatalf("element %d is %v", i, v)
		}
	}
	iota := cudatest.Kernel(t, dev, "basic", "iota_i32")
	if err := iota.Launch(s, cuda.Linear(1, 32), xs.Ptr().Arg(), cuda.I64(n), cuda.I32(-7), cuda.I32(3)); err != nil {
		t.Fatal(err)
	}
	for i, v := range cudatest.Download[int32](t, s, xs.Ptr(), n) {
		if v != int32(3*i-7) {
			t.Fatalf("element %d is %v", i, v)
		}
	}
}
