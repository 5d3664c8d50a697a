package gpusample_test

import (
	"testing"

	"zerogcn/cuda"
	"zerogcn/cuda/cudatest/emulator"
	"zerogcn/cuda/cudatest/fake"
)

// emulatedDevice returns a fake device that runs the kernels.
func emulatedDevice(t testing.TB) (*cuda.Device, *fake.Driver) { return emulator.Device(t) }
