package datasets

import (
	"context"
	"errors"
	"io"
	"strconv"

	"zerogcn/internal/npy"
)

// GraphSAINT is the layout of Zeng et al., "GraphSAINT: Graph Sampling Based
// Inductive Learning Method" (ICLR 2020): adj_full.npz, a SciPy CSR matrix in
// which edges are there both ways; feats.npy, a row per node; class_map.json,
// from node to a class or a list of 0 and 1; role.json, the lists tr, va and te.
// adj_train.npz, the edges between training nodes, follows from these and is not
// read. Edges are kept as directed as they are, repeated ones once; features as
// they are, while the authors' loader scales them by mean and deviation of the
// training nodes.
var graphSAINTFormat = Format{
	Name:     "graphsaint",
	Describe: "GraphSAINT: a folder with adj_full.npz, role.json, class_map.json, feats.npy",
	Recognise: func(s *Source) bool {
		return s.Has(saintGraph) && (s.textEntry(saintRoles) != "" || s.textEntry(saintClasses) != "")
	},
	Open: openGraphSAINT,
}

const (
	saintGraph   = "adj_full.npz"
	saintRoles   = "role.json"
	saintClasses = "class_map.json"
	saintFeats   = "feats"
)

func openGraphSAINT(ctx context.Context, s *Source, o Options) (*Dataset, error) {
	z, closeAll, err := openArchives(s, saintGraph)
	if err != nil {
		return nil, err
	}
	feats := &npyFolder{dir: s.Path}
	d := &Dataset{Meta: Meta{Name: s.Base(), Source: "GraphSAINT", Task: Multiclass}, closers: []func() error{closeAll, feats.Close}}
	a := &renamedArrays{path: s.Path, from: map[string]renamedArray{"features": {feats, saintFeats}}}
	for _, part := range []string{"indptr", "indices", "data", "shape"} {
		a.from["adj_"+part] = renamedArray{z[0], part}
	}
	b := &bundle{arrays: a, d: d, w: o.Workers, n: -1}
	for _, step := range []func(context.Context) error{
		func(context.Context) error { return wantCSR(z[0]) },
		b.graph, b.features,
		func(ctx context.Context) error { return saintLabels(ctx, s, d) },
		func(ctx context.Context) error { return saintSplit(ctx, s, d) },
		func(ctx context.Context) error { return d.seal(ctx, o.Workers) },
	} {
		if err := step(ctx); err != nil {
			return nil, errors.Join(err, d.Close())
		}
	}
	return d, nil
}

// wantCSR refuses SciPy matrices of another format than CSR, which have arrays
// of the same names.
func wantCSR(z *npy.Archive) error {
	if !z.Has("format") {
		return nil
	}
	a, err := z.Array("format")
	if err != nil {
		return err
	}
	s, err := a.Strings()
	if err != nil {
		return err
	}
	if len(s) != 1 || s[0] != "csr" {
		return a.Errorf("a SciPy matrix in the format %.20q: want csr", s)
	}
	return nil
}

// decimal finds a node by its number as text.
func decimal(n int) func(id string) (int, bool) {
	return func(id string) (int, bool) {
		v, err := strconv.Atoi(id)
		return v, err == nil && v >= 0 && v < n
	}
}

func saintLabels(ctx context.Context, s *Source, d *Dataset) error {
	name := s.textEntry(saintClasses)
	if name == "" {
		d.Warnings = append(d.Warnings, "no labels")
		return nil
	}
	n := d.Graph.NumNodes()
	m, err := readClassMap(ctx, s.File(name), n, decimal(n))
	if err == nil {
		m.label(d, s.File(name))
	}
	return err
}

func saintSplit(ctx context.Context, s *Source, d *Dataset) error {
	name := s.textEntry(saintRoles)
	if name == "" {
		return nil
	}
	path := s.File(name)
	f, err := openText(path)
	if err != nil {
		return err
	}
	defer f.Close()
	sp, err := parseRoles(ctx, path, f, d.Graph.NumNodes())
	if err != nil {
		return err
	}
	d.splits = memorySplits{sp}
	return nil
}

// parseRoles reads an object with the lists tr, va and te of nodes.
func parseRoles(ctx context.Context, path string, r io.Reader, n int) (Split, error) {
	var sp Split
	j := newJSONFile(path, r)
	given := map[string]bool{}
	err := j.object("an object with the lists tr, va and te", func(key string) error {
		var to *[]int32
		switch key {
		case "tr":
			to = &sp.Train
		case "va":
			to = &sp.Valid
		case "te":
			to = &sp.Test
		default:
			return j.skip()
		}
		if given[key] {
			return j.faultf("%s is there twice", key)
		}
		given[key] = true
		return j.array("a list of nodes", func(v []byte) error {
			if len(*to)&0xFFFF == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			x, ok := jsonInt(v)
			if !ok || x < 0 || x >= int64(n) {
				return j.faultf("%s: %.40q is not a node: there are %d, numbered from 0", key, v, n)
			}
			*to = append(*to, int32(x))
			return nil
		})
	})
	if err == nil {
		err = j.end()
	}
	if err != nil {
		return sp, err
	}
	if len(given) != 3 {
		return sp, usageErrorf("%s: want the lists tr, va and te", path)
	}
	if err := sp.check(n); err != nil {
		return sp, usageErrorf("%s: %w", path, err)
	}
	return sp, nil
}
