// Package pipeline runs two stages and a consumer over reusable slots: while the
// consumer uses one, the stages work on the next ones.
package pipeline

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"
)

// Stage is a step of the work on each slot. Stages run on goroutines of their
// own, each item through both in order.
type Stage[S any] struct {
	// Do works on the slot for item i. Its error ends the pipeline and is what Run
	// returns.
	Do func(ctx context.Context, s S, i int) error
	// Around, if not nil, is called on the stage's goroutine with all of its work:
	// to prepare before the first item and clean up after the last.
	Around func(work func() error) error
}

func (st *Stage[S]) run(work func() error) error {
	if st.Around == nil {
		return work()
	}
	return st.Around(work)
}

// item is a slot with what it holds.
type item[S any] struct {
	slot S
	i    int
}

// Run takes the items first to end (exclusive) through both stages, up to depth
// of them waiting between two, and hands each slot to use with the time that it
// was waited for. A slot goes back to the first stage when use returns; false
// ends the pipeline early, which is no error.
//
// Run returns when both stages have ended. Its error is the first of a stage, or
// the context's; left reports whether use ended it.
func Run[S any](ctx context.Context, slots []S, depth, first, end int, one, two Stage[S], use func(s S, waited time.Duration) bool) (left bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	free := make(chan S, len(slots))
	between := make(chan item[S], depth)
	ready := make(chan item[S], depth)
	for _, s := range slots {
		free <- s
	}
	stages, ctx := errgroup.WithContext(ctx)
	stages.Go(func() error {
		defer close(between)
		return one.run(func() error {
			for i := first; i < end; i++ {
				s, ok := receive(ctx, free)
				if !ok {
					return ctx.Err()
				}
				if err := one.Do(ctx, s, i); err != nil {
					return err
				}
				if !send(ctx, between, item[S]{s, i}) {
					return ctx.Err()
				}
			}
			return nil
		})
	})
	stages.Go(func() error {
		defer close(ready)
		return two.run(func() error {
			for {
				x, ok := receive(ctx, between)
				if !ok {
					return ctx.Err()
				}
				if err := two.Do(ctx, x.slot, x.i); err != nil {
					return err
				}
				if !send(ctx, ready, x) {
					return ctx.Err()
				}
			}
		})
	})
	for {
		start := time.Now()
		x, ok := <-ready
		if !ok {
			break
		}
		if !use(x.slot, time.Since(start)) {
			left = true
			cancel()
			break
		}
		free <- x.slot // never blocks: the channel holds all slots
	}
	err = stages.Wait()
	if left {
		err = nil
	}
	return left, err
}

// receive takes from a channel; ok is false when it is closed or the context has
// ended.
func receive[T any](ctx context.Context, c <-chan T) (v T, ok bool) {
	select {
	case <-ctx.Done():
		return v, false
	case v, ok = <-c:
		return v, ok
	}
}

func send[T any](ctx context.Context, c chan<- T, v T) bool {
	select {
	case <-ctx.Done():
		return false
	case c <- v:
		return true
	}
}
