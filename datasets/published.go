package datasets

import (
	"errors"
	"io/fs"
	"os"
	"strings"
)

// PublishedSet is a set that the literature goes by, known by name.
type PublishedSet struct{ Name, Describe string }

// published has the names that -dataset takes for sets under the root.
var published = []PublishedSet{
	{"cora", "citation network: 2,708 nodes, 7 classes"},
	{"citeseer", "citation network: 3,327 nodes, 6 classes"},
	{"pubmed", "citation network: 19,717 nodes, 3 classes"},
	{"reddit", "posts of September 2014: 232,965 nodes, 114.6M edges, 41 classes"},
	{"ogbn-arxiv", "citation network: 169,343 nodes, 1.2M edges, 40 classes"},
	{"ogbn-products", "co-purchases: 2,449,029 nodes, 61.9M undirected edges, 47 classes"},
	{"ogbn-papers100M", "citation network: 111,059,956 nodes, 1.6G edges, 172 classes"},
}

// Published returns the published sets that are known by name.
func Published() []PublishedSet { return append([]PublishedSet(nil), published...) }

func isPublished(name string) bool {
	for _, p := range published {
		if p.Name == name {
			return true
		}
	}
	return false
}

// IsGenerated reports whether a name is that of a set made on the spot.
func IsGenerated(name string) bool {
	_, _, ok := findGenerator(name)
	return ok
}

// Names returns the root folder that Open looks in, and the names there that
// are in a known format, ascending. A root that does not exist has none.
func Names(o Options) (root string, names []string, err error) {
	root = o.root()
	s, err := newSource(root)
	if errors.Is(err, fs.ErrNotExist) {
		return root, nil, nil
	}
	if err != nil {
		return root, nil, usageErrorf("%s: %w", root, err)
	}
	for _, n := range s.Names {
		if strings.HasPrefix(n, ".") {
			continue
		}
		set, err := newSource(s.File(n))
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, os.ErrPermission) {
			continue
		}
		if err != nil {
			return root, nil, err
		}
		if _, err := recognise(set, ""); err == nil {
			names = append(names, n)
		}
	}
	return root, names, nil
}
