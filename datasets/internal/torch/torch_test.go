package torch

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"zerogcn/datasets/internal/pickle"
	"zerogcn/internal/npy"
	"zerogcn/internal/sharedtest"
	"zerogcn/internal/usage"
)

// tensorPickle is a pickle of {"x": tensor}, as torch.save writes it, with the
// given storage type, offset, shape and strides.
func tensorPickle(kind, key string, offset int64, shape, stride []int64) string {
	num := func(v int64) string {
		return "\x8a\x08" + string(binary.LittleEndian.AppendUint64(nil, uint64(v)))
	}
	tuple := func(v []int64) string {
		s := "("
		for _, x := range v {
			s += num(x)
		}
		return s + "t"
	}
	text := func(s string) string {
		return "X" + string(binary.LittleEndian.AppendUint32(nil, uint32(len(s)))) + s
	}
	storage := "(" + text("storage") + "ctorch\n" + kind + "\n" + text(key) + text("cpu") + num(6) + "tQ"
	return "\x80\x02}" + text("x") + "ctorch._utils\n_rebuild_tensor_v2\n(" + storage + num(offset) + tuple(shape) + tuple(stride) + "\x89ccollections\nOrderedDict\n)RtRs."
}

// archive packs members; a name that begins with ! is deflated.
func archive(t testing.TB, members map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for name, s := range members {
		method := zip.Store
		if strings.HasPrefix(name, "!") {
			name, method = name[1:], zip.Deflate
		}
		w, err := z.CreateRaw(&zip.FileHeader{Name: name, Method: method, UncompressedSize64: uint64(len(s)), CompressedSize64: uint64(len(s)), CRC32: crc(s)})
		if err == nil {
			_, err = w.Write([]byte(s))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func crc(s string) uint32 {
	c := ^uint32(0)
	for i := range len(s) {
		c ^= uint32(s[i])
		for range 8 {
			c = c>>1 ^ 0xEDB88320&-(c&1)
		}
	}
	return ^c
}

// numbers are the int64s 0 to 5.
func numbers() string {
	var b []byte
	for i := range uint64(6) {
		b = binary.LittleEndian.AppendUint64(b, i)
	}
	return string(b)
}

func open(t testing.TB, data []byte) (*npy.Array, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.pt")
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	d, ok := f.Value.(*pickle.Dict)
	if !ok {
		return nil, nil
	}
	v, _ := d.Get("x")
	return f.Tensor(v, "x")
}

func TestTensor(t *testing.T) {
	for _, c := range []struct {
		kind          string
		offset        int64
		shape, stride []int64
		want          string
	}{
		{"LongStorage", 0, []int64{2, 3}, []int64{3, 1}, "[0 1 2 3 4 5]"},
		{"LongStorage", 2, []int64{4}, []int64{1}, "[2 3 4 5]"},
		{"LongStorage", 0, []int64{2, 3}, []int64{1, 2}, "[0 2 4 1 3 5]"}, // transposed
		{"LongStorage", 0, []int64{2, 1}, []int64{1, 7}, "[0 1]"},
		{"LongStorage", 5, []int64{}, []int64{}, "[5]"},
		{"IntStorage", 2, []int64{3}, []int64{1}, "[1 0 2]"},
		{"ByteStorage", 8, []int64{2}, []int64{1}, "[1 0]"},
		{"BoolStorage", 8, []int64{2}, []int64{1}, "[1 0]"},
		{"LongStorage", 6, []int64{0}, []int64{1}, "[]"},
	} {
		a, err := open(t, archive(t, map[string]string{"a/data.pkl": tensorPickle(c.kind, "0", c.offset, c.shape, c.stride), "a/data/0": numbers(), "a/byteorder": "little"}))
		if err != nil {
			t.Error(err)
			continue
		}
		v, err := npy.Read[int64](a, 1)
		if err != nil || fmt.Sprint(v) != c.want || !slices.Equal(a.Shape, c.shape) {
			t.Errorf("%s %d: %v, %v, want %s", c.kind, c.shape, v, err, c.want)
		}
	}
}

func TestMalformed(t *testing.T) {
	long := func(offset int64, shape, stride []int64) string {
		return tensorPickle("LongStorage", "0", offset, shape, stride)
	}
	good := long(0, []int64{6}, []int64{1})
	for what, m := range map[string]map[string]string{
		"too long":        {"a/data.pkl": long(0, []int64{7}, []int64{1}), "a/data/0": numbers()},
		"too far":         {"a/data.pkl": long(1, []int64{6}, []int64{1}), "a/data/0": numbers()},
		"negative offset": {"a/data.pkl": long(-1, []int64{6}, []int64{1}), "a/data/0": numbers()},
		"offset huge":     {"a/data.pkl": long(1<<62, []int64{1}, []int64{1}), "a/data/0": numbers()},
		"shape huge":      {"a/data.pkl": long(0, []int64{1 << 39, 1 << 39}, []int64{1 << 39, 1}), "a/data/0": numbers()},
		"shape negative":  {"a/data.pkl": long(0, []int64{-1}, []int64{1}), "a/data/0": numbers()},
		"view":            {"a/data.pkl": long(0, []int64{3}, []int64{2}), "a/data/0": numbers()},
		"broadcast":       {"a/data.pkl": long(0, []int64{1 << 30}, []int64{0}), "a/data/0": numbers()},
		"strides short":   {"a/data.pkl": long(0, []int64{6}, nil), "a/data/0": numbers()},
		"no storage":      {"a/data.pkl": good},
		"packed storage":  {"a/data.pkl": good, "!a/data/0": numbers()},
		"no pickle":       {"a/data/0": numbers()},
		"evil":            {"a/data.pkl": "\x80\x02cos\nsystem\nU\x04true\x85R."},
		"other type":      {"a/data.pkl": strings.Replace(good, "LongStorage", "QInt8Storage", 1), "a/data/0": numbers()},
		"function as key": {"a/data.pkl": strings.Replace(good, "ctorch\nLongStorage", "cnumpy\nndarray", 1), "a/data/0": numbers()},
		"big-endian":      {"a/data.pkl": good, "a/data/0": numbers(), "a/byteorder": "big"},
		"no tensor":       {"a/data.pkl": "\x80\x02}X\x01\x00\x00\x00xK\x01s.", "a/data/0": numbers()},
	} {
		_, err := open(t, archive(t, m))
		if err == nil || !usage.Is(err) || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "x.pt") {
			t.Errorf("%s: %v", what, err)
		}
	}
	whole := archive(t, map[string]string{"a/data.pkl": good, "a/data/0": numbers()})
	for n := range len(whole) {
		if _, err := open(t, whole[:n]); err == nil || !usage.Is(err) {
			t.Errorf("cut at %d: %v", n, err)
		}
		b := bytes.Clone(whole)
		b[n] ^= 0x41
		if _, err := open(t, b); err != nil && !usage.Is(err) {
			t.Errorf("flip at %d: %v", n, err)
		}
	}
}

func TestShared(t *testing.T) {
	f, err := Open(filepath.Join(sharedtest.Path(t, "data/mlgnc-pcg"), "split_0.pt"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	v, _ := f.Value.(*pickle.Dict).Get("val_mask")
	a, err := f.Tensor(v, "val_mask")
	if err != nil || !IsTensor(v) || !slices.Equal(a.Shape, []int64{647}) || a.Type.Kind != npy.Int {
		t.Errorf("%+v, %v", a, err)
	}
}

func FuzzTensor(f *testing.F) {
	f.Add([]byte(tensorPickle("LongStorage", "0", 0, []int64{2, 3}, []int64{1, 2})), []byte(numbers()))
	f.Add([]byte(tensorPickle("HalfStorage", "0", 3, []int64{1}, []int64{1})), []byte(numbers()))
	f.Fuzz(func(t *testing.T, p, storage []byte) {
		a, err := open(t, archive(t, map[string]string{"a/data.pkl": string(p), "a/data/0": string(storage)}))
		if err != nil {
			if !usage.Is(err) {
				t.Fatal(err)
			}
			return
		}
		if a != nil && a.Count() > int64(len(storage)) {
			t.Fatalf("%d elements of %d bytes", a.Count(), len(storage))
		}
	})
}
