package safetensors

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"zerogcn/internal/sharedtest"
)

// file puts a header and data together.
func file(header string, data ...byte) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), data...)
}

func parse(b []byte) ([]Tensor, map[string]string, error) {
	f, err := NewFile(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return nil, nil, err
	}
	tensors, err := f.ReadAll()
	return tensors, f.Metadata(), err
}

func encode(t testing.TB, tensors []Tensor, metadata map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, tensors, metadata); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestPyTorch reads files that PyTorch's safetensors package wrote, compares
// them with their manifests, and writes them again to the same bytes.
func TestPyTorch(t *testing.T) {
	for _, model := range []string{"gat", "gcn", "graphsage", "graphsage_batchnorm"} {
		t.Run(model, func(t *testing.T) {
			dir := sharedtest.Path(t, "golden/checkpoints/"+model)
			f, err := Open(filepath.Join(dir, "model.safetensors"))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			tensors, err := f.ReadAll()
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(map[string]string{"format": "pt"}, f.Metadata()); d != "" {
				t.Errorf("metadata (-want +got):\n%s", d)
			}
			var manifest struct {
				Weights struct{ Tensors map[string][2]json.RawMessage }
			}
			text, err := os.ReadFile(filepath.Join(dir, "manifest.json"))
			if err == nil {
				err = json.Unmarshal(text, &manifest)
			}
			if err != nil {
				t.Fatal(err)
			}
			if len(tensors) != len(manifest.Weights.Tensors) {
				t.Errorf("%d tensors, the manifest has %d", len(tensors), len(manifest.Weights.Tensors))
			}
			for _, tensor := range tensors {
				want := manifest.Weights.Tensors[tensor.Name]
				names := map[DType]string{Float32: "float32", Int64: "int64"}
				shape, _ := json.Marshal(tensor.Shape)
				var wantType string
				json.Unmarshal(want[0], &wantType)
				var compact bytes.Buffer
				json.Compact(&compact, want[1])
				if names[tensor.Data.DType()] != wantType || string(shape) != compact.String() {
					t.Errorf("%s: %v %s, the manifest says %s %s", tensor.Name, tensor.Data.DType(), shape, want[0], &compact)
				}
				if values, ok := tensor.Float32s(); ok && slices.ContainsFunc(values, func(v float32) bool { return v != v || math.Abs(float64(v)) > 100 }) {
					t.Errorf("%s: values that no trained model has: %v", tensor.Name, values)
				}
			}
			want, err := os.ReadFile(filepath.Join(dir, "model.safetensors"))
			if err != nil {
				t.Fatal(err)
			}
			if got := encode(t, tensors, f.Metadata()); !bytes.Equal(got, want) {
				t.Errorf("written again: %d bytes %.300q\nPyTorch's: %d bytes %.300q", len(got), got, len(want), want)
			}
		})
	}
}

// TestReferenceBytes has files from the tests of the reference implementation.
func TestReferenceBytes(t *testing.T) {
	six := F32{0, 1, 2, 3, 4, 5}
	var raw [24]byte
	six.encode(raw[:], 0)
	tests := []struct {
		name     string
		tensors  []Tensor
		metadata map[string]string
		want     []byte
	}{
		{"empty", nil, nil, file("{}      ")},
		{"metadata", nil, map[string]string{"framework": "pt"}, file(`{"__metadata__":{"framework":"pt"}}     `)},
		{"aligned", []Tensor{{"attn.0", []int{1, 2, 3}, six}}, nil,
			file(`{"attn.0":{"dtype":"F32","shape":[1,2,3],"data_offsets":[0,24]}}`, raw[:]...)},
		{"padded", []Tensor{{"attn0", []int{1, 1, 2, 3}, six}}, nil,
			file(`{"attn0":{"dtype":"F32","shape":[1,1,2,3],"data_offsets":[0,24]}}       `, raw[:]...)},
	}
	for _, test := range tests {
		if got := encode(t, test.tensors, test.metadata); !bytes.Equal(got, test.want) {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
}

func TestLayout(t *testing.T) {
	tensors := []Tensor{
		{"b", []int{3}, U8{1, 2, 3}},
		{"z", nil, F32{1}},
		{"a", []int{1}, F32{2}},
		{"h", []int{1}, F16{0x3c00}},
		{"g", []int{1}, BF16{0x3f80}},
		{"i", []int{1}, I32{-1}},
		{"d", []int{1}, F64{0.5}},
		{"e", []int{2, 0, 5}, F32{}},
		{"n", []int{1}, I64{-1}},
	}
	b := encode(t, tensors, nil)
	f, err := NewFile(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, info := range f.Tensors() {
		got = append(got, info.Name)
		if at := f.h.data + info.Begin; at%int64(info.DType.Size()) != 0 {
			t.Errorf("%s begins at byte %d, which is not aligned", info.Name, at)
		}
	}
	if want := "n d a e z i g h b"; strings.Join(got, " ") != want {
		t.Errorf("order %v, want %s", got, want)
	}
	slices.Reverse(tensors)
	if !bytes.Equal(b, encode(t, tensors, nil)) {
		t.Error("the bytes depend on the order of the tensors given")
	}
}

func TestFloat32s(t *testing.T) {
	tests := []struct {
		data Data
		want []float32
	}{
		{F32{1.5, -2}, []float32{1.5, -2}},
		{F64{0.1, 1e300}, []float32{0.1, float32(math.Inf(1))}},
		{F16{0x3c00, 0xc000, 0x0001}, []float32{1, -2, 0x1p-24}},
		{BF16{0x3f80, 0xc000}, []float32{1, -2}},
		{I64{1}, nil},
		{I32{1}, nil},
		{U8{1}, nil},
	}
	for _, test := range tests {
		got, ok := Tensor{Data: test.data}.Float32s()
		if ok != (test.want != nil) || !slices.Equal(got, test.want) {
			t.Errorf("%v %v: got %v, %v; want %v", test.data.DType(), test.data, got, ok, test.want)
		}
	}
}

func TestRead(t *testing.T) {
	big := make(F32, chunk) // four chunks of bytes
	for i := range big {
		big[i] = float32(i)
	}
	path := filepath.Join(t.TempDir(), "x.safetensors")
	b := encode(t, []Tensor{{"big", []int{2, chunk / 2}, big}, {"one", nil, I64{7}}}, nil)
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	got, err := f.Read("big")
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(Tensor{"big", []int{2, chunk / 2}, big}, got); d != "" {
		t.Error(d)
	}
	if _, err := f.Read("nosuch"); err == nil || err.Error() != `safetensors: no tensor "nosuch"` {
		t.Errorf("Read(nosuch): %v", err)
	}
	// A file that shrinks after it was opened is an error, not zeros.
	if err := os.Truncate(path, int64(len(b)-1)); err != nil {
		t.Fatal(err)
	}
	if _, err := f.ReadAll(); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("after truncation: %v", err)
	}
	if _, err := Open(filepath.Dir(path)); err == nil {
		t.Error("Open of a folder gave no error")
	}
}

func TestWriteRefuses(t *testing.T) {
	tests := map[string][]Tensor{
		`tensor "x" is given twice`:                              {{"x", nil, F32{1}}, {"x", nil, F64{1}}},
		`"__metadata__" cannot be the name of a tensor`:          {{"__metadata__", nil, F32{1}}},
		`"\xff" cannot be the name of a tensor`:                  {{"\xff", nil, F32{1}}},
		`tensor "x" has no data`:                                 {{"x", nil, nil}},
		`tensor "x": shape [2 2] does not match its 3 elements`:  {{"x", []int{2, 2}, F32{1, 2, 3}}},
		`tensor "x": shape [-1 -1] does not match its 1 element`: {{"x", []int{-1, -1}, F32{1}}},
	}
	for want, tensors := range tests {
		var b bytes.Buffer
		err := Write(&b, tensors, nil)
		if err == nil || !strings.Contains(err.Error(), want) || b.Len() != 0 {
			t.Errorf("got %v and %d bytes written, want %s and none", err, b.Len(), want)
		}
	}
	if err := Write(io.Discard, nil, map[string]string{"k": "\xff"}); err == nil {
		t.Error("metadata of invalid UTF-8 was written")
	}
}

// TestBadFiles has one file per rule of the format, and what the message must say.
func TestBadFiles(t *testing.T) {
	ok := `{"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`
	four := []byte{0, 0, 128, 63}
	if _, _, err := parse(file(ok, four...)); err != nil {
		t.Fatalf("the file without fault: %v", err)
	}
	replaced := func(old, new string) []byte { return file(strings.Replace(ok, old, new, 1), four...) }
	tests := []struct {
		name string
		file []byte
		want string
	}{
		{"empty", nil, "0 bytes are no file of this format"},
		{"seven bytes", make([]byte, 7), "7 bytes are no file"},
		{"header of 2^63", append(bytes.Repeat([]byte{0xff}, 8), ok...), "above the limit"},
		{"header above the limit", binary.LittleEndian.AppendUint64(nil, MaxHeader+1), "above the limit"},
		{"header beyond the file", file(ok)[:20], "does not fit the file of 20"},
		{"zip archive", []byte("PK\x03\x04\x00\x00\x00\x00\x00\x00\x00\x00"), "does not fit the file of 12"},
		{"no header", file(""), "ends too early"},
		{"not UTF-8", file("{\"\xff\":1}"), "not valid UTF-8"},
		{"not an object", file("[]"), "header, byte 9: not a JSON object"},
		{"cut JSON", file(ok[:30]), "ends too early"},
		{"no closing brace", file(`{"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}`, four...), "ends too early"},
		{"text after", file(ok+" x", four...), "invalid character"},
		{"object after", file(ok+"{}", four...), "after the header's object"},
		{"twice", file(ok[:len(ok)-1]+","+ok[1:], four...), `tensor "x" occurs twice`},
		{"metadata twice", file(`{"__metadata__":{},"__metadata__":{}}`), "occurs twice"},
		{"metadata of numbers", file(`{"__metadata__":{"a":1}}`), "__metadata__"},
		{"dtype", replaced("F32", "F8_E4M3"), `tensor "x": data type "F8_E4M3" is not supported`},
		{"no shape", file(`{"x":{"dtype":"F32","data_offsets":[0,4]}}`, four...), "needs a shape"},
		{"no offsets", file(`{"x":{"dtype":"F32","shape":[1]}}`, four...), "two data_offsets"},
		{"three offsets", replaced("[0,4]", "[0,4,4]"), "two data_offsets"},
		{"offsets reversed", replaced("[0,4]", "[4,0]"), "are no range"},
		{"negative offset", replaced("[0,4]", "[-4,0]"), "are no range"},
		{"fraction", replaced("[0,4]", "[0,4.5]"), `tensor "x"`},
		{"shape too large", replaced("[1]", "[2]"), "does not take the 4 bytes"},
		{"shape overflows", replaced("[1]", "[4294967296,4294967296]"), "does not take the 4 bytes"},
		{"shape overflows to 4 bytes", replaced("[1]", "[9223372036854775807,9223372036854775807]"), "does not take the 4 bytes"},
		{"negative sizes", replaced("[1]", "[-1,-1]"), "does not take the 4 bytes"},
		{"2^62 elements", file(`{"x":{"dtype":"F32","shape":[1152921504606846976],"data_offsets":[0,4611686018427387904]}}`, four...), "the file is cut short"},
		{"cut data", file(ok, four[:3]...), "the file is cut short"},
		{"data after", file(ok, append(four, 0)...), "1 bytes of data belong to no tensor, at the end"},
		{"gap", file(`{"x":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}`, 0, 0), `1 bytes of data belong to no tensor, before "x"`},
		{"overlap", file(`{"x":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"y":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}}`, 0, 0, 0), `"y" overlaps`},
		{"same data", file(`{"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"y":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}`, 0), "overlaps"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, _, err := parse(test.file)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got %v, want %s", err, test.want)
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("more than one line: %v", err)
			}
		})
	}
}

// TestNoAllocationFromHeader: a header that promises much of a short file costs
// no memory.
func TestNoAllocationFromHeader(t *testing.T) {
	files := [][]byte{
		binary.LittleEndian.AppendUint64(nil, MaxHeader),
		file(`{"x":{"dtype":"F64","shape":[1000000000],"data_offsets":[0,8000000000]}}`),
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for _, f := range files {
		if _, _, err := parse(f); err == nil {
			t.Errorf("%q: no error", f)
		}
	}
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 1<<20 {
		t.Errorf("%d bytes allocated", grown)
	}
}

// drawTensors makes tensors of all types with distinct names.
func drawTensors(t *rapid.T) []Tensor {
	names := rapid.SliceOfNDistinct(rapid.String().Filter(func(s string) bool { return s != metadataKey }), 0, 6, rapid.ID).Draw(t, "names")
	tensors := make([]Tensor, len(names))
	for i, name := range names {
		shape := rapid.SliceOfN(rapid.IntRange(0, 4), 0, 3).Draw(t, "shape")
		n, _ := elements(shape, math.MaxInt64)
		data := newData(rapid.SampledFrom([]DType{Uint8, Float16, BFloat16, Int32, Float32, Float64, Int64}).Draw(t, "dtype"), int(n))
		raw := rapid.SliceOfN(rapid.Byte(), data.Len()*data.DType().Size(), -1).Draw(t, "bytes")
		data.decode(raw[:data.Len()*data.DType().Size()], 0)
		tensors[i] = Tensor{name, shape, data}
	}
	return tensors
}

// TestRoundTrip: any tensors, NaNs of every kind among them, come back bit for
// bit, and the bytes are the same when written again.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tensors := drawTensors(t)
		metadata := rapid.MapOfN(rapid.String(), rapid.String(), 0, 3).Draw(t, "metadata")
		var b bytes.Buffer
		if err := Write(&b, tensors, metadata); err != nil {
			t.Fatal(err)
		}
		got, gotMetadata, err := parse(b.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		if len(metadata)+len(gotMetadata) > 0 && !cmp.Equal(metadata, gotMetadata) {
			t.Errorf("metadata: %v, want %v", gotMetadata, metadata)
		}
		var again bytes.Buffer
		if err := Write(&again, got, gotMetadata); err != nil || !bytes.Equal(b.Bytes(), again.Bytes()) {
			t.Errorf("written again (%v): %q, first %q", err, &again, &b)
		}
		byName := map[string]Tensor{}
		for _, tensor := range got {
			byName[tensor.Name] = tensor
		}
		for _, want := range tensors {
			got := byName[want.Name]
			if got.Data.DType() != want.Data.DType() || !slices.Equal(got.Shape, want.Shape) || !bytes.Equal(rawBytes(got.Data), rawBytes(want.Data)) {
				t.Errorf("got %v, want %v", got, want)
			}
		}
	})
}

func rawBytes(d Data) []byte {
	b := make([]byte, d.Len()*d.DType().Size())
	d.encode(b, 0)
	return b
}

// FuzzParse: no bytes make the reader panic or allocate beyond the file's size,
// and what it accepts, it accepts again after Write.
func FuzzParse(f *testing.F) {
	f.Add(file("{}"))
	f.Add(file(`{"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`, 1, 2, 3, 4))
	f.Add(file(`{"__metadata__":{"format":"pt"},"a":{"dtype":"I64","shape":[],"data_offsets":[0,8]}}`, make([]byte, 8)...))
	f.Add(file(`{"x":{"dtype":"BF16","shape":[0,9],"data_offsets":[0,0]}}`))
	f.Add(file(`{"x":{"dtype":"U8","shape":[2],"data_offsets":[1,3]},"y":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}`, 1, 2, 3))
	f.Fuzz(func(t *testing.T, b []byte) {
		tensors, metadata, err := parse(b)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("more than one line: %v", err)
			}
			return
		}
		total := 0
		for _, tensor := range tensors {
			total += tensor.Data.Len() * tensor.Data.DType().Size()
		}
		if total > len(b) {
			t.Errorf("%d bytes of data from a file of %d", total, len(b))
		}
		again := encode(t, tensors, metadata)
		if _, _, err := parse(again); err != nil {
			t.Errorf("%q is accepted, but not when written again as %q: %v", b, again, err)
		}
	})
}

func ExampleWrite() {
	weights := []float32{1, 2, 3, 4}
	var b bytes.Buffer
	err := Write(&b, []Tensor{{Name: "lin.weight", Shape: []int{2, 2}, Data: F32(weights)}}, map[string]string{"format": "pt"})
	if err != nil {
		fmt.Println(err)
		return
	}
	f, err := NewFile(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		fmt.Println(err)
		return
	}
	t, err := f.Read("lin.weight")
	fmt.Println(t.Name, t.Shape, t.Data, err)
	// Output: lin.weight [2 2] [1 2 3 4] <nil>
}

func BenchmarkWrite(b *testing.B) {
	data := make(F32, 1<<20)
	b.SetBytes(int64(4 * len(data)))
	for b.Loop() {
		if err := Write(io.Discard, []Tensor{{"x", []int{len(data)}, data}}, nil); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRead(b *testing.B) {
	data := make(F32, 1<<20)
	text := encode(b, []Tensor{{"x", []int{len(data)}, data}}, nil)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, _, err := parse(text); err != nil {
			b.Fatal(err)
		}
	}
}
