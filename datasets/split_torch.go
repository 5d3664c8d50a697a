package datasets

import (
	"slices"
	"strconv"
	"strings"

	"zerogcn/datasets/internal/pickle"
	"zerogcn/datasets/internal/torch"
	"zerogcn/internal/npy"
)

// torchParts are the names of a split's parts in a dict of tensors.
var torchParts = [3][]string{
	{"train_mask", "train_idx", "train_index", "train"},
	{"val_mask", "valid_mask", "val_idx", "valid_idx", "val_index", "valid_index", "val", "valid"},
	{"test_mask", "test_idx", "test_index", "test"},
}

// torchSplits returns the names of split*.pt files in the order of the numbers
// in them.
func torchSplits(s *Source) []string {
	var out []string
	for _, n := range s.Names {
		if strings.HasPrefix(n, "split") && strings.HasSuffix(n, ".pt") {
			out = append(out, n)
		}
	}
	number := func(n string) int {
		v, _ := strconv.Atoi(strings.TrimLeft(strings.TrimSuffix(n, ".pt"), "split_-"))
		return v
	}
	slices.SortStableFunc(out, func(a, b string) int { return number(a) - number(b) })
	return out
}

// readTorchSplits reads a split of each file.
func readTorchSplits(s *Source, d *Dataset, n int) error {
	var all memorySplits
	for _, name := range torchSplits(s) {
		if len(all) == maxSplits {
			return usageErrorf("%s: more than %d splits", s.Path, maxSplits)
		}
		sp, err := readTorchSplit(s.File(name), n)
		if err != nil {
			return err
		}
		all = append(all, sp)
	}
	if all != nil {
		d.splits = all
	}
	return nil
}

// readTorchSplit reads a dict of three tensors: masks of bools, or nodes,
// whatever their names say (some sets keep nodes in train_mask).
func readTorchSplit(path string, n int) (Split, error) {
	var sp Split
	f, err := torch.Open(path)
	if err != nil {
		return sp, err
	}
	defer f.Close()
	dict, ok := f.Value.(*pickle.Dict)
	if o, isObject := f.Value.(*pickle.Object); isObject { // an OrderedDict
		dict, ok = &o.Dict, true
	}
	if !ok {
		return sp, usageErrorf("%s: no dict of tensors", path)
	}
	for i, to := range []*[]int32{&sp.Train, &sp.Valid, &sp.Test} {
		var v pickle.Value
		name := ""
		for _, key := range torchParts[i] {
			if x, ok := dict.Get(key); ok && name == "" {
				v, name = x, key
			}
		}
		if name == "" {
			return sp, usageErrorf("%s: no tensor %s", path, torchParts[i][0])
		}
		a, err := f.Tensor(v, name)
		if err != nil {
			return sp, err
		}
		if err := a.WantShape(-1); err != nil {
			return sp, err
		}
		if a.Type.Kind == npy.Bool {
			lists, err := readMasks(a, int64(n), 1)
			if err != nil {
				return sp, err
			}
			*to = lists[0]
			continue
		}
		if *to, err = npy.Read[int32](a, 1); err != nil {
			return sp, err
		}
		for _, v := range *to {
			if v < 0 || int(v) >= n {
				return sp, a.Errorf("node %d: there are %d nodes, numbered from 0", v, n)
			}
		}
	}
	if err := sp.check(n); err != nil {
		return sp, usageErrorf("%s: %w", path, err)
	}
	return sp, nil
}
