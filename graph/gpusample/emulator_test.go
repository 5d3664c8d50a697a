package gpusample_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"sync"
	"testing"

	"github.com/ebitengine/purego"

	"zerogcn/cuda"
	"zerogcn/cuda/cudatest"
	"zerogcn/cuda/cudatest/fake"
)

// The kernels run on machines without a GPU too: clang compiles them for
// the host against testdata/emulator/device.cuh, and the fake driver calls it.

const kernelFolder = "../../cuda/kernels"

type emulator struct {
	kernels map[string]uintptr
	launch  uintptr
}

// emulated is compiled by the first test that asks.
var emulated = sync.OnceValues(func() (*emulator, error) {
	dir, err := os.MkdirTemp("", "zerogcn-emulator")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir) // the library stays mapped
	files, err := filepath.Glob(kernelFolder + "/sample*.cu*")
	if err != nil {
		return nil, err
	}
	e := &emulator{kernels: map[string]uintptr{}}
	var all, names []byte // one source that includes the others, as they share the emulator
	for _, f := range append(files, "testdata/emulator/device.cuh", kernelFolder+"/philox.cuh") {
		b, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(f)), b, 0o666); err != nil {
			return nil, err
		}
		if filepath.Ext(f) == ".cu" {
			all = fmt.Appendf(all, "#include %q\n", filepath.Base(f))
			names = append(names, b...)
		}
	}
	source, lib := filepath.Join(dir, "all.cc"), filepath.Join(dir, "all.so")
	if err := os.WriteFile(source, all, 0o666); err != nil {
		return nil, err
	}
	cmd := exec.Command("clang-19", "-std=c++17", "-O1", "-ffp-contract=off", "-Wno-pass-failed", "-shared", "-fPIC", "-o", lib, source)
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%v: %v\n%s", cmd, err, out)
	}
	h, err := purego.Dlopen(lib, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, err
	}
	if e.launch, err = purego.Dlsym(h, "emu_launch"); err != nil {
		return nil, err
	}
	for _, m := range regexp.MustCompile(`(?m)^KERNEL (\w+)\(`).FindAllSubmatch(names, -1) {
		if e.kernels[string(m[1])], err = purego.Dlsym(h, string(m[1])); err != nil {
			return nil, err
		}
	}
	return e, nil
})

func isFake(dev *cuda.Device) bool { return dev.Properties().Name == "Fake GPU" }

// emulatedDevice returns a fake device that runs the kernels.
func emulatedDevice(t testing.TB) (*cuda.Device, *fake.Driver) {
	t.Helper()
	if runtime.GOARCH != "amd64" {
		t.Skip("the emulator of kernels is for amd64")
	}
	if _, err := exec.LookPath("clang-19"); err != nil {
		t.Skip("clang-19, which compiles kernels for the emulator, is not installed")
	}
	e, err := emulated()
	if err != nil {
		t.Fatal(err)
	}
	dev, f := cudatest.Fake(t)
	for name, body := range e.kernels {
		f.Kernel(name, func(l fake.Launch) {
			bad, _, _ := purego.SyscallN(e.launch, body, uintptr(l.Grid[0]), uintptr(l.Block[0]), address(l.Args))
			if bad != 0 {
				t.Errorf("kernel %s: its threads wait for each other at different barriers", name)
			}
		})
	}
	return dev, f
}
