package cpu_test

import (
	"testing"

	"zerogcn/internal/blas"
	"zerogcn/internal/par"
	"zerogcn/model/exec/cpu"
	"zerogcn/model/exec/exectest"
)

func device(w par.Workers, e *blas.Engine) exectest.Device {
	return exectest.Host{Backend: cpu.New(cpu.Options{Workers: w, BLAS: e})}
}

// engines calls f for every BLAS of this machine.
func engines(t *testing.T, f func(t *testing.T, e *blas.Engine)) {
	t.Helper()
	t.Run("gonum", func(t *testing.T) { f(t, blas.Gonum()) })
	t.Run("openblas", func(t *testing.T) {
		e, err := blas.OpenBLAS("")
		if err != nil {
			t.Skip(err)
		}
		f(t, e)
	})
}

func TestConformance(t *testing.T) {
	engines(t, func(t *testing.T, e *blas.Engine) { exectest.Run(t, device(2, e)) })
}

// Operands lie at other addresses for each device, so this also shows that bits
// do not depend on alignment.
func TestWorkersDoNotMatter(t *testing.T) {
	engines(t, func(t *testing.T, e *blas.Engine) {
		exectest.Same(t, device(1, e), device(2, e), device(8, e))
	})
}
