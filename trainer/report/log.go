package report

import (
	"fmt"
	"io"
	"time"

	"zerogcn/trainer"
)

// Log writes notes and milestones to W, one line each, with the time of day.
type Log struct{ W io.Writer }

// Handle writes the event if it belongs in a log.
func (l *Log) Handle(e trainer.Event) error {
	var text string
	switch e := e.(type) {
	case trainer.RunStart:
		text = fmt.Sprintf("%s on %s, %s: %d nodes, %d edges, %d features, %d classes; split %d/%d/%d; %d parameters; seed %d",
			e.Model, e.Dataset, e.Device, e.Nodes, e.Edges, e.Features, e.Classes, e.Train, e.Valid, e.Test, e.Parameters, e.Seed)
		if e.DoneEpochs > 0 || e.DoneBatches > 0 {
			text += fmt.Sprintf("; resumed after %d epochs and %d batches", e.DoneEpochs, e.DoneBatches)
		}
	case trainer.Epoch:
		text = fmt.Sprintf("epoch %d: loss %.6f, %.3f s (sample %.3f, gather %.3f, compute %.3f, waited %.3f)",
			e.Epoch, e.Loss, e.Elapsed.Seconds(), e.Seconds.Sample, e.Seconds.Gather, e.Seconds.Compute, e.Seconds.Wait)
	case trainer.Eval:
		text = fmt.Sprintf("epoch %d: train %.4f, valid %.4f, test %.4f (%.3f s), best is epoch %d",
			e.Epoch, e.Train, e.Valid, e.Test, e.Elapsed.Seconds(), e.BestEpoch)
	case trainer.Checkpoint:
		text = fmt.Sprintf("checkpoint %s after %d steps: %s", e.Kind, e.Step, e.Path)
	case trainer.Note:
		text = e.Text
		if e.Warning {
			text = "warning: " + text
		}
	case trainer.RunEnd:
		text = "done"
		if e.Interrupted {
			text = "interrupted"
		} else if e.EarlyStop {
			text = "done: no better epoch within the patience"
		}
	default:
		return nil
	}
	_, err := fmt.Fprintf(l.W, "%s %s\n", time.Now().Format("2006-01-02 15:04:05"), text)
	return err
}
