package cli

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"zerogcn/internal/usage"
)

// options and newFlags are a command with a flag of every type.
type options struct {
	Dataset string
	Model   string
	Epochs  int
	LR      float64
	Decay   []float64
	Fanouts Fanouts
	Batch   Batch
	Cache   Size
	GPUs    GPUs
	Seed    uint64
	Every   time.Duration
	Det     bool
	JSON    bool
}

func defaults() options {
	return options{
		Dataset: "demo", Model: "sage", Epochs: 20, LR: 0.01, Decay: []float64{0},
		Fanouts: Fanouts{15, 10, 5}, Batch: 1024, Cache: Size{Auto: true}, GPUs: GPUs{Auto: true}, Every: time.Minute,
	}
}

func newFlags(o *options) *Flags {
	fs := NewFlags("train", "Train a graph neural network.")
	fs.Group("Data")
	fs.Var(String(&o.Dataset), "dataset", "`PATH` or name of the data set")
	fs.Group("Model")
	fs.Var(Choice(&o.Model, "sage", "gcn", "gat"), "model", "kind of network")
	fs.Group("Training")
	fs.Var(Positive(&o.Epochs), "epochs", "passes over the training nodes")
	fs.Var(Float(&o.LR, AboveZero), "lr", "learning rate")
	fs.Var(Floats(&o.Decay, ZeroOrMore), "weight-decay", "one value, or one per layer")
	fs.Var(FanoutList(&o.Fanouts), "fanouts", "neighbours to sample per hop, from the seeds outwards")
	fs.Var(BatchSize(&o.Batch), "batch", "seeds per step and GPU")
	fs.Var(Seed(&o.Seed), "seed", "seed of all randomness")
	fs.Var(Bool(&o.Det), "deterministic", "refuse kernels whose sums depend on timing")
	fs.Group("Machine")
	fs.Var(GPUSelection(&o.GPUs), "gpus", "devices to use")
	fs.Var(MemorySize(&o.Cache), "cache", "GPU memory for hot rows")
	fs.Group("Output")
	fs.Config("config")
	fs.Var(Duration(&o.Every, time.Second), "report-every", "time between two reports")
	fs.Var(Bool(&o.JSON), "json", "print the summary as JSON")
	fs.Invocation("json")
	return fs
}

func TestParseValues(t *testing.T) {
	o := defaults()
	fs := newFlags(&o)
	err := fs.Parse(strings.Fields("-dataset ogbn-products --model=gat -epochs 3 -lr 1e-3 -weight-decay 5e-4,0 " +
		"-fanouts full -batch full -cache 20% -gpus 2, -seed 0xff -deterministic -report-every 90s -epochs 4"))
	if err != nil {
		t.Fatal(err)
	}
	want := options{
		Dataset: "ogbn-products", Model: "gat", Epochs: 4, LR: 1e-3, Decay: []float64{5e-4, 0}, Cache: Size{Percent: 20},
		GPUs: GPUs{Devices: []int{2}}, Seed: 255, Every: 90 * time.Second, Det: true,
	}
	if d := cmp.Diff(want, o); d != "" {
		t.Errorf("options (-want +got):\n%s", d)
	}
	if got := fs.Origin("seed"); got != FromCommand {
		t.Errorf("Origin(seed) = %v, want FromCommand", got)
	}
	if got := fs.Origin("json"); got != Default {
		t.Errorf("Origin(json) = %v, want Default", got)
	}
}

// TestParseFaults has one command line per kind of mistake and the exact lines
// that it must give.
func TestParseFaults(t *testing.T) {
	tests := []struct {
		args string
		want []string
	}{
		{"-epochs -3 -fanouts a,b -modle gat", []string{
			"-epochs: -3 is less than 1",
			`-fanouts: "a" is not a whole number; want a count per hop from the seeds outwards, such as 15,10,5, or full`,
			"-modle: no such flag; did you mean -model?"}},
		{"-nothing-like-it 3 -lr 0", []string{
			"-nothing-like-it: no such flag; -help lists the flags",
			"-lr: 0 must be greater than 0"}},
		{"-detreministic stray", []string{
			"-detreministic: no such flag; did you mean -deterministic?",
			`"stray": unexpected argument; values are given as -flag value`}},
		{"-epoch -3", []string{"-epoch: no such flag; did you mean -epochs?"}},
		{"-model=gta", []string{`-model: "gta" is not one of sage, gcn, gat; did you mean gat?`}},
		{"-lr -epochs 0", []string{"-lr: needs a value, as in -lr X", "-epochs: 0 is less than 1"}},
		{"-dataset", []string{"-dataset: needs a value, as in -dataset PATH"}},
		{"stray -lr NaN - -5 -- -epochs", []string{
			`"stray": unexpected argument; values are given as -flag value`,
			`-lr: "NaN" is not a finite number`,
			`"-": unexpected argument; values are given as -flag value`,
			`"-5": unexpected argument; values are given as -flag value`,
			`"-epochs": unexpected argument; values are given as -flag value`}},
		{"-deterministic=perhaps", []string{`-deterministic: "perhaps" is neither true nor false`}},
		{"-weight-decay 5e-4,-1 -lr 1e999", []string{"-weight-decay: -1 is less than 0", `-lr: "1e999" is not a finite number`}},
		{"-seed -1", []string{`-seed: "-1" is not a whole number from 0 to 2^64-1`}},
		{"-batch 0", []string{"-batch: 0 is less than 1; want a number of items, or full"}},
		{"-cache 120% -gpus 0,0", []string{"-cache: 120% is not between 0% and 100%", "-gpus: device 0 is listed twice"}},
		{"-report-every 1ms", []string{"-report-every: 1ms is less than 1s"}},
		{"-report-every soon", []string{`-report-every: "soon" is not a duration such as 90s or 1h30m`}},
		{"-config nosuch.yaml -epochs x", []string{
			"configuration file: open nosuch.yaml: no such file or directory",
			`-epochs: "x" is not a whole number`}},
		{"-epochs 99999999999999999999", []string{"-epochs: 99999999999999999999 is too large"}},
	}
	for _, test := range tests {
		o := defaults()
		err := newFlags(&o).Parse(strings.Fields(test.args))
		if err == nil {
			t.Errorf("%s: no fault", test.args)
			continue
		}
		if d := cmp.Diff(test.want, strings.Split(err.Error(), "\n")); d != "" {
			t.Errorf("%s: faults (-want +got):\n%s", test.args, d)
		}
		if !usage.Is(err) {
			t.Errorf("%s: not an error of usage", test.args)
		}
	}
}

// TestFaultKeepsDefault: a refused value leaves the variable alone.
func TestFaultKeepsDefault(t *testing.T) {
	o := defaults()
	if err := newFlags(&o).Parse(strings.Fields("-fanouts 3,x -epochs 0 -cache 1XB -gpus 1,x")); err == nil {
		t.Fatal("no fault")
	}
	if d := cmp.Diff(defaults(), o); d != "" {
		t.Errorf("options changed (-want +got):\n%s", d)
	}
}

func TestCheck(t *testing.T) {
	o := defaults()
	fs := newFlags(&o)
	var calls []string
	fs.Check(func() error { calls = append(calls, "dataset"); return fmt.Errorf("%q is not known", o.Dataset) }, "dataset")
	fs.Check(func() error { calls = append(calls, "epochs"); return errors.New("never") }, "lr", "epochs")
	fs.Check(func() error { calls = append(calls, "all"); return nil })
	fs.Check(func() error { return Faults{errors.New("one"), errors.New("two")} }, "gpus")
	err := fs.Parse([]string{"-dataset", "nosuch", "-epochs", "0"})
	want := "-epochs: 0 is less than 1\n-dataset: \"nosuch\" is not known\none\ntwo"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if d := cmp.Diff([]string{"dataset", "all"}, calls); d != "" {
		t.Errorf("checks called (-want +got):\n%s", d)
	}
}

func TestHelp(t *testing.T) {
	o := defaults()
	fs := newFlags(&o)
	var out bytes.Buffer
	fs.Output = &out
	if err := fs.Parse([]string{"-nosuch", "-h"}); !errors.Is(err, flag.ErrHelp) {
		t.Fatalf("Parse = %v, want flag.ErrHelp", err)
	}
	golden(t, "help.txt", out.Bytes())
}

var rewrite = flag.Bool("rewrite", false, "rewrite the golden files in testdata")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *rewrite {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Errorf("%s (-want +got), -rewrite accepts it:\n%s", path, d)
	}
}
