//go:build amd64

package nccl

import (
	"errors"
	"slices"
	"testing"

	"github.com/ebitengine/purego"

	"zerogcn/cuda"
	"zerogcn/cuda/cudatest"
)

// The calls through the real argument passing, with a library of Go callbacks:
// above all the 128-byte id, which C takes by value, on the stack on amd64.
func TestCallsOfFake(t *testing.T) {
	dev, _ := cudatest.Fake(t)
	s := cudatest.Stream(t, dev)
	var joined, words, calls []uintptr
	status := uintptr(0)
	text := append([]byte("invalid usage\nsecond line"), 0)
	functions := map[string]any{
		"ncclGetVersion":  func(v *int32) uintptr { *v = 22703; return 0 },
		"ncclGetUniqueId": func(id *ID) uintptr { copy(id[:], "0123456789abcdef"); id[127] = 0xEE; return 0 },
		"ncclCommInitRank": func(comm *uintptr, ranks, rank, _, _, _, w0, w1, w2, w3, w4, w5, w6, w7, w8, w9, w10, w11, w12, w13, w14, w15 uintptr) uintptr {
			joined = []uintptr{ranks & 0xFFFFFFFF, rank & 0xFFFFFFFF}
			words = []uintptr{w0, w1, w2, w3, w4, w5, w6, w7, w8, w9, w10, w11, w12, w13, w14, w15}
			*comm = 0xC0
			return status
		},
		"ncclCommDestroy": func(c uintptr) uintptr { calls = append(calls, c); return 0 },
		"ncclCommAbort":   func(c uintptr) uintptr { return 1 },
		"ncclAllReduce": func(a, b, c, d, e, f, g uintptr) uintptr {
			calls = []uintptr{a, b, c, d & 0xFFFFFFFF, e & 0xFFFFFFFF, f, g}
			return status
		},
		"ncclBroadcast": func(a, b, c, d, e, f, g uintptr) uintptr {
			calls = []uintptr{a, b, c, d & 0xFFFFFFFF, e & 0xFFFFFFFF, f, g}
			return status
		},
		"ncclGetErrorString": func(uintptr) *byte { return &text[0] },
	}
	l, err := load("fake", func(names ...string) (uintptr, error) {
		if f := functions[names[0]]; f != nil {
			return purego.NewCallback(f), nil
		}
		return 0, errors.New("no " + names[0])
	})
	if err != nil {
		t.Fatal(err)
	}
	id, err := l.NewID()
	if err != nil || l.Version() != 22703 {
		t.Fatalf("version %d, %v", l.Version(), err)
	}
	c, err := l.Join(dev, id, 2, 5)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(joined, []uintptr{5, 2}) || words[0] != 0x3736353433323130 || words[1] != 0x6665646362613938 || words[15] != 0xEE<<56 {
		t.Errorf("joined as %v with id %#x", joined, words)
	}
	if err := c.AllReduce(s, 0x200, 0x100, 7, BFloat16, Max); err != nil || !slices.Equal(calls, []uintptr{0x100, 0x200, 7, 9, 2, 0xC0, s.Handle()}) {
		t.Errorf("all-reduce with %#x, %v", calls, err)
	}
	if err := c.Broadcast(s, 0x100, 7, Float32, 4); err != nil || !slices.Equal(calls, []uintptr{0x100, 0x100, 7, 7, 4, 0xC0, s.Handle()}) {
		t.Errorf("broadcast with %#x, %v", calls, err)
	}
	status = 5
	var e *Error
	if err := c.AllReduce(s, 0x200, 0x100, 7, Float32, Sum); !errors.As(err, &e) || e.Code != 5 || e.Text != "invalid usage" {
		t.Errorf("%v", err)
	}
	if _, err := l.Join(dev, id, 0, 2); !errors.As(err, &e) {
		t.Errorf("%v", err)
	}
	calls = nil
	if err := errors.Join(c.Close(), c.Close()); err != nil || !slices.Equal(calls, []uintptr{0xC0}) {
		t.Errorf("destroyed %#x, %v", calls, err)
	}
	if err := c.AllReduce(s, 0, 0, 0, Float32, Sum); !errors.Is(err, cuda.ErrClosed) {
		t.Errorf("%v", err)
	}
}
