// Package emulator runs the project's CUDA kernels on the CPU, for tests on
// machines without a GPU: clang compiles cuda/kernels/*.cu for the host against a
// device.cuh of its own, and the fake driver (package fake) calls them. So all
// that is above the driver, kernels included, is tested by any CI.
//
// What it cannot show: anything about time, races between threads (one runs at a
// time, in a fixed order), memory models, and the real driver's and cuBLAS's ways.
// Streams run their work at once. Kernels take about a thousand times as long as
// on a GPU; keep tests small. It needs amd64 and clang-19, and skips tests without
// them.
package emulator

import (
	"crypto/sha256"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/ebitengine/purego"
	"golang.org/x/sys/unix"

	"zerogcn/cuda"
	"zerogcn/cuda/cudatest"
	"zerogcn/cuda/cudatest/fake"
)

//go:embed device.cuh
var deviceHeader []byte

const clang = "clang-19"

// recipe is part of the hash that names what was compiled before: raise it with
// every change to how build compiles.
const recipe = 1

// Available reports whether this machine can compile and run the kernels.
func Available() bool {
	_, err := exec.LookPath(clang)
	return err == nil && runtime.GOARCH == "amd64"
}

// Device returns a fake device that runs the kernels. Tests that use it must not
// run in parallel; what they leave open on it fails them.
func Device(t testing.TB) (*cuda.Device, *fake.Driver) {
	t.Helper()
	if !Available() {
		t.Skipf("the emulator of kernels needs amd64 and %s", clang)
	}
	mods, err := modules()
	if err != nil {
		t.Fatal(err)
	}
	dev, f := cudatest.Fake(t)
	for _, m := range mods {
		for name, body := range m.kernels {
			f.Kernel(name, func(l fake.Launch) {
				if !m.run(body, l) {
					t.Errorf("kernel %s: its threads wait for each other at different barriers", name)
				}
			})
		}
	}
	return dev, f
}

// Either returns a GPU where there is one, else the emulator's device; with
// ZEROGCN_REQUIRE_GPU=1 it fails without a GPU.
func Either(t testing.TB) (dev *cuda.Device, emulated bool) {
	t.Helper()
	if _, err := cuda.Load(); cuda.Absent(err) && os.Getenv("ZEROGCN_REQUIRE_GPU") != "1" {
		dev, _ := Device(t)
		return dev, true
	}
	return cudatest.Device(t), false
}

// module is a compiled .cu file. Its threads share static memory, so one launch
// runs at a time.
type module struct {
	mu      sync.Mutex
	launch  uintptr
	kernels map[string]uintptr // functions that take an array of 64-bit arguments
}

func (m *module) run(body uintptr, l fake.Launch) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	bad, _, _ := purego.SyscallN(m.launch, body, uintptr(l.Grid[0]), uintptr(l.Grid[1]), uintptr(l.Block[0]),
		uintptr(unsafe.Pointer(unsafe.SliceData(l.Args))))
	runtime.KeepAlive(l.Args)
	return bad == 0
}

// modules are compiled by the first test that asks, and kept for other processes
// in the user's cache folder under a name that is a hash of the sources.
var modules = sync.OnceValues(func() ([]*module, error) {
	root, err := moduleRoot()
	if err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(root, "cuda", "kernels", "*.cu*"))
	if err != nil {
		return nil, err
	}
	slices.Sort(files)
	h := sha256.New()
	fmt.Fprintln(h, recipe)
	h.Write(deviceHeader)
	sources := map[string][]byte{"device.cuh": deviceHeader}
	var names []string
	for _, f := range files {
		name := filepath.Base(f)
		if name == "device.cuh" {
			continue
		}
		b, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(h, "%s %d\n", name, len(b))
		h.Write(b)
		sources[name] = b
		if module, ok := strings.CutSuffix(name, ".cu"); ok && module != "selftest" {
			names = append(names, module)
		}
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	dir := filepath.Join(cache, "zerogcn-emulator", fmt.Sprintf("%x", h.Sum(nil)[:12]))
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		if err := build(dir, sources, names); err != nil {
			return nil, err
		}
	}
	var mods []*module
	for _, name := range names {
		m, err := open(dir, name)
		if err != nil {
			return nil, err
		}
		mods = append(mods, m)
	}
	return mods, nil
})

func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("the emulator compiles the module's sources, and the test runs outside of it")
		}
		dir = up
	}
}

var kernelName = regexp.MustCompile(`extern "C" void (\w+)\(`)

// build compiles all modules into a folder that appears whole.
func build(dir string, sources map[string][]byte, names []string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o777); err != nil {
		return err
	}
	// Test binaries run side by side: one compiles, the others wait.
	lock, err := os.OpenFile(dir+".lock", os.O_CREATE|os.O_RDWR, 0o666)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return err
	}
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	tmp, err := os.MkdirTemp(filepath.Dir(dir), ".build-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	for name, b := range sources {
		if err := os.WriteFile(filepath.Join(tmp, name), b, 0o666); err != nil {
			return err
		}
	}
	for _, name := range names {
		flags := []string{"-x", "c++", "-std=c++17", "-O1", "-ffp-contract=off", "-Wno-pass-failed"}
		// Kernels may come out of macros: the preprocessor tells their names.
		pre, err := command(tmp, append(flags, "-E", "-P", name+".cu")...)
		if err != nil {
			return err
		}
		wrapped := fmt.Appendf(nil, "#include \"%s.cu\"\n", name)
		var kernels []string
		for _, m := range kernelName.FindAllSubmatch(pre, -1) {
			if k := string(m[1]); k != "emu_switch" {
				kernels = append(kernels, k)
				wrapped = fmt.Appendf(wrapped, "extern \"C\" void emu_call_%s(const u64 *a) { emu::call(%s, a); }\n", k, k)
			}
		}
		source := name + ".host.cc"
		if err := os.WriteFile(filepath.Join(tmp, source), wrapped, 0o666); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(tmp, name+".kernels"), []byte(strings.Join(kernels, "\n")), 0o666); err != nil {
			return err
		}
		if _, err := command(tmp, append(flags, "-shared", "-fPIC", "-o", name+".so", source, "-lm")...); err != nil {
			return err
		}
	}
	return os.Rename(tmp, dir)
}

func command(dir string, args ...string) ([]byte, error) {
	cmd := exec.Command(clang, args...)
	cmd.Dir = dir
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%v: %w\n%s", cmd, err, errs.String())
	}
	return out, nil
}

func open(dir, name string) (*module, error) {
	h, err := purego.Dlopen(filepath.Join(dir, name+".so"), purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, err
	}
	m := &module{kernels: map[string]uintptr{}}
	if m.launch, err = purego.Dlsym(h, "emu_launch"); err != nil {
		return nil, err
	}
	list, err := os.ReadFile(filepath.Join(dir, name+".kernels"))
	if err != nil {
		return nil, err
	}
	for _, k := range strings.Fields(string(list)) {
		if m.kernels[k], err = purego.Dlsym(h, "emu_call_"+k); err != nil {
			return nil, err
		}
	}
	return m, nil
}
