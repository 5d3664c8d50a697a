package zerocopy

import "zerogcn/cuda"

// scratch orders the gathers that use a gatherer's own device buffers. Gathers
// may be queued on different streams, and each must find the buffers free.
type scratch struct {
	dev  *cuda.Device
	free *cuda.Event // what was queued last on the buffers is done
}

// use runs f, which queues work on the buffers on s, so that this work begins
// when the buffers are free and is waited for by the next use, whatever f
// returns.
func (c *scratch) use(s *cuda.Stream, f func() error) (err error) {
	if c.free == nil {
		if c.free, err = c.dev.NewEvent(cuda.EventOptions{}); err != nil {
			return err
		}
	}
	if err := s.Wait(c.free); err != nil {
		return err
	}
	err = f()
	if e := c.free.Record(s); err == nil {
		err = e
	}
	return err
}

// grow makes *b at least n bytes long, in the order of s; its contents are
// lost. It takes a quarter more than asked, as batches vary.
func (c *scratch) grow(s *cuda.Stream, b **cuda.Buffer, p cuda.Purpose, n int64) error {
	if *b != nil && (*b).Len() >= n {
		return nil
	}
	if *b != nil {
		if err := (*b).CloseAfter(s); err != nil {
			return err
		}
		*b = nil
	}
	nb, err := c.dev.Alloc(p, max(n+n/4, 4096))
	if err != nil {
		return err
	}
	*b = nb
	return nil
}

func (c *scratch) close() error {
	if c.free == nil {
		return nil
	}
	return c.free.Close()
}
