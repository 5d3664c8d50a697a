package main

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"

	"zerogcn/dtype"
	"zerogcn/internal/cli"
	"zerogcn/internal/usage"
	"zerogcn/zerocopy"
)

// options are what the flags say.
type options struct {
	tables []cli.Size
	widths []int
	dtypes []dtype.Type
	orders []order
	modes  []zerocopy.Mode // empty: all that the machine has

	count, batches, repeat, merge int
	workers, stagedWorkers        int
	blocks, device                int
	cache                         cli.Size
	seed                          uint64
	skipMemoryCheck               bool

	beside      bool
	json, quiet bool
	plot        string
}

// order is how ids lie in a batch.
type order string

const (
	ascending order = "ascending" // uniform over the table, sorted
	random    order = "random"    // the same, shuffled
	hot       order = "hot"       // log-normal access, hot rows first, sorted
)

func parse(args []string) (*options, error) {
	o := &options{
		tables: []cli.Size{{Bytes: 1 << 30}}, widths: []int{100}, dtypes: []dtype.Type{dtype.Float32}, orders: []order{ascending},
		count: 507_000, batches: 4, repeat: 9, merge: 1,
		workers: min(8, max(1, runtime.GOMAXPROCS(0)/2)), stagedWorkers: max(1, runtime.GOMAXPROCS(0)-2),
		cache: cli.Size{Percent: 20}, seed: 1,
	}
	fs := cli.NewFlags("gatherbench", "Measures the gather of table rows alone, every mode side by side.")
	fs.Group("Table")
	fs.Var(list(&o.tables, "SIZES", cli.ParseSize, cli.Size.String), "table", "sizes of the table, such as 1GiB,16GiB")
	fs.Var(list(&o.widths, "WIDTHS", parseWidth, strconv.Itoa), "width", "values in a row, such as 100,128,602")
	fs.Var(list(&o.dtypes, "TYPES", dtype.Parse, dtype.Type.String), "dtype", "storage types: float32, float16, bf16, int8")
	fs.Var(cli.Bool(&o.skipMemoryCheck), "skip-memory-check", "map the table even if less memory seems to be available")
	fs.Group("Gathers")
	fs.Var(list(&o.orders, "ORDERS", parseOrder, func(v order) string { return string(v) }), "order", "order of ids: ascending, random, hot (log-normal access, hot rows first)")
	fs.Var(list(&o.modes, "MODES", zerocopy.ParseMode, zerocopy.Mode.String), "modes", "host, zerocopy, staged, device, cached, hybrid, auto; all that the machine has if not given")
	fs.Var(cli.Positive(&o.count), "count", "unique ids in a batch (at most half of the table's rows are taken)")
	fs.Var(cli.Positive(&o.batches), "batches", "different batches to go round")
	fs.Var(cli.Positive(&o.repeat), "repeat", "timed gathers, of which the median counts")
	fs.Var(cli.Positive(&o.merge), "merge", "batches merged into one ascending pass (zerocopy, cached, hybrid, auto)")
	fs.Var(cli.Positive(&o.workers), "workers", "CPU threads of hybrid and auto")
	fs.Var(cli.Positive(&o.stagedWorkers), "staged-workers", "CPU threads of staged and host")
	fs.Var(cli.NonNegative(&o.blocks), "gather-blocks", "blocks of 1,024 threads, 0 = the mode's own choice")
	fs.Var(cli.MemorySize(&o.cache), "cache", "GPU memory of mode cached, as a size or a share of the table")
	fs.Var(cli.NonNegative(&o.device), "device", "ordinal of the GPU")
	fs.Var(cli.Seed(&o.seed), "seed", "seed of the ids")
	fs.Var(cli.Bool(&o.beside), "beside", "afterwards gather by zerocopy on several grids beside a stream of matrix products (first table size and width; needs cuBLAS)")
	fs.Group("Output")
	fs.Var(cli.Bool(&o.json), "json", "print one JSON object per line of the table to standard output, the table to standard error")
	fs.Var(cli.Bool(&o.quiet), "quiet", "no progress on standard error")
	fs.Var(cli.String(&o.plot), "plot", "draw GB/s by row width into this `FILE`, .png or .svg")
	fs.Check(func() error {
		for _, s := range o.tables {
			if s.Auto || s.Percent > 0 || s.Bytes <= 0 {
				return usage.Errorf("%v is not a positive size such as 1GiB", s)
			}
		}
		return nil
	}, "table")
	fs.Check(func() error {
		if o.plot != "" && !strings.HasSuffix(o.plot, ".png") && !strings.HasSuffix(o.plot, ".svg") {
			return usage.Errorf("%q ends neither in .png nor in .svg", o.plot)
		}
		return nil
	}, "plot")
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	return o, nil
}

func parseWidth(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > 1<<20 {
		return 0, fmt.Errorf("%q is not a width of 1 to %d values", s, 1<<20)
	}
	return n, nil
}

func parseOrder(s string) (order, error) {
	switch o := order(s); o {
	case ascending, random, hot:
		return o, nil
	}
	return "", fmt.Errorf("%q is not one of ascending, random, hot", s)
}
