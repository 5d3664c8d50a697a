package datasets

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"zerogcn/graph"
	"zerogcn/internal/npy"
)

// OGB is the layout in which the Open Graph Benchmark (Hu et al., NeurIPS 2020)
// publishes its sets: a folder with raw/ and split/. In raw/ there is either text
// (edge.csv.gz, node-feat.csv.gz, node-label.csv.gz without headers,
// num-node-list.csv.gz and num-edge-list.csv.gz with a line per graph) or, for
// sets that would be slow as text, data.npz and node-label.npz; split/NAME/ has
// train.csv.gz, valid.csv.gz and test.csv.gz. What is in mapping/ is not read.
//
// Some sets store each undirected edge once, and OGB's own loader adds the
// inverse of each (add_inverse_edge in its list of sets): so does this reader for
// the sets that it knows by name, and for others where no edge has a reverse.
// It keeps each edge once, while OGB's counts double the self loops.
//
// A graph-level set is read as one graph of as many components, in the order of
// its graphs: each node has the label of its graph and is in its graph's part
// of the split.
//
// Text is read as a stream and edges are never held but in the graph that is
// built; features of a stored data.npz stay in the file, those of a deflated
// one are read from it as a stream where they are large.
var ogbFormat = Format{
	Name:      "ogb",
	Describe:  "OGB's layout: a folder with raw/edge.csv.gz or raw/data.npz, and split/",
	Recognise: recogniseOGB,
	Open:      openOGB,
}

const (
	ogbRaw     = "raw"
	ogbSplit   = "split"
	ogbEdges   = "edge.csv"
	ogbBinary  = "data.npz"
	ogbInverse = "each edge is stored once: the inverse is added, "
)

// ogbInverses says for published sets whether OGB's loader adds the inverse of
// each edge; the keys are what a folder's name contains.
var ogbInverses = []struct {
	name string
	add  bool
}{{"products", true}, {"proteins", true}, {"arxiv", false}, {"papers100m", false}}

func recogniseOGB(s *Source) bool {
	raw := s.folder(ogbRaw)
	return raw != nil && (raw.textEntry(ogbEdges) != "" || raw.Has(ogbBinary))
}

// folder returns a folder in a folder, nil if there is none.
func (s *Source) folder(name string) *Source {
	if !s.Has(name) {
		return nil
	}
	if f, err := newSource(s.File(name)); err == nil && f.Dir {
		return f
	}
	return nil
}

// textEntry returns the entry of this name, packed or not; "" if there is none.
func (s *Source) textEntry(name string) string { return firstOf(s, []string{name}) }

// ogbSet is a set that is being read.
type ogbSet struct {
	s, raw *Source
	d      *Dataset
	o      Options
	// nodes and edges are counts by graph, nil where they are not given.
	nodes, edges []int64
	// graphLevel says that labels and splits are of graphs.
	graphLevel bool
	// start[g] is the first node of graph g, start[len(start)-1] the number of
	// nodes.
	start []int64
	// unproven says that nothing but the list of counts tells the number of
	// nodes.
	unproven bool
}

func openOGB(ctx context.Context, s *Source, o Options) (*Dataset, error) {
	raw := s.folder(ogbRaw)
	if raw == nil {
		return nil, usageErrorf("%s: no folder raw: an OGB set has one with %s.gz or %s", s.Path, ogbEdges, ogbBinary)
	}
	x := &ogbSet{s: s, raw: raw, o: o, d: &Dataset{Meta: Meta{Name: s.Base(), Source: "OGB", Task: Multiclass}}}
	read := x.text
	if raw.Has(ogbBinary) && raw.textEntry(ogbEdges) == "" {
		read = x.binary
	}
	for _, step := range []func(context.Context) error{read, x.splits, func(ctx context.Context) error { return x.d.seal(ctx, o.Workers) }} {
		if err := step(ctx); err != nil {
			return nil, errors.Join(err, x.d.Close())
		}
	}
	return x.d, nil
}

// count fixes the number of nodes, which features or labels give where there is
// no list of counts, and checks it. rows are those of features, -1 without any;
// name is that of their file.
func (x *ogbSet) count(rows, labels int64, name string) error {
	if x.nodes == nil {
		switch {
		case rows >= 0:
			x.nodes = []int64{rows}
		case labels >= 0 && !x.graphLevel:
			x.nodes = []int64{labels}
		default:
			return usageErrorf("%s: nothing counts the nodes: want num-node-list.csv.gz or node-feat.csv.gz", x.raw.Path)
		}
	}
	x.graphLevel = x.graphLevel || len(x.nodes) > 1
	x.start = make([]int64, 1, len(x.nodes)+1)
	for g, k := range x.nodes {
		n := x.start[g] + k
		if k < 0 || n > graph.MaxNodes {
			return usageErrorf("%s: graph %d has %d nodes: at most %d in all are possible", x.raw.Path, g, k, graph.MaxNodes)
		}
		x.start = append(x.start, n)
	}
	n := x.start[len(x.nodes)]
	switch {
	case rows >= 0 && rows != n:
		return usageErrorf("%s: %d rows of features for %d nodes: a file is cut short, or of another set", name, rows, n)
	case labels >= 0 && x.graphLevel && labels != int64(len(x.nodes)):
		return usageErrorf("%s: %d labels for %d graphs", x.raw.Path, labels, len(x.nodes))
	case labels >= 0 && !x.graphLevel && labels != n:
		return usageErrorf("%s: %d labels for %d nodes", x.raw.Path, labels, n)
	}
	if (x.edges != nil || len(x.nodes) > 1) && len(x.edges) != len(x.nodes) {
		return usageErrorf("%s: counts of nodes for %d graphs and counts of edges for %d", x.raw.Path, len(x.nodes), len(x.edges))
	}
	x.unproven = rows < 0 && (labels < 0 || x.graphLevel)
	if x.graphLevel {
		x.d.Warnings = append(x.d.Warnings, fmt.Sprintf("a set of %d graphs, read as one of %d components: nodes have their graph's label and its part of the split", len(x.nodes), len(x.nodes)))
	}
	return nil
}

func sum(v []int64) int64 {
	n := int64(0)
	for _, x := range v {
		n += x
	}
	return n
}

func (x *ogbSet) numNodes() int { return int(x.start[len(x.start)-1]) }

// prove counts the edges where nothing else shows that there are as many nodes
// as the list of counts says: memory is asked for by what files hold.
func (x *ogbSet) prove(src graph.EdgeSource) error {
	if !x.unproven {
		return nil
	}
	edges := 0
	for e, err := range src {
		if err != nil {
			return err
		}
		edges += e.Len()
	}
	if n := x.numNodes(); n > 1000+64*edges {
		return usageErrorf("%s: %d nodes by the list of counts, and no features and only %d edges to show for it", x.raw.Path, n, edges)
	}
	return nil
}

// setLabels takes labels by node, or by graph.
func (x *ogbSet) setLabels(a *npy.Array) error {
	if a == nil {
		x.d.Warnings = append(x.d.Warnings, "no labels")
		return nil
	}
	l, task, err := foreignLabels(a, 0, x.o.Workers)
	if err != nil {
		return err
	}
	if x.graphLevel {
		l = l.repeat(x.nodes)
	}
	x.d.Labels, x.d.Task = l, task
	return nil
}

// repeat returns labels in which entry g is there counts[g] times.
func (l *Labels) repeat(counts []int64) *Labels {
	to := &Labels{name: l.name, width: l.width}
	for g, k := range counts {
		for range k {
			switch {
			case l.class32 != nil:
				to.class32 = append(to.class32, l.class32[g])
			case l.multi != nil:
				to.multi = append(to.multi, l.multi[g*l.width:(g+1)*l.width]...)
			default:
				to.value = append(to.value, l.value[g*l.width:(g+1)*l.width]...)
			}
		}
		to.n += int(k)
	}
	return to
}

// build sets labels and makes the graph of edges that are local to their graphs.
// name is that of their file.
func (x *ogbSet) build(ctx context.Context, label *npy.Array, name string, src graph.EdgeSource) error {
	src = x.shifted(name, src)
	if err := x.prove(src); err != nil {
		return err
	}
	if err := x.setLabels(label); err != nil {
		return err
	}
	base := strings.ToLower(x.d.Name)
	known, add := x.graphLevel, x.graphLevel
	for _, p := range ogbInverses {
		if strings.Contains(base, p.name) {
			known, add = true, p.add
		}
	}
	b := graph.Builder{NumNodes: x.numNodes(), Symmetrize: add, Deduplicate: true, Workers: x.o.Workers}
	var err error
	if x.d.Graph, err = x.o.buildGraph(ctx, x.d, b, src); err != nil {
		return err
	}
	if add {
		x.d.Warnings = append(x.d.Warnings, ogbInverse+"as OGB's loader does for this set")
	}
	if known {
		return nil
	}
	st, err := x.d.Graph.Stats(ctx, x.o.Workers)
	if err != nil {
		return err
	}
	if st.Unpaired == 0 || st.Unpaired < st.NumEdges-st.SelfLoops {
		return nil
	}
	b.Symmetrize = true
	if x.d.Graph, err = x.o.buildGraph(ctx, x.d, b, graphEdges(x.d.Graph)); err != nil {
		return err
	}
	x.d.Warnings = append(x.d.Warnings, ogbInverse+"as no edge has one")
	return nil
}

// shifted numbers the nodes of all graphs through and checks the counts.
func (x *ogbSet) shifted(name string, src graph.EdgeSource) graph.EdgeSource {
	want := sum(x.edges)
	return func(yield func(graph.Edges, error) bool) {
		seen, g, left := int64(0), 0, int64(0)
		if x.graphLevel && len(x.edges) > 0 {
			left = x.edges[0]
		}
		for e, err := range src {
			if err == nil && x.graphLevel {
				for i := range e.Sources {
					for left == 0 && g+1 < len(x.edges) {
						g++
						left = x.edges[g]
					}
					left--
					if k := x.nodes[g]; int64(e.Sources[i]) >= k || int64(e.Targets[i]) >= k {
						yield(graph.Edges{}, usageErrorf("%s: edge %d, of graph %d, leads from node %d to node %d: that graph has %d nodes, numbered from 0",
							name, seen+int64(i), g, e.Sources[i], e.Targets[i], k))
						return
					}
					e.Sources[i] += int32(x.start[g])
					e.Targets[i] += int32(x.start[g])
				}
			}
			seen += int64(e.Len())
			if !yield(e, err) || err != nil {
				return
			}
		}
		if x.edges != nil && seen != want {
			yield(graph.Edges{}, usageErrorf("%s: %d edges, and the list of counts says %d: a file is cut short, or of another set", name, seen, want))
		}
	}
}

// splits reads every folder of split/ that has the three lists.
func (x *ogbSet) splits(ctx context.Context) error {
	dir := x.s.folder(ogbSplit)
	if dir == nil {
		return nil
	}
	var all memorySplits
	for _, name := range dir.Names {
		sub := dir.folder(name)
		if sub == nil || sub.textEntry("train.csv") == "" {
			continue
		}
		if len(all) == maxSplits {
			return usageErrorf("%s: more than %d splits", dir.Path, maxSplits)
		}
		var sp Split
		for i, to := range []*[]int32{&sp.Train, &sp.Valid, &sp.Test} {
			part := []string{"train.csv", "valid.csv", "test.csv"}[i]
			file := sub.textEntry(part)
			if file == "" {
				return usageErrorf("%s: no %s.gz beside train.csv.gz", sub.Path, part)
			}
			ids, err := readNodeList(ctx, sub.File(file), x.items())
			if err != nil {
				return err
			}
			if *to, err = x.nodesOf(ids); err != nil {
				return usageErrorf("%s: %w", sub.File(file), err)
			}
		}
		if err := sp.check(x.numNodes()); err != nil {
			return usageErrorf("%s: %w", sub.Path, err)
		}
		all = append(all, sp)
	}
	if all != nil {
		x.d.splits = all
	}
	return nil
}

// items is the number of what splits are lists of.
func (x *ogbSet) items() int {
	if x.graphLevel {
		return len(x.nodes)
	}
	return x.numNodes()
}

// nodesOf returns the nodes of graphs, or the nodes themselves.
func (x *ogbSet) nodesOf(ids []int32) ([]int32, error) {
	if !x.graphLevel {
		return ids, nil
	}
	var out []int32
	seen := make([]bool, len(x.nodes))
	for _, g := range ids {
		if seen[g] {
			return nil, fmt.Errorf("graph %d is there twice", g)
		}
		seen[g] = true
		for v := x.start[g]; v < x.start[g+1]; v++ {
			out = append(out, int32(v))
		}
	}
	return out, nil
}

// missing reports that a file of a set is not there.
func missing(s *Source, name string) error {
	return usageErrorf("%s: the file is missing", s.File(name))
}
