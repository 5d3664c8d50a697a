package zerocopy

import (
	"os"
	"path/filepath"
	"testing"

	"zerogcn/dtype"
	"zerogcn/internal/usage"
)

// FuzzOpenFile opens files under sizes and offsets that fit them or do not, as
// a damaged header would give them. What opens can be read from end to end;
// what does not is an error of input.
func FuzzOpenFile(f *testing.F) {
	f.Add([]byte("0123456789abcdef"), int64(0), 2, 2, uint8(0))
	f.Add([]byte("0123456789abcdef"), int64(8), 2, 2, uint8(2))
	f.Add([]byte("0123456789abcdef"), int64(1), 15, 1, uint8(3))
	f.Add([]byte{}, int64(0), 0, 7, uint8(0))
	f.Add([]byte("x"), int64(-1), 1<<40, 1<<40, uint8(1))
	f.Add([]byte("x"), int64(1)<<62, 1<<31-1, 1<<24, uint8(0))
	f.Fuzz(func(t *testing.T, data []byte, offset int64, rows, width int, dt uint8) {
		path := filepath.Join(t.TempDir(), "f")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		opt := Options{}
		if dtype.Type(dt) == dtype.Int8 && rows >= 0 && rows <= len(data) {
			opt.Scales = make([]float32, rows)
		}
		tab, err := OpenFile(path, offset, rows, width, dtype.Type(dt), opt)
		if err != nil {
			if !usage.Is(err) {
				t.Fatalf("not marked as an error of input: %v", err)
			}
			return
		}
		defer tab.Close()
		if got, want := int64(len(tab.Bytes())), int64(len(data))-offset; got > want {
			t.Fatalf("%d bytes of a file that has %d behind the offset", got, want)
		}
		row := make([]float32, width)
		for _, i := range []int{0, rows - 1} {
			if i < 0 || i >= rows {
				continue
			}
			if err := tab.ReadRow(row, i); err != nil {
				t.Fatalf("row %d: %v", i, err)
			}
		}
	})
}
