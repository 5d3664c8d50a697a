package datasets

import (
	"errors"
	"math"
	"slices"
	"strconv"
)

// maxNumberedClasses is the largest number of different numbers in a label
// column that are taken for classes; more are regression targets.
const maxNumberedClasses = 1000

// setLabels turns one text per node into labels. Small whole numbers stand for
// themselves, other texts are numbered in ascending order, and a column with
// many different numbers, or fractions, has regression targets. Empty texts, -1
// and NaN mean none.
func setLabels(d *Dataset, texts []string) error {
	distinct := slices.Clone(texts)
	slices.Sort(distinct)
	distinct = slices.DeleteFunc(slices.Compact(distinct), noLabelText)
	numbers, whole, top := true, true, int64(-1)
	for _, s := range distinct {
		x, err := strconv.ParseFloat(s, 32)
		numbers = numbers && err == nil && x-x == 0
		v, ok := wholeNumber([]byte(s))
		whole = whole && ok && v >= 0
		top = max(top, v)
	}
	switch {
	case numbers && (len(distinct) > maxNumberedClasses || !whole):
		value := make([]float32, len(texts))
		for i, s := range texts {
			x, err := strconv.ParseFloat(s, 32)
			if err != nil { // an empty text
				x = math.NaN()
			}
			value[i] = float32(x)
		}
		d.Task, d.Labels = Regression, NewValueLabels(value, 1)
	case whole && top < 4*maxNumberedClasses:
		class := make([]int32, len(texts))
		for i, s := range texts {
			class[i] = NoClass
			if !noLabelText(s) {
				v, _ := wholeNumber([]byte(s))
				class[i] = int32(v)
			}
		}
		d.Labels = NewClassLabels(class, int(top)+1)
	default:
		if len(distinct) > 4*maxNumberedClasses {
			return errors.New("more than 4000 different labels: this is no class column")
		}
		class := make([]int32, len(texts))
		for i, s := range texts {
			class[i] = NoClass
			if !noLabelText(s) {
				c, _ := slices.BinarySearch(distinct, s)
				class[i] = int32(c)
			}
		}
		d.Labels, d.ClassNames = NewClassLabels(class, len(distinct)), distinct
	}
	return nil
}

// noLabelText tells the texts that stand for no label.
func noLabelText(s string) bool { return s == "" || s == "-1" || s == "nan" || s == "NaN" }
