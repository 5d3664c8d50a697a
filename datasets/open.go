package datasets

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"zerogcn/internal/nearest"
	"zerogcn/internal/par"
	"zerogcn/internal/usage"
)

// Options say how Open finds and reads a dataset. The zero value is useful.
type Options struct {
	// Root is the folder in which names are looked for. Empty means
	// $ZEROGCN_DATA, or ~/.cache/zerogcn where that is not set.
	Root string
	// Format overrides the recognition by content. Empty means recognise.
	Format string
	// Workers bounds the goroutines used while reading. Zero means GOMAXPROCS.
	// Results do not depend on it.
	Workers par.Workers
	// Memory bounds, in bytes, what the set and those derived from it hold of edges
	// and of feature rows that are moved; beyond it they go to temporary files in
	// Scratch. Arrays by node (offsets, labels, an order) are held in any case.
	// Results do not depend on it. Zero means no bound; MinMemory is the least
	// other value.
	Memory int64
	// Scratch is the folder for temporary files, which have no names and so
	// leave nothing behind. Empty means os.TempDir.
	Scratch string
}

// formats is the table of on-disk formats, in the order in which they are
// tried.
var formats = []Format{
	nativeFormat,
	ogbFormat,
	planetoidFormat,
	musaeFormat,
	coraTextFormat,
	graphSAGEFormat,
	graphSAINTFormat,
	redditFormat,
	matlabFormat,
	matrixMarketFormat,
	graphBoltFormat,
	parquetFormat,
	npyFormat,
	npzFormat,
	edgeListFormat,
	namedEdgesFormat,
}

// Formats returns the known on-disk formats.
func Formats() []Format { return append([]Format(nil), formats...) }

// Open opens a dataset by name. name is a path of a file or folder in a known
// format; or the name of a set made on the spot ("demo", "synthetic:…"); or a
// name under Options.Root. A name with a path separator, or that begins with a
// dot, is a path only.
//
// Errors of name, options and content are the user's (internal/usage). The
// caller closes the Dataset.
func Open(ctx context.Context, name string, o Options) (*Dataset, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if name == "" {
		return nil, errNoName
	}
	if g, args, ok := findGenerator(name); ok {
		if o.Format != "" {
			return nil, usageErrorf("dataset %s is made on the spot: -format does not apply", name)
		}
		return g.Open(ctx, args, o)
	}
	src, err := locate(name, o)
	if err != nil {
		return nil, err
	}
	f, err := recognise(src, o.Format)
	if err != nil {
		return nil, err
	}
	if err := o.checkMemory(); err != nil {
		return nil, err
	}
	d, err := f.Open(ctx, src, o)
	if err != nil {
		return nil, err
	}
	d.spill = o.spill()
	return d, nil
}

var errNoName = usage.Errorf("no dataset named: give a path, or a name that `dataset list` prints")

func isBareName(name string) bool {
	return !strings.ContainsRune(name, filepath.Separator) && !strings.HasPrefix(name, ".")
}

func (o Options) root() string {
	if o.Root != "" {
		return o.Root
	}
	if r := os.Getenv("ZEROGCN_DATA"); r != "" {
		return r
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "."
	}
	return filepath.Join(home, ".cache", "zerogcn")
}

func recognise(s *Source, want string) (Format, error) {
	if want != "" {
		var names []string
		for _, f := range formats {
			if f.Name == want {
				return f, nil
			}
			names = append(names, f.Name)
		}
		return Format{}, usageErrorf("unknown dataset format %q%s (known: %s)", want, didYouMean(want, names), strings.Join(names, ", "))
	}
	for _, f := range formats {
		if f.Recognise(s) {
			return f, nil
		}
	}
	kind := "file"
	if s.Dir {
		kind = "folder"
	}
	return Format{}, usageErrorf("%s: this %s is in no known format: name one with -format, or convert it to a folder of .npy files (docs/datasets.md)", s.Path, kind)
}

// Generator makes a dataset on the spot from a name of the form
// name[:variant][?key=value&…].
type Generator struct {
	Name     string
	Describe string
	// Check looks at the arguments without making anything.
	Check func(args string) error
	Open  func(ctx context.Context, args string, o Options) (*Dataset, error)
}

// generators is the table of sets made on the spot.
var generators = []Generator{
	demoGenerator,
	syntheticGenerator,
}

// Generators returns the sets made on the spot.
func Generators() []Generator { return append([]Generator(nil), generators...) }

func findGenerator(name string) (Generator, string, bool) {
	for _, g := range generators {
		if rest, ok := strings.CutPrefix(name, g.Name); ok && (rest == "" || rest[0] == '?' || rest[0] == ':') {
			return g, rest, true
		}
	}
	return Generator{}, "", false
}

// notFound says what is wrong with a name, lists near ones and what to do.
func notFound(name string, o Options) error {
	if !isBareName(name) {
		return usageErrorf("dataset %s: no such file or folder", name)
	}
	var names []string
	for _, g := range generators {
		names = append(names, g.Name)
	}
	if p, ok := FindPublished(name); ok {
		return usage.Wrap(&notDownloaded{p, o.root()})
	}
	for _, p := range published {
		names = append(names, p.Name)
	}
	if s, err := newSource(o.root()); err == nil {
		names = append(names, s.Names...)
	}
	return usageErrorf("dataset %s: no such file or folder here or in %s%s: give a path, set -root, or use demo", name, o.root(), didYouMean(name, names))
}

func didYouMean(name string, names []string) string {
	best := nearest.Name(name, names)
	if best == "" {
		return ""
	}
	return ": did you mean " + best + "?"
}
