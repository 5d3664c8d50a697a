package datasets

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"zerogcn/datasets/internal/mat"
	"zerogcn/dtype"
	"zerogcn/graph"
	"zerogcn/internal/usage"
	"zerogcn/sparse"
)

// MATLAB files of level 5, as LINKX and its kin publish graphs (Lim et al.,
// "Large Scale Learning on Non-Homophilous Graphs", NeurIPS 2021). The names of
// the variables tell the layout:
//
//   - A and local_info (facebook100: Traud, Mucha and Porter, Physica A 391, 2012):
//     column 1 of local_info, the gender, is the label, where 0 means none; each
//     value of each other column is a feature, 0 or 1, as in LINKX's loader.
//   - edge_index, a 2 × edges array, with node_feat and label;
//   - a sparse network, adj or homo, with features or attrb and label or group.
//
// Labels are a column of whole numbers (from 1 on if none is 0; below 0: none),
// or a matrix of 0 and 1. Entry (i, j) is the edge from i to j; edges are kept as
// directed as they are, repeated ones once. There is no split.
var matlabFormat = Format{
	Name:      "mat",
	Describe:  "a MATLAB .mat file (level 5): facebook100's A and local_info, or edge_index or network with node_feat and label",
	Recognise: func(s *Source) bool { return matlabPath(s) != "" },
	Open:      openMATLAB,
}

const matlabExt = ".mat"

var (
	matlabGraphs   = []string{"A", "network", "adj", "adjacency", "homo"}
	matlabFeatures = []string{"node_feat", "features", "attrb", "attributes", "feat", "X"}
	matlabLabels   = []string{"label", "labels", "group", "gnd", "y"}
)

// matlabPath returns the file of a set: the source, or the one .mat file of a
// folder; "" if there is none.
func matlabPath(s *Source) string {
	if !s.Dir {
		if mat.Recognise(s.Head("", 32)) {
			return s.Path
		}
		return ""
	}
	if name := s.WithSuffix(matlabExt); name != "" && mat.Recognise(s.Head(name, 32)) {
		return s.File(name)
	}
	return ""
}

func openMATLAB(ctx context.Context, s *Source, o Options) (*Dataset, error) {
	path := matlabPath(s)
	if path == "" {
		return nil, usageErrorf("%s: no MATLAB file of level 5", s.Path)
	}
	if s.Dir {
		var all []string
		for _, n := range s.Names {
			if strings.HasSuffix(n, matlabExt) {
				all = append(all, n)
			}
		}
		if len(all) != 1 {
			return nil, usageErrorf("%s: the folder holds %d .mat files: name one (%.300s)", s.Path, len(all), strings.Join(all, ", "))
		}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, usage.Wrap(err)
	}
	data, err := io.ReadAll(f)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, usage.Wrap(&readError{path, err})
	}
	m, err := readMATLAB(ctx, path, data, o)
	if err != nil {
		return nil, err
	}
	m.d.Name = strings.TrimSuffix(filepath.Base(path), matlabExt)
	return m.d, m.d.seal(ctx, o.Workers)
}

// matlabSet is a set that is being made of variables.
type matlabSet struct {
	path string
	vars map[string]*mat.Matrix
	d    *Dataset
	o    Options
	n    int
}

func readMATLAB(ctx context.Context, path string, data []byte, o Options) (*matlabSet, error) {
	vars, err := mat.Read(data)
	if err != nil {
		return nil, usageErrorf("%s: %w", path, err)
	}
	x := &matlabSet{path: path, vars: vars, o: o, d: &Dataset{Meta: Meta{Source: "MATLAB file", Task: Multiclass}}}
	for _, step := range []func(context.Context) error{x.graph, x.attributes} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	return x, nil
}

// faultf is an error of the user's about a variable.
func (x *matlabSet) faultf(m *mat.Matrix, format string, args ...any) error {
	return usageErrorf("%s: variable %s: %w", x.path, m.Name, fmt.Errorf(format, args...))
}

// first returns the first variable that is there, nil if none is.
func (x *matlabSet) first(names []string) *mat.Matrix {
	for _, n := range names {
		if m := x.vars[n]; m != nil {
			return m
		}
	}
	return nil
}

func (x *matlabSet) graph(ctx context.Context) error {
	var e graph.Edges
	var err error
	m := x.vars["edge_index"]
	if m != nil {
		err = x.pairs(m, &e)
	} else if m = x.first(matlabGraphs); m != nil {
		err = x.adjacency(m, &e)
	} else {
		names := slices.Sorted(maps.Keys(x.vars))
		return usageErrorf("%s: the variables are %.200s: want edge_index, or one of %s", x.path, strings.Join(names, ", "), strings.Join(matlabGraphs, ", "))
	}
	if err != nil {
		return err
	}
	b := graph.Builder{NumNodes: x.n, Deduplicate: true, Workers: x.o.Workers}
	x.d.Graph, err = b.FromEdges(ctx, e.Sources, e.Targets, e.Weights)
	return err
}

// adjacency takes a sparse square array.
func (x *matlabSet) adjacency(m *mat.Matrix, e *graph.Edges) error {
	if !m.Sparse || m.Dims[0] != m.Dims[1] || m.Dims[0] > graph.MaxNodes {
		return x.faultf(m, "an array of %d × %d: want a sparse square one", m.Dims[0], m.Dims[1])
	}
	x.n = int(m.Dims[0])
	ones := true
	for c := range m.Indptr[1:] {
		for k := m.Indptr[c]; k < m.Indptr[c+1]; k++ {
			w := m.At(int(k))
			if w == 0 {
				continue // stored, but no edge
			}
			if w-w != 0 || float32(w)-float32(w) != 0 {
				return x.faultf(m, "row %d, column %d is %v: want a finite number", m.Rows[k], c, w)
			}
			ones = ones && w == 1
			e.Sources, e.Targets, e.Weights = append(e.Sources, m.Rows[k]), append(e.Targets, int32(c)), append(e.Weights, float32(w))
		}
	}
	if ones {
		e.Weights = nil
	}
	return nil
}

// pairs takes an array of 2 × edges or edges × 2 and counts the nodes by
// num_nodes, features or labels, else by the largest number.
func (x *matlabSet) pairs(m *mat.Matrix, e *graph.Edges) error {
	if m.Sparse || len(m.Dims) != 2 || m.Dims[0] != 2 && m.Dims[1] != 2 {
		return x.faultf(m, "the dimensions are %d: want 2 × edges", m.Dims)
	}
	across := m.Dims[0] == 2
	k := m.Len() / 2
	for i := range k {
		u, v := m.At(i), m.At(k+i)
		if across {
			u, v = m.At(2*i), m.At(2*i+1)
		}
		if !(u >= 0 && v >= 0 && u < graph.MaxNodes && v < graph.MaxNodes) || u != float64(int32(u)) || v != float64(int32(v)) {
			return x.faultf(m, "edge %d leads from %v to %v: want node numbers from 0 on", i, u, v)
		}
		e.Sources, e.Targets = append(e.Sources, int32(u)), append(e.Targets, int32(v))
	}
	by := x.first(matlabFeatures)
	if by == nil {
		by = x.first(matlabLabels)
	}
	if by != nil {
		n := by.Dims[0]
		if n == 1 {
			n = by.Dims[1] // labels in a row
		}
		// Sparse and empty arrays may claim any number of rows.
		if n > graph.MaxNodes || n > 1000+64*int64(by.Len()+k) {
			return x.faultf(by, "%d rows with %d values: that are too many", n, by.Len())
		}
		x.n = int(n)
	} else {
		n, err := nodesOf(*e)
		if err != nil {
			return x.faultf(m, "%w", err)
		}
		x.n = int(n)
	}
	for i, u := range e.Sources {
		if v := e.Targets[i]; int(u) >= x.n || int(v) >= x.n {
			return x.faultf(m, "edge %d leads from node %d to node %d: there are %d nodes, numbered from 0", i, u, v, x.n)
		}
	}
	return nil
}

func (x *matlabSet) attributes(context.Context) error {
	if m := x.vars["local_info"]; m != nil {
		return x.localInfo(m)
	}
	if m := x.first(matlabFeatures); m == nil {
		x.d.Warnings = append(x.d.Warnings, "no features")
	} else if err := x.features(m); err != nil {
		return err
	}
	m := x.first(matlabLabels)
	if m == nil {
		x.d.Warnings = append(x.d.Warnings, "no labels")
		return nil
	}
	return x.labels(m)
}

// gender is the column of local_info that facebook100's users predict.
const gender = 1

// localInfo makes labels and features of facebook100's table.
func (x *matlabSet) localInfo(m *mat.Matrix) error {
	if m.Sparse || len(m.Dims) != 2 || m.Dims[0] != int64(x.n) || m.Dims[1] <= gender {
		return x.faultf(m, "the dimensions are %d: want a row per node, of which there are %d, and at least 2 columns", m.Dims, x.n)
	}
	class := make([]int32, x.n)
	cols := make([][]int32, x.n) // ones of each row, ascending as columns come
	top, width := int32(-1), 0
	for c := range int(m.Dims[1]) {
		of := make([]float64, x.n)
		for v := range of {
			of[v] = m.At(c*x.n + v)
			if of[v]-of[v] != 0 {
				return x.faultf(m, "row %d, column %d is %v: want a finite number", v, c, of[v])
			}
		}
		if c == gender {
			for v, g := range of {
				if g < 0 || g > maxFeatures || g != float64(int32(g)) {
					return x.faultf(m, "row %d, column %d is %v: want a whole number, 0 for none", v, c, g)
				}
				class[v] = int32(g) - 1
				top = max(top, class[v])
			}
			continue
		}
		distinct := slices.Clone(of)
		slices.Sort(distinct)
		distinct = slices.Compact(distinct)
		for v, y := range of {
			at, _ := slices.BinarySearch(distinct, y)
			cols[v] = append(cols[v], int32(width+at))
		}
		if width += len(distinct); width > maxFeatures {
			return x.faultf(m, "more than %d different values", maxFeatures)
		}
	}
	x.d.Labels, x.d.Task = NewClassLabels(class, int(top)+1), Multiclass
	s := &sparse.Matrix{NumRows: x.n, NumCols: width, Indptr: make([]int64, 1, x.n+1)}
	for _, row := range cols {
		s.Cols = append(s.Cols, row...)
		s.Indptr = append(s.Indptr, int64(len(s.Cols)))
	}
	s.Vals = slices.Repeat([]float32{1}, len(s.Cols))
	x.d.Features = SparseFeatures(s)
	return nil
}

// features takes a dense or sparse array of a row per node.
func (x *matlabSet) features(m *mat.Matrix) error {
	if len(m.Dims) != 2 || m.Dims[0] != int64(x.n) || m.Dims[1] > maxFeatures {
		return x.faultf(m, "the dimensions are %d: want a row per node, of which there are %d", m.Dims, x.n)
	}
	cols := int(m.Dims[1])
	finite := func(r, c, i int) (float32, error) {
		v := float32(m.At(i))
		if v-v != 0 {
			return v, x.faultf(m, "row %d, column %d is %v: replace it by a finite number", r, c, m.At(i))
		}
		return v, nil
	}
	if !m.Sparse {
		out := make([]float32, m.Len())
		for c := range cols {
			for r := range x.n {
				v, err := finite(r, c, c*x.n+r)
				if err != nil {
					return err
				}
				out[r*cols+c] = v
			}
		}
		x.d.Features = &Features{Rows: x.n, Dim: cols, Type: dtype.Float32, name: x.path + ": " + m.Name, data: bytesOf(out)}
		return nil
	}
	// Columns to rows, by counting.
	s := &sparse.Matrix{NumRows: x.n, NumCols: cols, Indptr: make([]int64, x.n+1), Cols: make([]int32, m.Len()), Vals: make([]float32, m.Len())}
	for _, r := range m.Rows {
		s.Indptr[r+1]++
	}
	for r := range x.n {
		s.Indptr[r+1] += s.Indptr[r]
	}
	next := slices.Clone(s.Indptr)
	for c := range cols {
		for k := m.Indptr[c]; k < m.Indptr[c+1]; k++ {
			r := m.Rows[k]
			v, err := finite(int(r), c, int(k))
			if err != nil {
				return err
			}
			at := next[r]
			if at > s.Indptr[r] && s.Cols[at-1] == int32(c) {
				return x.faultf(m, "row %d, column %d is there twice", r, c)
			}
			s.Cols[at], s.Vals[at] = int32(c), v
			next[r]++
		}
	}
	x.d.Features = SparseFeatures(s)
	return nil
}

// labels takes a column or row of classes, or a matrix of 0 and 1.
func (x *matlabSet) labels(m *mat.Matrix) error {
	n := int64(x.n)
	if len(m.Dims) == 2 && m.Dims[0] == n && (m.Dims[1] > 1 || m.Sparse) {
		return x.labelSets(m)
	}
	if m.Sparse || len(m.Dims) != 2 || int64(m.Len()) != n || m.Dims[0] != 1 && m.Dims[1] != 1 {
		return x.faultf(m, "the dimensions are %d: want a label per node, of which there are %d", m.Dims, n)
	}
	class := make([]int32, n)
	low, top := int32(maxFeatures), int32(-1)
	for v := range class {
		y := m.At(v)
		switch {
		case y != y || y < 0:
			class[v] = NoClass
			continue
		case y > maxFeatures || y != float64(int32(y)):
			return x.faultf(m, "node %d has the label %v: want whole numbers up to 2^24, or below 0 for none", v, y)
		}
		class[v] = int32(y)
		low, top = min(low, class[v]), max(top, class[v])
	}
	if low == 1 { // MATLAB counts from 1
		for v := range class {
			class[v] = max(NoClass, class[v]-1)
		}
		top--
	}
	x.d.Labels, x.d.Task = NewClassLabels(class, int(top)+1), Multiclass
	return nil
}

func (x *matlabSet) labelSets(m *mat.Matrix) error {
	cols := m.Dims[1]
	if n := int64(x.n); cols > maxFeatures || n*cols > 1<<20+64*int64(m.Len()) {
		return x.faultf(m, "%d × %d labels, of which %d are stored: that are too many", n, cols, m.Len())
	}
	multi := make([]uint8, int64(x.n)*cols)
	set := func(r, c, i int) error {
		y := m.At(i)
		if y != 0 && y != 1 {
			return x.faultf(m, "row %d, column %d is %v: want 0 or 1 in a matrix of labels", r, c, y)
		}
		multi[r*int(cols)+c] = uint8(y)
		return nil
	}
	for c := range int(cols) {
		if !m.Sparse {
			for r := range x.n {
				if err := set(r, c, c*x.n+r); err != nil {
					return err
				}
			}
			continue
		}
		for k := m.Indptr[c]; k < m.Indptr[c+1]; k++ {
			if err := set(int(m.Rows[k]), c, int(k)); err != nil {
				return err
			}
		}
	}
	x.d.Labels, x.d.Task = NewMultiLabels(multi, int(cols)), Multilabel
	return nil
}
