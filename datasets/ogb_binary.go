package datasets

import (
	"context"
	"errors"

	"zerogcn/internal/npy"
)

// binary reads raw/data.npz and raw/node-label.npz.
func (x *ogbSet) binary(ctx context.Context) error {
	z, err := npy.OpenArchive(x.raw.File(ogbBinary))
	if err != nil {
		return err
	}
	x.d.closers = append(x.d.closers, z.Close)
	if x.nodes, err = countArray(z, "num_nodes_list"); err != nil {
		return err
	}
	if x.edges, err = countArray(z, "num_edges_list"); err != nil {
		return err
	}
	rows := int64(-1)
	if z.Has("node_feat") {
		a, err := z.Array("node_feat")
		if err != nil {
			return err
		}
		if x.d.Features, err = archiveFeatures(a); err != nil {
			return err
		}
		rows = a.Shape[0]
	} else {
		x.d.Warnings = append(x.d.Warnings, "no features")
	}
	label, done, err := x.binaryLabels()
	if err != nil {
		return err
	}
	x.d.closers = append(x.d.closers, done)
	labels := int64(-1)
	if label != nil {
		labels = label.Rows()
	}
	if err := x.count(rows, labels, z.Path()+": node_feat.npy"); err != nil {
		return err
	}
	if !z.Has("edge_index") {
		return usageErrorf("%s: no edge_index", z.Path())
	}
	edges := func() (*npy.Array, error) { return z.Array("edge_index") }
	return x.build(ctx, label, z.Path()+": edge_index.npy", arrayEdges(ctx, edges, int64(x.numNodes())))
}

// binaryLabels opens the labels, nil if there are none; done closes their file.
func (x *ogbSet) binaryLabels() (a *npy.Array, done func() error, err error) {
	done = func() error { return nil }
	for _, name := range []string{"node-label", "graph-label"} {
		if !x.raw.Has(name + npzExt) {
			continue
		}
		x.graphLevel = name == "graph-label"
		z, err := npy.OpenArchive(x.raw.File(name + npzExt))
		if err != nil {
			return nil, done, err
		}
		key := pick(z, []string{"node_label", "graph_label", "label", "arr_0"})
		if key == "" {
			return nil, done, errors.Join(usageErrorf("%s: no array node_label", z.Path()), z.Close())
		}
		if a, err = z.Array(key); err == nil && (len(a.Shape) == 0 || len(a.Shape) > 2) {
			err = a.Errorf("the shape is %s: want (nodes,) or (nodes, labels)", a.ShapeString())
		}
		if err != nil {
			return nil, done, errors.Join(err, z.Close())
		}
		return a, z.Close, nil
	}
	return nil, done, nil
}

// countArray reads a list of counts, nil if it is not there.
func countArray(z *npy.Archive, name string) ([]int64, error) {
	if !z.Has(name) {
		return nil, nil
	}
	a, err := z.Array(name)
	if err != nil {
		return nil, err
	}
	v, err := npy.Read[int64](a, 1)
	if err != nil {
		return nil, err
	}
	if len(v) == 0 {
		return nil, a.Errorf("no counts: want one per graph")
	}
	for g, k := range v {
		if k < 0 || k > maxCount {
			return nil, a.Errorf("the count of graph %d is %d", g, k)
		}
	}
	return v, nil
}
