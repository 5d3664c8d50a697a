package nccl

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"zerogcn/cuda"
	"zerogcn/cuda/cudatest"
	"zerogcn/cuda/internal/dynlib"
)

func TestIDLayout(t *testing.T) {
	if unsafe.Sizeof(ID{}) != 128 || unsafe.Sizeof(idWords{}) != 128 {
		t.Error("ncclUniqueId is 128 bytes")
	}
}

// On this machine the library loads, or the error says that it is not there.
func TestLoadHere(t *testing.T) {
	if _, err := Load(""); err != nil && !errors.Is(err, dynlib.ErrNotFound) {
		t.Error(err)
	}
}

func TestLoadError(t *testing.T) {
	if _, err := Load(t.TempDir()); err == nil || !strings.Contains(err.Error(), "libnccl.so.2") {
		t.Errorf("%v", err)
	}
	if s := (&Error{"ncclCommInitRank", 5, "invalid usage"}).Error(); !strings.HasPrefix(s, "ncclCommInitRank: invalid usage (NCCL error 5); ") {
		t.Error(s)
	}
}

// A group of one: what one GPU can show. More ranks need more GPUs.
func TestGPUOneRank(t *testing.T) {
	dev := cudatest.Device(t)
	lib, err := Load("")
	if err != nil {
		t.Skip(err)
	}
	t.Logf("%s, version %d", lib.Path(), lib.Version())
	id, err := lib.NewID()
	if err != nil {
		t.Fatal(err)
	}
	if id == (ID{}) {
		t.Error("the id is all zeros")
	}
	c, err := lib.Join(dev, id, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	s := cudatest.Stream(t, dev)
	v := []float32{1, -2, 3.5}
	src, dst := cudatest.Upload(t, s, v), cudatest.Upload(t, s, make([]float32, 3))
	if err := errors.Join(c.AllReduce(s, dst.Ptr(), src.Ptr(), 3, Float32, Sum), c.Broadcast(s, dst.Ptr(), 3, Float32, 0)); err != nil {
		t.Fatal(err)
	}
	if got := cudatest.Download[float32](t, s, dst.Ptr(), 3); !slices.Equal(got, v) {
		t.Errorf("sum over one rank: %v", got)
	}
	if err := c.Broadcast(s, dst.Ptr(), 3, Float32, 1); err == nil {
		t.Error("broadcast from a rank that is not there")
	}
	if err := errors.Join(c.Close(), c.Close(), c.Abort()); err != nil {
		t.Error(err)
	}
	if err := c.AllReduce(s, dst.Ptr(), src.Ptr(), 3, Float32, Sum); !errors.Is(err, cuda.ErrClosed) {
		t.Errorf("closed communicator: %v", err)
	}
	if _, err := lib.Join(dev, id, 1, 1); err == nil {
		t.Error("rank 1 of 1 joined")
	}
}
