package gpusample

import (
	"errors"

	"zerogcn/cuda"
	"zerogcn/cuda/kernels"
)

// kernelSet holds the modules of neighbour sampling.
type kernelSet struct {
	modules []*cuda.Module

	seeds, count, degrees, layout                   *cuda.Function
	subtract, number, relabel, clearing, labels     *cuda.Function
	draw, drawLong, drawFull                        *cuda.Function
	drawWeighted, drawWeightedLong                  *cuda.Function
	transposeCount, transposeLayout, transposePlace *cuda.Function
	transposeSort, transposeOrder                   *cuda.Function
}

func loadKernels(dev *cuda.Device) (*kernelSet, error) {
	k := &kernelSet{}
	for module, functions := range k.functions() {
		m, err := kernels.Load(dev, module)
		if err != nil {
			return nil, errors.Join(err, k.close())
		}
		k.modules = append(k.modules, m)
		for name, f := range functions {
			if *f, err = m.Function(name); err != nil {
				return nil, errors.Join(err, k.close())
			}
		}
	}
	return k, nil
}

// functions lists the kernels by module and name.
func (k *kernelSet) functions() map[string]map[string]**cuda.Function {
	return map[string]map[string]**cuda.Function{
		"sample": {
			"sample_seeds": &k.seeds, "sample_count": &k.count, "sample_degrees": &k.degrees, "sample_layout": &k.layout,
			"sample_subtract": &k.subtract, "sample_number": &k.number, "sample_relabel": &k.relabel,
			"sample_clear": &k.clearing, "sample_labels": &k.labels,
		},
		"sample_draw": {
			"sample_draw": &k.draw, "sample_draw_long": &k.drawLong, "sample_draw_full": &k.drawFull,
			"sample_draw_weighted": &k.drawWeighted, "sample_draw_weighted_long": &k.drawWeightedLong,
		},
		"sample_transpose": {
			"sample_transpose_count": &k.transposeCount, "sample_transpose_layout": &k.transposeLayout,
			"sample_transpose_place": &k.transposePlace, "sample_transpose_sort": &k.transposeSort,
			"sample_transpose_order": &k.transposeOrder,
		},
	}
}

func (k *kernelSet) close() (err error) {
	if k == nil {
		return nil
	}
	for _, m := range k.modules {
		err = errors.Join(err, m.Close())
	}
	return err
}

// Shapes of launches, as the kernels have them.
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
