package graph

import (
	"zerogcn/internal/par"
	"zerogcn/internal/philox"
)

// Purpose separates the random draws of one seed. It is an alias so that users
// of this package as a library can name it.
type Purpose = philox.Purpose

// The purposes of Sampler.Sample.
const (
	Training   = philox.Sample
	Evaluation = philox.Evaluation // with step 0, so that it repeats
)

// Workers bounds the goroutines of a call. Zero means GOMAXPROCS. Results never
// depend on it.
type Workers = par.Workers
