// Package cudatest gives tests a GPU, real or fake, and skips those that need a
// real one where there is none. With
// ZEROGCN_REQUIRE_GPU=1 they fail instead, so that a run meant for a GPU cannot
// pass by skipping.
package cudatest

import (
	"errors"
	"os"
	"sync"
	"testing"

	"zerogcn/cuda"
	"zerogcn/cuda/cudatest/fake"
	"zerogcn/cuda/kernels"
)

// shared is opened by the first test that asks and lives as long as the
// process: making a context takes a good part of a second.
var shared = sync.OnceValues(func() (*cuda.Device, error) {
	drv, err := cuda.Load()
	if err != nil {
		return nil, err
	}
	return drv.Open(0, cuda.DeviceOptions{})
})

// Device returns device 0, shared by the tests of the process. When the test
// ends, objects that it left open fail it; so tests that use it must not run in
// parallel with each other.
func Device(t testing.TB) *cuda.Device {
	t.Helper()
	dev, err := shared()
	if err != nil {
		skip(t, err)
	}
	before := dev.Metrics().Open()
	t.Cleanup(func() {
		if after := dev.Metrics().Open(); after > before {
			t.Errorf("the test left %d objects open on the GPU:\n%v", after-before, dev.Metrics())
		}
	})
	return dev
}

// Fresh opens device 0 anew, for tests that break its context. It is closed
// when the test ends.
func Fresh(t testing.TB) *cuda.Device {
	t.Helper()
	drv, err := cuda.Load()
	if err != nil {
		skip(t, err)
	}
	dev, err := drv.Open(0, cuda.DeviceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	})
	return dev
}

func skip(t testing.TB, err error) {
	t.Helper()
	if cuda.Absent(err) && os.Getenv("ZEROGCN_REQUIRE_GPU") != "1" {
		t.Skipf("no GPU on this machine: %v", err)
	}
	t.Fatal(err)
}

// Stream makes a stream that is closed when the test ends, if the test has not
// done so.
func Stream(t testing.TB, dev *cuda.Device) *cuda.Stream {
	t.Helper()
	s, err := dev.NewStream(cuda.StreamOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Synchronize(); err != nil && !errors.Is(err, cuda.ErrClosed) {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// Kernel loads a kernel of a module of package kernels; the module is closed
// when the test ends.
func Kernel(t testing.TB, dev *cuda.Device, module, name string) *cuda.Function {
	t.Helper()
	m, err := kernels.Load(dev, module)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	f, err := m.Function(name)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// Upload places a slice in device memory that is freed when the test ends.
func Upload[T any](t testing.TB, s *cuda.Stream, v []T) *cuda.Buffer {
	t.Helper()
	b, err := cuda.Place(s, cuda.Other, v)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// Download reads n values of device memory.
func Download[T any](t testing.TB, s *cuda.Stream, p cuda.DevicePtr, n int) []T {
	t.Helper()
	v := make([]T, n)
	if err := cuda.Download(s, v, p); err != nil {
		t.Fatal(err)
	}
	return v
}

// Fake returns a device that is no GPU (see package fake), so that a test runs
// anywhere; f names kernels and makes calls fail. The device is closed when the
// test ends; what was left open on it fails the test.
func Fake(t testing.TB) (dev *cuda.Device, f *fake.Driver) {
	t.Helper()
	f = fake.New(1)
	drv, err := cuda.LoadFrom(f.Symbol)
	if err != nil {
		t.Fatal(err)
	}
	dev, err = drv.Open(0, cuda.DeviceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
		if l := f.Leaks(); l != "" {
			t.Errorf("left on the fake GPU: %s", l)
		}
	})
	return dev, f
}
