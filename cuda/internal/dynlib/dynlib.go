// Package dynlib finds and opens shared libraries that come with NVIDIA's
// toolkit, with a driver or with Python packages, and calls their functions.
package dynlib

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ebitengine/purego"
)

// ErrNotFound: no candidate could be opened.
var ErrNotFound = errors.New("library not found")

// Library is an open shared library. It stays loaded until the process ends.
type Library struct {
	Path   string // what was opened: a bare name where the system's loader found it
	handle uintptr
}

// Search says where to look for a library.
type Search struct {
	Names []string // file names, preferred first: "libcublas.so.12"
	Path  string   // the user's choice, a file or a folder; then nothing else is tried
	// Environment is os.Getenv in programs; nil means that.
	Environment func(string) string
	// Root is put before absolute folders that are looked into; for tests.
	Root string
}

// Candidates lists what Open tries, in order: the user's path alone if there is
// one; else the bare names, which the system's loader resolves (LD_LIBRARY_PATH,
// ldconfig); then the toolkit's folders; then Python packages (pip's
// nvidia/*/lib). Files are listed only where they exist.
func (s Search) Candidates() []string {
	if s.Path != "" {
		if fi, err := os.Stat(s.Path); err == nil && fi.IsDir() {
			return files([]string{s.Path}, s.Names)
		}
		return []string{s.Path}
	}
	list := slices.Clone(s.Names)
	list = append(list, files(s.toolkits(), s.Names)...)
	return append(list, files(s.packages(), s.Names)...)
}

// files returns the existing dir/name, by name first: a newer library in a
// later folder comes before an older one.
func files(dirs, names []string) []string {
	var list []string
	for _, n := range names {
		for _, d := range dirs {
			p := filepath.Join(d, n)
			if fi, err := os.Stat(p); err == nil && !fi.IsDir() {
				list = append(list, p)
			}
		}
	}
	return list
}

func (s Search) getenv(name string) string {
	if s.Environment != nil {
		return s.Environment(name)
	}
	return os.Getenv(name)
}

func (s Search) toolkits() []string {
	var roots []string
	for _, v := range []string{"CUDA_HOME", "CUDA_PATH"} {
		if d := s.getenv(v); d != "" {
			roots = append(roots, d)
		}
	}
	roots = append(roots, s.Root+"/usr/local/cuda")
	more, _ := filepath.Glob(s.Root + "/usr/local/cuda-*")
	slices.Reverse(more)
	var dirs []string
	for _, r := range append(roots, more...) {
		dirs = append(dirs, filepath.Join(r, "lib64"), filepath.Join(r, "lib"), filepath.Join(r, "targets/x86_64-linux/lib"))
	}
	return dirs
}

// packages lists nvidia/*/lib of every site-packages that a Python on this
// machine would use: of active environments, of each python3 on PATH, of the
// system and of the user.
func (s Search) packages() []string {
	var prefixes, sites []string
	for _, v := range []string{"VIRTUAL_ENV", "CONDA_PREFIX"} {
		if d := s.getenv(v); d != "" {
			prefixes = append(prefixes, d)
		}
	}
	for _, d := range filepath.SplitList(s.getenv("PYTHONPATH")) {
		if d != "" {
			sites = append(sites, d)
		}
	}
	for _, d := range filepath.SplitList(s.getenv("PATH")) {
		// Not resolved: a virtual environment's python3 is a link out of it.
		if _, err := os.Stat(filepath.Join(d, "python3")); err == nil {
			prefixes = append(prefixes, filepath.Dir(d))
		}
	}
	prefixes = append(prefixes, s.Root+"/usr/local", s.Root+"/usr")
	if h := s.getenv("HOME"); h != "" {
		prefixes = append(prefixes, filepath.Join(h, ".local"))
	}
	for _, p := range prefixes {
		for _, pattern := range []string{"lib/python3*/site-packages", "lib/python3*/dist-packages", "lib64/python3*/site-packages"} {
			found, _ := filepath.Glob(filepath.Join(p, pattern))
			slices.Reverse(found) // a newer Python first
			sites = append(sites, found...)
		}
	}
	var dirs []string
	for _, site := range sites {
		found, _ := filepath.Glob(filepath.Join(site, "nvidia/*/lib"))
		slices.Reverse(found)
		for _, d := range found {
			if !slices.Contains(dirs, d) {
				dirs = append(dirs, d)
			}
		}
	}
	return dirs
}

// Open opens the first candidate that the system's loader accepts.
func (s Search) Open() (*Library, error) {
	candidates := s.Candidates()
	var last error
	for _, c := range candidates {
		h, err := purego.Dlopen(c, purego.RTLD_NOW|purego.RTLD_LOCAL)
		if err == nil {
			return &Library{c, h}, nil
		}
		// The most telling failure is that of a file that is there.
		if last == nil || strings.Contains(c, "/") {
			last = err
		}
	}
	switch {
	case s.Path != "" && last != nil:
		return nil, fmt.Errorf("%w: %v", ErrNotFound, last)
	case s.Path != "":
		return nil, fmt.Errorf("%w: no %s in %s", ErrNotFound, strings.Join(s.Names, ", "), s.Path)
	}
	return nil, fmt.Errorf("%w: no usable %s by ldconfig, under CUDA_HOME or in a Python's nvidia packages (%v)",
		ErrNotFound, strings.Join(s.Names, ", "), last)
}

// Symbol returns the address of the first of the names that the library has.
func (l *Library) Symbol(names ...string) (uintptr, error) {
	for _, n := range names {
		if p, err := purego.Dlsym(l.handle, n); err == nil && p != 0 {
			return p, nil
		}
	}
	return 0, fmt.Errorf("%s has no %s: the library is too old or damaged", l.Path, names[0])
}

// Call calls a C function whose arguments are integers and pointers and returns
// its 32-bit result. What pointers converted in the call's own expression point
// to stays in place and alive until it returns.
//
//go:uintptrescapes
func Call(f uintptr, a ...uintptr) int32 {
	r, _, _ := purego.SyscallN(f, a...)
	return int32(r)
}
