// Gatherbench measures the gather of scattered table rows alone, every mode
// side by side: GB/s of useful bytes, the share of what page-locked DMA reaches
// in the same run, rows per second, CPU cores busy and blocks used. Ids within
// a batch are unique, as those of a batch's frontier are.
//
//	gatherbench -table 1GiB,16GiB -width 100,128 -modes zerocopy,hybrid
//	gatherbench -table 4GiB -width 47,100,128,256,602,1024 -plot gather.png
//
// Without a GPU it measures the mode host.
package main

import (
	"context"
	"os"

	"zerogcn/internal/cli"
)

func main() {
	cli.Main("gatherbench", func(ctx context.Context) error {
		return run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	})
}
