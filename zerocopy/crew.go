package zerocopy

import (
	"sync"
	"sync/atomic"
)

// crew is a fixed set of goroutines that run tiles of one function. Unlike
// par.Workers it keeps its goroutines between runs and allocates nothing. The
// goroutine that calls run works too.
type crew struct {
	work  func(worker, tile int)
	start chan struct{}
	group sync.WaitGroup // helpers busy with the current run
	all   sync.WaitGroup // helpers alive
	next  atomic.Int64
	tiles int64 // written by run before it wakes a helper
	size  int
}

// newCrew starts n-1 helpers. work is called at the same time for different
// tiles and must not panic; calls with the same worker, below n, take turns.
func newCrew(n int, work func(worker, tile int)) *crew {
	c := &crew{work: work, start: make(chan struct{}), size: n}
	for helper := 1; helper < n; helper++ {
		c.all.Add(1)
		go func() {
			defer c.all.Done()
			for range c.start {
				c.drain(helper)
				c.group.Done()
			}
		}()
	}
	return c
}

// run calls work for each of the tiles once and returns when all have ended.
// One run at a time.
func (c *crew) run(tiles int) {
	c.next.Store(0)
	c.tiles = int64(tiles)
	helpers := min(c.size, tiles) - 1
	for range helpers {
		c.group.Add(1)
		c.start <- struct{}{}
	}
	c.drain(0)
	c.group.Wait()
}

func (c *crew) drain(worker int) {
	for {
		t := c.next.Add(1) - 1
		if t >= c.tiles {
			return
		}
		c.work(worker, int(t))
	}
}

// stop ends the helpers and waits for them. No run may follow.
func (c *crew) stop() {
	close(c.start)
	c.all.Wait()
}
