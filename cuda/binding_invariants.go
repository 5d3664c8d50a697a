//go:build invariants

package cuda

import (
	"fmt"

	"golang.org/x/sys/unix"
)

type ownThread struct{ id int }

func (o *ownThread) note() { o.id = unix.Gettid() }

// check panics when a bound stream is used on another thread: a fault of the
// program that the driver notices only sometimes.
func (o *ownThread) check() {
	if t := unix.Gettid(); t != o.id {
		panic(fmt.Sprintf("cuda: a stream bound to thread %d is used on thread %d", o.id, t))
	}
}
