package zerocopy

import (
	"errors"
	"time"

	"zerogcn/cuda"
)

// The CPU's part of a hybrid gather: where it starts, and its bounds. Neither
// side may go to nothing, or its rate would never be measured again.
const (
	firstShare         = 0.3
	minShare, maxShare = 0.05, 0.95
)

// share follows the rates of the CPU and the GPU, measured while both work, and
// splits each gather so that they end together. It decides who fetches a row,
// never what arrives.
type share struct {
	part        float64 // of the rows, the CPU's
	start, stop *cuda.Event
	cpuRows     int
	gpuRows     int
	cpuTime     time.Duration
	pending     bool // a gather has been queued whose times are not read
}

// next returns how many of n rows the CPU gathers, a multiple of the slab's
// rows. Batches of a few slabs are left to the GPU.
func (h *share) next(dev *cuda.Device, n, slabRows int) (int, error) {
	if h.start == nil {
		h.part = firstShare
		for _, e := range []**cuda.Event{&h.start, &h.stop} {
			var err error
			if *e, err = dev.NewEvent(cuda.EventOptions{Timing: true}); err != nil {
				return 0, err
			}
		}
	}
	if err := h.learn(); err != nil {
		return 0, err
	}
	m := int(h.part*float64(n)) / slabRows * slabRows
	h.cpuRows, h.gpuRows = m, n-m
	return m, nil
}

// learn moves the share half way to where the last gather says it should be.
func (h *share) learn() error {
	if !h.pending {
		return nil
	}
	done, err := h.stop.Done()
	if err != nil || !done {
		return err
	}
	h.pending = false
	gpuTime, err := h.stop.Since(h.start)
	if err != nil || h.cpuRows == 0 || h.gpuRows == 0 || gpuTime <= 0 || h.cpuTime <= 0 {
		return err
	}
	h.part = balance(h.part, float64(h.cpuRows)/h.cpuTime.Seconds(), float64(h.gpuRows)/gpuTime.Seconds())
	return nil
}

// balance returns the next share, given the rates in rows per second.
func balance(part, cpu, gpu float64) float64 {
	return min(maxShare, max(minShare, (part+cpu/(cpu+gpu))/2))
}

// gpu brackets the launch with the events that time it.
func (h *share) gpu(s *cuda.Stream, launch func() error) error {
	if err := h.start.Record(s); err != nil {
		return err
	}
	if err := launch(); err != nil {
		return err
	}
	h.pending = true
	return h.stop.Record(s)
}

// cpu times the CPU's part.
func (h *share) cpu(gather func() (int, error)) (int, error) {
	start := time.Now()
	bad, err := gather()
	h.cpuTime = time.Since(start)
	return bad, err
}

func (h *share) close() error {
	if h.start == nil || h.stop == nil {
		return nil
	}
	return errors.Join(h.start.Close(), h.stop.Close())
}
