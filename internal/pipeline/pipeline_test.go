package pipeline_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	"zerogcn/internal/pipeline"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type slot struct{ one, two int }

func stages(fail func(stage, i int) error) (one, two pipeline.Stage[*slot]) {
	one.Do = func(_ context.Context, s *slot, i int) error { s.one = i * 10; return fail(1, i) }
	two.Do = func(_ context.Context, s *slot, i int) error { s.two = s.one + i; return fail(2, i) }
	return one, two
}

func none(int, int) error { return nil }

func TestItemsInOrder(t *testing.T) {
	for _, depth := range []int{0, 1, 3} {
		slots := make([]*slot, depth+1)
		for i := range slots {
			slots[i] = &slot{}
		}
		one, two := stages(none)
		var around []string
		one.Around = func(work func() error) error {
			err := work()
			around = append(around, "one")
			return err
		}
		var got []int
		left, err := pipeline.Run(t.Context(), slots, depth, 3, 20, one, two, func(s *slot, _ time.Duration) bool {
			got = append(got, s.two)
			return true
		})
		if left || err != nil {
			t.Fatal(left, err)
		}
		var want []int
		for i := 3; i < 20; i++ {
			want = append(want, i*11)
		}
		if !slices.Equal(got, want) || len(around) != 1 {
			t.Errorf("depth %d: %v, want %v; around %v", depth, got, want, around)
		}
	}
}

// Errors of either stage, leaving, and a cancelled context end both stages.
func TestEnds(t *testing.T) {
	boom := errors.New("boom")
	run := func(ctx context.Context, fail func(stage, i int) error, use func(n int) bool) (int, bool, error) {
		one, two := stages(fail)
		n := 0
		left, err := pipeline.Run(ctx, []*slot{{}, {}}, 1, 0, 100, one, two, func(*slot, time.Duration) bool {
			n++
			return use(n)
		})
		return n, left, err
	}
	all := func(int) bool { return true }
	for stage := 1; stage <= 2; stage++ {
		n, left, err := run(t.Context(), func(s, i int) error {
			if s == stage && i == 7 {
				return boom
			}
			return nil
		}, all)
		if left || !errors.Is(err, boom) || n > 7 {
			t.Errorf("stage %d: %d items, %t, %v", stage, n, left, err)
		}
	}
	if n, left, err := run(t.Context(), none, func(n int) bool { return n < 5 }); n != 5 || !left || err != nil {
		t.Errorf("left after %d items: %t, %v", n, left, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if n, left, err := run(ctx, none, func(n int) bool {
		if n == 4 {
			cancel()
		}
		return true
	}); left || !errors.Is(err, context.Canceled) || n > 8 {
		t.Errorf("cancelled: %d items, %t, %v", n, left, err)
	}
}
