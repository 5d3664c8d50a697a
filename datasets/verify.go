package datasets

import (
	"context"
	"errors"

	"zerogcn/internal/par"
)

// labelTile is the number of labels that one task checks.
const labelTile = 1 << 16

// Verify reads the whole set and checks its contents: the graph, that every
// feature is finite, labels, splits, edge sets, original ids, and that the
// fingerprint in Meta is that of the content. It goes on after a fault and
// returns all that it found, joined, one line each.
func Verify(ctx context.Context, d *Dataset, w par.Workers) error {
	var faults []error
	note := func(err error) {
		if err != nil {
			faults = append(faults, err)
		}
	}
	note(d.CheckGraph(ctx, w))
	sound := len(faults) == 0
	if f := d.Features; f != nil {
		note(f.CheckFinite(ctx, w))
	}
	if d.Labels != nil {
		note(d.Labels.check(ctx, w))
	}
	for i := range d.NumGivenSplits() {
		_, err := d.Split(i)
		note(err)
	}
	if d.links != nil {
		_, err := d.EdgeSets()
		note(err)
	}
	note(d.checkNodeIDs())
	if err := ctx.Err(); err != nil {
		return err
	}
	sound = sound && len(faults) == 0
	if d.Fingerprint != "" && sound {
		got, err := Fingerprint(ctx, d, w)
		note(err)
		if err == nil && got != d.Fingerprint {
			note(usageErrorf("dataset %s: the content's fingerprint is %s, and %s is recorded: the files were changed after they were written", d.Name, got, d.Fingerprint))
		}
	}
	return errors.Join(faults...)
}

// CheckFinite reads the whole table and reports the first value that is NaN or
// infinite.
func (f *Features) CheckFinite(ctx context.Context, w par.Workers) error {
	if f.Dim == 0 {
		return nil
	}
	per := max(1, chunkBytes/f.RowBytes())
	if m := f.sparse; m != nil {
		if err := m.Validate(); err != nil {
			return usageErrorf("%s: %w", f.name, err)
		}
		for r := range m.NumRows {
			cols, vals := m.Row(r)
			for i, v := range vals {
				if v-v != 0 {
					return f.notFinite(r, int(cols[i]), v)
				}
			}
		}
		return nil
	}
	return eachTile(ctx, w, f.Rows, per, func(lo, hi int) error {
		if f.data != nil {
			return f.checkRows(lo, hi-lo, f.data[lo*f.RowBytes():hi*f.RowBytes()])
		}
		return f.ReadRows(ctx, lo, hi, make([]byte, (hi-lo)*f.RowBytes()))
	})
}

// check fetches every label once, which checks it.
func (l *Labels) check(ctx context.Context, w par.Workers) error {
	return eachTile(ctx, w, l.n, labelTile, func(lo, hi int) error {
		ids := make([]int32, hi-lo)
		for i := range ids {
			ids[i] = int32(lo + i)
		}
		switch {
		case l.multi != nil:
			return l.Multi(make([]uint8, len(ids)*l.width), ids)
		case l.value != nil:
			return l.Values(make([]float32, len(ids)*l.width), ids)
		}
		return l.Classes(ids, ids)
	})
}

// checkNodeIDs reports an original id that two nodes share, where ids are
// small enough to tell.
func (d *Dataset) checkNodeIDs() error {
	if d.NodeIDs == nil {
		return nil
	}
	if len(d.NodeIDs) != d.NumNodes {
		return usageErrorf("dataset %s: %d original ids for %d nodes", d.Name, len(d.NodeIDs), d.NumNodes)
	}
	return guardFaults(func() error {
		top := int64(0)
		for v, id := range d.NodeIDs {
			if id < 0 {
				return usageErrorf("dataset %s: the original id of node %d is %d: want 0 or more", d.Name, v, id)
			}
			top = max(top, id)
		}
		if top >= 64*int64(d.NumNodes)+1024 {
			return nil // not a permutation of a range: nothing to compare with
		}
		seen := make([]uint64, top/64+1)
		for v, id := range d.NodeIDs {
			if seen[id/64]>>(id%64)&1 != 0 {
				return usageErrorf("dataset %s: node %d: its original id %d is another node's too", d.Name, v, id)
			}
			seen[id/64] |= 1 << (id % 64)
		}
		return nil
	})
}
