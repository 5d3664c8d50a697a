package datasets

import (
	"context"
	"math"

	"zerogcn/internal/npy"
	"zerogcn/internal/par"
)

func (b *bundle) labels(context.Context) error {
	name := pick(b, labelNames)
	if name == "" {
		b.d.Warnings = append(b.d.Warnings, "no labels")
		return nil
	}
	a, err := b.Array(name)
	if err != nil {
		return err
	}
	if len(a.Shape) == 0 || len(a.Shape) > 2 {
		return a.Errorf("the shape is %s: want (nodes,) or (nodes, labels)", a.ShapeString())
	}
	if err := b.nodes(a, a.Shape[0]); err != nil {
		return err
	}
	names := []string(nil)
	if b.Has("class_names") {
		c, err := b.Array("class_names")
		if err != nil {
			return err
		}
		if (c.Type.Kind == npy.Text || c.Type.Kind == npy.Bytes) && len(c.Shape) == 1 {
			if names, err = c.Strings(); err != nil {
				return err
			}
		}
	}
	b.d.Labels, b.d.Task, err = foreignLabels(a, len(names), b.w)
	if err != nil {
		return err
	}
	if b.d.Labels.Width() == len(names) {
		b.d.ClassNames = names
	}
	return nil
}

// foreignLabels tells the kind of labels by type and shape. A column of whole
// numbers has classes (-1 and NaN: none), several columns of 0 and 1 are label
// sets, other numbers regression targets. classes is the number of classes, 0
// if it is not known.
func foreignLabels(a *npy.Array, classes int, w par.Workers) (*Labels, Task, error) {
	n := int(a.Shape[0])
	width := int(a.Width())
	if int64(width) > maxFeatures {
		return nil, "", a.Errorf("%d columns of labels: want at most %d", width, maxFeatures)
	}
	if a.Type.Kind == npy.Float {
		v, err := npy.Read[float32](a, w)
		if err != nil {
			return nil, "", err
		}
		return labelsOfFloats(a, v, n, width, classes)
	}
	v, err := npy.Read[int64](a, w)
	if err != nil {
		return nil, "", err
	}
	return labelsOfInts(a, v, n, width, classes)
}

func labelsOfFloats(a *npy.Array, v []float32, n, width, classes int) (*Labels, Task, error) {
	ints := make([]int64, len(v))
	for i, x := range v {
		switch {
		case x != x && width == 1:
			ints[i] = -1
		case x != x:
			ints[i] = int64(NoLabel)
		case math.IsInf(float64(x), 0):
			return nil, "", a.Errorf("row %d: the label is %v", i/width, x)
		case x != float32(math.Trunc(float64(x))) || x < 0 || x >= maxFeatures:
			l := NewValueLabels(v, width)
			l.name = a.Name()
			return l, Regression, nil
		default:
			ints[i] = int64(x)
		}
	}
	return labelsOfInts(a, ints, n, width, classes)
}

func labelsOfInts(a *npy.Array, v []int64, n, width, classes int) (*Labels, Task, error) {
	if width != 1 {
		multi := make([]uint8, len(v))
		for i, x := range v {
			if x != 0 && x != 1 && x != int64(NoLabel) {
				return nil, "", a.Errorf("row %d, column %d is %d: want 0, 1 or 255 (none) in a matrix of labels", i/width, i%width, x)
			}
			multi[i] = uint8(x)
		}
		l := NewMultiLabels(multi, width)
		l.n = n
		l.name = a.Name()
		return l, Multilabel, nil
	}
	class := make([]int32, n)
	top := int64(-1)
	for i, x := range v {
		if x < -1 || x >= maxFeatures || classes > 0 && x >= int64(classes) {
			if classes > 0 {
				return nil, "", a.Errorf("node %d has class %d: there are %d class names (-1 means none)", i, x, classes)
			}
			return nil, "", a.Errorf("node %d has class %d: want 0 to 2^24-1, or -1 for none", i, x)
		}
		class[i] = int32(x)
		top = max(top, x)
	}
	l := NewClassLabels(class, max(classes, int(top)+1))
	l.name = a.Name()
	return l, Multiclass, nil
}
