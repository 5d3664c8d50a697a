package cuda

import (
	"math"
	"testing"

	"zerogcn/cuda/cudatest/fake"
)

// newFake gives a test a driver without a GPU, which knows two kernels.
func newFake(t testing.TB, devices int) (*Driver, *fake.Driver) {
	t.Helper()
	f := fake.New(devices)
	f.Kernel("empty", func(fake.Launch) {})
	f.Kernel("saxpy", func(l fake.Launch) {
		n := int(int64(l.Args[2]))
		y, x := fake.Slice[float32](l.Args[0], n), fake.Slice[float32](l.Args[1], n)
		a := math.Float32frombits(uint32(l.Args[3]))
		for i := range y {
			y[i] = float32(math.FMA(float64(a), float64(x[i]), float64(y[i])))
		}
	})
	d, err := LoadFrom(f.Symbol)
	if err != nil {
		t.Fatal(err)
	}
	return d, f
}
