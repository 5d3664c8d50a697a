package datasets

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Format is one on-disk format. Adding one is a file with a value of this
// type, its entry in the table formats, and a test.
type Format struct {
	// Name is what Options.Format and the flag -format take.
	Name string
	// Describe is one line: what the format is and how it is recognised.
	Describe string
	// Recognise looks at what is at a path, cheaply, by content.
	Recognise func(s *Source) bool
	// Open reads it. Errors of the content are marked with internal/usage and
	// name the file and the place in it.
	Open func(ctx context.Context, s *Source, o Options) (*Dataset, error)
}

// Source is a file or folder that holds a dataset in a format yet to be
// recognised.
type Source struct {
	Path string
	Dir  bool
	// Names are the names of a folder's entries, ascending; nil for a file.
	Names []string
}

// maxSourceNames bounds the listing of a folder: a mistyped path may lead
// anywhere, and no known format has nearly as many entries.
const maxSourceNames = 1 << 17

func newSource(path string) (*Source, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !st.IsDir() && !st.Mode().IsRegular() { // a pipe would block, a device never end
		return nil, &fs.PathError{Op: "open", Path: path, Err: errors.New("neither a file nor a folder")}
	}
	s := &Source{Path: path, Dir: st.IsDir()}
	if !s.Dir {
		return s, nil
	}
	d, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	s.Names, err = d.Readdirnames(maxSourceNames)
	if err != nil && err != io.EOF {
		return nil, err
	}
	slices.Sort(s.Names)
	return s, nil
}

// Base returns the last element of the path without its extension: the default
// name of the dataset.
func (s *Source) Base() string {
	abs, err := filepath.Abs(s.Path)
	if err != nil {
		abs = s.Path
	}
	b := filepath.Base(abs)
	if s.Dir {
		return b
	}
	b = plainName(b)
	return strings.TrimSuffix(b, filepath.Ext(b))
}

// Has reports whether the folder has an entry of this name.
func (s *Source) Has(name string) bool {
	_, ok := slices.BinarySearch(s.Names, name)
	return ok
}

// WithSuffix returns the first entry that ends in suffix, "" if there is none.
func (s *Source) WithSuffix(suffix string) string {
	for _, n := range s.Names {
		if strings.HasSuffix(n, suffix) {
			return n
		}
	}
	return ""
}

// File returns the path of an entry of the folder.
func (s *Source) File(name string) string { return filepath.Join(s.Path, name) }

// Head returns up to n bytes of the beginning of an entry, or of the file
// itself for an empty name; nil if it cannot be read.
func (s *Source) Head(name string, n int) []byte {
	p := s.Path
	if name != "" {
		p = s.File(name)
	}
	f, err := os.Open(p)
	if err != nil {
		return nil
	}
	defer f.Close()
	b := make([]byte, n)
	m, _ := io.ReadFull(f, b)
	return b[:m]
}
