package checkpoints

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"zerogcn/checkpoints/safetensors"
)

func mustSaveLast(t *testing.T, s *Store, c *Checkpoint) {
	t.Helper()
	if err := s.SaveLast(t.Context(), c); err != nil {
		t.Fatal(err)
	}
}

func wantSteps(t *testing.T, s *Store, want ...int64) {
	t.Helper()
	got, err := s.Steps()
	if err != nil {
		t.Fatal(err)
	}
	if !cmp.Equal(got, want) && len(got)+len(want) > 0 {
		t.Errorf("steps kept %v, want %v", got, want)
	}
	for _, step := range got {
		if c := mustLoad(t, s.StepDir(step)); c.Step != step {
			t.Errorf("%s holds step %d", s.StepDir(step), c.Step)
		}
	}
}

func TestStore(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run", "checkpoints")
	s := NewStore(dir, 0)
	for name, find := range map[string]func() (string, error){"last": s.Last, "best": s.Best} {
		if _, err := find(); !errors.Is(err, ErrNone) {
			t.Errorf("%s of an empty store: %v, want ErrNone", name, err)
		}
	}
	wantSteps(t, s)

	if err := s.SaveBest(t.Context(), sample(1)); err != nil {
		t.Fatal(err)
	}
	mustSaveLast(t, s, sample(1))
	mustSaveLast(t, s, sample(2))
	last, err := s.Last()
	if err != nil {
		t.Fatal(err)
	}
	best, err := s.Best()
	if err != nil {
		t.Fatal(err)
	}
	if l, b := mustLoad(t, last).Step, mustLoad(t, best).Step; l != 2 || b != 1 {
		t.Errorf("last is step %d, best is step %d; want 2 and 1", l, b)
	}
	wantSteps(t, s)
}

// TestStoreShares: equal files are one copy on disk, others are not.
func TestStoreShares(t *testing.T) {
	s := NewStore(t.TempDir(), 1)
	same := func(name string) bool {
		t.Helper()
		a, errA := os.Stat(filepath.Join(s.lastDir(), name))
		b, errB := os.Stat(filepath.Join(s.bestDir(), name))
		if errA != nil || errB != nil {
			t.Fatal(errA, errB)
		}
		return os.SameFile(a, b)
	}
	if err := s.SaveBest(t.Context(), sample(1)); err != nil {
		t.Fatal(err)
	}
	mustSaveLast(t, s, sample(1))
	for _, name := range []string{modelName, stateName, splitName} {
		if !same(name) {
			t.Errorf("%s is stored twice", name)
		}
	}
	mustSaveLast(t, s, sample(2))
	for name, want := range map[string]bool{modelName: false, stateName: false, splitName: true} {
		if same(name) != want {
			t.Errorf("%s of step 2 and of step 1: same file %v, want %v", name, !want, want)
		}
	}
	// A damaged neighbour is nothing to share with.
	if err := os.WriteFile(filepath.Join(s.bestDir(), documentName), []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(s.lastDir(), splitName)); err != nil {
		t.Fatal(err)
	}
	mustSaveLast(t, s, sample(3))
	if d := cmp.Diff(sample(3), mustLoad(t, s.lastDir()), equal); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestStoreKeeps(t *testing.T) {
	s := NewStore(t.TempDir(), 3)
	for step := int64(10); step <= 50; step += 10 {
		mustSaveLast(t, s, sample(step))
	}
	wantSteps(t, s, 30, 40, 50)

	// The run is taken back to step 30: what came after belongs to no run.
	mustSaveLast(t, s, sample(35))
	wantSteps(t, s, 30, 35)

	// A killed prune and a killed save leave nothing in the way.
	if err := os.Remove(filepath.Join(s.StepDir(30), documentName)); err != nil {
		t.Fatal(err)
	}
	wantSteps(t, s, 35)
	stale := filepath.Join(s.dir, ".step-000000000020.tmp-0123abcd")
	if err := os.Mkdir(stale, 0o755); err != nil {
		t.Fatal(err)
	}
	mustSaveLast(t, s, sample(30))
	wantSteps(t, s, 30)
	if _, err := os.Stat(stale); err == nil {
		t.Error("what a killed save left is still there")
	}

	// Keeping fewer from now on removes the rest.
	mustSaveLast(t, NewStore(s.dir, 1), sample(60))
	wantSteps(t, s)
}

// TestStoreKilled kills a process that saves without pause, at random instants.
// What is left must load, and best must not be behind what last says of it.
func TestStoreKilled(t *testing.T) {
	const variable = "CHECKPOINTS_TEST_STORE"
	if dir := os.Getenv(variable); dir != "" {
		saveForever(dir)
	}
	dir := t.TempDir()
	for range 15 {
		cmd := exec.Command(os.Args[0], "-test.run=^TestStoreKilled$")
		cmd.Env = append(os.Environ(), variable+"="+dir)
		ready, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(ready, make([]byte, 1)); err != nil {
			t.Fatalf("the saving process ended early: %v", err)
		}
		time.Sleep(time.Duration(rand.IntN(30_000)) * time.Microsecond)
		cmd.Process.Kill()
		cmd.Wait()

		s := NewStore(dir, 2)
		last, best := mustLoad(t, s.lastDir()), mustLoad(t, s.bestDir())
		if best.Step < last.Best.Step {
			t.Fatalf("last (step %d) says that step %d is the best, but best is step %d", last.Step, last.Best.Step, best.Step)
		}
		steps, err := s.Steps()
		if err != nil {
			t.Fatal(err)
		}
		for _, step := range steps {
			mustLoad(t, s.StepDir(step))
		}
	}
}

// saveForever is the process to kill; it goes on where the last one ended.
func saveForever(dir string) {
	s := NewStore(dir, 2)
	var step int64
	if last, err := s.Last(); err == nil {
		c, err := Load(context.Background(), last)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		step = c.Step
	}
	for first := true; ; first = false {
		step++
		c := sample(step)
		c.Best.Step = step - step%3
		if step%3 == 0 || first {
			c.Best.Step = step
			if err := s.SaveBest(context.Background(), c); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
		}
		if err := s.SaveLast(context.Background(), c); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		if first {
			fmt.Print("+")
		}
	}
}

// TestLoadMeetsSave: a reader gets one whole checkpoint while it is replaced
// over and over, never an error and never a mixture.
func TestLoadMeetsSave(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "c")
	mustSave(t, dir, sample(0))
	stop, saved := make(chan struct{}), make(chan error, 1)
	go func() {
		for step := int64(1); ; step++ {
			select {
			case <-stop:
				saved <- nil
				return
			default:
			}
			if err := Save(context.Background(), dir, sample(step)); err != nil {
				saved <- err
				return
			}
		}
	}()
	seen := map[int64]bool{}
	for deadline := time.Now().Add(300 * time.Millisecond); time.Now().Before(deadline); {
		c, err := Load(t.Context(), dir)
		if err != nil {
			t.Error(err)
			break
		}
		seen[c.Step] = true
		if d := cmp.Diff(sample(c.Step), c, equal); d != "" {
			t.Errorf("a mixture (-want +got):\n%s", d)
			break
		}
	}
	close(stop)
	if err := <-saved; err != nil {
		t.Fatal(err)
	}
	if len(seen) < 2 {
		t.Errorf("only steps %v were seen: the test met no replacement", seen)
	}
}

func BenchmarkSaveLast(b *testing.B) {
	c := sample(1)
	data := make([]float32, 1<<20)
	c.Model = []Tensor{{Name: "w", Shape: []int{len(data)}, Data: safetensors.F32(data)}}
	c.State = []Tensor{{Name: "m", Shape: []int{len(data)}, Data: safetensors.F32(data)}, {Name: "v", Shape: []int{len(data)}, Data: safetensors.F32(data)}}
	s := NewStore(b.TempDir(), 1)
	b.SetBytes(int64(3 * 4 * len(data)))
	for b.Loop() {
		data[0]++ // or the files would be linked
		if err := s.SaveLast(context.Background(), c); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLoad(b *testing.B) {
	c := sample(1)
	data := make([]float32, 1<<20)
	c.Model = []Tensor{{Name: "w", Shape: []int{len(data)}, Data: safetensors.F32(data)}}
	dir := filepath.Join(b.TempDir(), "c")
	mustSave(b, dir, c)
	b.SetBytes(int64(4 * len(data)))
	for b.Loop() {
		if _, err := Load(context.Background(), dir); err != nil {
			b.Fatal(err)
		}
	}
}
