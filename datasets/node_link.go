package datasets

import (
	"bytes"
	"context"
	"io"
	"math"
	"strconv"

	"zerogcn/graph"
)

// nodeLink is a graph in networkx's node-link JSON, as it is written.
type nodeLink struct {
	path     string
	directed bool
	ids      []string // of the nodes, in the order of the file
	roles    []nodeRole
	numbered bool // ids are 0, 1, 2, … in order
	// edges have the ends of links as numbers; or, where names is not nil, as
	// indices of it.
	edges graph.Edges
	names []string
}

// nodeRole is the part of the split that a node says it is in.
type nodeRole uint8

const (
	roleNone nodeRole = iota
	roleTrain
	roleValid
	roleTest
)

func readNodeLink(ctx context.Context, path string) (*nodeLink, error) {
	f, err := openText(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return parseNodeLink(ctx, path, f)
}

func parseNodeLink(ctx context.Context, path string, r io.Reader) (*nodeLink, error) {
	j := newJSONFile(path, r)
	g := &nodeLink{path: path, numbered: true}
	n := 0
	each := func(f func(*jsonFile, []byte) error) func([]byte) error {
		return func(v []byte) error {
			if n++; n&0xFFFF == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			if v[0] != '{' {
				return j.faultf("%.40q is no object", v)
			}
			return f(j, v)
		}
	}
	names := map[string]int32{}
	given := map[string]bool{}
	err := j.object("a node-link object with nodes and links", func(key string) error {
		if given[key] {
			return j.faultf("%.40q is there twice", key)
		}
		switch key {
		case "directed":
			given[key] = true
			v, err := j.value()
			g.directed = string(v) == "true"
			return err
		case "nodes":
			given[key] = true
			return j.array("a list of nodes", each(g.node))
		case "links", "edges": // networkx 3.4 writes edges
			if given["links"] || given["edges"] {
				return j.faultf("%s and %s: one list is wanted", "links", "edges")
			}
			given[key] = true
			return j.array("a list of links", each(func(j *jsonFile, v []byte) error { return g.link(j, v, names) }))
		}
		return j.skip()
	})
	if err != nil {
		return nil, err
	}
	if err := j.end(); err != nil {
		return nil, err
	}
	if !given["nodes"] || !given["links"] && !given["edges"] {
		return nil, usageErrorf("%s: want an object with nodes and links, as networkx's node_link_data writes it", path)
	}
	return g, nil
}

func (g *nodeLink) node(j *jsonFile, obj []byte) error {
	var id, val, test []byte
	if err := jsonMembers(obj, func(name, v []byte) error {
		switch string(name) {
		case "id":
			id = v
		case "val":
			val = v
		case "test":
			test = v
		}
		return nil
	}); err != nil {
		return err
	}
	text, ok := jsonText(id)
	if !ok {
		return j.faultf("node %d: the id is %.40q: want a number or a text", len(g.ids), id)
	}
	if g.numbered && (id[0] == '"' || text != strconv.Itoa(len(g.ids))) {
		g.numbered = false
	}
	if len(g.ids) == graph.MaxNodes {
		return j.faultf("more than %d nodes", graph.MaxNodes)
	}
	role := roleNone
	if val != nil || test != nil {
		v, ok1 := jsonFlag(val)
		t, ok2 := jsonFlag(test)
		switch {
		case !ok1 || !ok2:
			return j.faultf("node %.40q: val is %.40q and test is %.40q: want true or false", text, val, test)
		case v && t:
			return j.faultf("node %.40q is in val and in test", text)
		case v:
			role = roleValid
		case t:
			role = roleTest
		default:
			role = roleTrain
		}
	}
	g.ids, g.roles = append(g.ids, text), append(g.roles, role)
	return nil
}

// jsonFlag reads a boolean; absent means false.
func jsonFlag(v []byte) (set, ok bool) {
	x, ok := jsonInt(v)
	return x == 1, v == nil || ok && (x == 0 || x == 1)
}

func (g *nodeLink) link(j *jsonFile, obj []byte, names map[string]int32) error {
	var ends [2][]byte
	if err := jsonMembers(obj, func(name, v []byte) error {
		switch {
		case bytes.Equal(name, []byte("source")):
			ends[0] = v
		case bytes.Equal(name, []byte("target")):
			ends[1] = v
		}
		return nil
	}); err != nil {
		return err
	}
	var to [2]int32
	isText := func(v []byte) bool { return len(v) > 0 && v[0] == '"' }
	if isText(ends[0]) != isText(ends[1]) || g.edges.Len() > 0 && isText(ends[0]) != (g.names != nil) {
		return j.faultf("link %d: the ends are %.40q and %.40q: want numbers in all links, or texts in all", g.edges.Len(), ends[0], ends[1])
	}
	for i, v := range ends {
		if isText(v) {
			text, ok := jsonText(v)
			if !ok {
				return j.faultf("link %d: %.40q is no id", g.edges.Len(), v)
			}
			at, ok := names[text]
			if !ok {
				at = int32(len(g.names))
				names[text] = at
				g.names = append(g.names, text)
			}
			to[i] = at
			continue
		}
		x, ok := jsonInt(v)
		if !ok || x < 0 || x > math.MaxInt32 {
			return j.faultf("link %d: an end is %.40q: want the number or the id of a node", g.edges.Len(), v)
		}
		to[i] = int32(x)
	}
	g.edges.Sources, g.edges.Targets = append(g.edges.Sources, to[0]), append(g.edges.Targets, to[1])
	return nil
}
