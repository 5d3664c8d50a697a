package report_test

import (
	"bytes"
	"encoding/json"
	"image/png"
	"strings"
	"testing"
	"time"

	"zerogcn/trainer"
	"zerogcn/trainer/report"
)

// events are those of a run of three epochs with two batches each.
func events() []trainer.Event {
	es := []trainer.Event{trainer.RunStart{Dataset: "demo", Model: "sage", Device: "cpu", Nodes: 12000, Edges: 179548, Features: 64, Classes: 8,
		Train: 7200, Valid: 2400, Test: 2400, Parameters: 17544, Epochs: 3, Batches: 2, Metric: "accuracy", Seed: 7},
		trainer.Note{Warning: true, Text: "odd"}}
	for e := 1; e <= 3; e++ {
		for b := 1; b <= 2; b++ {
			es = append(es, trainer.Step{Epoch: e, Batch: b, Batches: 2, Step: int64(2*e + b - 2), Loss: 1 / float64(e), LR: 0.01, Seeds: 10, Nodes: 100, Edges: 500,
				Seconds: trainer.StageSeconds{Sample: 0.1, Compute: 0.2}})
		}
		es = append(es, trainer.Epoch{Epoch: e, Step: int64(2 * e), Loss: 1 / float64(e), LR: 0.01, Elapsed: time.Second},
			trainer.Eval{Epoch: e, Step: int64(2 * e), Train: 0.3 * float64(e), Valid: 0.25 * float64(e), Test: 0.2 * float64(e), Best: e != 3, BestEpoch: min(e, 2), Elapsed: time.Second})
	}
	return append(es, trainer.Checkpoint{Kind: "last", Path: "r/checkpoints/last", Step: 6},
		trainer.RunEnd{Summary: trainer.Summary{Epochs: 3, BestEpoch: 2, Valid: 0.5, Test: 0.4, SecondsPerEpoch: 1, SecondsTotal: 6, CPUSeconds: 11}})
}

func play(t *testing.T, l trainer.Listener, es []trainer.Event) {
	t.Helper()
	for _, e := range es {
		if err := l.Handle(e); err != nil {
			t.Fatal(err)
		}
	}
}

func TestConsole(t *testing.T) {
	var b bytes.Buffer
	play(t, &report.Console{W: &b}, events())
	const want = `sage on demo: 12,000 nodes, 179,548 edges, 64 features, 8 classes, split 7,200/2,400/2,400; 17,544 parameters, cpu, seed 7

epoch      loss     train     valid      test    s/epoch
warning: odd
    1    1.0000    0.3000    0.2500    0.2000      1.000  *
    2    0.5000    0.6000    0.5000    0.4000      1.000  *
    3    0.3333    0.9000    0.7500    0.6000      1.000

valid accuracy ▁▄█  0.2500 to 0.7500
test accuracy 0.4000, valid 0.5000 at epoch 2, the best on validation.
1.000 s an epoch (median), 6.0 s in all, 11.0 s of CPU time
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

// Long runs print some of their evaluations, the last among them; a terminal gets
// a bar that leaves the table alone.
func TestConsoleLongRun(t *testing.T) {
	for _, terminal := range []bool{false, true} {
		var b bytes.Buffer
		c := &report.Console{W: &b, Terminal: terminal, MaxRows: 10}
		play(t, c, []trainer.Event{trainer.RunStart{Epochs: 200, Batches: 3, Metric: "accuracy"}})
		for e := 1; e <= 200; e++ {
			play(t, c, []trainer.Event{trainer.Step{Epoch: e, Batch: 1, Batches: 3}, trainer.Epoch{Epoch: e, Loss: 1}, trainer.Eval{Epoch: e, Valid: float64(e) / 200}})
		}
		play(t, c, []trainer.Event{trainer.RunEnd{}})
		rows := 0
		for _, line := range strings.Split(b.String(), "\n") {
			if i := strings.LastIndex(line, "\r"); i >= 0 {
				line = line[i+1:]
			}
			if strings.Contains(line, "    1.0000    0.0000") {
				rows++
			}
		}
		if rows < 8 || rows > 12 || !strings.Contains(b.String(), "  200    1.0000") {
			t.Errorf("terminal %t: %d rows", terminal, rows)
		}
	}
}

func TestMetrics(t *testing.T) {
	var b bytes.Buffer
	play(t, &report.Metrics{W: &b}, events())
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if len(lines) != 12 {
		t.Fatalf("%d lines, want 12:\n%s", len(lines), b.String())
	}
	if want := `{"event":"step","epoch":1,"step":1,"batch":1,"loss":1,"lr":0.01,"seeds":10,"nodes":100,"edges":500,"stage_seconds":{"sample":0.1,"gather":0,"compute":0.2,"reduce":0,"wait":0}}`; lines[0] != want {
		t.Errorf("first line\n%s\nwant\n%s", lines[0], want)
	}
	var eval struct {
		Event   string
		Metrics map[string]float64
		Best    bool
	}
	if err := json.Unmarshal([]byte(lines[3]), &eval); err != nil {
		t.Fatal(err)
	}
	if eval.Event != "eval" || eval.Metrics["valid"] != 0.25 || !eval.Best {
		t.Errorf("evaluation %+v", eval)
	}
}

func TestLog(t *testing.T) {
	var b bytes.Buffer
	play(t, &report.Log{W: &b}, events())
	for _, want := range []string{"sage on demo, cpu: 12000 nodes", "warning: odd", "epoch 2: loss 0.500000", "epoch 3: train 0.9000", "checkpoint last after 6 steps", " done"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

func TestCurves(t *testing.T) {
	c := &report.Curves{}
	if err := c.WritePNG(&bytes.Buffer{}); err == nil {
		t.Error("nothing was drawn without an error")
	}
	play(t, c, events())
	var b bytes.Buffer
	if err := c.WritePNG(&b); err != nil {
		t.Fatal(err)
	}
	img, err := png.Decode(&b)
	if err != nil {
		t.Fatal(err)
	}
	if s := img.Bounds().Size(); s.X != 800 || s.Y != 700 {
		t.Errorf("%d × %d pixels", s.X, s.Y)
	}
}

func TestSparkline(t *testing.T) {
	for _, c := range []struct {
		values []float64
		width  int
		want   string
	}{
		{nil, 5, ""},
		{[]float64{1}, 5, "▁  1.0000 to 1.0000"},
		{[]float64{0, 1, 2, 3}, 2, "▃█  0.0000 to 3.0000"},
		{[]float64{0, 0.5, 1}, 10, "▁▄█  0.0000 to 1.0000"},
	} {
		if got := report.Sparkline(c.values, c.width); got != c.want {
			t.Errorf("Sparkline(%v, %d) = %q, want %q", c.values, c.width, got, c.want)
		}
	}
}
