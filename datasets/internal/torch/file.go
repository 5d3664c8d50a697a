package torch

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"zerogcn/datasets/internal/pickle"
	"zerogcn/internal/npy"
	"zerogcn/internal/usage"
)

// maxPickle bounds the pickle, which holds names and shapes: 64 MiB.
const maxPickle = 64 << 20

// maxMembers bounds the members of an archive.
const maxMembers = 1 << 16

// storageTypes are the names of storages and the types of their elements.
var storageTypes = map[string]string{
	"LongStorage": "<i8", "IntStorage": "<i4", "ShortStorage": "<i2", "CharStorage": "|i1", "ByteStorage": "|u1", "BoolStorage": "|b1",
	"FloatStorage": "<f4", "DoubleStorage": "<f8", "HalfStorage": "<f2",
}

// rebuild is the function that makes a tensor of a storage.
var rebuild = pickle.Global{Module: "torch._utils", Name: "_rebuild_tensor_v2"}

func globals() []pickle.Global {
	all := append(pickle.DataGlobals(), rebuild)
	for name := range storageTypes {
		all = append(all, pickle.Global{Module: "torch", Name: name})
	}
	return all
}

// File is an open .pt file.
type File struct {
	// Value is what was saved; tensors in it are objects for Tensor.
	Value pickle.Value

	path  string
	file  *os.File
	size  int64
	files map[string]*zip.File
	root  string // the folder of all members, with its slash
}

// Recognise reports whether a file begins like a zip archive.
func Recognise(head []byte) bool { return bytes.HasPrefix(head, []byte("PK\x03\x04")) }

// Open opens a file and reads its pickle. The caller closes it after the last
// call of Tensor. Faults of the content are the user's (internal/usage).
func Open(path string) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, usage.Wrap(err)
	}
	t := &File{path: path, file: f, files: map[string]*zip.File{}}
	if err := t.read(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return t, nil
}

// Close closes the file.
func (f *File) Close() error { return f.file.Close() }

func (f *File) read() error {
	st, err := f.file.Stat()
	if err != nil {
		return err
	}
	f.size = st.Size()
	z, err := zip.NewReader(f.file, f.size)
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
		return usage.Errorf("%s: the zip directory at the file's end cannot be read (%w): the file is cut short, or from before PyTorch 1.6", f.path, err)
	}
	if len(z.File) > maxMembers {
		return usage.Errorf("%s: %d members: at most %d are read", f.path, len(z.File), maxMembers)
	}
	for _, m := range z.File {
		if root, ok := strings.CutSuffix(m.Name, "data.pkl"); ok && f.root == "" && strings.Count(root, "/") == 1 {
			f.root = root
		}
		f.files[m.Name] = m
	}
	if f.root == "" {
		return usage.Errorf("%s: no data.pkl in the archive: torch.save writes one", f.path)
	}
	if _, ok := f.files[f.root+"byteorder"]; ok {
		b, err := f.member("byteorder", 16)
		if err != nil {
			return err
		}
		if string(b) != "little" {
			return usage.Errorf("%s: the byte order is %.20q: want little", f.path, b)
		}
	}
	data, err := f.member("data.pkl", maxPickle)
	if err != nil {
		return err
	}
	if f.Value, err = pickle.Load(data, globals()); err != nil {
		return usage.Errorf("%s: data.pkl: %w", f.path, err)
	}
	return nil
}

// member reads a stored member of at most limit bytes.
func (f *File) member(name string, limit int64) ([]byte, error) {
	m := f.files[f.root+name]
	if m == nil {
		return nil, usage.Errorf("%s: no member %.80q in the archive", f.path, f.root+name)
	}
	size := m.UncompressedSize64
	if m.Method != zip.Store || m.CompressedSize64 != size || size > uint64(f.size) {
		return nil, usage.Errorf("%s: %.80q: torch.save stores its members, and this one is packed, or larger than the file", f.path, m.Name)
	}
	if int64(size) > limit {
		return nil, usage.Errorf("%s: %.80q: %d bytes: at most %d are read", f.path, m.Name, size, limit)
	}
	r, err := m.Open()
	if err != nil {
		return nil, usage.Errorf("%s: %.80q: %w: the archive is damaged", f.path, m.Name, err)
	}
	defer r.Close()
	b := make([]byte, size)
	_, err = io.ReadFull(r, b)
	if err == nil { // the checksum is compared at the end
		if _, end := r.Read(make([]byte, 1)); end != io.EOF {
			err = end
		}
	}
	if err != nil {
		return nil, usage.Errorf("%s: %.80q: %w: the archive is damaged", f.path, m.Name, err)
	}
	return b, nil
}

// IsTensor reports whether v is a tensor.
func IsTensor(v pickle.Value) bool {
	o, ok := v.(*pickle.Object)
	return ok && o.Callable == rebuild
}

// Tensor reads a tensor. name is for messages.
func (f *File) Tensor(v pickle.Value, name string) (*npy.Array, error) {
	a, err := f.tensor(v, f.path+": "+name)
	if err != nil && !usage.Is(err) {
		return nil, usage.Errorf("%s: %s: %w", f.path, name, err)
	}
	return a, err
}

func (f *File) tensor(v pickle.Value, name string) (*npy.Array, error) {
	// Arguments: storage, offset, size, stride, and what training needs.
	o, ok := v.(*pickle.Object)
	if !ok || o.Callable != rebuild || len(o.Args) < 4 {
		return nil, errors.New("no tensor")
	}
	ref, ok := o.Args[0].(pickle.Persistent)
	// Id: "storage", type, key, device, number of elements.
	id, _ := ref.ID.(pickle.Tuple)
	if !ok || len(id) != 5 {
		return nil, errors.New("a tensor without a storage")
	}
	kind, _ := id[1].(pickle.Global)
	key, _ := pickle.Text(id[2])
	descr := storageTypes[kind.Name]
	if descr == "" || kind.Module != "torch" {
		return nil, fmt.Errorf("a tensor of the type %s: it is not read here", kind)
	}
	offset, ok1 := o.Args[1].(int64)
	shape, err1 := dims(o.Args[2])
	stride, err2 := dims(o.Args[3])
	if !ok1 || offset < 0 || len(shape) != len(stride) || errors.Join(err1, err2) != nil {
		return nil, errors.New("a tensor without a proper offset, size and stride")
	}
	b, err := f.member("data/"+key, f.size)
	if err != nil {
		return nil, err
	}
	fortran, err := order(shape, stride)
	if err != nil {
		return nil, err
	}
	width := int64(descr[2] - '0')
	count := int64(1)
	for _, d := range shape {
		if d > 0 && count > int64(len(b))/d {
			return nil, fmt.Errorf("a tensor of %d elements and more in a storage of %d bytes", count, len(b))
		}
		count *= d
	}
	if n := int64(len(b)); offset > n/width || count > n/width-offset {
		return nil, fmt.Errorf("a tensor of %d elements from number %d on in a storage of %d bytes", count, offset, n)
	}
	b = b[offset*width : (offset+count)*width]
	return npy.NewRaw(bytes.NewReader(b), int64(len(b)), descr, fortran, shape, name)
}

func dims(v pickle.Value) ([]int64, error) {
	t, ok := v.(pickle.Tuple)
	if !ok {
		return nil, errors.New("no tuple")
	}
	out := make([]int64, len(t))
	for i, d := range t {
		x, ok := d.(int64)
		if !ok || x < 0 || x > 1<<40 {
			return nil, errors.New("no size")
		}
		out[i] = x
	}
	return out, nil
}

// order tells row-major from column-major; views with gaps are neither.
func order(shape, stride []int64) (fortran bool, err error) {
	row, col := true, true
	step := int64(1)
	for i := len(shape) - 1; i >= 0; i-- {
		row = row && (shape[i] <= 1 || stride[i] == step)
		step *= max(1, shape[i])
	}
	step = 1
	for i := range shape {
		col = col && (shape[i] <= 1 || stride[i] == step)
		step *= max(1, shape[i])
	}
	if !row && !col {
		return false, fmt.Errorf("a tensor of the shape %d with the strides %d is a view: save tensor.contiguous()", shape, stride)
	}
	return !row, nil
}
