// Package golden reads the reference values of PyTorch Geometric that lie in
// ../shared/golden, for tests. See the README there for the format.
package golden

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"

	"zerogcn/internal/npy"
	"zerogcn/internal/sharedtest"
)

// Tolerances for float32 results, relative to the largest wanted magnitude.
const (
	Forward = 1e-5
	Grad    = 1e-4
)

// Case is one folder of golden values.
type Case struct {
	Name   string
	dir    string
	Inputs map[string]Entry `json:"inputs"`
	Params map[string]Entry `json:"params"`
	Expect map[string]Entry `json:"expect"`
	values map[string]json.RawMessage
}

// Entry names an array file.
type Entry struct {
	File  string `json:"file"`
	Shape []int  `json:"shape"`
}

// Load reads a case's manifest. The test is skipped where the golden files are
// absent.
func Load(t testing.TB, name string) *Case {
	t.Helper()
	c := &Case{Name: name, dir: sharedtest.Path(t, "golden")}
	b, err := os.ReadFile(filepath.Join(c.dir, name, "manifest.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, c); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	plain := struct {
		Values map[string]json.RawMessage `json:"values"`
	}{}
	if err := json.Unmarshal(b, &plain); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	c.values = plain.Values
	return c
}

// Value returns a plain number of the manifest.
func (c *Case) Value(t testing.TB, key string) float64 {
	t.Helper()
	var v float64
	if err := json.Unmarshal(c.values[key], &v); err != nil {
		t.Fatalf("%s: value %s: %v", c.Name, key, err)
	}
	return v
}

// Floats reads an entry as float64.
func (c *Case) Floats(t testing.TB, e Entry) []float64 {
	t.Helper()
	return read[float64](t, c, e)
}

// Float32s reads an entry as float32.
func (c *Case) Float32s(t testing.TB, e Entry) []float32 {
	t.Helper()
	x := c.Floats(t, e)
	y := make([]float32, len(x))
	for i, v := range x {
		y[i] = float32(v)
	}
	return y
}

// Ints reads an entry of integers.
func (c *Case) Ints(t testing.TB, e Entry) []int64 {
	t.Helper()
	return read[int64](t, c, e)
}

func read[T npy.Element](t testing.TB, c *Case, e Entry) []T {
	t.Helper()
	if e.File == "" {
		t.Fatalf("%s: no such array in the manifest", c.Name)
	}
	a, err := npy.Open(filepath.Join(c.dir, e.File))
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	x, err := npy.Read[T](a, 0)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// Check compares got with want: max|got-want| <= tol × max|want|.
func Check(t testing.TB, what string, got []float32, want []float64, tol float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %d values, want %d", what, len(got), len(want))
		return
	}
	var worst, top float64
	at := 0
	for i, w := range want {
		d := math.Abs(float64(got[i]) - w)
		if !(d <= worst) {
			worst, at = d, i
		}
		top = max(top, math.Abs(w))
	}
	if !(worst <= tol*top) {
		t.Errorf("%s: element %d is %v, want %v: off by %.2g of the largest magnitude %.3g (tolerance %g)",
			what, at, got[at], want[at], worst/top, top, tol)
	}
}
