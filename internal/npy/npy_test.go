package npy

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"zerogcn/internal/usage"
)

// file makes an .npy of version 1 with the given header text and data.
func file(text string, data []byte) []byte {
	for (10+len(text)+1)%16 != 0 {
		text += " "
	}
	text += "\n"
	b := append([]byte(magic), 1, 0, byte(len(text)), byte(len(text)>>8))
	return append(append(b, text...), data...)
}

func dict(descr, fortran, shape string) string {
	return fmt.Sprintf("{'descr': '%s', 'fortran_order': %s, 'shape': %s, }", descr, fortran, shape)
}

func open(t testing.TB, b []byte) *Array {
	t.Helper()
	a, err := New(bytes.NewReader(b), int64(len(b)), "x.npy")
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func le(v ...any) []byte {
	var b bytes.Buffer
	for _, x := range v {
		binary.Write(&b, binary.LittleEndian, x)
	}
	return b.Bytes()
}

func be(v ...any) []byte {
	var b bytes.Buffer
	for _, x := range v {
		binary.Write(&b, binary.BigEndian, x)
	}
	return b.Bytes()
}

func TestEndian(t *testing.T) {
	x := []uint16{0x0102}
	if b := bytesOf(x); b[0] != 2 {
		t.Fatal("this machine is big-endian: bytesOf does not hold")
	}
}

func TestReadTypes(t *testing.T) {
	for _, c := range []struct {
		descr string
		data  []byte
		want  []float64
	}{
		{"|b1", []byte{1, 0, 2}, []float64{1, 0, 1}},
		{"|i1", le(int8(-3), int8(5)), []float64{-3, 5}},
		{"|u1", le(uint8(200)), []float64{200}},
		{"<i2", le(int16(-300), int16(7)), []float64{-300, 7}},
		{">i2", be(int16(-300), int16(7)), []float64{-300, 7}},
		{"<u2", le(uint16(60000)), []float64{60000}},
		{"<i4", le(int32(-70000)), []float64{-70000}},
		{">u4", be(uint32(4e9)), []float64{4e9}},
		{"<i8", le(int64(-1 << 40)), []float64{-1 << 40}},
		{">i8", be(int64(-1 << 40)), []float64{-1 << 40}},
		{"<u8", le(uint64(1 << 50)), []float64{1 << 50}},
		{"<f2", le(uint16(0x3C00), uint16(0xC000)), []float64{1, -2}},
		{">f2", be(uint16(0x3C00)), []float64{1}},
		{"<f4", le(float32(1.5)), []float64{1.5}},
		{">f4", be(float32(1.5)), []float64{1.5}},
		{"<f8", le(0.1), []float64{0.1}},
		{">f8", be(0.1), []float64{0.1}},
		{"=f8", le(0.1), []float64{0.1}},
	} {
		n := len(c.want)
		a := open(t, file(dict(c.descr, "False", fmt.Sprintf("(%d,)", n)), c.data))
		got, err := Read[float64](a, 1)
		if err != nil || fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s: got %v, %v, want %v", c.descr, got, err, c.want)
		}
		raw := make([]byte, n*a.Type.Size)
		if err := RawRows(a, 0, int64(n), raw); err != nil {
			t.Errorf("%s: RawRows: %v", c.descr, err)
		}
		wantRaw := bytes.Clone(c.data)
		if a.Type.Big {
			swap(wantRaw, a.Type.Size)
		}
		if !a.Type.Big && !bytes.Equal(raw, wantRaw) {
			t.Errorf("%s: RawRows gave % x, want % x", c.descr, raw, wantRaw)
		}
	}
}

func TestReadZeroDimensions(t *testing.T) {
	a := open(t, file(dict("<i4", "True", "()"), le(int32(42))))
	got, err := Read[int64](a, 1)
	if err != nil || len(got) != 1 || got[0] != 42 || a.Rows() != 1 {
		t.Fatalf("got %v, %v", got, err)
	}
	e := open(t, file(dict("<i4", "False", "(0, 281474976710656)"), nil))
	if got, err := Read[int32](e, 1); err != nil || len(got) != 0 {
		t.Fatalf("empty: %v, %v", got, err)
	}
}

func TestHeaderForms(t *testing.T) {
	data := le(int32(1), int32(2))
	for _, text := range []string{
		`{"descr": "<i4", "fortran_order": False, "shape": (2,)}`,
		`{'shape': (2,), 'fortran_order': False, 'descr': '<i4'}`,
		`{'descr': '<i4', 'fortran_order': False, 'shape': (2L,), }`,
		`  { 'descr' : '<i4' , 'fortran_order' : False , 'shape' : ( 2 , ) , } `,
		`{u'descr': u'<i4', 'fortran_order': False, 'shape': (1, 2)}`,
	} {
		for _, major := range []byte{1, 2, 3} {
			b := append([]byte(magic), major, 0)
			if major == 1 {
				b = append(b, byte(len(text)), 0)
			} else {
				b = append(b, byte(len(text)), 0, 0, 0)
			}
			b = append(append(b, text...), data...)
			got, err := Read[int32](open(t, b), 1)
			if err != nil || fmt.Sprint(got) != "[1 2]" {
				t.Errorf("version %d, %s: %v, %v", major, text, got, err)
			}
		}
	}
}

func TestMalformed(t *testing.T) {
	good := dict("<f4", "False", "(2, 2)")
	data := make([]byte, 16)
	cases := map[string][]byte{
		"empty":               {},
		"magic":               []byte("PK\x03\x04 something else"),
		"version":             append([]byte(magic), 9, 0, 0, 0),
		"header beyond file":  append([]byte(magic), 1, 0, 0xFF, 0xFF),
		"v2 header beyond":    append([]byte(magic), 2, 0, 0xFF, 0xFF, 0xFF, 0xFF),
		"v2 cut":              append([]byte(magic), 2, 0, 1, 0),
		"short data":          file(good, data[:15]),
		"negative dimension":  file(dict("<f4", "False", "(-1,)"), data),
		"both negative":       file(dict("<f4", "False", "(-2, -2)"), data),
		"overflow":            file(dict("<f4", "False", "(4611686018427387904, 4)"), data),
		"overflow 2":          file(dict("<f4", "False", "(281474976710656, 281474976710656)"), data),
		"too long":            file(dict("<f4", "False", "(99999999999999999999,)"), data),
		"no shape":            file("{'descr': '<f4', 'fortran_order': False}", data),
		"twice":               file("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", data),
		"unknown key":         file("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'x': 1}", data),
		"not a dict":          file("['<f4']", data),
		"unclosed":            file("{'descr': '<f4", data),
		"shape no tuple":      file("{'descr': '<f4', 'fortran_order': False, 'shape': 4}", data),
		"fortran no bool":     file("{'descr': '<f4', 'fortran_order': 1, 'shape': (4,)}", data),
		"no width":            file(dict("<fx", "False", "(1,)"), data),
		"text of no width":    file(dict("<U0", "False", "(1000000000000,)"), data),
		"huge text":           file(dict("<U999999999", "False", "(1,)"), data),
		"33 dimensions":       file(dict("<f4", "False", "("+strings.Repeat("1,", 33)+")"), data),
		"after the end":       file(good+" x", data),
		"structured unclosed": file("{'descr': [('a', '<f4'), 'fortran_order': False}", data),
		"empty type":          file(dict("", "False", "(1,)"), data),
	}
	for name, b := range cases {
		_, err := New(bytes.NewReader(b), int64(len(b)), "x.npy")
		checkFault(t, name, err)
	}
	// Read of what may not be read.
	for name, text := range map[string]string{
		"object":     dict("|O", "False", "(2, 2)"),
		"structured": "{'descr': [('a', '<f4'), ('b', '<i8')], 'fortran_order': False, 'shape': (1,)}",
		"complex":    dict("<c16", "False", "(1,)"),
		"datetime":   dict("<M8[ns]", "False", "(1,)"),
		"text":       dict("<U1", "False", "(1,)"),
		"float16x":   dict("<f16", "False", "(1,)"),
	} {
		a := open(t, file(text, data))
		_, err := Read[float32](a, 1)
		checkFault(t, name, err)
	}
}

func checkFault(t *testing.T, name string, err error) {
	t.Helper()
	if err == nil {
		t.Errorf("%s: no error", name)
		return
	}
	if !usage.Is(err) || !strings.Contains(err.Error(), "x.np") || strings.Contains(err.Error(), "\n") {
		t.Errorf("%s: want one line of the user's that names the file, got %q (usage %v)", name, err, usage.Is(err))
	}
}

// TestCutAnywhere cuts a file at every byte: each prefix is refused.
func TestCutAnywhere(t *testing.T) {
	b := file(dict("<i8", "False", "(3,)"), le(int64(1), int64(2), int64(3)))
	for n := range len(b) {
		_, err := New(bytes.NewReader(b[:n]), int64(n), "x.npy")
		checkFault(t, fmt.Sprintf("cut at %d", n), err)
	}
}

func TestMisfits(t *testing.T) {
	a := open(t, file(dict("<i8", "False", "(2, 2)"), le(int64(1), int64(2), int64(3), int64(1<<40))))
	_, err := Read[int32](a, 1)
	checkFault(t, "int64", err)
	if !strings.Contains(err.Error(), "row 1, column 1 is 1099511627776") {
		t.Errorf("got %q", err)
	}
	for _, c := range []struct {
		name string
		a    *Array
		ok   bool
	}{
		{"half", open(t, file(dict("<f8", "False", "(1,)"), le(0.5))), false},
		{"whole", open(t, file(dict("<f8", "False", "(1,)"), le(-7.0))), true},
		{"nan", open(t, file(dict("<f4", "False", "(1,)"), le(float32(math.NaN())))), false},
		{"too large", open(t, file(dict("<f8", "False", "(1,)"), le(3e9))), false},
		{"unsigned", open(t, file(dict("<u4", "False", "(1,)"), le(uint32(1<<31)))), false},
	} {
		_, err := Read[int32](c.a, 1)
		if (err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	neg := open(t, file(dict("<i4", "False", "(1,)"), le(int32(-1))))
	if _, err := Read[uint64](neg, 1); err == nil {
		t.Error("-1 went into uint64")
	}
	if _, err := Read[uint32](neg, 1); err == nil {
		t.Error("-1 went into uint32")
	}
}

// TestOrders reads arrays of random shape in both orders, whole and by rows,
// and compares with indices computed one by one.
func TestOrders(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nd := rapid.IntRange(1, 4).Draw(t, "nd")
		shape := make([]int64, nd)
		total := int64(1)
		for i := range shape {
			shape[i] = rapid.Int64Range(1, 6).Draw(t, "d")
			total *= shape[i]
		}
		fortran := rapid.Bool().Draw(t, "fortran")
		vals := make([]int32, total) // in file order
		want := make([]int32, total) // row-major
		idx := make([]int64, nd)
		for k := range total {
			pos, stride := int64(0), int64(1)
			if fortran {
				for i := range nd {
					pos += idx[i] * stride
					stride *= shape[i]
				}
			} else {
				pos = k
			}
			want[k] = int32(k * 7)
			vals[pos] = want[k]
			for i := nd - 1; i >= 0; i-- {
				if idx[i]++; idx[i] < shape[i] {
					break
				}
				idx[i] = 0
			}
		}
		h := Header{Shape: shape}
		word := map[bool]string{true: "True", false: "False"}[fortran]
		a, err := New(bytes.NewReader(file(dict("<i4", word, h.ShapeString()), le(vals))), 1<<20, "x")
		if err != nil {
			t.Fatal(err)
		}
		got, err := Read[int64](a, 2)
		if err != nil {
			t.Fatal(err)
		}
		for i := range got {
			if got[i] != int64(want[i]) {
				t.Fatalf("shape %v fortran %v: got %v want %v", shape, fortran, got, want)
			}
		}
		lo := rapid.Int64Range(0, shape[0]).Draw(t, "lo")
		hi := rapid.Int64Range(lo, shape[0]).Draw(t, "hi")
		w := a.Width()
		part := make([]int32, (hi-lo)*w)
		if err := ReadRows(a, lo, hi, part); err != nil {
			t.Fatal(err)
		}
		raw := make([]byte, 4*(hi-lo)*w)
		if err := RawRows(a, lo, hi, raw); err != nil {
			t.Fatal(err)
		}
		for i, v := range part {
			if v != want[lo*w+int64(i)] || v != int32(binary.LittleEndian.Uint32(raw[4*i:])) {
				t.Fatalf("rows [%d,%d) of %v fortran %v: got %v", lo, hi, shape, fortran, part)
			}
		}
	})
}

// TestFortranLong takes the path of few rows out of long columns.
func TestFortranLong(t *testing.T) {
	const rows, cols = 50_000, 3
	v := make([]int32, rows*cols)
	for r := range rows {
		for c := range cols {
			v[c*rows+r] = int32(r*cols + c)
		}
	}
	a := open(t, file(dict("<i4", "True", "(50000, 3)"), le(v)))
	got := make([]int64, 5*cols)
	if err := ReadRows(a, 40_000, 40_005, got); err != nil {
		t.Fatal(err)
	}
	for i, x := range got {
		if x != int64(40_000*cols+i) {
			t.Fatalf("element %d is %d", i, x)
		}
	}
}

func TestWriteThenOpen(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.npy")
	v := make([]float32, 1000*7)
	for i := range v {
		v[i] = float32(i) / 3
	}
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := Write(f, v, 1000, 7); err != nil {
		t.Fatal(err)
	}
	f.Close()
	a, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if a.Offset != Align || a.ShapeString() != "(1000, 7)" {
		t.Fatalf("offset %d, shape %s", a.Offset, a.ShapeString())
	}
	got, err := Read[float32](a, 3)
	if err != nil || fmt.Sprint(got) != fmt.Sprint(v) {
		t.Fatal("values differ", err)
	}
	m, ok, err := View[float32](a)
	if err != nil || ok != (runtime.GOOS == "linux") {
		t.Fatal(ok, err)
	}
	if ok && fmt.Sprint(m) != fmt.Sprint(v) {
		t.Fatal("the view differs")
	}
	if _, ok, _ := View[int32](a); ok {
		t.Fatal("a view of another type")
	}
	w, _ := NewWriter[int32](&bytes.Buffer{}, 2)
	if err := WriteValues(w, []int32{1, 2, 3}); err == nil {
		t.Error("too many values were taken")
	}
	if err := w.Close(); err == nil {
		t.Error("missing values were not noticed")
	}
}

func TestStrings(t *testing.T) {
	u := func(s string, n int) (b []byte) {
		r := []rune(s)
		for i := range n {
			c := rune(0)
			if i < len(r) {
				c = r[i]
			}
			b = append(b, le(int32(c))...)
		}
		return b
	}
	a := open(t, file(dict("<U5", "False", "(2,)"), append(u("héé", 5), u("Žluť!", 5)...)))
	got, err := a.Strings()
	if err != nil || fmt.Sprint(got) != "[héé Žluť!]" {
		t.Fatal(got, err)
	}
	b := open(t, file(dict("|S3", "False", "(2,)"), []byte("ab\x00xyz")))
	if got, err := b.Strings(); err != nil || fmt.Sprint(got) != "[ab xyz]" {
		t.Fatal(got, err)
	}
}

func FuzzHeader(f *testing.F) {
	f.Add(file(dict("<f4", "False", "(2, 2)"), make([]byte, 16)))
	f.Add(file(dict(">i8", "True", "(1,)"), make([]byte, 8)))
	f.Add(file(dict("<U3", "False", "()"), make([]byte, 12)))
	f.Add(append([]byte(magic), 2, 0, 0xFF, 0xFF, 0xFF, 0xFF))
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := New(bytes.NewReader(b), int64(len(b)), "x.npy")
		if err != nil {
			checkFault(t, "fuzz", err)
			return
		}
		if a.Type.Numeric() && a.Count()*int64(a.Type.Size) > int64(len(b)) {
			t.Fatalf("shape %s passed in %d bytes", a.ShapeString(), len(b))
		}
		if _, err := Read[float32](a, 1); err != nil {
			checkFault(t, "fuzz read", err)
		}
		if _, err := Read[int8](a, 1); err != nil {
			checkFault(t, "fuzz read", err)
		}
		if _, err := a.Strings(); err != nil {
			checkFault(t, "fuzz text", err)
		}
	})
}

func BenchmarkReadFloat32(b *testing.B) {
	path := filepath.Join(b.TempDir(), "a.npy")
	v := make([]float32, 64<<20/4)
	f, _ := os.Create(path)
	Write(f, v, int64(len(v)/64), 64)
	f.Close()
	a, err := Open(path)
	if err != nil {
		b.Fatal(err)
	}
	defer a.Close()
	dst := make([]float32, len(v))
	b.SetBytes(int64(4 * len(v)))
	for b.Loop() {
		if err := ReadRows(a, 0, a.Rows(), dst); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkReadInt64AsInt32(b *testing.B) {
	v := make([]int64, 1<<20)
	a := open(b, file(dict("<i8", "False", "(1048576,)"), le(v)))
	dst := make([]int32, len(v))
	b.SetBytes(int64(8 * len(v)))
	for b.Loop() {
		if err := ReadRows(a, 0, a.Rows(), dst); err != nil {
			b.Fatal(err)
		}
	}
}
