package datasets

import (
	"bufio"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"zerogcn/dtype"
	"zerogcn/internal/atomicfile"
	"zerogcn/internal/npy"
	"zerogcn/internal/par"
)

// ErrExists is wrapped by Write for a folder that is there already.
var ErrExists = errors.New("it exists already: name another, or remove it first")

// Write writes d as a native folder at dir, which must not exist. Everything
// goes to a temporary folder beside it, is synced, and gets its name at the
// end: an interrupted Write leaves nothing at dir (see internal/atomicfile). The
// fingerprint in meta.json is computed from d's content.
//
// Features are read and checked as they are written, so a NaN ends the writing
// with an error.
func Write(ctx context.Context, dir string, d *Dataset, w par.Workers) error {
	if _, err := os.Lstat(dir); err == nil {
		return usageErrorf("%s: %w", dir, ErrExists)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := d.CheckGraph(ctx, w); err != nil {
		return err
	}
	return atomicfile.WriteDir(dir, func(temp string) error {
		fw := folderWriter{ctx: ctx, dir: temp, w: w, memory: d.spill.memory}
		return fw.write(d)
	})
}

type folderWriter struct {
	ctx context.Context
	dir string
	w   par.Workers
	// memory is the bound of the set (Options.Memory), 0 for none.
	memory int64
}

func (fw *folderWriter) write(d *Dataset) error {
	g := d.Graph
	if err := writeSlice(fw, indptrFile, g.Indptr, int64(len(g.Indptr))); err != nil {
		return err
	}
	if err := writeSlice(fw, indicesFile, g.Indices, int64(len(g.Indices))); err != nil {
		return err
	}
	if g.Weights != nil {
		if err := writeSlice(fw, weightsFile, g.Weights, int64(len(g.Weights))); err != nil {
			return err
		}
	}
	if f := d.Features; f != nil && f.Dim > 0 {
		if err := fw.features(f); err != nil {
			return err
		}
	}
	if d.Labels != nil {
		if err := fw.labels(d.Labels); err != nil {
			return err
		}
	}
	if d.NodeIDs != nil {
		if err := writeSlice(fw, idsFile, d.NodeIDs, int64(len(d.NodeIDs))); err != nil {
			return err
		}
	}
	if err := fw.splits(d); err != nil {
		return err
	}
	if err := fw.edgeSets(d); err != nil {
		return err
	}
	m := d.Meta
	m.FeatureType = ""
	if d.Features != nil {
		m.FeatureType = d.Features.Type.String()
	}
	var err error
	if m.Fingerprint, err = Fingerprint(fw.ctx, d, fw.w); err != nil {
		return err
	}
	text, err := m.encode()
	if err != nil {
		return err
	}
	return fw.file(metaFile, func(b *bufio.Writer) error {
		_, err := b.Write(text)
		return err
	})
}

// file writes one file of the folder.
func (fw *folderWriter) file(name string, put func(b *bufio.Writer) error) (err error) {
	if err := fw.ctx.Err(); err != nil {
		return err
	}
	path := filepath.Join(fw.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	b := bufio.NewWriterSize(f, 1<<20)
	if err := put(b); err != nil {
		return err
	}
	return b.Flush()
}

// writeSlice writes an array, and looks at the context now and then.
func writeSlice[T number](fw *folderWriter, name string, v []T, shape ...int64) error {
	return fw.file(name, func(b *bufio.Writer) error {
		nw, err := npy.NewWriter[T](b, shape...)
		if err != nil {
			return err
		}
		raw := bytesOf(v)
		for len(raw) > 0 {
			if err := fw.ctx.Err(); err != nil {
				return err
			}
			n := min(len(raw), chunkBytes)
			if err := guardFaults(func() error { _, err := nw.Write(raw[:n]); return err }); err != nil {
				return err
			}
			raw = raw[n:]
		}
		return nw.Close()
	})
}

func (fw *folderWriter) features(f *Features) error {
	if f.scales != nil {
		if err := writeSlice(fw, scalesFile, f.scales, int64(len(f.scales))); err != nil {
			return err
		}
	}
	return fw.file(featuresFile, func(b *bufio.Writer) error {
		nw, err := newFeatureWriter(b, f)
		if err != nil {
			return err
		}
		// A slab is read by all workers, then written. Features that are computed
		// or converted as they are read take more time than the disk.
		rb := f.RowBytes()
		tile := max(1, (1<<20)/rb)
		tiles := 32
		if fw.memory > 0 {
			tiles = int(min(32, max(1, fw.memory/4/int64(tile*rb))))
		}
		slab := tiles * tile
		buf := make([]byte, min(slab, f.Rows)*rb)
		var total loss
		losses := make([]loss, tiles)
		for first := 0; first < f.Rows; first += slab {
			n := min(slab, f.Rows-first)
			if err := eachTile(fw.ctx, fw.w, n, tile, func(lo, hi int) (err error) {
				losses[lo/tile], err = f.readMeasured(fw.ctx, first+lo, first+hi, buf[lo*rb:hi*rb])
				return err
			}); err != nil {
				return err
			}
			for _, l := range losses[:par.Tiles(n, tile)] {
				total.add(l)
			}
			if _, err := nw.Write(buf[:n*rb]); err != nil {
				return err
			}
		}
		if total.values > 0 {
			f.narrowing.Store(total.narrowing())
		}
		return nw.Close()
	})
}

func (fw *folderWriter) labels(l *Labels) error {
	n, c := int64(l.n), int64(l.width)
	switch {
	case l.multi != nil:
		return writeSlice(fw, labelsFile, l.multi, n, c)
	case l.value != nil && c == 1:
		return writeSlice(fw, labelsFile, l.value, n)
	case l.value != nil:
		return writeSlice(fw, labelsFile, l.value, n, c)
	}
	all := l.class64
	if all == nil {
		all = make([]int64, l.n)
		for i, v := range l.class32 {
			all[i] = int64(v)
		}
	}
	return writeSlice(fw, labelsFile, all, n)
}

func (fw *folderWriter) splits(d *Dataset) error {
	count := d.NumGivenSplits()
	for i := range count {
		s, err := d.Split(i)
		if err != nil {
			return err
		}
		dir := ""
		if count > 1 {
			dir = filepath.Join(splitsFolder, strconv.Itoa(i))
		}
		for k, p := range s.parts() {
			ids := make([]int64, len(p.ids))
			for j, v := range p.ids {
				ids[j] = int64(v)
			}
			if err := writeSlice(fw, filepath.Join(dir, splitFiles[k]), ids, int64(len(ids))); err != nil {
				return err
			}
		}
	}
	return nil
}

func (fw *folderWriter) edgeSets(d *Dataset) error {
	e, err := d.EdgeSets()
	if errors.Is(err, ErrNoEdgeSets) {
		return nil
	}
	if err != nil {
		return err
	}
	for i, p := range e.parts() {
		if p.list.Len() == 0 {
			continue
		}
		pairs := make([]int64, 0, 2*p.list.Len())
		for k, v := range p.list.Sources {
			pairs = append(pairs, int64(v), int64(p.list.Targets[k]))
		}
		if err := writeSlice(fw, edgeFiles[i], pairs, int64(p.list.Len()), 2); err != nil {
			return err
		}
	}
	return nil
}

// newFeatureWriter writes the header for a table of f's storage type.
func newFeatureWriter(b *bufio.Writer, f *Features) (*npy.Writer, error) {
	n, c := int64(f.Rows), int64(f.Dim)
	switch f.Type {
	case dtype.Float16:
		return npy.NewFloat16Writer(b, n, c)
	case dtype.BFloat16:
		return npy.NewWriter[uint16](b, n, c)
	case dtype.Int8:
		return npy.NewWriter[int8](b, n, c)
	default:
		return npy.NewWriter[float32](b, n, c)
	}
}
