package trainer

import "time"

// Event is something that a run tells its listeners: RunStart, Step, Epoch,
// Eval, Checkpoint, Note or RunEnd. Epochs, steps and batches count from 1.
type Event interface{ isEvent() }

// Listener receives the events of a run, in order, on the run's goroutine. An
// error ends the run: a metrics file that cannot be written is not ignored.
type Listener interface {
	Handle(Event) error
}

// StageSeconds is the time that each stage took. Stages overlap, so they may add
// up to more than the wall clock. Wait is the time that training stood idle for
// its next batch.
type StageSeconds struct {
	Sample  float64 `json:"sample"`
	Gather  float64 `json:"gather"`
	Compute float64 `json:"compute"`
	Reduce  float64 `json:"reduce"`
	Wait    float64 `json:"wait"`
}

func (s *StageSeconds) add(t StageSeconds) {
	s.Sample += t.Sample
	s.Gather += t.Gather
	s.Compute += t.Compute
	s.Reduce += t.Reduce
	s.Wait += t.Wait
}

// RunStart comes first.
type RunStart struct {
	Dataset, Model, Device  string
	Nodes                   int
	Edges                   int64
	Features, Classes       int
	Train, Valid, Test      int // sizes of the split
	Parameters              int
	Epochs, Batches         int // batches of an epoch
	Metric                  string
	Seed                    uint64
	DoneEpochs, DoneBatches int // what a resumed run has done already, batches of its epoch
}

// Step comes after each optimiser step. Step counts over the whole run.
type Step struct {
	Epoch, Batch, Batches int // Batches is the number of batches of the epoch
	Step                  int64
	Loss, LR              float64
	Seeds, Nodes, Edges   int
	Seconds               StageSeconds
}

// Epoch comes after the last step of each epoch. Loss is the mean over its
// labelled seeds.
type Epoch struct {
	Epoch    int
	Step     int64
	Loss, LR float64
	Elapsed  time.Duration // of this epoch, evaluation excluded
	Seconds  StageSeconds
}

// Eval comes after each evaluation.
type Eval struct {
	Epoch              int
	Step               int64
	Train, Valid, Test float64
	Best               bool // the best validation metric so far
	BestEpoch          int
	Elapsed            time.Duration
}

// Checkpoint comes after a checkpoint was written.
type Checkpoint struct {
	Kind  string // "last" or "best"
	Path  string
	Epoch int
	Step  int64
}

// Note is a line for the log: a warning or a decision.
type Note struct {
	Warning bool
	Text    string
}

// RunEnd comes last, unless the run fails.
type RunEnd struct {
	Summary     Summary
	EarlyStop   bool
	Interrupted bool
}

func (RunStart) isEvent()   {}
func (Step) isEvent()       {}
func (Epoch) isEvent()      {}
func (Eval) isEvent()       {}
func (Checkpoint) isEvent() {}
func (Note) isEvent()       {}
func (RunEnd) isEvent()     {}
