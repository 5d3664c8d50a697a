package datasets

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strconv"

	"zerogcn/internal/npy"
)

// splits finds the given splits and checks the headers of their files.
func (f *folder) splits() error {
	var found folderSplits
	add := func(dir string) (bool, error) {
		s, ok, err := f.openSplit(dir)
		if ok {
			found = append(found, s)
		}
		return ok, err
	}
	some, err := add("")
	if err != nil {
		return err
	}
	for i := 0; !some && i < maxSplits; i++ {
		ok, err := add(filepath.Join(splitsFolder, strconv.Itoa(i)))
		if err != nil {
			return err
		}
		if !ok {
			break
		}
	}
	if len(found) > 0 {
		f.d.splits = found
	}
	return nil
}

// openSplit checks the three files of a split; ok is false if none is there.
func (f *folder) openSplit(dir string) (s folderSplit, ok bool, err error) {
	missing := ""
	for i, name := range splitFiles {
		s[i] = filepath.Join(f.dir, dir, name)
		a, err := npy.Open(s[i])
		switch {
		case errors.Is(err, fs.ErrNotExist):
			missing = s[i]
			continue
		case err != nil:
			return s, false, err
		}
		ok = true
		if err := errors.Join(a.WantShape(-1), a.Close()); err != nil {
			return s, false, err
		}
	}
	if ok && missing != "" {
		return s, false, usageErrorf("%s: the file is missing: a split has %s, %s and %s", missing, splitFiles[0], splitFiles[1], splitFiles[2])
	}
	return s, ok, nil
}

// folderSplit has the paths of one split's files.
type folderSplit [3]string

type folderSplits []folderSplit

func (f folderSplits) count() int { return len(f) }

func (f folderSplits) split(i int) (Split, error) {
	var s Split
	for k, to := range []*[]int32{&s.Train, &s.Valid, &s.Test} {
		a, err := npy.Open(f[i][k])
		if err != nil {
			return s, err
		}
		if err = a.WantShape(-1); err == nil {
			*to, err = npy.Read[int32](a, 0)
		}
		if err := errors.Join(err, a.Close()); err != nil {
			return s, err
		}
	}
	return s, nil
}

// edgeSets finds the edge sets for link prediction.
func (f *folder) edgeSets() error {
	l := &folderEdges{}
	some := false
	for i, name := range edgeFiles {
		a, err := f.open(name, true)
		if err != nil {
			return err
		}
		if a == nil {
			continue
		}
		if err := a.WantShape(-1, 2); err != nil {
			return err
		}
		l[i], some = a, true
	}
	if some {
		f.d.links = l
	} else if f.d.Task == Link {
		return usageErrorf("%s: the task is link, and there is no %s", f.dir, edgeFiles[0])
	}
	return nil
}

type folderEdges [6]*npy.Array

func (f *folderEdges) edges() (*EdgeSets, error) {
	e := &EdgeSets{}
	for i, to := range []*EdgeList{&e.Train, &e.Valid, &e.Test, &e.TrainNeg, &e.ValidNeg, &e.TestNeg} {
		if f[i] == nil {
			continue
		}
		pairs, err := npy.Read[int32](f[i], 0)
		if err != nil {
			return nil, err
		}
		*to = splitPairs(pairs)
	}
	return e, nil
}

// splitPairs turns (source, target) pairs into two lists.
func splitPairs(pairs []int32) EdgeList {
	n := len(pairs) / 2
	e := EdgeList{make([]int32, n), make([]int32, n)}
	for i := range n {
		e.Sources[i], e.Targets[i] = pairs[2*i], pairs[2*i+1]
	}
	return e
}
