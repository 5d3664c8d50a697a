package checkpoints

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"zerogcn/checkpoints/safetensors"
	"zerogcn/internal/sharedtest"
	"zerogcn/internal/usage"
)

// sample is a checkpoint with something in every field.
func sample(step int64) *Checkpoint {
	return &Checkpoint{
		Step: step, Epoch: 3, Position: 512, Seed: math.MaxUint64, GlobalBatch: 1024,
		Best:     &Best{Epoch: 2, Step: 77, Metric: "accuracy", Value: 0.1 + 0.2},
		Patience: 1,
		Counters: map[string]int64{"edges": math.MaxInt64, "rows": math.MinInt64},
		Values:   map[string]Float{"loss": 1.0 / 3, "nan": Float(math.NaN()), "inf": Float(math.Inf(-1)), "zero": Float(math.Copysign(0, -1))},
		Dataset:  Dataset{Source: "../data/cora", Name: "cora", Fingerprint: "abc"},
		Versions: Versions{Zerogcn: "0.1.0", Go: "go1.26", BLAS: "gonum"},
		Config:   json.RawMessage(`{"lr":5e-4,"note":"<&>","big":9007199254740993}`),
		Model:    []Tensor{{Name: "lin.weight", Shape: []int{2, 2}, Data: safetensors.F32{1, 2, 3, float32(step)}}},
		State: []Tensor{
			{Name: "adam/step", Data: safetensors.I64{step}},
			{Name: "adam/moment", Shape: []int{4}, Data: safetensors.F64{0.1, 0.2, 0.3, float64(step)}},
		},
		Split: []Tensor{{Name: "train", Shape: []int{3}, Data: safetensors.I64{0, 5, 7}}},
	}
}

// equal compares checkpoints, tensors regardless of their order and NaN equal
// to itself.
var equal = cmp.Options{
	cmpopts.SortSlices(func(a, b Tensor) bool { return a.Name < b.Name }),
	cmpopts.EquateEmpty(),
	cmp.Comparer(func(a, b Float) bool {
		return math.Float64bits(float64(a)) == math.Float64bits(float64(b)) || a != a && b != b
	}),
}

func mustSave(t testing.TB, dir string, c *Checkpoint) {
	t.Helper()
	if err := Save(t.Context(), dir, c); err != nil {
		t.Fatal(err)
	}
}

func mustLoad(t testing.TB, dir string) *Checkpoint {
	t.Helper()
	c, err := Load(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// wantUsage checks that err is one line of usage that names what it should.
func wantUsage(t testing.TB, err error, parts ...string) {
	t.Helper()
	if err == nil || !usage.Is(err) || strings.Contains(err.Error(), "\n") {
		t.Fatalf("got %v, want one line of usage", err)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("got %q, want %q in it", err, part)
		}
	}
}

func TestSaveLoad(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "c")
	for step := range int64(3) {
		want := sample(step)
		mustSave(t, dir, want)
		if d := cmp.Diff(want, mustLoad(t, dir), equal); d != "" {
			t.Errorf("step %d (-want +got):\n%s", step, d)
		}
	}
	mustSave(t, dir, &Checkpoint{})
	if d := cmp.Diff(&Checkpoint{}, mustLoad(t, dir), equal); d != "" {
		t.Errorf("empty checkpoint (-want +got):\n%s", d)
	}
	entries, err := os.ReadDir(filepath.Dir(dir))
	if err != nil || len(entries) != 1 {
		t.Errorf("left beside the checkpoint: %v, %v", entries, err)
	}
}

// TestExact: any numbers come back to the bit.
func TestExact(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "c")
	rapid.Check(t, func(t *rapid.T) {
		floats := rapid.OneOf(
			rapid.Float64(),
			rapid.Custom(func(t *rapid.T) float64 { return math.Float64frombits(rapid.Uint64().Draw(t, "bits")) }),
		)
		want := &Checkpoint{
			Step: rapid.Int64().Draw(t, "step"), Epoch: rapid.Int64().Draw(t, "epoch"), Position: rapid.Int64().Draw(t, "position"),
			Seed: rapid.Uint64().Draw(t, "seed"), GlobalBatch: rapid.Int64().Draw(t, "batch"), Patience: rapid.Int64().Draw(t, "patience"),
			Finished: rapid.Bool().Draw(t, "finished"),
			Counters: rapid.MapOfN(rapid.String(), rapid.Int64(), 0, 4).Draw(t, "counters"),
			Values:   rapid.MapOfN(rapid.String(), rapid.Map(floats, func(v float64) Float { return Float(v) }), 0, 4).Draw(t, "values"),
			Best:     &Best{Metric: rapid.String().Draw(t, "metric"), Value: Float(floats.Draw(t, "best"))},
			Dataset:  Dataset{Source: rapid.String().Draw(t, "source")},
			State:    []Tensor{{Name: "x", Shape: []int{2}, Data: safetensors.F64{rapid.Float64().Draw(t, "x"), 0}}},
		}
		if err := Save(context.Background(), dir, want); err != nil {
			t.Fatal(err)
		}
		got, err := Load(context.Background(), dir)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got, equal); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
	})
}

func TestSaveDeterministic(t *testing.T) {
	a, b := filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "b")
	mustSave(t, a, sample(1))
	mustSave(t, b, sample(1))
	for _, name := range []string{documentName, modelName, stateName, splitName} {
		x, errX := os.ReadFile(filepath.Join(a, name))
		y, errY := os.ReadFile(filepath.Join(b, name))
		if errX != nil || errY != nil || !bytes.Equal(x, y) {
			t.Errorf("%s differs between two saves (%v, %v)", name, errX, errY)
		}
	}
}

func TestSaveCancelled(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "c")
	mustSave(t, dir, sample(1))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Save(ctx, dir, sample(2)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	if _, err := Load(ctx, dir); !errors.Is(err, context.Canceled) {
		t.Errorf("Load: got %v, want context.Canceled", err)
	}
	if got := mustLoad(t, dir).Step; got != 1 {
		t.Errorf("step %d after a cancelled save, want 1", got)
	}
}

func TestSaveRefuses(t *testing.T) {
	dir := t.TempDir()
	keep := filepath.Join(dir, "thesis.tex")
	if err := os.WriteFile(keep, []byte("text"), 0o644); err != nil {
		t.Fatal(err)
	}
	wantUsage(t, Save(t.Context(), dir, sample(1)), dir, "holds thesis.tex")
	if _, err := os.Stat(keep); err != nil {
		t.Errorf("the file is gone: %v", err)
	}
	bad := sample(1)
	bad.State = append(bad.State, bad.State[0])
	if err := Save(t.Context(), filepath.Join(dir, "c"), bad); err == nil || !strings.Contains(err.Error(), `state.safetensors: safetensors: tensor "adam/step" is given twice`) {
		t.Errorf("got %v", err)
	}
	bad = sample(1)
	bad.Config = json.RawMessage("{")
	if err := Save(t.Context(), filepath.Join(dir, "c"), bad); err == nil || !strings.Contains(err.Error(), documentName) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "c")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a refused save left a folder: %v", err)
	}
}

// TestLoadGolden loads a file that PyTorch Geometric's model was saved to.
func TestLoadGolden(t *testing.T) {
	path := sharedtest.Path(t, "golden/checkpoints/graphsage/model.safetensors")
	c := mustLoad(t, path)
	if !c.WeightsOnly || len(c.Model) == 0 || c.State != nil {
		t.Fatalf("got %d tensors, WeightsOnly %v", len(c.Model), c.WeightsOnly)
	}
	dir := filepath.Join(t.TempDir(), "c")
	mustSave(t, dir, c)
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(dir, modelName)); err != nil || !bytes.Equal(got, want) {
		t.Errorf("saved again, the file has other bytes (%v)", err)
	}
	alone := mustLoad(t, filepath.Join(dir, modelName))
	if d := cmp.Diff(c, alone, equal); d != "" {
		t.Errorf("model.safetensors of the folder (-want +got):\n%s", d)
	}
}

// TestDamage changes and cuts every file of a checkpoint all over.
func TestDamage(t *testing.T) {
	good := filepath.Join(t.TempDir(), "good")
	mustSave(t, good, sample(1))
	for _, name := range []string{documentName, modelName, stateName, splitName} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "c")
			if err := os.CopyFS(dir, os.DirFS(good)); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, name)
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			check := func(damaged []byte, what string, at int) {
				t.Helper()
				if err := os.WriteFile(path, damaged, 0o644); err != nil {
					t.Fatal(err)
				}
				_, err := Load(t.Context(), dir)
				if err == nil || !usage.Is(err) || strings.Contains(err.Error(), "\n") || !strings.HasPrefix(err.Error(), path+": ") {
					t.Fatalf("%s byte %d: %v", what, at, err)
				}
			}
			const stride = 7 // TestDamagedDocument takes every byte
			for i := 0; i < len(text); i += stride {
				damaged := bytes.Clone(text)
				damaged[i] ^= 1
				check(damaged, "changed", i)
				check(text[:i], "cut at", i)
			}
			check(append(bytes.Clone(text), ' '), "added", len(text))
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			_, err = Load(t.Context(), dir)
			wantUsage(t, err, dir, name)
		})
	}
}

// TestDamagedDocument changes every bit of checkpoint.json.
func TestDamagedDocument(t *testing.T) {
	text, err := encodeDocument(sample(1), map[string]digest{modelName: {Bytes: 1, SHA256: "00"}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range text {
		for bit := range 8 {
			damaged := bytes.Clone(text)
			damaged[i] ^= 1 << bit
			if d, err := decodeDocument(damaged); err == nil {
				t.Fatalf("bit %d of byte %d changed: accepted as %+v", bit, i, d)
			}
		}
	}
}

func TestLoadRefuses(t *testing.T) {
	dir := t.TempDir()
	_, err := Load(t.Context(), filepath.Join(dir, "nosuch"))
	wantUsage(t, err, "no checkpoint at "+filepath.Join(dir, "nosuch"))

	_, err = Load(t.Context(), dir)
	wantUsage(t, err, dir+": holds no checkpoint.json")

	best := filepath.Join(dir, "checkpoints", "best")
	mustSave(t, best, sample(1))
	_, err = Load(t.Context(), dir)
	wantUsage(t, err, "did you mean "+best+"?")

	foreign := filepath.Join(dir, "weights.pt")
	os.WriteFile(foreign, []byte("PK\x03\x04 a zip archive of PyTorch"), 0o644)
	_, err = Load(t.Context(), foreign)
	wantUsage(t, err, foreign)

	os.WriteFile(filepath.Join(best, documentName), []byte(`{"step": 7}`), 0o644)
	_, err = Load(t.Context(), best)
	wantUsage(t, err, filepath.Join(best, documentName), "not the description of a checkpoint")

	os.WriteFile(filepath.Join(best, documentName), bytes.Repeat([]byte(" "), maxDocument+1), 0o644)
	_, err = Load(t.Context(), best)
	wantUsage(t, err, "more than 16777216 bytes")
}

// resum gives a text of checkpoint.json, changed by hand, its right checksum.
func resum(text []byte) []byte {
	text = bytes.Clone(text)
	copy(text[len(documentHead):], noChecksum)
	sum := sha256.Sum256(text)
	hex.Encode(text[len(documentHead):], sum[:])
	return text
}

func TestLoadNewer(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "c")
	mustSave(t, dir, sample(1))
	path := filepath.Join(dir, documentName)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	newer := resum(bytes.Replace(text, []byte(`"version": 1`), []byte(`"version": 2`), 1))
	if err := os.WriteFile(path, newer, 0o644); err != nil {
		t.Fatal(err)
	}
	_, err = Load(t.Context(), dir)
	wantUsage(t, err, path, "version 2 of the format; this program reads version 1")
}

// FuzzDocument: no text of checkpoint.json, its checksum being right, makes the
// reader panic, and what it accepts can be written again.
func FuzzDocument(f *testing.F) {
	text, err := encodeDocument(sample(1), map[string]digest{modelName: {Bytes: 1, SHA256: "00"}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text[len(documentHead)+checksumDigits:])
	f.Add([]byte("\"}\n"))
	f.Add([]byte("\",\"version\":1,\"config\":null,\"best\":{\"value\":\"NaN\"},\"files\":{\"../../etc/passwd\":{}}}"))
	f.Add([]byte("\",\"version\":1,\"values\":{\"a\":\"+Inf\",\"b\":1e999}}"))
	f.Fuzz(func(t *testing.T, tail []byte) {
		text := append(append([]byte(documentHead), noChecksum...), tail...)
		d, err := decodeDocument(resum(text))
		if err != nil {
			return
		}
		again, err := encodeDocument(&d.Checkpoint, d.Files)
		if err != nil {
			t.Fatalf("%q is accepted but cannot be written: %v", text, err)
		}
		if _, err := decodeDocument(again); err != nil {
			t.Errorf("%q is accepted, but not when written again: %v", text, err)
		}
	})
}

func ExampleSave() {
	dir, err := os.MkdirTemp("", "checkpoint")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	c := &Checkpoint{
		Step:  1200,
		Model: []Tensor{{Name: "lin.weight", Shape: []int{1, 2}, Data: safetensors.F32{0.5, -0.5}}},
	}
	path := filepath.Join(dir, "last")
	if err := Save(context.Background(), path, c); err != nil {
		fmt.Println(err)
		return
	}
	c, err = Load(context.Background(), path)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(c.Step, c.Model[0].Name, c.Model[0].Data)
	// Output: 1200 lin.weight [0.5 -0.5]
}
