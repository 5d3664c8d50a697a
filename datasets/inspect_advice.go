package datasets

import "fmt"

func (in *inspection) warn(format string, args ...any) {
	in.r.Warnings = append(in.r.Warnings, fmt.Sprintf(format, args...))
}

// advise puts into words what users of such sets have tripped over.
func (in *inspection) advise() {
	g, n := &in.r.Graph, in.d.NumNodes
	pairs := in.stats.NumEdges - in.stats.Duplicates - in.stats.SelfLoops
	switch {
	case pairs > 0 && g.Unpaired == pairs:
		in.warn("each edge is stored in one direction only: networks on this set usually want -symmetrize")
	case pairs > 0 && g.Unpaired > 0:
		in.warn("%d of %d edges have no reverse (the graph is directed): networks on such sets often do better with -symmetrize", g.Unpaired, pairs)
	}
	if g.Duplicates > 0 {
		in.warn("%s stored more than once: sums and means count them as often", plural(g.Duplicates, "edge is", "edges are"))
	}
	if g.SelfLoops > 0 {
		in.warn("%s stored: gcn, gat and sage-gcn drop them and add their own", plural(g.SelfLoops, "self loop is", "self loops are"))
	}
	if g.Isolated > 0 {
		in.warn("%s no neighbour: only their own features tell about them", plural(int64(g.Isolated), "node has", "nodes have"))
	}
	if z := in.r.Features.ZeroRows; z > 0 && in.d.NumFeatures > 0 {
		in.warn("%s nothing but zeros as features", plural(int64(z), "node has", "nodes have"))
	}
	if in.d.NumFeatures == 0 {
		in.warn("there are no features: nothing can be trained on this set yet")
	}
	l := in.r.Labels
	switch {
	case l == nil:
		in.warn("there are no labels")
		return
	case l.Labelled < n:
		in.warn("%s no label", plural(int64(n-l.Labelled), "node has", "nodes have"))
	}
	for c, k := range l.Counts {
		switch {
		case k == 0:
			in.warn("class %d has no node", c)
		case k < 3 && in.class != nil:
			in.warn("class %d has %s: it cannot be in all three parts of a split", c, plural(int64(k), "node", "nodes"))
		}
	}
	if in.d.NumGivenSplits() == 0 {
		in.warn("there is no given split: training makes a random one (-make-split random:0.6,0.2,0.2)")
	}
}

// adviseSplit looks at the first given split.
func (in *inspection) adviseSplit(s Split, rep SplitReport) {
	if in.d.Labels != nil {
		for _, p := range s.parts() {
			none, bare := 0, 0
			for _, v := range p.ids {
				if !in.d.Labels.Labelled(int(v)) {
					none++
					if in.empty[v] {
						bare++
					}
				}
			}
			if none > 0 {
				in.warn("%s in the %s part but no label (%d of them no features either)", plural(int64(none), "node is", "nodes are"), p.name, bare)
			}
		}
	}
	for c, k := range rep.TrainCounts {
		if k == 0 && in.r.Labels.Counts[c] > 0 {
			in.warn("class %d has no training node", c)
		}
	}
	if rep.Valid == 0 {
		in.warn("the validation part is empty: the best epoch cannot be told")
	}
	if rep.Test == 0 {
		in.warn("the test part is empty")
	}
}
