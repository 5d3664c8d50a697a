// Package backend chooses what a command computes with.
package backend

import (
	"errors"
	"fmt"

	"zerogcn/internal/blas"
	"zerogcn/internal/par"
	"zerogcn/model/exec"
	"zerogcn/model/exec/cpu"
	"zerogcn/trainer"
)

// CPU returns the back end for the host, the name of its BLAS, and notes on what
// was chosen. library is "auto" for OpenBLAS where it is found and works,
// "gonum", or the path of an OpenBLAS library.
func CPU(workers int, library string) (exec.Backend, string, []trainer.Note, error) {
	var engine *blas.Engine
	var notes []trainer.Note
	switch library {
	case "auto":
		e, err := blas.Auto()
		if err != nil && !errors.Is(err, blas.ErrNotFound) {
			notes = append(notes, trainer.Note{Warning: true, Text: fmt.Sprintf("OpenBLAS is not used: %v", err)})
		}
		engine = e
	case "gonum":
		engine = blas.Gonum()
	default:
		e, err := blas.OpenBLAS(library)
		if err != nil {
			return nil, "", nil, err
		}
		engine = e
	}
	name := engine.Info().String()
	notes = append(notes, trainer.Note{Text: "matrix products: " + name})
	return cpu.New(cpu.Options{Workers: par.Workers(workers), BLAS: engine}), name, notes, nil
}
