package datasets

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"zerogcn/graph"
)

// spill says how much a set may hold in memory of its edges and of rows on the
// move, and where the rest goes meanwhile. The zero value holds everything.
type spill struct {
	memory int64  // bytes; 0: no bound
	dir    string // folder for temporary files
}

// MinMemory is the least that Options.Memory may be.
const MinMemory = 64 << 20

func (o Options) spill() spill {
	dir := o.Scratch
	if dir == "" {
		dir = os.TempDir()
	}
	return spill{o.Memory, dir}
}

func (o Options) checkMemory() error {
	if o.Memory < 0 || o.Memory > 0 && o.Memory < MinMemory {
		return usageErrorf("%s of memory are too little to work in: give %s or more", SizeText(o.Memory), SizeText(MinMemory))
	}
	return nil
}

// buildGraph builds a graph of edges that a reader streams, out of core where
// o.Memory bounds it: what is mapped then belongs to d.
func (o Options) buildGraph(ctx context.Context, d *Dataset, b graph.Builder, src graph.EdgeSource) (*graph.CSR, error) {
	return o.spill().build(ctx, d, b, src, -1)
}

// build is b.Build, or buildExternal where the result might exceed the bound.
// edges is the number of edges in src, -1 if that is not known. d takes over
// the mapping.
func (s spill) build(ctx context.Context, d *Dataset, b graph.Builder, src graph.EdgeSource, edges int64) (*graph.CSR, error) {
	if s.memory <= 0 || edges >= 0 && builderBytes(b, edges) <= s.memory {
		return b.Build(ctx, src)
	}
	g, release, err := buildExternal(ctx, b, src, s)
	if err != nil {
		return nil, err
	}
	d.closers = append(d.closers, release)
	return g, nil
}

// builderBytes bounds what graph.Builder takes for so many edges, weighted or not.
func builderBytes(b graph.Builder, edges int64) int64 {
	if b.Symmetrize {
		edges *= 2
	}
	if b.AddSelfLoops {
		edges += int64(b.NumNodes)
	}
	return 8*edges + 8*int64(b.NumNodes) + 20<<20
}

// scratchFile opens a temporary file that has no name, so that nothing of it
// is left however the process ends.
func scratchFile(dir string) (*os.File, error) {
	open := func() (int, error) { return unix.Open(dir, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600) }
	fd, err := open()
	if err == unix.ENOENT && os.MkdirAll(dir, 0o777) == nil { // the output's folder, which is not there yet
		fd, err = open()
	}
	if err == nil {
		return os.NewFile(uintptr(fd), filepath.Join(dir, "(temporary file)")), nil
	}
	f, err := os.CreateTemp(dir, ".spill-*") // a file system without such files
	if err != nil {
		return nil, fmt.Errorf("temporary file: %w", err)
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// mapScratch maps a whole file read-only. An empty file gives nil.
func mapScratch(f *os.File) ([]byte, error) {
	st, err := f.Stat()
	if err != nil || st.Size() == 0 {
		return nil, err
	}
	b, err := unix.Mmap(int(f.Fd()), 0, int(st.Size()), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("mapping %d bytes of a temporary file: %w", st.Size(), err)
	}
	return b, nil
}
