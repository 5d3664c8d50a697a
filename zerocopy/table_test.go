package zerocopy

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"zerogcn/dtype"
	"zerogcn/internal/philox"
	"zerogcn/internal/usage"
)

var allTypes = []dtype.Type{dtype.Float32, dtype.Float16, dtype.BFloat16, dtype.Int8}

// pattern is the stored byte at a position of a test table: no two nearby rows
// are alike.
func pattern(i int) byte {
	x := uint64(i)*0x9E3779B97F4A7C15 + 1
	x ^= x >> 29
	return byte(x >> 17)
}

// newTestTable makes an anonymous table with pattern rows and distinct scales.
func newTestTable(t testing.TB, rows, width int, dt dtype.Type) *Table {
	t.Helper()
	tab, err := NewTable(rows, width, dt, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := tab.Fill(context.Background(), patternReader(tab.RowBytes())); err != nil {
		t.Fatal(err)
	}
	for i := range tab.Scales() {
		tab.Scales()[i] = testScale(i)
	}
	t.Cleanup(func() {
		if err := tab.Close(); err != nil {
			t.Error(err)
		}
	})
	return tab
}

func testScale(i int) float32 { return 0.25 + float32(i%97)/8 }

func patternReader(rowBytes int) func(lo, hi int, dst []byte) error {
	return func(lo, hi int, dst []byte) error {
		for i := range dst {
			dst[i] = pattern(lo*rowBytes + i)
		}
		return nil
	}
}

// wantRows is the plain-loop reference of a gather from a pattern table.
func wantRows(width int, dt dtype.Type, ids []int32) []float32 {
	out := make([]float32, len(ids)*width)
	row := make([]byte, width*dt.Size())
	for i, id := range ids {
		for b := range row {
			row[b] = pattern(int(id)*len(row) + b)
		}
		dt.Widen(out[i*width:(i+1)*width], row, testScale(int(id)))
	}
	return out
}

// diffBits returns the first value whose bits differ, or -1. A NaN equals any
// NaN where dt multiplies by a scale.
func diffBits(got, want []float32, dt dtype.Type) int {
	if len(got) != len(want) {
		return 0
	}
	for i := range want {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) && !(dt == dtype.Int8 && got[i] != got[i] && want[i] != want[i]) {
			return i
		}
	}
	return -1
}

// drawIDs gives n ids below rows, repeats allowed, from a counter-based stream.
func drawIDs(n, rows int, seed uint64) []int32 {
	ids := make([]int32, n)
	for i := range ids {
		r := philox.Block([4]uint32{uint32(i)}, [2]uint32{uint32(seed), uint32(seed >> 32)})
		ids[i] = int32(uint64(r[0]) * uint64(rows) >> 32)
	}
	return ids
}

func TestNewTable(t *testing.T) {
	for _, dt := range allTypes {
		for _, s := range []struct{ rows, width int }{{0, 0}, {0, 5}, {5, 0}, {1, 1}, {1000, 47}, {70000, 33}} {
			tab := newTestTable(t, s.rows, s.width, dt)
			if tab.Rows() != s.rows || tab.Width() != s.width || tab.Type() != dt || tab.RowBytes() != s.width*dt.Size() {
				t.Fatalf("%v: got %v", s, tab.shape)
			}
			if len(tab.Bytes()) != s.rows*s.width*dt.Size() || tab.Bytes() == nil {
				t.Fatalf("%v %v: %d bytes", s, dt, len(tab.Bytes()))
			}
			if dt == dtype.Int8 && s.width > 0 && len(tab.Scales()) != s.rows {
				t.Fatalf("%v: %d scales", s, len(tab.Scales()))
			}
			row := make([]float32, s.width)
			for _, id := range []int{0, s.rows / 2, s.rows - 1} {
				if id < 0 || id >= s.rows {
					continue
				}
				if err := tab.ReadRow(row, id); err != nil {
					t.Fatal(err)
				}
				if i := diffBits(row, wantRows(s.width, dt, []int32{int32(id)}), dt); i >= 0 {
					t.Fatalf("%v %v: row %d differs at value %d", s, dt, id, i)
				}
			}
		}
	}
}

func TestNewTableRefuses(t *testing.T) {
	for _, c := range []struct {
		rows, width int
		dt          dtype.Type
		want        string
	}{
		{-1, 4, dtype.Float32, "negative size"},
		{4, -1, dtype.Float32, "negative size"},
		{math.MaxInt32 + 1, 1, dtype.Int8, "ids are int32"},
		{1, maxWidth + 1, dtype.Float32, "at most 16777216"},
		{1, 1, dtype.Type(9), "unknown data type"},
		{math.MaxInt32, maxWidth, dtype.Float32, "dataset convert -dtype bf16"},
		{math.MaxInt32, maxWidth, dtype.BFloat16, "more memory"},
	} {
		tab, err := NewTable(c.rows, c.width, c.dt, Options{})
		if err == nil {
			tab.Close()
			t.Fatalf("%+v was accepted", c)
		}
		if !usage.Is(err) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestMemoryCheckNamesSizes(t *testing.T) {
	s := shape{111059956, 128, dtype.Float32}
	err := checkAvailable(s, func() (int64, bool) { return 12_300_000_000, true })
	const want = "a table of 111059956 rows × 128 float32 needs 56.9 GB of memory, but 12.3 GB are available: dataset convert -dtype bf16 makes it 28.4 GB"
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if err := checkAvailable(s, func() (int64, bool) { return 0, false }); err != nil {
		t.Errorf("unknown memory must not refuse: %v", err)
	}
}

func TestCgroupLeft(t *testing.T) {
	files := map[string]string{
		"/sys/fs/cgroup/a/b/memory.max":                 "max",
		"/sys/fs/cgroup/a/b/memory.current":             "50",
		"/sys/fs/cgroup/a/memory.max":                   "1000",
		"/sys/fs/cgroup/a/memory.current":               "700",
		"/sys/fs/cgroup/a/memory.stat":                  "anon 400\ninactive_file 200\n",
		"/sys/fs/cgroup/memory/m/memory.limit_in_bytes": "4000",
		"/sys/fs/cgroup/memory/m/memory.usage_in_bytes": "3900",
		"/sys/fs/cgroup/memory/memory.limit_in_bytes":   "9223372036854771712",
		"/sys/fs/cgroup/memory/memory.usage_in_bytes":   "3900",
	}
	read := func(name string) ([]byte, error) {
		if s, ok := files[name]; ok {
			return []byte(s), nil
		}
		return nil, os.ErrNotExist
	}
	for _, c := range []struct {
		self string
		want int64
		ok   bool
	}{
		{"0::/a/b\n", 500, true},
		{"12:cpu,memory:/m\n0::/\n", 100, true},
		{"0::/elsewhere\n", 0, false},
		{"garbage", 0, false},
	} {
		if got, ok := cgroupLeft([]byte(c.self), read); got != c.want || ok != c.ok {
			t.Errorf("%q: got %d, %v, want %d, %v", c.self, got, ok, c.want, c.ok)
		}
	}
}

func TestHeldBack(t *testing.T) {
	zones := func(present, managed int) []byte {
		return fmt.Appendf(nil, "Node 0, zone    DMA32\n  pages free     5\n        present  782336\n        managed  773108\nNode 0, zone   Normal\n        present  %d\n        managed  %d\n  pagesets\n", present, managed)
	}
	if got := heldBack(zones(32768000, 360448)); got != 32768000-360448+782336-773108 {
		t.Errorf("ballooned: %d pages", got)
	}
	if got := heldBack(zones(32768000, 32200000)); got != 0 {
		t.Errorf("ordinary: %d pages", got)
	}
	if got := heldBack([]byte("present\nmanaged x\n")); got != 0 {
		t.Errorf("malformed: %d pages", got)
	}
}

func TestParseList(t *testing.T) {
	for in, want := range map[string]int{"0": 1, "0-3": 4, "0-1,4": 3, "": 0, "x": 0, "0-x": 0, "0-99999999": 0} {
		if got := parseList(in); len(got) != want {
			t.Errorf("%q: %v", in, got)
		}
	}
}

func TestFromBytes(t *testing.T) {
	data := make([]byte, 1+10*3*4)
	for i := range data[1:] {
		data[1+i] = pattern(i)
	}
	// One byte off any alignment: rows are bytes, not floats.
	tab, err := FromBytes(data[1:], 10, 3, dtype.Float32, Options{Owner: &data})
	if err != nil {
		t.Fatal(err)
	}
	got := make([]float32, 3)
	if err := tab.ReadRow(got, 9); err != nil {
		t.Fatal(err)
	}
	if i := diffBits(got, wantRows(3, dtype.Float32, []int32{9}), dtype.Float32); i >= 0 {
		t.Fatalf("value %d differs", i)
	}
	if err := tab.Close(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		n, rows, width int
		dt             dtype.Type
		opt            Options
	}{
		{11, 3, 1, dtype.Float32, Options{}},
		{13, 3, 1, dtype.Float32, Options{}},
		{3, 3, 1, dtype.Int8, Options{}},
		{3, 3, 1, dtype.Int8, Options{Scales: make([]float32, 2)}},
		{12, 3, 1, dtype.Float32, Options{Scales: make([]float32, 3)}},
	} {
		if _, err := FromBytes(make([]byte, c.n), c.rows, c.width, c.dt, c.opt); !usage.Is(err) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestCloseOrder(t *testing.T) {
	tab, err := NewTable(10, 4, dtype.Float32, Options{Name: "x.npy"})
	if err != nil {
		t.Fatal(err)
	}
	g, err := NewHostGatherer(tab, GatherOptions{Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	if err := tab.Close(); !errors.Is(err, ErrInUse) {
		t.Fatalf("Close with an open gatherer: %v", err)
	}
	if err := g.Gather(context.Background(), []int32{3}, make([]float32, 4)); err != nil {
		t.Fatalf("a refused Close must change nothing: %v", err)
	}
	for range 2 {
		if err := g.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := g.Gather(context.Background(), []int32{3}, make([]float32, 4)); !errors.Is(err, ErrClosed) {
		t.Fatalf("gather after Close: %v", err)
	}
	for range 2 {
		if err := tab.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := NewHostGatherer(tab, GatherOptions{}); !errors.Is(err, ErrClosed) {
		t.Errorf("gatherer of a closed table: %v", err)
	}
	if _, err := tab.Row(0); !errors.Is(err, ErrClosed) {
		t.Errorf("Row of a closed table: %v", err)
	}
	if err := tab.ReadRow(make([]float32, 4), 0); !errors.Is(err, ErrClosed) {
		t.Errorf("ReadRow of a closed table: %v", err)
	}
	if err := tab.Fill(context.Background(), patternReader(16)); !errors.Is(err, ErrClosed) {
		t.Errorf("Fill of a closed table: %v", err)
	}
	if tab.Bytes() != nil {
		t.Error("Bytes of a closed table")
	}
}

func TestFillErrors(t *testing.T) {
	tab := newTestTable(t, 5<<20, 4, dtype.Float32) // 10 tiles
	boom := errors.New("boom")
	err := tab.Fill(context.Background(), func(lo, hi int, dst []byte) error {
		if lo > 0 {
			return boom
		}
		return nil
	})
	if !errors.Is(err, boom) {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	calls := 0
	tab.workers = 1
	err = tab.Fill(ctx, func(lo, hi int, dst []byte) error { calls++; cancel(); return nil })
	if !errors.Is(err, context.Canceled) || calls != 1 {
		t.Errorf("cancelled fill: %v after %d calls", err, calls)
	}
}

func TestFillFrom(t *testing.T) {
	const rows, width, offset = 3000, 1001, 77
	data := make([]byte, offset+rows*width*2)
	for i := range data[offset:] {
		data[offset+i] = pattern(i)
	}
	tab, err := NewTable(rows, width, dtype.BFloat16, Options{Name: "features.npy"})
	if err != nil {
		t.Fatal(err)
	}
	defer tab.Close()
	if err := tab.FillFrom(context.Background(), bytes.NewReader(data), offset); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(tab.Bytes(), data[offset:]) {
		t.Error("bytes differ")
	}
	err = tab.FillFrom(context.Background(), bytes.NewReader(data[:len(data)-1]), offset)
	if !usage.Is(err) || !strings.Contains(err.Error(), "features.npy") || !strings.Contains(err.Error(), "end at byte 6006076") {
		t.Errorf("short source: %v", err)
	}
	err = tab.FillFrom(context.Background(), failingReader{}, 0)
	if err == nil || usage.Is(err) {
		t.Errorf("failing source: %v", err)
	}
}

type failingReader struct{}

func (failingReader) ReadAt([]byte, int64) (int, error) { return 0, errors.New("disk on fire") }

var _ io.ReaderAt = failingReader{}

func TestOpenFile(t *testing.T) {
	const rows, width, offset = 5000, 25, 80
	path := filepath.Join(t.TempDir(), "f.npy")
	data := make([]byte, offset+rows*width*4)
	for i := range data[offset:] {
		data[offset+i] = pattern(i)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	tab, err := OpenFile(path, offset, rows, width, dtype.Float32, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer tab.Close()
	g, err := NewHostGatherer(tab, GatherOptions{Workers: 3})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	ids := drawIDs(4000, rows, 1)
	dst := make([]float32, len(ids)*width)
	if err := g.Gather(context.Background(), ids, dst); err != nil {
		t.Fatal(err)
	}
	if i := diffBits(dst, wantRows(width, dtype.Float32, ids), dtype.Float32); i >= 0 {
		t.Fatalf("value %d differs", i)
	}
	if err := tab.Fill(context.Background(), patternReader(100)); err == nil {
		t.Error("a mapped file was filled")
	}

	// The file shrinks under the mapping: errors, and the process lives.
	if err := os.Truncate(path, 8192); err != nil {
		t.Fatal(err)
	}
	if err := g.Gather(context.Background(), ids, dst); !errors.Is(err, ErrTruncated) {
		t.Errorf("gather from a truncated file: %v", err)
	}
	if err := tab.ReadRow(make([]float32, width), rows-1); !errors.Is(err, ErrTruncated) {
		t.Errorf("row of a truncated file: %v", err)
	}
	if err := g.Gather(context.Background(), []int32{0, 1}, dst[:2*width]); err != nil {
		t.Errorf("rows that are still there: %v", err)
	}

	for _, c := range []struct {
		offset      int64
		rows, width int
		want        string
	}{
		{0, 8192, 1, "truncated or its header is wrong"},
		{1 << 40, 1, 1, "truncated or its header is wrong"},
		{-4, 1, 1, "truncated or its header is wrong"},
		{0, math.MaxInt32, maxWidth, "truncated or its header is wrong"},
	} {
		if _, err := OpenFile(path, c.offset, c.rows, c.width, dtype.Float32, Options{}); !usage.Is(err) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if _, err := OpenFile(filepath.Join(t.TempDir(), "none"), 0, 1, 1, dtype.Float32, Options{}); !usage.Is(err) {
		t.Errorf("absent file: %v", err)
	}
	if _, err := OpenFile(t.TempDir(), 0, 1, 1, dtype.Float32, Options{}); !usage.Is(err) {
		t.Errorf("folder: %v", err)
	}
}

func TestScalesShareTheMapping(t *testing.T) {
	tab := newTestTable(t, 1000, 13, dtype.Int8)
	b := tab.mem.data
	at := len(b) - 4*1000
	tab.Scales()[7] = 3
	if got := math.Float32frombits(binary.LittleEndian.Uint32(b[at+28:])); got != 3 {
		t.Errorf("scale 7 in the mapping is %v", got)
	}
	if at%pageSize != 0 || at < len(tab.Bytes()) {
		t.Errorf("scales begin at byte %d", at)
	}
}

func TestNewTableCopiesScales(t *testing.T) {
	scales := []float32{1, 2, 3}
	tab, err := NewTable(3, 2, dtype.Int8, Options{Scales: scales})
	if err != nil {
		t.Fatal(err)
	}
	defer tab.Close()
	scales[1] = 7
	if got := tab.Scales(); got[0] != 1 || got[1] != 2 || got[2] != 3 {
		t.Errorf("scales %v", got)
	}
	for _, c := range []struct {
		dt dtype.Type
		n  int
	}{{dtype.Int8, 2}, {dtype.Float32, 3}} {
		if _, err := NewTable(3, 2, c.dt, Options{Scales: make([]float32, c.n)}); !usage.Is(err) {
			t.Errorf("%v with %d scales: %v", c.dt, c.n, err)
		}
	}
}

func TestFormatBytes(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 999: "999 B", 1000: "1 kB", 999_999: "1 MB", 56_862_697_472: "56.9 GB", math.MaxInt64: "9.22 EB"} {
		if got := formatBytes(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}
