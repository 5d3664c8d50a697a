package datasets

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"zerogcn/graph"
	"zerogcn/internal/npy"
)

// GraphSAGE is the layout of Hamilton, Ying and Leskovec, "Inductive
// Representation Learning on Large Graphs" (NIPS 2017): NAME-G.json, a networkx
// node-link graph whose nodes say val and test; NAME-id_map.json, from ids to
// rows; NAME-class_map.json, from ids to a class or a list of 0 and 1;
// NAME-feats.npy, optional. Walks are not read.
//
// Nodes are the rows of the id map, or the nodes of the graph in their order.
// Links name their ends by id, or, as networkx before 2 wrote them, by position
// in the list of nodes: numbers are positions where ids are text or where they
// are no ids. Edges of an undirected graph are made symmetric and kept once.
// Nodes that say neither val nor test are training nodes if they say so, and in
// no part where both words are absent: GraphSAGE's own loader drops those.
// Features are kept as they are; that loader scales them by mean and deviation of
// the training nodes.
var graphSAGEFormat = Format{
	Name:      "graphsage",
	Describe:  "GraphSAGE: NAME-G.json, NAME-id_map.json, NAME-class_map.json, NAME-feats.npy",
	Recognise: func(s *Source) bool { _, _, ok := graphSAGEName(s); return ok },
	Open:      openGraphSAGE,
}

const (
	sageGraph   = "-G.json"
	sageIDs     = "-id_map.json"
	sageClasses = "-class_map.json"
	sageFeats   = "-feats.npy"
)

// graphSAGEName returns folder and name of a set: the path is the folder, or
// the graph's file in it.
func graphSAGEName(s *Source) (dir, name string, ok bool) {
	if !s.Dir {
		name, ok = strings.CutSuffix(plainName(filepath.Base(s.Path)), sageGraph)
		return filepath.Dir(s.Path), name, ok
	}
	name, ok = strings.CutSuffix(plainName(s.withText(sageGraph)), sageGraph)
	return s.Path, name, ok
}

func openGraphSAGE(ctx context.Context, s *Source, o Options) (*Dataset, error) {
	path, name, ok := graphSAGEName(s)
	if !ok {
		return nil, usageErrorf("%s: no file NAME%s: a GraphSAGE set has one", s.Path, sageGraph)
	}
	dir, err := newSource(path)
	if err != nil {
		return nil, usageErrorf("%w", err)
	}
	d := &Dataset{Meta: Meta{Name: name, Source: "GraphSAGE json", Task: Multiclass}}
	if err := readGraphSAGE(ctx, dir, d, o); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

func readGraphSAGE(ctx context.Context, dir *Source, d *Dataset, o Options) error {
	path := func(suffix string) string {
		if n := dir.textEntry(d.Name + suffix); n != "" {
			return dir.File(n)
		}
		return ""
	}
	file := path(sageGraph)
	if file == "" {
		return missing(dir, d.Name+sageGraph)
	}
	g, err := readNodeLink(ctx, file)
	if err != nil {
		return err
	}
	ids, err := readIDMap(ctx, path(sageIDs), g)
	if err != nil {
		return err
	}
	n := len(ids)
	if err := g.place(ids, n, d); err != nil {
		return err
	}
	b := graph.Builder{NumNodes: n, Symmetrize: !g.directed, Deduplicate: true, Workers: o.Workers}
	if d.Graph, err = b.FromEdges(ctx, g.edges.Sources, g.edges.Targets, nil); err != nil {
		return err
	}
	if file := path(sageClasses); file == "" {
		d.Warnings = append(d.Warnings, "no labels")
	} else {
		m, err := readClassMap(ctx, file, n, func(id string) (int, bool) { v, ok := ids[id]; return int(v), ok })
		if err != nil {
			return err
		}
		m.label(d, file)
	}
	if err := openNodeFeatures(dir.File(d.Name+sageFeats), n, d); err != nil {
		return err
	}
	return d.seal(ctx, o.Workers)
}

// openNodeFeatures opens an .npy file of a row per node, which stays open until
// d is closed. A file that is not there means no features.
func openNodeFeatures(path string, n int, d *Dataset) error {
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		d.Warnings = append(d.Warnings, "no features")
		return nil
	}
	a, err := npy.Open(path)
	if err != nil {
		return err
	}
	d.closers = append(d.closers, a.Close)
	if err := a.WantShape(-1, -1); err != nil {
		return err
	}
	if a.Shape[0] != int64(n) {
		return a.Errorf("%d rows for %d nodes", a.Shape[0], n)
	}
	if a.Shape[1] > maxFeatures {
		return a.Errorf("%d columns: want at most %d", a.Shape[1], maxFeatures)
	}
	d.Features, err = arrayFeatures(a, storageOf(a))
	return err
}

// readIDMap reads the row of each id: all numbers from 0 on, each once. Without
// a file, rows are the positions of the graph's nodes.
func readIDMap(ctx context.Context, path string, g *nodeLink) (map[string]int32, error) {
	if path == "" {
		ids := make(map[string]int32, len(g.ids))
		for i, id := range g.ids {
			ids[id] = int32(i)
		}
		return ids, nil
	}
	f, err := openText(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return parseIDMap(ctx, path, f)
}

func parseIDMap(ctx context.Context, path string, r io.Reader) (map[string]int32, error) {
	j := newJSONFile(path, r)
	ids := map[string]int32{}
	top := int32(-1)
	err := j.object("an object from node ids to rows", func(key string) error {
		if len(ids)&0xFFF == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		v, err := j.value()
		if err != nil {
			return err
		}
		row, ok := jsonInt(v)
		if !ok || row < 0 || row >= graph.MaxNodes {
			return j.faultf("id %.40q: %.40q is not a row", key, v)
		}
		if _, twice := ids[key]; twice {
			return j.faultf("id %.40q is there twice", key)
		}
		ids[key] = int32(row)
		top = max(top, int32(row))
		return nil
	})
	if err != nil {
		return nil, err
	}
	if err := j.end(); err != nil {
		return nil, err
	}
	if int(top) >= len(ids) {
		return nil, usageErrorf("%s: row %d with %d ids: want rows from 0 on, one per id", path, top, len(ids))
	}
	seen := make([]bool, len(ids))
	for _, row := range ids {
		if seen[row] {
			return nil, usageErrorf("%s: row %d has two ids", path, row)
		}
		seen[row] = true
	}
	return ids, nil
}

// place turns links into edges between rows and flags into a split. ids has
// the row of each id, n of them.
func (g *nodeLink) place(ids map[string]int32, n int, d *Dataset) error {
	row := make([]int32, len(g.ids)) // by position
	inGraph := make([]bool, n)
	for i, id := range g.ids {
		r, ok := ids[id]
		if !ok {
			return usageErrorf("%s: node %.40q is not in the id map", g.path, id)
		}
		if inGraph[r] {
			return usageErrorf("%s: node %.40q is there twice", g.path, id)
		}
		row[i], inGraph[r] = r, true
	}
	if k := n - len(g.ids); k > 0 {
		d.Warnings = append(d.Warnings, plural(int64(k), "id of the id map is no node of the graph", "ids of the id map are no nodes of the graph")+": it has no edge and is in no part")
	}
	if err := g.resolve(ids, row, d); err != nil {
		return err
	}
	var sp Split
	without := 0
	for i, role := range g.roles {
		switch role {
		case roleTrain:
			sp.Train = append(sp.Train, row[i])
		case roleValid:
			sp.Valid = append(sp.Valid, row[i])
		case roleTest:
			sp.Test = append(sp.Test, row[i])
		default:
			without++
		}
	}
	if without < len(g.roles) {
		if err := sp.check(n); err != nil {
			return usageErrorf("%s: %w", g.path, err)
		}
		d.splits = memorySplits{sp}
		if without > 0 {
			d.Warnings = append(d.Warnings, plural(int64(without), "node says", "nodes say")+" neither val nor test: in no part (GraphSAGE's loader drops such nodes)")
		}
	}
	return nil
}

// resolve replaces the ends of links by rows. They are numbers or, where
// g.names is not nil, indices of it.
func (g *nodeLink) resolve(ids map[string]int32, row []int32, d *Dataset) error {
	ends := [2][]int32{g.edges.Sources, g.edges.Targets}
	at := func(k int) error {
		return usageErrorf("%s: link %d joins %s and %s, which are not both nodes: there are %d", g.path, k, g.end(ends[0][k]), g.end(ends[1][k]), len(row))
	}
	var to []int32 // what an end stands for, -1 nothing
	switch {
	case g.names != nil:
		to = make([]int32, len(g.names))
		for i, name := range g.names {
			to[i] = -1
			if r, ok := ids[name]; ok {
				to[i] = r
			}
		}
	case g.numbered:
		// Ids are the positions themselves: nothing to choose.
		to = row
	default:
		byID := g.byNumber(ids)
		known := byID != nil
		for k := 0; known && k < len(ends[0]); k++ {
			for _, e := range ends {
				known = known && int(e[k]) < len(byID) && byID[e[k]] >= 0
			}
		}
		if to = row; known {
			to = byID
		} else if byID != nil {
			d.Warnings = append(d.Warnings, "ends of links that are no ids: all are taken for positions in the list of nodes, as networkx before 2 writes them")
		}
	}
	for k := range ends[0] {
		for _, e := range ends {
			if int(e[k]) >= len(to) || to[e[k]] < 0 {
				return at(k)
			}
		}
		ends[0][k], ends[1][k] = to[ends[0][k]], to[ends[1][k]]
	}
	return nil
}

// end writes the end of a link for a message.
func (g *nodeLink) end(v int32) string {
	if g.names != nil {
		return fmt.Sprintf("%.40q", g.names[v])
	}
	return strconv.Itoa(int(v))
}

// byNumber returns the row of each id that is a number, -1 for other numbers;
// nil where ids are text, or so wide apart that they are names.
func (g *nodeLink) byNumber(ids map[string]int32) []int32 {
	num := make([]int64, len(g.ids))
	top := int64(-1)
	for i, id := range g.ids {
		v, err := strconv.ParseInt(id, 10, 64)
		if err != nil || v < 0 || v > 1000+64*int64(len(g.ids)) {
			return nil
		}
		num[i] = v
		top = max(top, v)
	}
	to := make([]int32, top+1)
	for i := range to {
		to[i] = -1
	}
	for i, v := range num {
		to[v] = ids[g.ids[i]]
	}
	return to
}
