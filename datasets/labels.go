package datasets

import "zerogcn/internal/usage"

func usageErrorf(format string, args ...any) error { return usage.Errorf(format, args...) }

// Labels holds one label per node, in one of three kinds: a class, Width 0/1
// labels, or Width real values. Entries are fetched by node id and checked
// when fetched, because the file behind may not have been read before.
type Labels struct {
	name  string // for messages: the dataset, or the file
	n     int
	width int // classes, labels or targets

	class32 []int32 // -1 none
	class64 []int64 // -1 none; maybe a mapping
	multi   []uint8 // n×width, 255 none; maybe a mapping
	value   []float32
}

// NoClass marks a node without a class; NoLabel an entry of a multilabel row
// that is not known. In regression sets a NaN says the same.
const (
	NoClass int32 = -1
	NoLabel uint8 = 255
)

// NewClassLabels makes labels of one class per node, -1 for none, all below
// numClasses. It keeps class, which must not be changed afterwards.
func NewClassLabels(class []int32, numClasses int) *Labels {
	return &Labels{name: "labels", n: len(class), width: numClasses, class32: class}
}

// NewMultiLabels makes labels of width entries per node (row-major), 0, 1 or
// 255 for none. It keeps multi.
func NewMultiLabels(multi []uint8, width int) *Labels {
	return &Labels{name: "labels", n: rowsOf(len(multi), width), width: width, multi: multi}
}

// NewValueLabels makes labels of width real targets per node (row-major), NaN
// for none. It keeps value.
func NewValueLabels(value []float32, width int) *Labels {
	return &Labels{name: "labels", n: rowsOf(len(value), width), width: width, value: value}
}

func rowsOf(n, width int) int {
	if width <= 0 {
		return 0
	}
	return n / width
}

// Len returns the number of nodes.
func (l *Labels) Len() int { return l.n }

// Width returns the number of classes, labels or targets.
func (l *Labels) Width() int { return l.width }

// HasClass reports whether the labels are of the kind that Classes returns.
func (l *Labels) HasClass() bool { return l.class32 != nil || l.class64 != nil }

// HasMulti reports whether the labels are of the kind that Multi returns.
func (l *Labels) HasMulti() bool { return l.multi != nil }

// HasValue reports whether the labels are of the kind that Values returns.
func (l *Labels) HasValue() bool { return l.value != nil }

// Classes writes the class of each node of ids to dst, which has at least
// len(ids) elements; nil ids mean all nodes. NoClass marks nodes without one.
func (l *Labels) Classes(dst, ids []int32) error {
	if !l.HasClass() {
		return usageErrorf("%s: not one class per node", l.name)
	}
	return l.each(ids, func(i, v int) error {
		var c int64
		if l.class32 != nil {
			c = int64(l.class32[v])
		} else {
			c = l.class64[v]
		}
		if c < -1 || c >= int64(l.width) {
			return l.badClass(v, c)
		}
		dst[i] = int32(c)
		return nil
	})
}

func (l *Labels) badClass(v int, c int64) error {
	return usageErrorf("%s: node %d has class %d: there are %d classes (-1 means none)", l.name, v, c, l.width)
}

// Multi writes the Width labels of each node of ids to dst, row-major; nil ids
// mean all nodes. Entries are 0, 1 or NoLabel.
func (l *Labels) Multi(dst []uint8, ids []int32) error {
	if l.multi == nil {
		return usageErrorf("%s: not a multilabel set", l.name)
	}
	return l.each(ids, func(i, v int) error {
		row := l.multi[v*l.width : (v+1)*l.width]
		for j, x := range row {
			if x > 1 && x != NoLabel {
				return usageErrorf("%s: node %d: label %d is %d: want 0, 1 or 255 (none)", l.name, v, j, x)
			}
		}
		copy(dst[i*l.width:], row)
		return nil
	})
}

// Values writes the Width targets of each node of ids to dst, row-major; nil
// ids mean all nodes. NaN marks an unknown target; infinities are refused.
func (l *Labels) Values(dst []float32, ids []int32) error {
	if l.value == nil {
		return usageErrorf("%s: not a regression set", l.name)
	}
	return l.each(ids, func(i, v int) error {
		row := l.value[v*l.width : (v+1)*l.width]
		for j, x := range row {
			if x-x != 0 && x == x {
				return usageErrorf("%s: node %d: target %d is infinite", l.name, v, j)
			}
		}
		copy(dst[i*l.width:], row)
		return nil
	})
}

// Labelled reports whether node v, which must be in range, has a label: a
// class, or at least one known entry.
func (l *Labels) Labelled(v int) bool {
	switch {
	case l.class32 != nil:
		return l.class32[v] >= 0
	case l.class64 != nil:
		return l.class64[v] >= 0
	case l.multi != nil:
		for _, x := range l.multi[v*l.width : (v+1)*l.width] {
			if x != NoLabel {
				return true
			}
		}
	case l.value != nil:
		for _, x := range l.value[v*l.width : (v+1)*l.width] {
			if x == x {
				return true
			}
		}
	}
	return false
}

func (l *Labels) each(ids []int32, f func(i, v int) error) error {
	if ids == nil {
		for v := range l.n {
			if err := f(v, v); err != nil {
				return err
			}
		}
		return nil
	}
	for i, v := range ids {
		if v < 0 || int(v) >= l.n {
			return usageErrorf("%s: node %d: there are %d nodes", l.name, v, l.n)
		}
		if err := f(i, int(v)); err != nil {
			return err
		}
	}
	return nil
}
