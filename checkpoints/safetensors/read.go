package safetensors

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
)

// File is a file of tensors that is open for reading. Its methods may be called
// from several goroutines at once, Close excepted.
type File struct {
	r      io.ReaderAt
	closer io.Closer // nil if the reader is the caller's
	h      *header
}

// Open opens a file and checks its header. Close it.
func Open(path string) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, err
	}
	if !info.Mode().IsRegular() {
		f.Close()
		return nil, &os.PathError{Op: "read", Path: path, Err: errors.New("not a regular file")}
	}
	file, err := NewFile(f, info.Size())
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	file.closer = f
	return file, nil
}

// NewFile checks the header of a file of size bytes. The reader stays the
// caller's and must work until the File is no longer used.
func NewFile(r io.ReaderAt, size int64) (*File, error) {
	h, err := parseHeader(r, size)
	if err != nil {
		return nil, err
	}
	return &File{r: r, h: h}, nil
}

// Close closes the file that Open opened.
func (f *File) Close() error {
	if f.closer == nil {
		return nil
	}
	return f.closer.Close()
}

// Tensors describes the tensors in the order of their data. The caller must
// not change it.
func (f *File) Tensors() []Info { return f.h.tensors }

// Metadata returns the free text of the header, nil if there is none. The
// caller must not change it.
func (f *File) Metadata() map[string]string { return f.h.metadata }

// Read reads the tensor of the given name.
func (f *File) Read(name string) (Tensor, error) {
	i := slices.IndexFunc(f.h.tensors, func(t Info) bool { return t.Name == name })
	if i < 0 {
		return Tensor{}, fmt.Errorf("safetensors: no tensor %q", name)
	}
	return f.read(f.h.tensors[i])
}

func (f *File) read(info Info) (Tensor, error) {
	size := info.DType.Size()
	data := newData(info.DType, int((info.End-info.Begin)/int64(size)))
	r := io.NewSectionReader(f.r, f.h.data+info.Begin, info.End-info.Begin)
	buf := make([]byte, min(int64(chunk), info.End-info.Begin))
	for at, n := 0, data.Len(); at < n; {
		step := min(n-at, chunk/size)
		if _, err := io.ReadFull(r, buf[:step*size]); err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF // the file has shrunk since its header was checked
			}
			return Tensor{}, fmt.Errorf("safetensors: tensor %q: byte %d: %w", info.Name, f.h.data+info.Begin+int64(at*size), err)
		}
		data.decode(buf[:step*size], at)
		at += step
	}
	return Tensor{Name: info.Name, Shape: info.Shape, Data: data}, nil
}

// ReadAll reads all tensors in the order of their data.
func (f *File) ReadAll() ([]Tensor, error) {
	tensors := make([]Tensor, len(f.h.tensors))
	for i, info := range f.h.tensors {
		t, err := f.read(info)
		if err != nil {
			return nil, err
		}
		tensors[i] = t
	}
	return tensors, nil
}
