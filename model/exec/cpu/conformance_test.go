package cpu_test

import (
	"testing"

	"zerogcn/internal/par"
	"zerogcn/model/exec/cpu"
	"zerogcn/model/exec/exectest"
)

func device(w par.Workers) exectest.Device {
	return exectest.Host{Backend: cpu.New(cpu.Options{Workers: w})}
}

func TestConformance(t *testing.T) { exectest.Run(t, device(2)) }

func TestWorkersDoNotMatter(t *testing.T) {
	exectest.Same(t, device(1), device(2), device(8))
}
