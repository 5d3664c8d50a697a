package datasets

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"zerogcn/internal/npy"
)

// A plain folder of .npy files, as a script writes it: edges.npy ((edges, 2)),
// edge_index.npy ((2, edges)) or indptr.npy and indices.npy (row v: sources of
// v's incoming edges); features.npy; labels.npy; train_idx.npy, valid_idx.npy and
// test_idx.npy, or masks. The names are those of npz bundles. Edges are kept
// as directed as they are, repeated ones once.
var npyFormat = Format{
	Name:     "npy",
	Describe: "a plain folder of .npy files: edges, or indptr and indices; features; labels; *_idx or masks",
	Recognise: func(s *Source) bool {
		return s.Dir && !s.Has(metaFile) && looksLikeBundle(&npyFolder{dir: s.Path})
	},
	Open: openNPYFolder,
}

func openNPYFolder(ctx context.Context, s *Source, o Options) (*Dataset, error) {
	f := &npyFolder{dir: s.Path}
	return openBundle(ctx, f, s.Base(), "folder of .npy files", o, f.Close)
}

// npyFolder is a folder as a collection of arrays. Arrays are closed with it.
type npyFolder struct {
	dir  string
	open []*npy.Array
}

func (f *npyFolder) file(name string) string { return filepath.Join(f.dir, name+".npy") }

func (f *npyFolder) Path() string { return f.dir }

func (f *npyFolder) Has(name string) bool {
	_, err := os.Stat(f.file(name))
	return err == nil
}

func (f *npyFolder) Array(name string) (*npy.Array, error) {
	a, err := npy.Open(f.file(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, usageErrorf("%s: the file is missing", f.file(name))
	}
	if err == nil {
		f.open = append(f.open, a)
	}
	return a, err
}

func (f *npyFolder) Close() error {
	var errs []error
	for _, a := range f.open {
		errs = append(errs, a.Close())
	}
	f.open = nil
	return errors.Join(errs...)
}
