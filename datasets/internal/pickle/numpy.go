package pickle

import (
	"bytes"
	"fmt"
	"slices"

	"zerogcn/internal/npy"
)

// numPyGlobals are the names that pickles of NumPy arrays and SciPy's CSR
// matrices need, as old and new versions spell them.
var numPyGlobals = []Global{
	{"numpy.core.multiarray", "_reconstruct"},
	{"numpy._core.multiarray", "_reconstruct"},
	{"numpy", "ndarray"},
	{"numpy", "dtype"},
	{"scipy.sparse.csr", "csr_matrix"},
	{"scipy.sparse._csr", "csr_matrix"},
	{"_codecs", "encode"}, // how Python 3 writes bytes in protocol 2
}

// collectionGlobals are the names that graphs as dicts of lists need.
var collectionGlobals = []Global{
	{"collections", "defaultdict"},
	{"collections", "OrderedDict"},
	{"__builtin__", "list"},
	{"builtins", "list"},
}

// DataGlobals returns the names that data sets in pickles need: arrays, CSR
// matrices and dicts of lists.
func DataGlobals() []Global { return slices.Concat(numPyGlobals, collectionGlobals) }

// Ndarray makes an Array of an unpickled numpy.ndarray; its data alias the
// pickle. name is for messages. Sizes are checked against the data.
func Ndarray(v Value, name string) (*npy.Array, error) {
	o, ok := v.(*Object)
	if !ok || o.Callable.Name != "_reconstruct" {
		return nil, fmt.Errorf("%s instead of a NumPy array", describe(v))
	}
	// State: (version, shape, dtype, Fortran order, data).
	st, ok := o.State.(Tuple)
	if !ok || len(st) != 5 {
		return nil, fmt.Errorf("a NumPy array with the state %s", describe(o.State))
	}
	dims, ok := st[1].(Tuple)
	if !ok {
		return nil, fmt.Errorf("a NumPy array with the shape %s", describe(st[1]))
	}
	shape := make([]int64, len(dims))
	for i, d := range dims {
		if shape[i], ok = d.(int64); !ok {
			return nil, fmt.Errorf("a NumPy array with %s in its shape", describe(d))
		}
	}
	descr, err := dtypeOf(st[2])
	if err != nil {
		return nil, err
	}
	fortran, ok := st[3].(bool)
	if !ok {
		return nil, fmt.Errorf("a NumPy array with %s as its order", describe(st[3]))
	}
	data, err := bytesOf(st[4])
	if err != nil {
		return nil, err
	}
	return npy.NewRaw(bytes.NewReader(data), int64(len(data)), descr, fortran, shape, name)
}

// dtypeOf returns the description of an unpickled numpy.dtype, such as <f4.
func dtypeOf(v Value) (string, error) {
	o, ok := v.(*Object)
	if !ok || o.Callable.Name != "dtype" || len(o.Args) == 0 {
		return "", fmt.Errorf("%s instead of a NumPy dtype", describe(v))
	}
	kind, ok := Text(o.Args[0])
	if !ok {
		return "", fmt.Errorf("a NumPy dtype named by %s", describe(o.Args[0]))
	}
	// State: (version, byte order, …).
	order := "|"
	if st, ok := o.State.(Tuple); ok && len(st) > 1 {
		if s, ok := Text(st[1]); ok && len(s) == 1 {
			order = s
		}
	}
	return order + kind, nil
}

// bytesOf returns the data of an array: a byte string, or, as Python 3 writes
// it in protocol 2, text to be encoded as latin1.
func bytesOf(v Value) ([]byte, error) {
	switch v := v.(type) {
	case Bytes:
		return v, nil
	case *Object:
		if v.Callable != (Global{"_codecs", "encode"}) || len(v.Args) != 2 {
			break
		}
		s, ok := v.Args[0].(string)
		enc, _ := Text(v.Args[1])
		if !ok || enc != "latin1" {
			break
		}
		b := make([]byte, 0, len(s))
		for _, r := range s {
			if r > 0xFF {
				return nil, fmt.Errorf("array data with the character %U, which is no byte", r)
			}
			b = append(b, byte(r))
		}
		return b, nil
	}
	return nil, fmt.Errorf("array data that are %s: save them with protocol 2 as bytes", describe(v))
}

// CSR is an unpickled scipy.sparse.csr_matrix.
type CSR struct {
	Rows, Cols            int64
	Data, Indices, Indptr *npy.Array
}

// CSRMatrix takes a csr_matrix apart. Its arrays have been checked each for
// itself, not against each other.
func CSRMatrix(v Value, name string) (*CSR, error) {
	o, ok := v.(*Object)
	if !ok || o.Callable.Name != "csr_matrix" {
		return nil, fmt.Errorf("%s instead of a SciPy csr_matrix", describe(v))
	}
	d, ok := o.State.(*Dict)
	if !ok {
		return nil, fmt.Errorf("a csr_matrix with the state %s", describe(o.State))
	}
	m := &CSR{}
	for _, part := range []struct {
		key string
		to  **npy.Array
	}{{"data", &m.Data}, {"indices", &m.Indices}, {"indptr", &m.Indptr}} {
		v, ok := d.Get(part.key)
		if !ok {
			return nil, fmt.Errorf("a csr_matrix without %q", part.key)
		}
		var err error
		if *part.to, err = Ndarray(v, name+": "+part.key); err != nil {
			return nil, err
		}
	}
	shape, ok := d.Get("_shape")
	if !ok {
		shape, ok = d.Get("shape")
	}
	dims, isTuple := shape.(Tuple)
	if !ok || !isTuple || len(dims) != 2 {
		return nil, fmt.Errorf("a csr_matrix with the shape %s", describe(shape))
	}
	r, ok1 := dims[0].(int64)
	c, ok2 := dims[1].(int64)
	if !ok1 || !ok2 || r < 0 || c < 0 {
		return nil, fmt.Errorf("a csr_matrix with the shape (%s, %s)", describe(dims[0]), describe(dims[1]))
	}
	m.Rows, m.Cols = r, c
	return m, nil
}
