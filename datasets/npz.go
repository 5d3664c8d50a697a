package datasets

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"strings"

	"zerogcn/internal/npy"
)

// npz bundles: one .npz file with graph, features, labels and masks, in the
// layouts of gnn-benchmark (Shchur et al., "Pitfalls of Graph Neural Network
// Evaluation", 2018: adj_data, adj_indices, …), of SciPy-like dotted keys
// (adj_matrix.data, …), of heterophilous-graphs (Platonov et al., ICLR 2023:
// node_features, edges, ten masks), and with PyTorch Geometric's names (x,
// edge_index, y, train_mask).
//
// The last but one stores each undirected edge once: it is made symmetric. The
// others are kept as directed as they are. Object arrays are never read.
var npzFormat = Format{
	Name:      "npz",
	Describe:  "an .npz file of arrays: adj_* or adj_matrix.*, or edges; attr_* or node_features; labels; masks",
	Recognise: recogniseNPZ,
	Open:      openNPZ,
}

const npzExt = ".npz"

func recogniseNPZ(s *Source) bool {
	if s.Dir {
		return s.WithSuffix(npzExt) != ""
	}
	return strings.EqualFold(filepath.Ext(s.Path), npzExt) && bytes.HasPrefix(s.Head("", 4), []byte("PK"))
}

func openNPZ(ctx context.Context, s *Source, o Options) (*Dataset, error) {
	path := s.Path
	if s.Dir {
		var all []string
		for _, n := range s.Names {
			if strings.HasSuffix(n, npzExt) {
				all = append(all, n)
			}
		}
		if len(all) != 1 {
			return nil, usageErrorf("%s: the folder holds %d .npz files: name one (%s)", s.Path, len(all), strings.Join(all, ", "))
		}
		path = s.File(all[0])
	}
	z, err := npy.OpenArchive(path)
	if err != nil {
		return nil, err
	}
	if !looksLikeBundle(z) {
		names := z.Names()
		return nil, errors.Join(usageErrorf("%s: the arrays are %.300s: want adj_indptr and adj_indices, adj_matrix.indptr and adj_matrix.indices, edges or edge_index", path, strings.Join(names, ", ")), z.Close())
	}
	name := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	return openBundle(ctx, z, name, "npz bundle", o, z.Close)
}
