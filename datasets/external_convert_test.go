package datasets

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"zerogcn/dtype"
	"zerogcn/graph"
)

// conversion is what a test converts a set with.
type conversion struct {
	graph GraphOptions
	order Order
	dtype dtype.Type
}

// convertIn opens a set with a bound, converts it and writes it to out.
func convertIn(ctx context.Context, name, out string, s spill, c conversion) (n Narrowing, err error) {
	d, err := Open(ctx, name, Options{})
	if err != nil {
		return n, err
	}
	d.spill = s
	defer func() { err = errors.Join(err, d.Close()) }()
	next := func(t *Dataset, e error) bool {
		if err = e; e == nil {
			d = t
		}
		return e == nil
	}
	if !next(TransformGraph(ctx, d, c.graph)) {
		return n, err
	}
	if c.order != Original {
		order, err := DegreeOrder(ctx, d, 0)
		if err != nil {
			return n, err
		}
		if !next(Reorder(ctx, d, order, c.order, 0)) {
			return n, err
		}
	}
	if !next(ConvertFeatures(ctx, d, c.dtype, 0)) {
		return n, err
	}
	if err := Write(ctx, out, d, 0); err != nil {
		return n, err
	}
	n, _ = d.Features.Narrowing()
	return n, nil
}

// sameFolders compares two folders byte for byte.
func sameFolders(t *testing.T, a, b string) {
	t.Helper()
	entries, err := os.ReadDir(a)
	if err != nil {
		t.Fatal(err)
	}
	others, err := os.ReadDir(b)
	if err != nil || len(others) != len(entries) {
		t.Errorf("%d files and %d (%v)", len(entries), len(others), err)
	}
	for _, e := range entries {
		x, err1 := os.ReadFile(filepath.Join(a, e.Name()))
		y, err2 := os.ReadFile(filepath.Join(b, e.Name()))
		if err := errors.Join(err1, err2); err != nil || !bytes.Equal(x, y) {
			t.Errorf("%s: %d bytes and %d, which differ (%v)", e.Name(), len(x), len(y), err)
		}
	}
}

// TestExternalConvert converts a native set with room for a tenth of it: the
// folder is the same as without a bound, and nothing else is left.
func TestExternalConvert(t *testing.T) {
	root := t.TempDir()
	set := filepath.Join(root, "set")
	d, err := Open(t.Context(), "synthetic:products?scale=0.003&dim=24", Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := Write(t.Context(), set, d, 0); err != nil {
		t.Fatal(err)
	}
	for i, c := range []conversion{
		{GraphOptions{Symmetrize: true, SelfLoops: AddSelfLoops}, ByDegree, dtype.Float16},
		{GraphOptions{SelfLoops: RemoveSelfLoops}, ByDegree, dtype.Int8},
		{GraphOptions{Deduplicate: true}, Original, dtype.BFloat16},
	} {
		free, bound := filepath.Join(root, fmt.Sprintf("free%d", i)), filepath.Join(root, fmt.Sprintf("bound%d", i))
		n1, err := convertIn(t.Context(), set, free, spill{}, c)
		if err != nil {
			t.Fatal(err)
		}
		scratch := filepath.Join(root, "scratch") // made when it is needed
		n2, err := convertIn(t.Context(), set, bound, spill{1 << 20, scratch}, c)
		if err != nil {
			t.Fatal(err)
		}
		sameFolders(t, free, bound)
		if n1 != n2 || n1.Values == 0 {
			t.Errorf("%+v: lost %v and %v", c, n1, n2)
		}
		if left, err := os.ReadDir(scratch); err != nil || len(left) > 0 {
			t.Errorf("left behind: %v, %v", left, err)
		}
		v, err := Open(t.Context(), bound, Options{Memory: MinMemory, Scratch: scratch})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(Verify(t.Context(), v, 0), v.Close()); err != nil {
			t.Error(err)
		}
	}
}

// TestExternalInterrupted cancels a bounded conversion at many moments: no folder
// and no file is left, and the next call succeeds.
func TestExternalInterrupted(t *testing.T) {
	root := t.TempDir()
	set, out, scratch := filepath.Join(root, "set"), filepath.Join(root, "out"), filepath.Join(root, "scratch")
	d, err := Open(t.Context(), "synthetic:products?scale=0.003&dim=24", Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := Write(t.Context(), set, d, 0); err != nil {
		t.Fatal(err)
	}
	c := conversion{GraphOptions{Symmetrize: true}, ByDegree, dtype.Float16}
	if err := os.Mkdir(scratch, 0o755); err != nil {
		t.Fatal(err)
	}
	interrupted := 0
	for after := 5 * time.Millisecond; ; after *= 3 {
		ctx, cancel := context.WithTimeout(t.Context(), after)
		_, err := convertIn(ctx, set, out, spill{1 << 20, scratch}, c)
		cancel()
		if left, lerr := os.ReadDir(scratch); lerr != nil || len(left) > 0 {
			t.Errorf("left behind: %v, %v", left, lerr)
		}
		if err == nil {
			break
		}
		interrupted++
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		if left, _ := os.ReadDir(root); len(left) != 2 {
			t.Errorf("left behind: %v", left)
		}
	}
	if interrupted == 0 {
		t.Error("never interrupted")
	}
}

func TestNarrowing(t *testing.T) {
	x := []float32{1, 2, 3, 4, 1 + 1.0/512, -8}
	f, err := DenseFeatures(x, 3, 2)
	if err != nil {
		t.Fatal(err)
	}
	g, err := graph.Builder{NumNodes: 3}.FromEdges(t.Context(), []int32{0}, []int32{1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	d, err := New(t.Context(), Parts{Name: "x", Task: Multiclass, Graph: g, Features: f}, 0)
	if err != nil {
		t.Fatal(err)
	}
	d, err = ConvertFeatures(t.Context(), d, dtype.BFloat16, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := d.Features.Narrowing(); ok {
		t.Error("known before anything was converted")
	}
	if err := Write(t.Context(), filepath.Join(t.TempDir(), "out"), d, 0); err != nil {
		t.Fatal(err)
	}
	got, _ := d.Features.Narrowing()
	square := 1.0 + 4 + 9 + 16 + float64(x[4])*float64(x[4]) + 64
	want := Narrowing{Values: 6, Largest: 1.0 / 512, Row: 2, Column: 0, Relative: math.Sqrt(1.0 / 512 / 512 / square)}
	if got != want {
		t.Errorf("lost %+v, want %+v", got, want)
	}
}

// childVariable makes TestExternalMemory the process that it measures.
const childVariable = "ZEROGCN_TEST_CONVERT"

// TestExternalMemory converts a set in a process of its own, whose anonymous memory
// it watches: it must stay far below what the edges alone would take.
func TestExternalMemory(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector takes more memory than the conversion")
	}
	const memory = 8 << 20
	c := conversion{GraphOptions{Symmetrize: true}, ByDegree, dtype.Float16}
	if set := os.Getenv(childVariable); set != "" {
		peak := make(chan int64)
		done := make(chan struct{})
		go func() { peak <- watchMemory(done) }()
		_, err := convertIn(t.Context(), set, set+".out", spill{memory, filepath.Dir(set)}, c)
		close(done)
		fmt.Printf("PEAK %d\n", <-peak)
		if err != nil {
			t.Fatal(err)
		}
		return
	}
	set := filepath.Join(t.TempDir(), "set")
	d, err := Open(t.Context(), "synthetic:products?nodes=100000&edges=3000000&dim=128", Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := Write(t.Context(), set, d, 0); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestExternalMemory$", "-test.count=1")
	cmd.Env = append(os.Environ(), childVariable+"="+set, "GOMEMLIMIT=16MiB")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	_, rest, ok := strings.Cut(string(out), "PEAK ")
	text, _, _ := strings.Cut(rest, "\n")
	peak, err := strconv.ParseInt(text, 10, 64)
	if !ok || err != nil || peak == 0 {
		t.Fatalf("no figure in %q", out)
	}
	// Held in memory: the symmetric graph before and after the renumbering.
	sym := 2 * 4 * 2 * d.NumEdges
	t.Logf("peak %s for a graph of %s and features of %s", SizeText(peak), SizeText(sym/2), SizeText(100000*128*4))
	if peak > sym*3/4 {
		t.Errorf("%s of anonymous memory at the peak, with a bound of %s and %s of edges", SizeText(peak), SizeText(memory), SizeText(sym))
	}
}

// watchMemory returns the largest anonymous memory of this process until done.
func watchMemory(done <-chan struct{}) (peak int64) {
	for {
		text, err := os.ReadFile("/proc/self/status")
		if err != nil {
			return 0
		}
		_, rest, _ := strings.Cut(string(text), "RssAnon:")
		if f := strings.Fields(rest); len(f) > 0 {
			kib, _ := strconv.ParseInt(f[0], 10, 64)
			peak = max(peak, kib<<10)
		}
		select {
		case <-done:
			return peak
		case <-time.After(2 * time.Millisecond):
		}
	}
}
