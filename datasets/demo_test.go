package datasets

import (
	"math"
	"testing"
)

// centroidAccuracy trains a nearest-centroid classifier on the training nodes
// and returns its accuracy on the test nodes.
func centroidAccuracy(x []float32, dim int, class []int32, classes int, s Split) float64 {
	mean := make([]float64, classes*dim)
	count := make([]float64, classes)
	for _, v := range s.Train {
		c := int(class[v])
		count[c]++
		for j, y := range x[int(v)*dim : int(v+1)*dim] {
			mean[c*dim+j] += float64(y)
		}
	}
	for c := range classes {
		for j := range dim {
			mean[c*dim+j] /= count[c]
		}
	}
	right := 0
	for _, v := range s.Test {
		best, at := math.Inf(1), 0
		for c := range classes {
			d := 0.0
			for j, y := range x[int(v)*dim : int(v+1)*dim] {
				d += (float64(y) - mean[c*dim+j]) * (float64(y) - mean[c*dim+j])
			}
			if d < best {
				best, at = d, c
			}
		}
		if at == int(class[v]) {
			right++
		}
	}
	return float64(right) / float64(len(s.Test))
}

// neighbourMean replaces each row by the mean of the node's and its
// neighbours' rows.
func neighbourMean(d *Dataset, x []float32, dim int) []float32 {
	out := make([]float32, len(x))
	for v := range d.NumNodes {
		to := out[v*dim : (v+1)*dim]
		copy(to, x[v*dim:])
		row := d.Graph.Row(int32(v))
		for _, u := range row {
			for j, y := range x[int(u)*dim : int(u+1)*dim] {
				to[j] += y
			}
		}
		for j := range to {
			to[j] /= float32(len(row) + 1)
		}
	}
	return out
}

// demoFingerprint pins the demo: figures that docs and tests quote rest on it.
const demoFingerprint = "sha256:71286e1ebe24efc7f36da1280693ebc2a2ab63a9bd47b2b4614f3048295170e2"

func TestDemoNeedsNeighbours(t *testing.T) {
	d, err := Open(t.Context(), "demo", Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	x := make([]float32, d.NumNodes*d.NumFeatures)
	if err := d.Features.Float32Rows(t.Context(), 0, d.NumNodes, x); err != nil {
		t.Fatal(err)
	}
	class := make([]int32, d.NumNodes)
	if err := d.Labels.Classes(class, nil); err != nil {
		t.Fatal(err)
	}
	s, err := d.Split(0)
	if err != nil {
		t.Fatal(err)
	}
	own := centroidAccuracy(x, d.NumFeatures, class, d.NumClasses, s)
	one := neighbourMean(d, x, d.NumFeatures)
	two := neighbourMean(d, one, d.NumFeatures)
	first := centroidAccuracy(one, d.NumFeatures, class, d.NumClasses, s)
	second := centroidAccuracy(two, d.NumFeatures, class, d.NumClasses, s)
	t.Logf("nearest centroid: own features %.3f, one hop %.3f, two hops %.3f; %d edges", own, first, second, d.NumEdges)
	if own > 0.5 || second < own+0.35 {
		t.Errorf("own features %.3f, two hops %.3f: want neighbours to be worth 35 points", own, second)
	}
}
