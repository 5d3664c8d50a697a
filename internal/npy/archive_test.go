package npy

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"zerogcn/internal/sharedtest"
)

func archive(t testing.TB, method uint16, members map[string][]byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.npz")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z := zip.NewWriter(f)
	for name, b := range members {
		w, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: method})
		if err != nil {
			t.Fatal(err)
		}
		w.Write(b)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestArchive(t *testing.T) {
	big := make([]int64, 600_000)
	for i := range big {
		big[i] = int64(i) * 12345
	}
	members := map[string][]byte{
		"a.npy":      file(dict("<i8", "False", "(600000,)"), le(big)),
		"m.npy":      file(dict("|b1", "True", "(2, 3)"), []byte{1, 0, 1, 1, 0, 0}),
		"obj.npy":    file(dict("|O", "False", "()"), []byte("a pickle")),
		"readme.txt": []byte("hello"),
	}
	for _, method := range []uint16{zip.Store, zip.Deflate} {
		z, err := OpenArchive(archive(t, method, members))
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(z.Names()); got != "[a m obj]" {
			t.Errorf("names %s", got)
		}
		a, err := z.Array("a")
		if err != nil {
			t.Fatal(err)
		}
		got, err := Read[int64](a, 2)
		if err != nil || fmt.Sprint(got) != fmt.Sprint(big) {
			t.Errorf("method %d: values differ, %v", method, err)
		}
		m, err := z.Array("m")
		if err != nil {
			t.Fatal(err)
		}
		row := make([]uint8, 3)
		if err := ReadRows(m, 1, 2, row); err != nil || fmt.Sprint(row) != "[0 1 0]" {
			t.Errorf("method %d: row 1 is %v, %v", method, row, err)
		}
		if err := ReadRows(m, 0, 1, row); err != nil || fmt.Sprint(row) != "[1 1 0]" { // a step back
			t.Errorf("method %d: row 0 is %v, %v", method, row, err)
		}
		o, err := z.Array("obj")
		if err != nil {
			t.Fatal(err)
		}
		_, err = Read[int32](o, 1)
		checkFault(t, "object", err)
		_, err = z.Array("zzz")
		checkFault(t, "missing", err)
		if !errors.Is(err, ErrNoMember) {
			t.Error("not ErrNoMember")
		}
		z.Close()
	}
}

// TestArchiveCutAnywhere cuts and flips an archive at every byte: either an
// error names the file, or (a flip in a place that nothing reads, or in a
// stored member, which has no checksum in place) the read succeeds.
func TestArchiveCutAnywhere(t *testing.T) {
	path := archive(t, zip.Deflate, map[string][]byte{"a.npy": file(dict("<i4", "False", "(40,)"), le(make([]int32, 40)))})
	good, _ := os.ReadFile(path)
	try := func(name string, b []byte) error {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		z, err := OpenArchive(path)
		if err != nil {
			return err
		}
		defer z.Close()
		a, err := z.Array("a")
		if err != nil {
			return err
		}
		_, err = Read[int32](a, 1)
		return err
	}
	if err := try("whole", good); err != nil {
		t.Fatal(err)
	}
	for n := range len(good) {
		checkFault(t, fmt.Sprintf("cut at %d", n), try("cut", good[:n]))
		b := bytes.Clone(good)
		b[n] ^= 0x55
		if err := try("flip", b); err != nil {
			checkFault(t, fmt.Sprintf("flip at %d", n), err)
		}
	}
}

// TestBomb refuses members whose claimed size deflate cannot reach, and huge
// expansions.
func TestBomb(t *testing.T) {
	path := archive(t, zip.Deflate, map[string][]byte{"a.npy": file(dict("|u1", "False", "(100000,)"), make([]byte, 100_000))})
	z, err := OpenArchive(path)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	m := z.members["a"]
	m.UncompressedSize64 = 1 << 40
	_, err = z.Array("a")
	checkFault(t, "lie", err)
	m.CompressedSize64, m.UncompressedSize64 = 2<<20, 2<<30
	_, err = z.Array("a")
	checkFault(t, "bomb", err)
}

// TestSharedArchives reads every member of the real archives.
func TestSharedArchives(t *testing.T) {
	for _, rel := range []string{"data/npz-heterophilous", "data/npz-gnnbench", "data/npz-cora_ml"} {
		dir := sharedtest.Path(t, rel)
		files, _ := filepath.Glob(filepath.Join(dir, "*.npz"))
		for _, f := range files {
			z, err := OpenArchive(f)
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range z.Names() {
				a, err := z.Array(name)
				if err != nil {
					t.Fatal(err)
				}
				switch a.Type.Kind {
				case Object:
					continue
				case Text:
					_, err = a.Strings()
				default:
					_, err = Read[float64](a, 0)
				}
				if err != nil {
					t.Error(err)
				}
			}
			z.Close()
		}
	}
}
