package rundir_test

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"zerogcn/internal/usage"
	"zerogcn/trainer/rundir"
)

func TestCreateRefusesWhatIsThere(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a", "run")
	f, err := rundir.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := rundir.Open(path); !usage.Is(err) || !strings.Contains(err.Error(), "in use") {
		t.Errorf("a second process got %v", err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{rundir.CheckNew(path), second(rundir.Create(path))} {
		if !usage.Is(err) || !strings.Contains(err.Error(), "-resume "+path) {
			t.Errorf("a used folder gave %v", err)
		}
	}
	if err := rundir.CheckNew(filepath.Join(dir, "new")); err != nil {
		t.Error(err)
	}
	if _, err := rundir.Open(filepath.Join(dir, "none")); !usage.Is(err) {
		t.Errorf("a missing folder gave %v", err)
	}
	again, err := rundir.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}

func second(_ *rundir.Folder, err error) error { return err }

// CutMetrics keeps what a checkpoint covers, and drops a torn last line.
func TestCutMetrics(t *testing.T) {
	const all = `{"event":"step","epoch":1,"step":1,"loss":3}
{"event":"step","epoch":1,"step":2,"loss":2}
{"event":"epoch","epoch":1,"step":2,"loss":2.5}
{"event":"eval","epoch":1,"step":2,"metrics":{"valid":0.5}}
{"event":"step","epoch":2,"step":3,"loss":1}
{"event":"step","epoch":2,"st`
	lines := strings.SplitAfter(all, "\n")
	for _, c := range []struct {
		step int64
		mid  bool
		keep int
	}{{0, true, 0}, {1, true, 1}, {2, true, 2}, {2, false, 4}, {3, true, 5}, {9, true, 5}} {
		path := t.TempDir()
		if err := os.WriteFile(filepath.Join(path, rundir.MetricsName), []byte(all), 0o666); err != nil {
			t.Fatal(err)
		}
		f, err := rundir.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		points, err := f.CutMetrics(c.step, c.mid)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(f.Metrics(), "more\n"); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(path, rundir.MetricsName))
		if err != nil {
			t.Fatal(err)
		}
		if want := strings.Join(lines[:c.keep], "") + "more\n"; string(got) != want || len(points) != c.keep {
			t.Errorf("step %d, mid %t: %d points and\n%swant %d and\n%s", c.step, c.mid, len(points), got, c.keep, want)
		}
	}
}

func TestDefaultPath(t *testing.T) {
	t.Chdir(t.TempDir())
	at := time.Date(2026, 12, 1, 17, 4, 5, 0, time.UTC)
	first := rundir.DefaultPath(at, "/data/some set?x=1", "sage")
	if want := filepath.Join("runs", "20261201-170405-some-set-x-1-sage"); first != want {
		t.Errorf("path %s, want %s", first, want)
	}
	if err := os.MkdirAll(first, 0o777); err != nil {
		t.Fatal(err)
	}
	if next := rundir.DefaultPath(at, "/data/some set?x=1", "sage"); next != first+"-2" {
		t.Errorf("the second path is %s", next)
	}
}
