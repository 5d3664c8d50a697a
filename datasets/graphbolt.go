package datasets

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"zerogcn/datasets/internal/torch"
	"zerogcn/graph"
	"zerogcn/internal/npy"
)

// GraphBolt's OnDiskDataset (DGL's documentation, "Composing OnDiskDataset"): a
// folder with metadata.yaml, which names the files of a graph, of features and of
// the sets of a task. Read are graphs of one type of nodes and one of edges;
// edges as csv without a header or as an array of 2 × edges; the node feature
// named feat, or the first; the first task. Its seeds are nodes, with a label
// each, or pairs of nodes for link prediction. Arrays are .npy files or tensors
// of PyTorch. Edges are kept as directed as they are, repeated ones once. Paths
// that lead out of the folder are refused.
var graphBoltFormat = Format{
	Name:     "graphbolt",
	Describe: "GraphBolt's OnDiskDataset: a folder with metadata.yaml",
	Recognise: func(s *Source) bool {
		return s.Has(boltMeta) && bytes.Contains(s.Head(boltMeta, 1<<16), []byte("graph:"))
	},
	Open: openGraphBolt,
}

const (
	boltMeta    = "metadata.yaml"
	maxBoltMeta = 4 << 20
)

// boltFile is a file that metadata.yaml names.
type boltFile struct {
	Domain string
	Type   string
	Name   string
	Format string
	Path   string
}

// boltPart is a set of a task.
type boltPart []struct {
	Type string
	Data []boltFile
}

type boltSet struct {
	Name  string `yaml:"dataset_name"`
	Graph struct {
		Nodes []struct {
			Type string
			Num  int64
		}
		Edges       []boltFile
		FeatureData []boltFile `yaml:"feature_data"`
	}
	FeatureData []boltFile `yaml:"feature_data"`
	Tasks       []struct {
		Name    string
		Classes int      `yaml:"num_classes"`
		Train   boltPart `yaml:"train_set"`
		Valid   boltPart `yaml:"validation_set"`
		Test    boltPart `yaml:"test_set"`
	}

	s *Source
	d *Dataset
	o Options
}

func openGraphBolt(ctx context.Context, s *Source, o Options) (*Dataset, error) {
	if !s.Has(boltMeta) {
		return nil, missing(s, boltMeta)
	}
	text, err := readSmall(s.File(boltMeta), maxBoltMeta)
	if err != nil {
		return nil, err
	}
	b := &boltSet{s: s, o: o}
	if err := b.parse(text); err != nil {
		return nil, err
	}
	b.d = &Dataset{Meta: Meta{Name: s.Base(), Source: "GraphBolt OnDiskDataset", Task: Multiclass}}
	for _, step := range []func(context.Context) error{b.features, b.edges, b.task, func(ctx context.Context) error { return b.d.seal(ctx, o.Workers) }} {
		err := ctx.Err()
		if err == nil {
			err = step(ctx)
		}
		if err != nil {
			return nil, errors.Join(err, b.d.Close())
		}
	}
	return b.d, nil
}

func (b *boltSet) faultf(format string, args ...any) error {
	return usageErrorf("%s: "+format, append([]any{b.s.File(boltMeta)}, args...)...)
}

func (b *boltSet) parse(text []byte) error {
	if err := yaml.Unmarshal(text, b); err != nil {
		return b.faultf("%.300s", strings.ReplaceAll(err.Error(), "\n", " "))
	}
	switch {
	case len(b.Graph.Nodes) != 1 || len(b.Graph.Edges) != 1:
		return b.faultf("%d types of nodes and %d of edges: want one of each", len(b.Graph.Nodes), len(b.Graph.Edges))
	case b.Graph.Nodes[0].Num < 0 || b.Graph.Nodes[0].Num > graph.MaxNodes:
		return b.faultf("%d nodes: at most %d are possible", b.Graph.Nodes[0].Num, graph.MaxNodes)
	}
	return nil
}

func (b *boltSet) nodes() int { return int(b.Graph.Nodes[0].Num) }

// file returns the path of a file of the set.
func (b *boltSet) file(f boltFile) (string, error) {
	if strings.ContainsFunc(f.Path, unicode.IsControl) || strings.ContainsFunc(f.Path, func(r rune) bool { return r == utf8.RuneError }) {
		return "", b.faultf("the path %.80q has control characters", f.Path)
	}
	if !filepath.IsLocal(filepath.FromSlash(f.Path)) {
		return "", b.faultf("the path %.80q leads out of the folder", f.Path)
	}
	return b.s.File(filepath.FromSlash(f.Path)), nil
}

// array opens an array, which stays open until the set is closed.
func (b *boltSet) array(f boltFile) (*npy.Array, error) {
	path, err := b.file(f)
	if err != nil {
		return nil, err
	}
	switch f.Format {
	case "numpy":
		a, err := npy.Open(path)
		if err == nil {
			b.d.closers = append(b.d.closers, a.Close)
		}
		return a, err
	case "torch":
		t, err := torch.Open(path)
		if err != nil {
			return nil, err
		}
		a, err := t.Tensor(t.Value, "tensor")
		return a, errors.Join(err, t.Close())
	}
	return nil, b.faultf("%.80q is of the format %.20q: want numpy or torch", f.Path, f.Format)
}

func (b *boltSet) features(context.Context) error {
	var nodes []boltFile
	for _, f := range append(b.FeatureData, b.Graph.FeatureData...) {
		if f.Domain == "node" {
			nodes = append(nodes, f)
		}
	}
	if len(nodes) == 0 {
		b.d.Warnings = append(b.d.Warnings, "no features")
		return nil
	}
	chosen := nodes[0]
	for _, f := range nodes {
		if f.Name == "feat" {
			chosen = f
		}
	}
	for _, f := range nodes {
		if f != chosen {
			b.d.Warnings = append(b.d.Warnings, "the node feature "+printableName(f.Name)+" is not read, "+printableName(chosen.Name)+" is")
		}
	}
	a, err := b.array(chosen)
	if err != nil {
		return err
	}
	if err := a.WantShape(int64(b.nodes()), -1); err != nil {
		return err
	}
	if a.Shape[1] > maxFeatures {
		return a.Errorf("%d columns: want at most %d", a.Shape[1], maxFeatures)
	}
	b.d.Features, err = arrayFeatures(a, storageOf(a))
	return err
}

// printableName keeps a name out of a file short and on its line.
func printableName(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, s[:min(len(s), 40)])
}

func (b *boltSet) edges(ctx context.Context) error {
	f, n := b.Graph.Edges[0], b.nodes()
	path, err := b.file(f)
	if err != nil {
		return err
	}
	var src graph.EdgeSource
	switch f.Format {
	case "csv":
		src = edgeText{name: path, nodes: n}.stream(ctx)
	case "numpy", "torch":
		open := func() (*npy.Array, error) { return b.array(f) }
		src = arrayEdges(ctx, open, int64(n))
	default:
		return b.faultf("the edges are of the format %.20q: want csv, numpy or torch", f.Format)
	}
	if b.d.Features == nil {
		edges := 0
		for e, err := range src {
			if err != nil {
				return err
			}
			edges += e.Len()
		}
		if n > 1000+64*edges { // the number alone may not ask for memory
			return b.faultf("%d nodes, and only %d edges and no features to show for it", n, edges)
		}
	}
	bld := graph.Builder{NumNodes: n, Deduplicate: true, Workers: b.o.Workers}
	b.d.Graph, err = bld.Build(ctx, src)
	return err
}

// task reads the sets of the first task.
func (b *boltSet) task(context.Context) error {
	if len(b.Tasks) == 0 {
		b.d.Warnings = append(b.d.Warnings, "no task: neither labels nor a split")
		return nil
	}
	t := b.Tasks[0]
	if len(b.Tasks) > 1 {
		b.d.Warnings = append(b.d.Warnings, "of the tasks, "+printableName(t.Name)+" is read, the first")
	}
	var sp Split
	var links EdgeSets
	pairs, given := false, 0
	class := make([]int32, b.nodes())
	for i := range class {
		class[i] = NoClass
	}
	top := -1
	for i, part := range []boltPart{t.Train, t.Valid, t.Test} {
		if len(part) == 0 {
			continue
		}
		if len(part) > 1 {
			return b.faultf("a set of task %.40q has %d types: want one", t.Name, len(part))
		}
		seeds, labels, err := b.partArrays(part[0].Data)
		if err != nil {
			return err
		}
		if given++; given == 1 {
			pairs = len(seeds.Shape) == 2
		}
		ids, err := npy.Read[int32](seeds, b.o.Workers)
		if err != nil {
			return err
		}
		for k, v := range ids {
			if v < 0 || int(v) >= b.nodes() {
				return seeds.Errorf("element %d is node %d: there are %d nodes, numbered from 0", k, v, b.nodes())
			}
		}
		if pairs {
			if err := seeds.WantShape(-1, 2); err != nil {
				return err
			}
			*[]*EdgeList{&links.Train, &links.Valid, &links.Test}[i] = splitPairs(ids)
			continue
		}
		if err := seeds.WantShape(-1); err != nil {
			return err
		}
		if labels != nil {
			if top, err = b.labelSeeds(class, ids, labels, top, t.Classes); err != nil {
				return err
			}
		}
		*[]*[]int32{&sp.Train, &sp.Valid, &sp.Test}[i] = ids
	}
	switch {
	case given == 0:
		return nil
	case pairs:
		b.d.Task, b.d.links = Link, memoryEdges{links}
		return nil
	}
	if top >= 0 {
		b.d.Labels = NewClassLabels(class, max(top+1, t.Classes))
	}
	if err := sp.check(b.nodes()); err != nil {
		return b.faultf("task %.40q: %w", t.Name, err)
	}
	b.d.splits = memorySplits{sp}
	return nil
}

// partArrays opens the seeds of a set, and their labels, nil if it has none.
func (b *boltSet) partArrays(files []boltFile) (seeds, labels *npy.Array, err error) {
	for _, f := range files {
		var to **npy.Array
		switch f.Name {
		case "seeds", "seed_nodes", "node_pairs":
			to = &seeds
		case "labels":
			to = &labels
		default:
			continue
		}
		if *to, err = b.array(f); err != nil {
			return nil, nil, err
		}
	}
	if seeds == nil {
		return nil, nil, b.faultf("a set without seeds")
	}
	return seeds, labels, nil
}

// labelSeeds notes the class of each seed and returns the highest so far.
func (b *boltSet) labelSeeds(class, ids []int32, labels *npy.Array, top, classes int) (int, error) {
	if labels.Count() != int64(len(ids)) {
		return top, labels.Errorf("%d labels for %d seeds", labels.Count(), len(ids))
	}
	if classes < 0 || classes > maxFeatures {
		return top, b.faultf("num_classes is %d", classes)
	}
	of, err := npy.Read[int32](labels, b.o.Workers)
	if err != nil {
		return top, err
	}
	for k, c := range of {
		if c < NoClass || c >= maxFeatures || classes > 0 && int(c) >= classes {
			return top, labels.Errorf("element %d is class %d: num_classes is %d (-1 means none)", k, c, classes)
		}
		class[ids[k]] = c
		top = max(top, int(c))
	}
	return top, nil
}
