package devicetest

import (
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"zerogcn/cuda"
	"zerogcn/cuda/cudatest"
	"zerogcn/cuda/cudatest/fake"
	"zerogcn/cuda/kernels"
	execcuda "zerogcn/model/exec/cuda"
)

// Fake opens a back end, without cuBLAS, on a device that is no GPU: memory,
// copies and graphs work, and package cuda checks the number of arguments of each
// launch, but kernels do nothing except count themselves in launches. What is left
// open on the device fails the test.
func Fake(t testing.TB) (b *execcuda.Backend, driver *fake.Driver, launches *atomic.Int64) {
	t.Helper()
	dev, driver := cudatest.Fake(t)
	launches = new(atomic.Int64)
	entry := regexp.MustCompile(`\.visible \.entry (\w+)\(`)
	for _, module := range kernels.Names() {
		if !strings.HasPrefix(module, "model") && module != "optim" {
			continue
		}
		img, err := kernels.Find(module, dev.Properties().ComputeCapability(), int(dev.Driver().Version()))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range entry.FindAllSubmatch(img.PTX, -1) {
			driver.Kernel(string(m[1]), func(fake.Launch) { launches.Add(1) })
		}
	}
	s, err := dev.NewStream(cuda.StreamOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if b, err = execcuda.New(dev, s, execcuda.Options{BLAS: execcuda.NoBLAS}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return b, driver, launches
}
