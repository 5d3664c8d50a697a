package atomicfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// names lists a folder, hidden names included.
func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	list := []string{}
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

func wantNames(t *testing.T, dir string, want ...string) {
	t.Helper()
	if d := cmp.Diff(want, names(t, dir)); d != "" {
		t.Errorf("names in the folder (-want +got):\n%s", d)
	}
}

func wantText(t *testing.T, path, want string) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil || string(got) != want {
		t.Errorf("%s holds %q, %v; want %q", filepath.Base(path), got, err, want)
	}
}

func text(s string) func(io.Writer) error {
	return func(w io.Writer) error { _, err := io.WriteString(w, s); return err }
}

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x")
	for _, s := range []string{"one", "two", ""} {
		if err := Write(path, 0o644, text(s)); err != nil {
			t.Fatal(err)
		}
		wantText(t, path, s)
		wantNames(t, dir, "x")
	}
}

func TestWriteFails(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x")
	boom := errors.New("boom")
	fail := func(w io.Writer) error {
		io.WriteString(w, strings.Repeat("half", 1<<17))
		return boom
	}
	if err := Write(path, 0o644, fail); !errors.Is(err, boom) {
		t.Errorf("got %v, want boom", err)
	}
	if len(names(t, dir)) != 0 {
		t.Errorf("left behind: %v", names(t, dir))
	}
	if err := Write(path, 0o644, text("old")); err != nil {
		t.Fatal(err)
	}
	if err := Write(path, 0o644, fail); !errors.Is(err, boom) {
		t.Errorf("got %v, want boom", err)
	}
	wantText(t, path, "old")
	wantNames(t, dir, "x")
}

func TestCloseAfterCommit(t *testing.T) {
	dir := t.TempDir()
	f, err := Create(filepath.Join(dir, "x"), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(f, "data")
	if err := f.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Errorf("Close after Commit: %v", err)
	}
	if err := f.Commit(); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("second Commit: %v, want ErrClosed", err)
	}
	wantText(t, filepath.Join(dir, "x"), "data")
	info, _ := os.Stat(filepath.Join(dir, "x"))
	if info.Mode().Perm() != 0o600 {
		t.Errorf("permissions %v", info.Mode())
	}
}

// TestTargets: devices and folders are never replaced by a file; links stay
// and the file behind them is replaced.
func TestTargets(t *testing.T) {
	dir := t.TempDir()
	for _, bad := range []string{"/dev/null", dir} {
		if _, err := Create(bad, 0o644); err == nil || !strings.Contains(err.Error(), "not a regular file") {
			t.Errorf("Create(%s): %v", bad, err)
		}
	}
	if _, err := Create(filepath.Join(dir, "no", "x"), 0o644); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing folder: %v", err)
	}
	real, link := filepath.Join(dir, "real"), filepath.Join(dir, "link")
	os.WriteFile(real, []byte("old"), 0o644)
	os.Symlink("real", link)
	if err := Write(link, 0o644, text("new")); err != nil {
		t.Fatal(err)
	}
	wantText(t, real, "new")
	if info, _ := os.Lstat(link); info.Mode()&fs.ModeSymlink == 0 {
		t.Error("the link was replaced")
	}
}

// TestSweep: a new writer removes what dead writers left and leaves alone what
// living ones write and what is not its own.
func TestSweep(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x")
	os.WriteFile(filepath.Join(dir, ".x.tmp-0000dead"), nil, 0o644)
	os.MkdirAll(filepath.Join(dir, ".x.tmp-deadf01d", "sub"), 0o755)
	os.WriteFile(filepath.Join(dir, ".y.tmp-12345678"), nil, 0o644)
	living, err := Create(path, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	wantNames(t, dir, filepath.Base(living.Name()), ".y.tmp-12345678")
	if err := Write(path, 0o644, text("second")); err != nil {
		t.Fatal(err)
	}
	io.WriteString(living, "first")
	if err := living.Commit(); err != nil {
		t.Fatal(err)
	}
	wantText(t, path, "first")
	wantNames(t, dir, ".y.tmp-12345678", "x")

	// Sweep takes those of all targets, and nothing that only looks like one.
	for _, name := range []string{".z.tmp-123", ".z.tmp-1234567g", "z.tmp-12345678", ".tmp"} {
		os.WriteFile(filepath.Join(dir, name), nil, 0o644)
	}
	if living, err = Create(path, 0o644); err != nil {
		t.Fatal(err)
	}
	defer living.Close()
	Sweep(dir)
	wantNames(t, dir, ".tmp", filepath.Base(living.Name()), ".z.tmp-123", ".z.tmp-1234567g", "x", "z.tmp-12345678")
}

type writer func(path string, fill func(dir string) error) error

// writeInSteps is WriteDir on a file system that cannot exchange names.
func writeInSteps(path string, fill func(dir string) error) error {
	return writeDir(path, fill, func(a, b string) error { return unix.EINVAL })
}

var writers = map[string]writer{"exchange": WriteDir, "steps": writeInSteps}

// bothWays runs a test with the exchange of names and with the two renames
// that stand in for it.
func bothWays(t *testing.T, f func(t *testing.T, writeDir writer)) {
	for name, w := range writers {
		t.Run(name, func(t *testing.T) { f(t, w) })
	}
}

func fillWith(n int) func(dir string) error {
	return func(dir string) error {
		for _, name := range []string{"a", "b"} {
			if err := os.WriteFile(filepath.Join(dir, name), fmt.Append(nil, n), 0o644); err != nil {
				return err
			}
		}
		return nil
	}
}

func TestWriteDir(t *testing.T) {
	bothWays(t, func(t *testing.T, writeDir writer) {
		parent := filepath.Join(t.TempDir(), "made", "here")
		path := filepath.Join(parent, "d")
		for n := range 3 {
			if err := writeDir(path, fillWith(n)); err != nil {
				t.Fatal(err)
			}
			wantText(t, filepath.Join(path, "a"), fmt.Sprint(n))
			wantText(t, filepath.Join(path, "b"), fmt.Sprint(n))
			wantNames(t, parent, "d")
		}
		boom := errors.New("boom")
		err := writeDir(path, func(dir string) error {
			os.WriteFile(filepath.Join(dir, "a"), []byte("half"), 0o644)
			return boom
		})
		if !errors.Is(err, boom) {
			t.Errorf("got %v, want boom", err)
		}
		wantText(t, filepath.Join(path, "a"), "2")
		wantNames(t, parent, "d")
	})
}

func TestWriteDirRefusesFile(t *testing.T) {
	bothWays(t, func(t *testing.T, writeDir writer) {
		dir := t.TempDir()
		path := filepath.Join(dir, "d")
		os.WriteFile(path, []byte("a file"), 0o644)
		if err := writeDir(path, fillWith(1)); err == nil {
			t.Error("a file was replaced by a folder")
		}
		wantText(t, path, "a file")
		wantNames(t, dir, "d")
	})
}

// TestRecover has the folder in every state that a crash between the steps of
// a replacement can leave.
func TestRecover(t *testing.T) {
	make := func(t *testing.T, dir, name string, n int) {
		t.Helper()
		p := filepath.Join(dir, name)
		if err := os.Mkdir(p, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := fillWith(n)(p); err != nil {
			t.Fatal(err)
		}
	}
	tests := []struct {
		name    string
		folders map[string]int // name and contents before
		want    string         // contents of d afterwards, "" for no d
		left    []string
	}{
		{"nothing there", nil, "", []string{}},
		{"untouched", map[string]int{"d": 1}, "1", []string{"d"}},
		{"new one not complete", map[string]int{"d": 1, ".d.tmp-00000007": 2}, "1", []string{".d.tmp-00000007", "d"}},
		{"between the renames", map[string]int{".d.old": 1, ".d.tmp-00000007": 2}, "1", []string{".d.tmp-00000007", "d"}},
		{"before the old one is removed", map[string]int{".d.old": 1, "d": 2}, "2", []string{"d"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, n := range test.folders {
				make(t, dir, name, n)
			}
			if err := Recover(filepath.Join(dir, "d")); err != nil {
				t.Fatal(err)
			}
			if test.want != "" {
				wantText(t, filepath.Join(dir, "d", "a"), test.want)
			}
			wantNames(t, dir, test.left...)
			if err := WriteDir(filepath.Join(dir, "d"), fillWith(9)); err != nil {
				t.Fatal(err)
			}
			wantText(t, filepath.Join(dir, "d", "a"), "9")
			wantNames(t, dir, "d")
		})
	}
}

// TestKilledWriter kills a process that replaces a folder and a file without
// pause, at random instants, and looks at what it left.
func TestKilledWriter(t *testing.T) {
	if mode := os.Getenv("ATOMICFILE_TEST_WRITER"); mode != "" {
		writeForever(mode, os.Getenv("ATOMICFILE_TEST_DIR"))
	}
	bothWays(t, func(t *testing.T, writeDir writer) {
		mode := filepath.Base(t.Name())
		dir := t.TempDir()
		if err := errors.Join(writeDir(filepath.Join(dir, "d"), fillWith(0)), Write(filepath.Join(dir, "f"), 0o644, text("0"))); err != nil {
			t.Fatal(err)
		}
		for range 15 {
			cmd := exec.Command(os.Args[0], "-test.run=^TestKilledWriter$")
			cmd.Env = append(os.Environ(), "ATOMICFILE_TEST_WRITER="+mode, "ATOMICFILE_TEST_DIR="+dir)
			ready, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(ready, make([]byte, 1)); err != nil {
				t.Fatalf("the writer ended early: %v", err)
			}
			time.Sleep(time.Duration(rand.IntN(20_000)) * time.Microsecond)
			cmd.Process.Kill()
			cmd.Wait()

			path := filepath.Join(dir, "d")
			if err := Recover(path); err != nil {
				t.Fatal(err)
			}
			a, errA := os.ReadFile(filepath.Join(path, "a"))
			b, errB := os.ReadFile(filepath.Join(path, "b"))
			if errA != nil || errB != nil || string(a) != string(b) {
				t.Fatalf("the folder holds %q (%v) and %q (%v)", a, errA, b, errB)
			}
			f, err := os.ReadFile(filepath.Join(dir, "f"))
			if err != nil || len(f) == 0 || strings.Trim(string(f), string(f[:1])) != "" {
				t.Fatalf("the file holds %q, %v", f, err)
			}
		}
		if err := errors.Join(writeDir(filepath.Join(dir, "d"), fillWith(1)), Write(filepath.Join(dir, "f"), 0o644, text("1"))); err != nil {
			t.Fatal(err)
		}
		wantNames(t, dir, "d", "f")
	})
}

// writeForever is the process to kill.
func writeForever(mode, dir string) {
	fmt.Print("+")
	for n := 0; ; n++ {
		digit := fmt.Sprint(n % 10)
		err := errors.Join(
			writers[mode](filepath.Join(dir, "d"), fillWith(n)),
			Write(filepath.Join(dir, "f"), 0o644, text(strings.Repeat(digit, 10_000))))
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

// TestReadersMeetWriter: readers that hold the folder open read one version of
// it while a writer replaces it over and over.
func TestReadersMeetWriter(t *testing.T) {
	bothWays(t, func(t *testing.T, writeDir writer) {
		path := filepath.Join(t.TempDir(), "d")
		if err := writeDir(path, fillWith(0)); err != nil {
			t.Fatal(err)
		}
		stop, wrote := make(chan struct{}), make(chan error, 1)
		go func() {
			for n := 1; ; n++ {
				select {
				case <-stop:
					wrote <- nil
					return
				default:
				}
				if err := writeDir(path, fillWith(n)); err != nil {
					wrote <- err
					return
				}
			}
		}()
		whole := 0
		for deadline := time.Now().Add(200 * time.Millisecond); time.Now().Before(deadline); {
			if err := Recover(path); err != nil {
				t.Fatal(err)
			}
			root, err := os.OpenRoot(path)
			if errors.Is(err, fs.ErrNotExist) {
				continue // between the two renames
			} else if err != nil {
				t.Fatal(err)
			}
			a, errA := root.ReadFile("a")
			b, errB := root.ReadFile("b")
			root.Close()
			if errors.Is(errA, fs.ErrNotExist) || errors.Is(errB, fs.ErrNotExist) {
				continue // replaced and removed while it was read
			}
			if errA != nil || errB != nil || string(a) != string(b) {
				t.Fatalf("read %q (%v) and %q (%v) of one folder", a, errA, b, errB)
			}
			whole++
		}
		close(stop)
		if err := <-wrote; err != nil {
			t.Fatal(err)
		}
		if whole == 0 {
			t.Error("no reader ever got a whole folder")
		}
	})
}
