package datasets

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"zerogcn/internal/philox"
)

// MakeSplit makes a split of the labelled nodes from a description:
//
//	random:TRAIN,VALID,TEST
//
// with fractions of the labelled nodes that sum to at most 1. Nodes are ranked
// by a Philox word of their id (purpose Split), so the split depends on the
// seed, the fractions and which nodes are labelled, and on nothing else.
func MakeSplit(d *Dataset, spec string, seed uint64) (Split, error) {
	kind, list, _ := strings.Cut(spec, ":")
	if kind != "random" {
		return Split{}, usageErrorf("split %q: want random:TRAIN,VALID,TEST, such as random:0.6,0.2,0.2", spec)
	}
	fractions, err := parseFractions(spec, list)
	if err != nil {
		return Split{}, err
	}
	if d.Labels == nil {
		return Split{}, usageErrorf("dataset %s: a split is made of labelled nodes, and the set has no labels", d.Name)
	}
	var labelled []int32
	for v := range d.NumNodes {
		if d.Labels.Labelled(v) {
			labelled = append(labelled, int32(v))
		}
	}
	n := len(labelled)
	var ends [3]int // ranks at which the parts end
	sum := 0.0
	for i, f := range fractions {
		sum += f
		ends[i] = min(n, int(math.Round(sum*float64(n))))
	}
	if ends[0] == 0 {
		return Split{}, usageErrorf("dataset %s: split %q leaves no training node: %s labelled", d.Name, spec, plural(int64(n), "node is", "nodes are"))
	}
	stream := philox.NewStream(seed, philox.Split, 0, 0)
	key := func(v int32) uint64 { return uint64(stream.Word(uint32(v), 0))<<32 | uint64(uint32(v)) }
	var bounds [3]uint64 // a node below bounds[i] is in part i or an earlier one
	for i, end := range ends {
		bounds[i] = rankKey(labelled, key, end)
	}
	var s Split
	for _, v := range labelled {
		switch k := key(v); {
		case k < bounds[0]:
			s.Train = append(s.Train, v)
		case k < bounds[1]:
			s.Valid = append(s.Valid, v)
		case k < bounds[2]:
			s.Test = append(s.Test, v)
		}
	}
	return s, nil
}

// WithSplit returns d with one given split in place of those it has. As with
// TransformGraph the result takes over d's files and keeps its Fingerprint.
func WithSplit(d *Dataset, s Split) (*Dataset, error) {
	s = Split{slices.Clone(s.Train), slices.Clone(s.Valid), slices.Clone(s.Test)}
	if err := s.check(d.NumNodes); err != nil {
		return nil, usageErrorf("dataset %s: split: %w", d.Name, err)
	}
	t := d.derive()
	t.splits = memorySplits{s}
	return t, nil
}

func parseFractions(spec, list string) ([3]float64, error) {
	var f [3]float64
	parts := strings.Split(list, ",")
	if len(parts) != len(f) {
		return f, usageErrorf("split %q: want three fractions, of training, validation and test nodes", spec)
	}
	sum := 0.0
	for i, p := range parts {
		x, err := strconv.ParseFloat(strings.TrimSpace(p), 64)
		if err != nil || !(x >= 0 && x <= 1) {
			return f, usageErrorf("split %q: %q is not a fraction: want 0 to 1", spec, p)
		}
		f[i] = x
		sum += x
	}
	if sum > 1+1e-9 {
		return f, usageErrorf("split %q: the fractions sum to %.4g: want at most 1", spec, sum)
	}
	if f[0] == 0 {
		return f, usageErrorf("split %q: the training fraction is 0", spec)
	}
	return f, nil
}

// rankKey returns the key that has exactly rank keys below it. Keys are unique
// and their high bits uniform, so a histogram of those leaves one short bin to
// sort.
func rankKey(ids []int32, key func(int32) uint64, rank int) uint64 {
	if rank >= len(ids) {
		return math.MaxUint64
	}
	const shift = 48
	bins := make([]int, 1<<(64-shift))
	for _, v := range ids {
		bins[key(v)>>shift]++
	}
	bin := 0
	for rank >= bins[bin] {
		rank -= bins[bin]
		bin++
	}
	in := make([]uint64, 0, bins[bin])
	for _, v := range ids {
		if k := key(v); int(k>>shift) == bin {
			in = append(in, k)
		}
	}
	slices.Sort(in)
	return in[rank]
}
