package mat

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"zerogcn/internal/sharedtest"
)

// element writes a data element, small where it fits.
func element(o binary.AppendByteOrder, kind uint32, body []byte) []byte {
	if n := len(body); n <= 4 && kind != miMATRIX {
		b := o.AppendUint32(nil, uint32(n)<<16|kind)
		return append(append(b, body...), make([]byte, 4-n)...)
	}
	b := o.AppendUint32(nil, kind)
	b = append(o.AppendUint32(b, uint32(len(body))), body...)
	return append(b, make([]byte, -len(b)&7)...)
}

func u32(o binary.AppendByteOrder, v ...uint32) (b []byte) {
	for _, x := range v {
		b = o.AppendUint32(b, x)
	}
	return b
}

// dense writes an array of class double stored as bytes.
func dense(o binary.AppendByteOrder, name string, rows, cols uint32, v ...byte) []byte {
	body := element(o, miUINT32, u32(o, mxDOUBLE, 0))
	body = append(body, element(o, miINT32, u32(o, rows, cols))...)
	body = append(body, element(o, miINT8, []byte(name))...)
	body = append(body, element(o, miUINT8, v)...)
	return element(o, miMATRIX, body)
}

// sparse writes a sparse array of ones.
func sparse(o binary.AppendByteOrder, name string, rows, cols uint32, ir, jc []uint32) []byte {
	body := element(o, miUINT32, u32(o, mxSPARSE|0x0200, uint32(len(ir))))
	body = append(body, element(o, miINT32, u32(o, rows, cols))...)
	body = append(body, element(o, miINT8, []byte(name))...)
	body = append(body, element(o, miINT32, u32(o, ir...))...)
	body = append(body, element(o, miINT32, u32(o, jc...))...)
	body = append(body, element(o, miUINT8, bytes.Repeat([]byte{1}, len(ir)))...)
	return element(o, miMATRIX, body)
}

func deflated(o binary.AppendByteOrder, e []byte) []byte {
	var b bytes.Buffer
	z := zlib.NewWriter(&b)
	z.Write(e)
	z.Close()
	return append(u32(o, miCOMPRESSED, uint32(b.Len())), b.Bytes()...)
}

func file(o binary.AppendByteOrder, elements ...[]byte) []byte {
	head := append([]byte("MATLAB 5.0 MAT-file, Platform: test"), bytes.Repeat([]byte{' '}, 89)...)
	b := append(head, 0, 0, 0, 0)
	b = b[:124]
	b = append(b, 0, 1, 'I', 'M')
	if o == binary.AppendByteOrder(binary.BigEndian) {
		copy(b[124:], []byte{1, 0, 'M', 'I'})
	}
	return append(b, slices.Concat(elements...)...)
}

func TestRead(t *testing.T) {
	for _, o := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
		skipped := element(o, miMATRIX, slices.Concat(element(o, miUINT32, u32(o, 2, 0)), element(o, miINT32, u32(o, 1, 1)), element(o, miINT8, []byte("s"))))
		m, err := Read(file(o, dense(o, "x", 2, 3, 1, 2, 3, 4, 5, 6), skipped, deflated(o, sparse(o, "network", 3, 2, []uint32{0, 2, 1}, []uint32{0, 2, 3})), dense(o, "y", 0, 0)))
		if err != nil {
			t.Fatal(err)
		}
		x, s := m["x"], m["network"]
		if len(m) != 3 || x.Sparse || !slices.Equal(x.Dims, []int64{2, 3}) || x.Len() != 6 || x.At(4) != 5 {
			t.Errorf("%+v", x)
		}
		if !s.Sparse || !slices.Equal(s.Indptr, []int64{0, 2, 3}) || !slices.Equal(s.Rows, []int32{0, 2, 1}) || s.Len() != 3 || s.At(2) != 1 {
			t.Errorf("%+v", s)
		}
	}
}

func TestReadMalformed(t *testing.T) {
	o := binary.LittleEndian
	good := file(o, dense(o, "x", 2, 3, 1, 2, 3, 4, 5, 6), deflated(o, sparse(o, "a", 3, 2, []uint32{0, 2, 1}, []uint32{0, 2, 3})))
	for what, b := range map[string][]byte{
		"row beyond":      file(o, sparse(o, "a", 2, 2, []uint32{0, 2, 1}, []uint32{0, 2, 3})),
		"offsets fall":    file(o, sparse(o, "a", 3, 2, []uint32{0, 2, 1}, []uint32{0, 3, 2})),
		"offsets beyond":  file(o, sparse(o, "a", 3, 2, []uint32{0, 2, 1}, []uint32{0, 2, 9})),
		"offsets too few": file(o, sparse(o, "a", 3, 2, []uint32{0, 2, 1}, []uint32{0, 2})),
		"offsets for all": file(o, sparse(o, "a", 3, 1<<31-1, []uint32{0, 2, 1}, []uint32{0, 2})),
		"values too few":  file(o, dense(o, "x", 2, 3, 1, 2, 3, 4, 5)),
		"dims overflow":   file(o, dense(o, "x", 1<<31-1, 1<<31-1, 1)),
		"dims negative":   file(o, dense(o, "x", 1<<31, 1, 1)),
		"name long":       file(o, dense(o, strings.Repeat("x", 100), 1, 1, 1)),
		"bomb":            file(o, deflated(o, u32(o, miMATRIX, 1<<31))),
		"version 7.3":     append([]byte("MATLAB 7.3 MAT-file"), good[19:]...),
		"no order":        append(bytes.Clone(good[:126]), good[128:]...),
	} {
		_, err := Read(b)
		if _, ok := errors.AsType[*Fault](err); !ok || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", what, err)
		}
	}
	whole := 0
	for n := range len(good) {
		if _, err := Read(good[:n]); err == nil {
			whole++ // at the end of an element
		}
		b := bytes.Clone(good)
		b[n] ^= 0x41
		Read(b) // must not panic
	}
	if whole != 2 {
		t.Errorf("%d beginnings are taken for whole files", whole)
	}
}

func FuzzRead(f *testing.F) {
	for _, o := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
		f.Add(file(o, dense(o, "x", 2, 3, 1, 2, 3, 4, 5, 6), sparse(o, "a", 3, 2, []uint32{0, 2, 1}, []uint32{0, 2, 3})))
		f.Add(file(o, deflated(o, dense(o, "label", 2, 1, 1, 0))))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := Read(b)
		if err != nil {
			if _, ok := errors.AsType[*Fault](err); !ok {
				t.Fatal(err)
			}
			return
		}
		for _, x := range m {
			for i := range x.Len() {
				x.At(i)
			}
		}
	})
}

func TestReadShared(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(sharedtest.Path(t, "data/linkx-facebook100"), "Reed98.mat"))
	if err != nil {
		t.Fatal(err)
	}
	m, err := Read(b)
	if err != nil {
		t.Fatal(err)
	}
	a, info := m["A"], m["local_info"]
	if a == nil || info == nil || a.Len() != 2*18812 || !slices.Equal(info.Dims, []int64{962, 7}) {
		t.Errorf("%+v %+v", a, info)
	}
}
