package cpu

import (
	"zerogcn/internal/par"
	"zerogcn/model/op"
)

// dropout masks by rows. Drawing the words takes most of its time, so a tile has
// fewer elements than others.
type dropout struct {
	workers par.Workers
	attr    op.Attr
	mask    mask
	out, x  *op.Value
	key     *op.Key
	tileFn  func(t, lo, hi int)
}

func newDropout(w par.Workers, a op.Attr) *dropout {
	k := &dropout{workers: w, attr: a}
	k.tileFn = k.tile
	return k
}

func (k *dropout) Run(out *op.Value, in []*op.Value) error {
	k.out, k.x, k.key = out, in[0], in[1].Key
	k.mask.set(k.key, k.attr.P, k.attr.Site)
	k.workers.Range(out.Rows, rowsPer(out.Rows, 4*out.Len()), k.tileFn)
	k.out, k.x, k.key = nil, nil, nil
	return nil
}

func (k *dropout) tile(_, lo, hi int) {
	for r := lo; r < hi; r++ {
		k.mask.row(k.out.Row(r), k.x.Row(r), k.key.Item(r))
	}
}
