package datasets

import (
	"context"
	"slices"

	"zerogcn/internal/npy"
	"zerogcn/internal/par"
)

// splits reads masks, or lists of nodes.
func (b *bundle) splits(context.Context) error {
	var masks, lists [3]string
	for i := range masks {
		masks[i], lists[i] = pick(b, maskNames[i]), pick(b, indexNames[i])
	}
	switch {
	case masks[0] != "" && masks[1] != "" && masks[2] != "":
		return b.masks(masks)
	case lists[0] != "" && lists[1] != "" && lists[2] != "":
		return b.lists(lists)
	case masks != [3]string{}:
		return usageErrorf("%s: masks for some parts only: want train, val and test", b.Path())
	case lists != [3]string{}:
		return usageErrorf("%s: node lists for some parts only: want train_idx, valid_idx and test_idx", b.Path())
	}
	return nil
}

func (b *bundle) masks(names [3]string) error {
	var parts [3][][]int32
	for i, name := range names {
		a, err := b.Array(name)
		if err != nil {
			return err
		}
		if parts[i], err = readMasks(a, b.n, b.w); err != nil {
			return err
		}
		if len(parts[i]) != len(parts[0]) {
			return a.Errorf("%d splits, and %s has %d", len(parts[i]), names[0], len(parts[0]))
		}
	}
	s := make(memorySplits, len(parts[0]))
	for k := range s {
		s[k] = Split{parts[0][k], parts[1][k], parts[2][k]}
		if err := s[k].check(int(b.n)); err != nil {
			return usageErrorf("%s: split %d: %w", b.Path(), k, err)
		}
	}
	b.d.splits = s
	return nil
}

// readMasks turns masks of the shape (nodes,), (splits, nodes) or (nodes,
// splits) into lists of nodes, one per split.
func readMasks(a *npy.Array, n int64, w par.Workers) ([][]int32, error) {
	byRow := len(a.Shape) == 2 && a.Shape[1] == n
	switch {
	case len(a.Shape) == 1 && a.Shape[0] == n:
	case byRow:
	case len(a.Shape) == 2 && a.Shape[0] == n:
	default:
		return nil, a.Errorf("the shape is %s: want a mask of %d nodes, or several", a.ShapeString(), n)
	}
	count := int64(1)
	if byRow {
		count = a.Shape[0]
	} else if len(a.Shape) == 2 {
		count = a.Shape[1]
	}
	if count > maxSplits {
		return nil, a.Errorf("%d splits: at most %d are read", count, maxSplits)
	}
	v, err := npy.Read[uint8](a, w)
	if err != nil {
		return nil, err
	}
	out := make([][]int32, count)
	for i, x := range v {
		node, k := int64(i)/count, int64(i)%count
		if byRow {
			node, k = int64(i)%n, int64(i)/n
		}
		switch x {
		case 0:
		case 1:
			out[k] = append(out[k], int32(node))
		default:
			return nil, a.Errorf("the mask of node %d is %d: want 0 or 1; a list of nodes is named train_idx", node, x)
		}
	}
	return out, nil
}

func (b *bundle) lists(names [3]string) error {
	var s Split
	for i, to := range []*[]int32{&s.Train, &s.Valid, &s.Test} {
		a, err := b.Array(names[i])
		if err != nil {
			return err
		}
		if err := a.WantShape(-1); err != nil {
			return err
		}
		if *to, err = npy.Read[int32](a, b.w); err != nil {
			return err
		}
		for _, v := range *to {
			if v < 0 || int64(v) >= b.n {
				return a.Errorf("node %d: there are %d nodes, numbered from 0", v, b.n)
			}
		}
		slices.Sort(*to)
	}
	if err := s.check(int(b.n)); err != nil {
		return usageErrorf("%s: %w", b.Path(), err)
	}
	b.d.splits = memorySplits{s}
	return nil
}
