package report

import (
	"encoding/json"
	"io"

	"zerogcn/trainer"
)

// Metrics writes one JSON object per step, epoch and evaluation to W, each on a
// line of its own.
type Metrics struct{ W io.Writer }

// line is one object of metrics.jsonl.
type line struct {
	Event   string                `json:"event"` // step, epoch or eval
	Epoch   int                   `json:"epoch"`
	Step    int64                 `json:"step"`
	Batch   int                   `json:"batch,omitempty"`
	Loss    *float64              `json:"loss,omitempty"`
	LR      *float64              `json:"lr,omitempty"`
	Seeds   int                   `json:"seeds,omitempty"`
	Nodes   int                   `json:"nodes,omitempty"`
	Edges   int                   `json:"edges,omitempty"`
	Metrics map[string]float64    `json:"metrics,omitempty"` // by part: train, valid, test
	Best    *bool                 `json:"best,omitempty"`
	Elapsed float64               `json:"elapsed,omitempty"` // seconds
	Seconds *trainer.StageSeconds `json:"stage_seconds,omitempty"`
}

// Handle writes the event if it is a step, an epoch or an evaluation.
func (m *Metrics) Handle(e trainer.Event) error {
	var l line
	switch e := e.(type) {
	case trainer.Step:
		l = line{Event: "step", Epoch: e.Epoch, Step: e.Step, Batch: e.Batch, Loss: &e.Loss, LR: &e.LR,
			Seeds: e.Seeds, Nodes: e.Nodes, Edges: e.Edges, Seconds: &e.Seconds}
	case trainer.Epoch:
		l = line{Event: "epoch", Epoch: e.Epoch, Step: e.Step, Loss: &e.Loss, LR: &e.LR,
			Elapsed: e.Elapsed.Seconds(), Seconds: &e.Seconds}
	case trainer.Eval:
		l = line{Event: "eval", Epoch: e.Epoch, Step: e.Step, Best: &e.Best, Elapsed: e.Elapsed.Seconds(),
			Metrics: map[string]float64{"train": e.Train, "valid": e.Valid, "test": e.Test}}
	default:
		return nil
	}
	b, err := json.Marshal(l)
	if err != nil {
		return err
	}
	_, err = m.W.Write(append(b, '\n'))
	return err
}
