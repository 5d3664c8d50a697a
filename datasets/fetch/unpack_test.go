package fetch

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"zerogcn/internal/usage"
)

// entry is a member of an archive.
type entry struct {
	name, body string
	mode       fs.FileMode // 0: a file
	link       string      // tar: where it leads
}

func zipOf(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, e := range entries {
		h := &zip.FileHeader{Name: e.name, Method: zip.Deflate}
		h.SetMode(e.mode | 0o644)
		w, err := z.CreateHeader(h)
		if err == nil && !strings.HasSuffix(e.name, "/") {
			_, err = io.WriteString(w, e.body)
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

func tarOf(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	g := gzip.NewWriter(&b)
	w := tar.NewWriter(g)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Mode: 0o644, Size: int64(len(e.body)), Typeflag: tar.TypeReg, Linkname: e.link}
		switch {
		case e.mode.IsDir():
			h.Typeflag = tar.TypeDir
		case e.mode&fs.ModeSymlink != 0:
			h.Typeflag = tar.TypeSymlink
		case e.mode&fs.ModeDevice != 0:
			h.Typeflag = tar.TypeBlock
		case e.mode&fs.ModeNamedPipe != 0:
			h.Typeflag = tar.TypeFifo
		case e.link != "":
			h.Typeflag = tar.TypeLink
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, e.body); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), g.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// unpackBytes writes an archive beside an empty folder and unpacks it there.
func unpackBytes(t testing.TB, ext string, archive []byte, limit int64) (root string, err error) {
	t.Helper()
	root = t.TempDir()
	file := filepath.Join(root, "archive"+ext)
	if err := os.WriteFile(file, archive, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(root, "in"), 0o755); err != nil {
		t.Fatal(err)
	}
	return root, Unpack(t.Context(), file, filepath.Join(root, "in"), limit, nil)
}

// onlyInside fails where anything but the archive and its folder was written, or
// where a link was.
func onlyInside(t testing.TB, root string) (total int64) {
	t.Helper()
	left, err := os.ReadDir(root)
	if err != nil || len(left) != 2 {
		t.Errorf("beside the folder: %v (%v)", left, err)
	}
	err = filepath.WalkDir(filepath.Join(root, "in"), func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		if !e.IsDir() && !info.Mode().IsRegular() {
			t.Errorf("%s is %v", path, info.Mode())
		}
		if !e.IsDir() {
			total += info.Size()
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	return total
}

func TestUnpack(t *testing.T) {
	entries := []entry{{name: "set/", mode: fs.ModeDir}, {name: "set/raw/edge.csv", body: "0,1\n"}, {name: "./set/empty"}, {name: "set/a..b", body: strings.Repeat("x", 3<<20)}}
	for ext, archive := range map[string][]byte{".zip": zipOf(t, entries...), ".tar.gz": tarOf(t, entries...), ".tgz": tarOf(t, entries...)} {
		root, err := unpackBytes(t, ext, archive, 4<<20)
		if err != nil {
			t.Errorf("%s: %v", ext, err)
			continue
		}
		if n := onlyInside(t, root); n != 4+3<<20 && n != 3<<20+4 {
			t.Errorf("%s: %d bytes", ext, n)
		}
		if b, err := os.ReadFile(filepath.Join(root, "in/set/raw/edge.csv")); err != nil || string(b) != "0,1\n" {
			t.Errorf("%s: %q, %v", ext, b, err)
		}
	}
}

// lie changes the size in a zip's directory, and in the header of its only
// member.
func lie(archive []byte, size uint32) []byte {
	b := bytes.Clone(archive)
	at := bytes.Index(b, []byte("PK\x01\x02"))
	binary.LittleEndian.PutUint32(b[at+24:], size)
	return b
}

// flip damages one byte.
func flip(archive []byte, at int) []byte {
	b := bytes.Clone(archive)
	b[at] ^= 0x10
	return b
}

func TestUnpackRefused(t *testing.T) {
	file := entry{name: "a", body: "0123456789"}
	link := entry{name: "out", mode: fs.ModeSymlink, body: "../..", link: ""}
	tarLink := entry{name: "out", mode: fs.ModeSymlink, link: "../.."}
	bomb := entry{name: "bomb", body: strings.Repeat("\x00", 8<<20)}
	for name, c := range map[string]struct {
		ext     string
		archive []byte
		says    string
	}{
		"zip up":          {".zip", zipOf(t, file, entry{name: "../evil", body: "x"}), `"../evil" would lie outside`},
		"zip up inside":   {".zip", zipOf(t, entry{name: "a/../../evil", body: "x"}), "outside"},
		"zip absolute":    {".zip", zipOf(t, entry{name: "/tmp/evil", body: "x"}), "outside"},
		"zip backslash":   {".zip", zipOf(t, entry{name: `..\evil`, body: "x"}), "outside"},
		"zip NUL":         {".zip", zipOf(t, entry{name: "a\x00b", body: "x"}), "outside"},
		"zip link":        {".zip", zipOf(t, link, entry{name: "out/evil", body: "x"}), "is a link or a device"},
		"zip device":      {".zip", zipOf(t, entry{name: "d", mode: fs.ModeDevice}), "is a link or a device"},
		"zip twice":       {".zip", zipOf(t, file, file), "is in it twice"},
		"zip same name":   {".zip", zipOf(t, file, entry{name: "./a", body: "y"}), "is in it twice"},
		"zip file as dir": {".zip", zipOf(t, file, entry{name: "a/b", body: "y"}), `member "a/b"`},
		"zip bomb":        {".zip", zipOf(t, bomb), "claim to expand to more than"},
		"zip of bombs":    {".zip", zipOf(t, entry{name: "1", body: bomb.body[:600<<10]}, entry{name: "2", body: bomb.body[:600<<10]}), "claim to expand to more than"},
		"zip lies":        {".zip", lie(zipOf(t, bomb), 1000), `member "bomb" is`},
		"zip lies up":     {".zip", lie(zipOf(t, file), 1000), `member "a" is`},
		"zip cut":         {".zip", zipOf(t, file)[:60], "not a zip archive"},
		"zip damaged":     {".zip", flip(zipOf(t, entry{name: "a", body: string(noise(50_000, 1))}), 20_000), "damaged"},
		"web page":        {".zip", []byte("\n<!DOCTYPE html><title>Sorry"), "it is a web page"},
		"empty":           {".zip", nil, "not a zip archive"},
		"tar up":          {".tar.gz", tarOf(t, entry{name: "../evil", body: "x"}), "outside"},
		"tar absolute":    {".tar.gz", tarOf(t, entry{name: "/evil", body: "x"}), "outside"},
		"tar symlink":     {".tar.gz", tarOf(t, tarLink, entry{name: "out/evil", body: "x"}), "is a link or a device"},
		"tar hard link":   {".tar.gz", tarOf(t, entry{name: "passwd", link: "/etc/passwd"}), "is a link or a device"},
		"tar device":      {".tar.gz", tarOf(t, entry{name: "sda", mode: fs.ModeDevice}), "is a link or a device"},
		"tar pipe":        {".tar.gz", tarOf(t, entry{name: "p", mode: fs.ModeNamedPipe}), "is a link or a device"},
		"tar bomb":        {".tar.gz", tarOf(t, bomb), "claim to expand to more than"},
		"tar cut":         {".tar.gz", tarOf(t, entry{name: "a", body: string(noise(50_000, 1))})[:30_000], "damaged"},
		"tar not gzip":    {".tar.gz", []byte("hello, world"), "not a gzip file"},
		"gzip not tar":    {".tar.gz", gzipped(t, strings.Repeat("hello", 1000)), "not a tar archive"},
	} {
		t.Run(name, func(t *testing.T) {
			root, err := unpackBytes(t, c.ext, c.archive, 1<<20)
			if err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "archive"+c.ext) {
				t.Errorf("error %v, want it to say %q and the file", err, c.says)
			}
			if !usage.Is(err) || strings.Contains(err.Error(), "\n") {
				t.Errorf("not a line on a fault of the input: %v", err)
			}
			if n := onlyInside(t, root); n > 1<<20 {
				t.Errorf("%d bytes unpacked", n)
			}
		})
	}
}

func gzipped(t testing.TB, s string) []byte {
	var b bytes.Buffer
	g := gzip.NewWriter(&b)
	io.WriteString(g, s)
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestUnpackCancelled(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "a.zip")
	os.WriteFile(file, zipOf(t, entry{name: "a", body: strings.Repeat("x", 5<<20)}), 0o644)
	ctx, cancel := context.WithCancel(t.Context())
	err := Unpack(ctx, file, dir, 1<<30, func(done, total int64) { cancel() })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// FuzzUnpack expands anything: nothing lies outside the folder or exceeds the
// limit, and no fault is a failure of ours.
func FuzzUnpack(f *testing.F) {
	file := entry{name: "d/a", body: "0123456789"}
	f.Add(true, zipOf(f, file, entry{name: "../x", body: "y"}))
	f.Add(true, zipOf(f, entry{name: "l", mode: fs.ModeSymlink, body: ".."}, entry{name: "l/x", body: "y"}))
	f.Add(true, lie(zipOf(f, file), 3))
	f.Add(false, tarOf(f, file, entry{name: "/x", body: "y"}))
	f.Add(false, tarOf(f, entry{name: "l", mode: fs.ModeSymlink, link: ".."}, entry{name: "l/x", body: "y"}))
	f.Add(false, gzipped(f, "hello"))
	f.Fuzz(func(t *testing.T, isZip bool, archive []byte) {
		ext := ".tar.gz"
		if isZip {
			ext = ".zip"
		}
		const limit = 1 << 16
		root, err := unpackBytes(t, ext, archive, limit)
		if err != nil && !usage.Is(err) {
			t.Errorf("error %v", err)
		}
		if n := onlyInside(t, root); n > limit {
			t.Errorf("%d bytes unpacked", n)
		}
	})
}
