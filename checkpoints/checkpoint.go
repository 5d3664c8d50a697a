package checkpoints

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"zerogcn/checkpoints/safetensors"
)

// Tensor is a named array; see package safetensors for the kinds of data.
type Tensor = safetensors.Tensor

// Checkpoint is the state of a run after some step. The zero value of every
// field can be saved.
type Checkpoint struct {
	Step        int64  `json:"step"`         // optimiser steps taken
	Epoch       int64  `json:"epoch"`        // current epoch, from 0
	Position    int64  `json:"position"`     // items of the epoch's permutation consumed
	Seed        uint64 `json:"seed"`         // key of all randomness
	GlobalBatch int64  `json:"global_batch"` // items per step over all ranks; 0 is full batch

	Best     *Best            `json:"best,omitempty"` // nil before the first evaluation
	Patience int64            `json:"patience"`       // evaluations since the best one
	Finished bool             `json:"finished"`       // the run has ended: there is nothing to resume
	Counters map[string]int64 `json:"counters,omitempty"`
	Values   map[string]Float `json:"values,omitempty"` // sums of an epoch in progress, say

	Dataset  Dataset         `json:"dataset"`
	Versions Versions        `json:"versions"`
	Config   json.RawMessage `json:"config,omitempty"` // any JSON; Load gives it back without spaces

	Model []Tensor `json:"-"` // parameters and buffers, as in PyTorch's state_dict
	State []Tensor `json:"-"` // what else the next step depends on
	Split []Tensor `json:"-"` // node indices or pairs, by the caller's names

	// WeightsOnly is set by Load for a file that holds Model alone.
	WeightsOnly bool `json:"-"`
}

// Best is the best evaluation so far.
type Best struct {
	Epoch  int64  `json:"epoch"`
	Step   int64  `json:"step"`
	Metric string `json:"metric"` // its name
	Value  Float  `json:"value"`
}

// Dataset identifies the data that a run was trained on.
type Dataset struct {
	Source      string `json:"source"` // as the user named it
	Name        string `json:"name"`
	Fingerprint string `json:"fingerprint"`
}

// Versions names the programs on which the bits of a run depend.
type Versions struct {
	Zerogcn string `json:"zerogcn"`
	Go      string `json:"go"`
	BLAS    string `json:"blas"`
}

// Float is a float64 that JSON holds exactly: NaN and infinities as strings,
// which JSON's numbers cannot say.
type Float float64

// MarshalJSON writes the shortest text that reads back to the same value.
func (f Float) MarshalJSON() ([]byte, error) {
	v := float64(f)
	text := strconv.AppendFloat(nil, v, 'g', -1, 64)
	if math.IsNaN(v) || math.IsInf(v, 0) {
		text = strconv.AppendQuote(nil, string(text))
	}
	return text, nil
}

// UnmarshalJSON reads a number, or one of the strings "NaN", "+Inf", "-Inf".
func (f *Float) UnmarshalJSON(text []byte) error {
	s := string(text)
	switch s {
	case `"NaN"`, `"+Inf"`, `"-Inf"`:
		s = s[1 : len(s)-1]
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return fmt.Errorf("%s is not a number", text)
	}
	*f = Float(v)
	return nil
}
