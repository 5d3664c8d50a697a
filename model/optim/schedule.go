package optim

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Schedule gives the learning rate of each epoch as a function of the base rate,
// as PyTorch's schedulers do when stepped once an epoch. The zero value keeps the
// base rate.
type Schedule struct {
	Kind string `json:"kind,omitempty"` // "", "step" or "cosine"
	// Size and Gamma of "step": the rate is multiplied by Gamma every Size epochs.
	Size  int     `json:"size,omitempty"`
	Gamma float64 `json:"gamma,omitempty"`
	// Min of "cosine": the rate that half a cosine wave ends at, after the last
	// epoch (Loshchilov and Hutter, "SGDR", ICLR 2017, equation 5, without
	// restarts).
	Min float64 `json:"min,omitempty"`
}

// ParseSchedule reads "none", "step:SIZE,GAMMA", "cosine" or "cosine:MIN".
func ParseSchedule(s string) (Schedule, error) {
	kind, args, has := strings.Cut(s, ":")
	switch kind {
	case "none":
		if !has {
			return Schedule{}, nil
		}
	case "cosine":
		if !has {
			return Schedule{Kind: "cosine"}, nil
		}
		if m, err := strconv.ParseFloat(args, 64); err == nil && m >= 0 && !math.IsInf(m, 0) {
			return Schedule{Kind: "cosine", Min: m}, nil
		}
	case "step":
		size, gamma, _ := strings.Cut(args, ",")
		n, err1 := strconv.Atoi(size)
		g, err2 := strconv.ParseFloat(gamma, 64)
		if err1 == nil && err2 == nil && n > 0 && g > 0 && !math.IsInf(g, 0) {
			return Schedule{Kind: "step", Size: n, Gamma: g}, nil
		}
	}
	return Schedule{}, fmt.Errorf("%q is no schedule; want none, step:EPOCHS,FACTOR (step:30,0.5), cosine or cosine:LAST-RATE", s)
}

// String returns what ParseSchedule reads.
func (s Schedule) String() string {
	switch s.Kind {
	case "step":
		return fmt.Sprintf("step:%d,%g", s.Size, s.Gamma)
	case "cosine":
		if s.Min == 0 {
			return "cosine"
		}
		return fmt.Sprintf("cosine:%g", s.Min)
	}
	return "none"
}

// Rate returns the learning rate of an epoch, from 0, of a run of the given
// number of epochs.
func (s Schedule) Rate(base float64, epoch, epochs int) float64 {
	switch s.Kind {
	case "step":
		return base * math.Pow(s.Gamma, float64(epoch/s.Size))
	case "cosine":
		return s.Min + (base-s.Min)*(1+math.Cos(math.Pi*float64(epoch)/float64(epochs)))/2
	}
	return base
}
