// Package par cuts work into tiles and runs them on a bounded number of
// goroutines. Tile sizes are the caller's and depend on shapes only, never on
// the number of workers, so results that are combined in tile order are the
// same for 1 worker and 16.
package par

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// Workers is a bound on goroutines. The zero value means GOMAXPROCS.
type Workers int

// Count returns the effective number of goroutines.
func (w Workers) Count() int {
	if w > 0 {
		return int(w)
	}
	return runtime.GOMAXPROCS(0)
}

// Tiles returns the number of tiles of the given size that cover n items.
func Tiles(n, size int) int { return (n + size - 1) / size }

// Range calls f(tile, lo, hi) for every tile of [0, n), each tile once, and
// returns when all are done. Tiles run in any order and at the same time; f
// must write only what belongs to its tile. A panic in f is raised again in
// the caller after the other tiles have ended.
func (w Workers) Range(n, size int, f func(tile, lo, hi int)) {
	if n <= 0 {
		return
	}
	if size <= 0 {
		size = n
	}
	tiles := Tiles(n, size)
	k := min(w.Count(), tiles)
	if k <= 1 {
		for t := range tiles {
			f(t, t*size, min(n, (t+1)*size))
		}
		return
	}
	var (
		next   atomic.Int64
		wg     sync.WaitGroup
		once   sync.Once
		caught any
	)
	work := func() {
		defer func() {
			if r := recover(); r != nil {
				once.Do(func() { caught = r })
				next.Store(int64(tiles))
			}
		}()
		for {
			t := int(next.Add(1)) - 1
			if t >= tiles {
				return
			}
			f(t, t*size, min(n, (t+1)*size))
		}
	}
	wg.Add(k - 1)
	for range k - 1 {
		go func() { defer wg.Done(); work() }()
	}
	work()
	wg.Wait()
	if caught != nil {
		panic(caught)
	}
}
