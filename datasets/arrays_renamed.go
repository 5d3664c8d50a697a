package datasets

import (
	"errors"

	"zerogcn/internal/npy"
)

// renamedArrays is a collection of arrays out of several, under names that
// bundle knows.
type renamedArrays struct {
	path string
	from map[string]renamedArray
}

type renamedArray struct {
	of   arrays
	name string
}

func (r *renamedArrays) Path() string { return r.path }

func (r *renamedArrays) Has(name string) bool {
	a, ok := r.from[name]
	return ok && a.of.Has(a.name)
}

func (r *renamedArrays) Array(name string) (*npy.Array, error) {
	a, ok := r.from[name]
	if !ok {
		return nil, usageErrorf("%s: no array %s", r.path, name)
	}
	return a.of.Array(a.name)
}

// openArchives opens .npz files of a folder; close closes them all.
func openArchives(s *Source, names ...string) (z []*npy.Archive, close func() error, err error) {
	close = func() error {
		var errs []error
		for _, a := range z {
			errs = append(errs, a.Close())
		}
		return errors.Join(errs...)
	}
	for _, name := range names {
		if !s.Has(name) {
			return nil, nil, errors.Join(missing(s, name), close())
		}
		a, err := npy.OpenArchive(s.File(name))
		if err != nil {
			return nil, nil, errors.Join(err, close())
		}
		z = append(z, a)
	}
	return z, close, nil
}
