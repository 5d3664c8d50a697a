package datasets

import (
	"fmt"
	"slices"
)

// Split divides labelled nodes into three parts. Ids are ascending and in one
// part at most.
type Split struct{ Train, Valid, Test []int32 }

type splitPart struct {
	name string
	ids  []int32
}

func (s *Split) parts() [3]splitPart {
	return [3]splitPart{{"train", s.Train}, {"valid", s.Valid}, {"test", s.Test}}
}

// check sorts the parts and checks them against the number of nodes.
func (s *Split) check(n int) error {
	parts := s.parts()
	for _, p := range parts {
		if !slices.IsSorted(p.ids) {
			slices.Sort(p.ids)
		}
		last := int32(-1)
		for _, v := range p.ids {
			switch {
			case v < 0 || int(v) >= n:
				return fmt.Errorf("%s names node %d: there are %d nodes", p.name, v, n)
			case v == last:
				return fmt.Errorf("%s names node %d twice", p.name, v)
			}
			last = v
		}
	}
	if len(s.Train) == 0 {
		return fmt.Errorf("the training part is empty")
	}
	for i, a := range parts {
		for _, b := range parts[i+1:] {
			if v, ok := common(a.ids, b.ids); ok {
				return fmt.Errorf("node %d is in %s and in %s", v, a.name, b.name)
			}
		}
	}
	return nil
}

// common returns the first element that two ascending lists share.
func common(a, b []int32) (int32, bool) {
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0] == b[0]:
			return a[0], true
		case a[0] < b[0]:
			a = a[1:]
		default:
			b = b[1:]
		}
	}
	return 0, false
}

// memorySplits are splits that a reader made in memory.
type memorySplits []Split

func (m memorySplits) count() int { return len(m) }

func (m memorySplits) split(i int) (Split, error) {
	s := m[i]
	return Split{slices.Clone(s.Train), slices.Clone(s.Valid), slices.Clone(s.Test)}, nil
}
