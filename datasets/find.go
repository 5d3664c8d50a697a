package datasets

import (
	"errors"
	"io/fs"
	"path/filepath"
)

// Find reports whether Open would find a dataset of this name in a format it
// knows, without reading it: a check for command lines, done in microseconds.
func Find(name string, o Options) error {
	if name == "" {
		return errNoName
	}
	if g, args, ok := findGenerator(name); ok {
		if o.Format != "" {
			return usageErrorf("dataset %s is made on the spot: -format does not apply", name)
		}
		return g.Check(args)
	}
	src, err := locate(name, o)
	if err != nil {
		return err
	}
	_, err = recognise(src, o.Format)
	return err
}

// locate finds the file or folder that a name stands for.
func locate(name string, o Options) (*Source, error) {
	src, err := newSource(name)
	if errors.Is(err, fs.ErrNotExist) && isBareName(name) {
		src, err = newSource(filepath.Join(o.root(), name))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, notFound(name, o)
	}
	if err != nil {
		return nil, usageErrorf("dataset %s: %w", name, err)
	}
	return src, nil
}
