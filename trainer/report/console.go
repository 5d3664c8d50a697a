package report

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"

	"zerogcn/trainer"
)

// Console shows a run to a person: what is trained, a table with a line per
// evaluated epoch, and the learning curve.
type Console struct {
	W io.Writer
	// Terminal adds a progress bar, which rewrites its line.
	Terminal bool
	// MaxRows bounds the table: of a run with more evaluations only some are
	// printed, and all new bests of the last quarter. 0 means 25.
	MaxRows int

	bar     *progressbar.ProgressBar
	epochs  int
	loss    float64
	elapsed time.Duration
	printed int // last epoch in the table
	valid   []float64
	last    trainer.Eval
	metric  string
}

// Handle shows the event.
func (c *Console) Handle(e trainer.Event) error {
	switch e := e.(type) {
	case trainer.RunStart:
		return c.start(e)
	case trainer.Step:
		return c.step(e)
	case trainer.Epoch:
		c.loss, c.elapsed = e.Loss, e.Elapsed
	case trainer.Eval:
		return c.eval(e)
	case trainer.Note:
		text := e.Text
		if e.Warning {
			text = "warning: " + text
		}
		return c.printf("%s\n", text)
	case trainer.RunEnd:
		return c.end(e)
	}
	return nil
}

// printf writes below the bar, if there is one.
func (c *Console) printf(format string, args ...any) error {
	if c.bar != nil {
		if err := c.bar.Clear(); err != nil {
			return err
		}
		c.bar = nil
	}
	_, err := fmt.Fprintf(c.W, format, args...)
	return err
}

func (c *Console) start(e trainer.RunStart) error {
	if c.MaxRows == 0 {
		c.MaxRows = 25
	}
	c.epochs, c.metric = e.Epochs, e.Metric
	c.printed, c.valid, c.last = 0, nil, trainer.Eval{}
	from := ""
	if e.DoneEpochs > 0 || e.DoneBatches > 0 {
		from = fmt.Sprintf(", resumed after %d of %d epochs", e.DoneEpochs, e.Epochs)
		if e.DoneBatches > 0 {
			from += fmt.Sprintf(" and %d of %d batches", e.DoneBatches, e.Batches)
		}
	}
	return c.printf("%s on %s: %s nodes, %s edges, %d features, %d classes, split %s/%s/%s; %s parameters, %s, seed %d%s\n\n%s",
		e.Model, e.Dataset, thousands(int64(e.Nodes)), thousands(e.Edges), e.Features, e.Classes,
		thousands(int64(e.Train)), thousands(int64(e.Valid)), thousands(int64(e.Test)), thousands(int64(e.Parameters)), e.Device, e.Seed, from,
		"epoch      loss     train     valid      test    s/epoch\n")
}

func (c *Console) step(e trainer.Step) error {
	if !c.Terminal || e.Batches < 2 {
		return nil
	}
	if c.bar == nil {
		c.bar = progressbar.NewOptions(e.Batches, progressbar.OptionSetWriter(c.W), progressbar.OptionSetWidth(24),
			progressbar.OptionShowIts(), progressbar.OptionSetItsString("batch"), progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionSetDescription(fmt.Sprintf("epoch %d/%d", e.Epoch, c.epochs)), progressbar.OptionClearOnFinish())
	}
	return c.bar.Set(e.Batch)
}

func (c *Console) eval(e trainer.Eval) error {
	c.valid, c.last = append(c.valid, e.Valid), e
	// Every epoch of a short run, evenly spaced ones of a long one.
	stride := max(1, (c.epochs+c.MaxRows-1)/c.MaxRows)
	if e.Epoch/stride == c.printed/stride && c.printed > 0 && e.Epoch != c.epochs {
		return nil
	}
	c.printed = e.Epoch
	return c.row(e)
}

func (c *Console) row(e trainer.Eval) error {
	mark := ""
	if e.Best {
		mark = "  *"
	}
	return c.printf("%5d  %8.4f  %8.4f  %8.4f  %8.4f  %9.3f%s\n", e.Epoch, c.loss, e.Train, e.Valid, e.Test, c.elapsed.Seconds(), mark)
}

func (c *Console) end(e trainer.RunEnd) error {
	if c.last.Epoch > c.printed {
		if err := c.row(c.last); err != nil {
			return err
		}
	}
	if e.Interrupted {
		return c.printf("")
	}
	s := e.Summary
	why := ""
	if e.EarlyStop {
		why = fmt.Sprintf(" Stopped after %d epochs: none was better than epoch %d.", s.Epochs, s.BestEpoch)
	}
	if err := c.printf("\nvalid %s %s\n", c.metric, Sparkline(c.valid, 60)); err != nil {
		return err
	}
	return c.printf("test %s %.4f, valid %.4f at epoch %d, the best on validation.%s\n%.3f s an epoch (median), %.1f s in all, %.1f s of CPU time\n",
		c.metric, s.Test, s.Valid, s.BestEpoch, why, s.SecondsPerEpoch, s.SecondsTotal, s.CPUSeconds)
}

// Sparkline draws values as a line of at most width block characters, from the
// lowest to the highest; each shows the last value of its share.
func Sparkline(values []float64, width int) string {
	if len(values) == 0 {
		return ""
	}
	width = min(width, len(values))
	shown := make([]float64, width)
	lo, hi := values[0], values[0]
	for i := range shown {
		shown[i] = values[(i+1)*len(values)/width-1]
		lo, hi = min(lo, shown[i]), max(hi, shown[i])
	}
	var b strings.Builder
	blocks := []rune("▁▂▃▄▅▆▇█")
	for _, v := range shown {
		k := 0
		if hi > lo {
			k = int((v - lo) / (hi - lo) * float64(len(blocks)-1))
		}
		b.WriteRune(blocks[max(0, min(k, len(blocks)-1))])
	}
	return fmt.Sprintf("%s  %.4f to %.4f", b.String(), values[0], values[len(values)-1])
}

// thousands writes n with commas.
func thousands(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
