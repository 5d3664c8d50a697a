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
	j := pool.Get().(*job)
	j.f, j.n, j.size, j.tiles = f, n, size, tiles
	j.next.Store(0)
	j.wg.Add(k - 1)
	for range k - 1 {
		go j.helper()
	}
	j.work()
	j.wg.Wait()
	caught := j.caught.Swap(nil)
	j.f = nil
	pool.Put(j)
	if caught != nil {
		panic(*caught)
	}
}

// job is one Range under way. Jobs are pooled, with the function that their
// goroutines run, so that a Range allocates nothing.
type job struct {
	f              func(tile, lo, hi int)
	n, size, tiles int
	next           atomic.Int64
	wg             sync.WaitGroup
	caught         atomic.Pointer[any]
	helper         func()
}

var pool = sync.Pool{New: func() any {
	j := &job{}
	j.helper = func() { defer j.wg.Done(); j.work() }
	return j
}}

// work takes tiles until there are none. After a panic no new tile begins.
func (j *job) work() {
	defer func() {
		if r := recover(); r != nil {
			first := r
			j.caught.CompareAndSwap(nil, &first)
			j.next.Store(int64(j.tiles))
		}
	}()
	for {
		t := int(j.next.Add(1)) - 1
		if t >= j.tiles {
			return
		}
		j.f(t, t*j.size, min(j.n, (t+1)*j.size))
	}
}
