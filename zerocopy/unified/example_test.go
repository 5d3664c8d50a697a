package unified_test

import (
	"context"
	"fmt"
	"log"

	"gorgonia.org/tensor"

	"zerogcn/cuda"
	"zerogcn/dtype"
	"zerogcn/zerocopy"
	"zerogcn/zerocopy/unified"
)

// The paper's listing in Go: features stay in host memory, and indexing the
// tensor gathers rows; on the GPU if there is one, with the same result.
func Example() {
	ctx := context.Background()
	table, err := zerocopy.NewTable(4, 2, dtype.Float32, zerocopy.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer table.Close()
	dtype.Float32.Narrow(table.Bytes(), []float32{0, 0.5, 1, 1.5, 2, 2.5, 3, 3.5})

	var opt unified.Options
	if driver, err := cuda.Load(); err == nil {
		if opt.Device, err = driver.Open(0, cuda.DeviceOptions{}); err != nil {
			log.Fatal(err)
		}
		defer opt.Device.Close()
	}
	features, engine, err := unified.New(ctx, table, opt)
	if err != nil {
		log.Fatal(err)
	}
	defer engine.Close()

	batch, err := tensor.ByIndices(features, tensor.New(tensor.WithBacking([]int{3, 1})), 0)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(batch.Data())
	// Output: [3 3.5 1 1.5]
}
