// Command dataset looks at datasets and converts them.
//
//	dataset list
//	dataset inspect  -dataset DIR
//	dataset convert  -dataset DIR -out NATIVE -symmetrize -dtype bf16
//	dataset generate -dataset "synthetic:products?scale=0.1" -out NATIVE
//	dataset download -dataset ogbn-products
//	dataset verify   -dataset NATIVE
//
// See dataset VERB -help for the flags of a verb, and docs/datasets.md for the
// formats.
package main

import (
	"context"
	"os"

	"zerogcn/internal/cli"
)

func main() {
	cli.Main("dataset", func(ctx context.Context) error {
		return cli.Dispatch(ctx, "dataset", os.Args[1:], os.Stdout,
			cli.Verb{Name: "list", Summary: "print the known formats, generators, and the sets under -root", Run: list},
			cli.Verb{Name: "inspect", Summary: "describe a set: counts, degrees, labels, splits, and what to mind", Run: inspect},
			cli.Verb{Name: "convert", Summary: "write a set of any format as a native folder", Run: convert},
			cli.Verb{Name: "generate", Summary: "make a synthetic set and write it as a native folder", Run: generate},
			cli.Verb{Name: "download", Summary: "bring a published set to -root as a native folder", Run: download},
			cli.Verb{Name: "verify", Summary: "read a set through and check its contents", Run: verify},
		)
	})
}
