package gpusample

import (
	"errors"

	"zerogcn/cuda"
	"zerogcn/cuda/kernels"
)

// kernelSet is the module of sample.cu.
type kernelSet struct {
	module *cuda.Module

	seeds, count, degrees, layout                 *cuda.Function
	draw, drawLong, drawFull                      *cuda.Function
	drawWeighted, drawWeightedLong                *cuda.Function
	subtract, number, relabel                     *cuda.Function
	transposeCount, transposeLayout               *cuda.Function
	transposePlace, transposeSort, transposeOrder *cuda.Function
	clearing, labels                              *cuda.Function
}

func loadKernels(dev *cuda.Device) (*kernelSet, error) {
	m, err := kernels.Load(dev, "sample")
	if err != nil {
		return nil, err
	}
	k := &kernelSet{module: m}
	for name, f := range k.functions() {
		if *f, err = m.Function("sample_" + name); err != nil {
			return nil, errors.Join(err, m.Close())
		}
	}
	return k, nil
}

// functions lists the kernels by the rest of their names.
func (k *kernelSet) functions() map[string]**cuda.Function {
	return map[string]**cuda.Function{
		"seeds": &k.seeds, "count": &k.count, "degrees": &k.degrees, "layout": &k.layout,
		"draw": &k.draw, "draw_long": &k.drawLong, "draw_full": &k.drawFull,
		"draw_weighted": &k.drawWeighted, "draw_weighted_long": &k.drawWeightedLong,
		"subtract": &k.subtract, "number": &k.number, "relabel": &k.relabel,
		"transpose_count": &k.transposeCount, "transpose_layout": &k.transposeLayout,
		"transpose_place": &k.transposePlace, "transpose_sort": &k.transposeSort, "transpose_order": &k.transposeOrder,
		"clear": &k.clearing, "labels": &k.labels,
	}
}

func (k *kernelSet) close() error {
	if k == nil {
		return nil
	}
	return k.module.Close()
}

// Shapes of launches, as sample.cu has them.
const (
	threads     = 256
	longThreads = 128
	warp        = 32
	shortFanout = 32   // most draws of a group of lanes
	maxDraws    = 1024 // most draws of a target (kLong)
	maxTiles    = 2048 // of a scan: each tile adds up the sums of those before it
	pieceEdges  = 1024 // edges that a block sorts (kPiece)
)

// chunkOf returns the items per tile of a scan over at most n items: one for each
// thread of a block, or as many as keep the number of tiles small.
func (s *Sampler) chunkOf(n int) int {
	full := s.maxTiles * threads
	return max(1, (n+full-1)/full) * threads
}

// tilesOf returns the number of tiles; one at least, whose block writes ends.
func tilesOf(n, chunk int) int { return max(1, (n+chunk-1)/chunk) }

// spread is the launch of a loop over at most n items by single threads: as many
// blocks as stay resident, at most.
func (c *CSR) spread(n int) cuda.Config {
	blocks := min((n+threads-1)/threads, 8*c.dev.Properties().SMs)
	return cuda.Linear(max(1, blocks), threads)
}
