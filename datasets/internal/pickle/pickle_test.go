package pickle

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"zerogcn/internal/npy"
	"zerogcn/internal/sharedtest"
)

func TestLoad(t *testing.T) {
	dd := Global{"collections", "defaultdict"}
	list := Global{"__builtin__", "list"}
	for _, c := range []struct {
		name, in string
		want     Value
	}{
		{"None", "\x80\x02N.", nil},
		{"bools", "\x80\x02\x88\x89\x86.", Tuple{true, false}},
		{"ints", "\x80\x02(K\xffM\x00\x01J\xfe\xff\xff\xfft.", Tuple{int64(255), int64(256), int64(-2)}},
		{"longs", "\x80\x02(\x8a\x00\x8a\x01\xff\x8a\x02\x00\x80\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7ft.", Tuple{int64(0), int64(-1), int64(-32768), int64(1<<63 - 1)}},
		{"float", "\x80\x02G\x3f\xf8\x00\x00\x00\x00\x00\x00.", 1.5},
		{"protocol 0", "(lp0\nI5\naI01\naF2.5\naL7L\naS'ab'\na.", &List{[]Value{int64(5), true, 2.5, int64(7), Bytes("ab")}}},
		{"strings", "\x80\x02U\x02abX\x03\x00\x00\x00h\xc3\xa9\x86.", Tuple{Bytes("ab"), "hé"}},
		{"list", "\x80\x02](K\x01K\x02e.", &List{[]Value{int64(1), int64(2)}}},
		{"dict", "\x80\x02}(K\x01K\x02u.", &Dict{[]Value{int64(1)}, []Value{int64(2)}}},
		{"memo", "\x80\x02K\x07q\x03h\x03\x86.", Tuple{int64(7), int64(7)}},
		{"memoize", "\x80\x04K\x07\x94h\x00\x86.", Tuple{int64(7), int64(7)}},
		{"object", "\x80\x02ccollections\ndefaultdict\nc__builtin__\nlist\n\x85RK\x01]s.", &Object{Callable: dd, Args: Tuple{list}, Dict: Dict{[]Value{int64(1)}, []Value{&List{}}}}},
		{"stack global", "\x80\x04\x8c\x08builtins\x8c\x04list\x93.", Global{"builtins", "list"}},
		{"a renamed module", "\x80\x02cscipy.sparse._csr\ncsr_matrix\n.", Global{"scipy.sparse._csr", "csr_matrix"}},
		{"state", "\x80\x02cnumpy\ndtype\n)RK\x05b.", &Object{Callable: Global{"numpy", "dtype"}, Args: Tuple{}, State: int64(5)}},
		{"reference", "\x80\x02K\x05Q.", Persistent{int64(5)}},
		{"pop", "\x80\x02K\x01K\x020.", int64(1)},
	} {
		got, err := Load([]byte(c.in), DataGlobals())
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
	}
}

func TestFaults(t *testing.T) {
	for name, in := range map[string]string{
		"empty":                    "",
		"protocol 9":               "\x80\x09.",
		"no stop":                  "\x80\x02N",
		"two values":               "\x80\x02NN.",
		"unknown opcode":           "\x80\x02\xfe.",
		"persistent id of nothing": "\x80\x02Q.",
		"persistent id as text":    "Pa\n.",
		"os.system":                "\x80\x02cos\nsystem\n.",
		"posix system":             "cposix\nsystem\n(S'ls'\ntR.",
		"stack global":             "\x80\x04\x8c\x02os\x8c\x06system\x93.",
		"near name":                "\x80\x02cnumpy\nndarray2\n.",
		"extension":                "\x80\x02\x82\x01.",
		"name without end":         "\x80\x02c" + strings.Repeat("a", 10000),
		"string too long":          "\x80\x02T\xff\xff\xff\xff.",
		"bytes8 too long":          "\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\xff.",
		"long of 9 bytes":          "\x80\x02\x8a\x09123456789.",
		"memo missing":             "\x80\x02h\x01.",
		"memo of nothing":          "\x80\x02q\x01.",
		"mark as value":            "\x80\x02(\x85.",
		"no mark":                  "\x80\x02t.",
		"append to int":            "\x80\x02K\x01K\x01a.",
		"set on list":              "\x80\x02]K\x01K\x01s.",
		"key alone":                "\x80\x02}(K\x01u.",
		"call of no global":        "\x80\x02K\x01)R.",
		"call without args":        "\x80\x02cnumpy\ndtype\nK\x01R.",
		"state of a list":          "\x80\x02]K\x01b.",
		"bad utf-8":                "\x80\x02X\x01\x00\x00\x00\xff.",
		"bad int":                  "Iabc\n.",
		"bad float":                "Fabc\n.",
		"escaped string":           "S'a\\x00'\n.",
		"stack of marks":           "\x80\x02((((.",
	} {
		_, err := Load([]byte(in), DataGlobals())
		var f *Fault
		if !errors.As(err, &f) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAllocations loads a pickle that asks for 2 GiB in eleven bytes.
func TestAllocations(t *testing.T) {
	in := []byte("\x80\x02T\xff\xff\xff\x7fabc.")
	if n := testing.AllocsPerRun(10, func() { Load(in, nil) }); n > 20 {
		t.Errorf("%v allocations", n)
	}
	r := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			Load(in, nil)
		}
	})
	if r.AllocedBytesPerOp() > 4096 {
		t.Errorf("%d bytes allocated for %d", r.AllocedBytesPerOp(), len(in))
	}
}

func TestCoraMatrix(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(sharedtest.Path(t, "data/planetoid-cora"), "ind.cora.x"))
	if err != nil {
		t.Fatal(err)
	}
	v, err := Load(b, DataGlobals())
	if err != nil {
		t.Fatal(err)
	}
	m, err := CSRMatrix(v, "x")
	if err != nil {
		t.Fatal(err)
	}
	ptr, err := npy.Read[int64](m.Indptr, 1)
	if err != nil || m.Rows != 140 || m.Cols != 1433 || len(ptr) != 141 || ptr[140] != m.Data.Count() {
		t.Errorf("%d × %d, %d offsets, %v", m.Rows, m.Cols, len(ptr), err)
	}
	if _, err := Ndarray(v, "x"); err == nil {
		t.Error("a csr_matrix passed as an array")
	}
	if _, err := CSRMatrix(nil, "x"); err == nil {
		t.Error("None passed as a csr_matrix")
	}
}

// FuzzLoad checks that anything gives a value or a *Fault, and that arrays
// made of it stay inside their data.
func FuzzLoad(f *testing.F) {
	f.Add([]byte("\x80\x02ccollections\ndefaultdict\nc__builtin__\nlist\n\x85RK\x01]s."))
	f.Add([]byte("(lp0\nI5\naI01\naF2.5\na."))
	f.Add([]byte("\x80\x02cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\nK\x00\x85U\x01btR(K\x01K\x01\x85cnumpy\ndtype\n(U\x02f4K\x00K\x01tR(K\x03U\x01<NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89U\x04\x00\x00\x80\x3ftb."))
	f.Add([]byte("\x80\x04\x95\x05\x00\x00\x00\x00\x00\x00\x00\x8c\x02os\x8c\x06system\x93."))
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := Load(b, DataGlobals())
		if err != nil {
			var fault *Fault
			if !errors.As(err, &fault) || fault.At > len(b) || strings.Contains(err.Error(), "\n") {
				t.Fatalf("error %q", err)
			}
			return
		}
		if a, err := Ndarray(v, "x"); err == nil && a.Type.Numeric() {
			if a.Count() > int64(len(b)) {
				t.Fatalf("%d elements in %d bytes", a.Count(), len(b))
			}
			npy.Read[float32](a, 1)
		}
		CSRMatrix(v, "x")
	})
}
