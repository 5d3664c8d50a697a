package cli

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Int binds a whole number from lo to hi.
func Int(p *int, lo, hi int) flag.Value {
	return &bound[int]{p: p, placeholder: "N", format: strconv.Itoa, parse: func(s string) (int, error) {
		return parseInt(s, lo, hi)
	}}
}

// Positive binds a whole number of at least 1.
func Positive(p *int) flag.Value { return Int(p, 1, math.MaxInt) }

// NonNegative binds a whole number of at least 0.
func NonNegative(p *int) flag.Value { return Int(p, 0, math.MaxInt) }

// Seed binds an unsigned 64-bit number, decimal or with the prefix 0x.
func Seed(p *uint64) flag.Value {
	return &bound[uint64]{p: p, placeholder: "N",
		format: func(v uint64) string { return strconv.FormatUint(v, 10) },
		parse: func(s string) (uint64, error) {
			v, err := strconv.ParseUint(s, 0, 64)
			if err != nil {
				return 0, fmt.Errorf("%q is not a whole number from 0 to 2^64-1", s)
			}
			return v, nil
		}}
}

// Interval is a range of real numbers. The zero value holds 0 only; use the
// variables below.
type Interval struct {
	Lo, Hi         float64
	OpenLo, OpenHi bool // the bound itself does not belong to the range
}

// The ranges that the commands' flags need.
var (
	AnyNumber  = Interval{Lo: math.Inf(-1), Hi: math.Inf(1), OpenLo: true, OpenHi: true}
	AboveZero  = Interval{Lo: 0, Hi: math.Inf(1), OpenLo: true, OpenHi: true} // learning rates
	ZeroOrMore = Interval{Lo: 0, Hi: math.Inf(1), OpenHi: true}               // weight decay
	BelowOne   = Interval{Lo: 0, Hi: 1, OpenHi: true}                         // dropout
	ZeroToOne  = Interval{Lo: 0, Hi: 1}                                       // shares
)

// check returns what is wrong with v, written s, or nil.
func (in Interval) check(s string, v float64) error {
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return fmt.Errorf("%q is not a finite number", s)
	case v < in.Lo:
		return fmt.Errorf("%s is less than %v", s, in.Lo)
	case v == in.Lo && in.OpenLo:
		return fmt.Errorf("%s must be greater than %v", s, in.Lo)
	case v > in.Hi:
		return fmt.Errorf("%s is greater than %v", s, in.Hi)
	case v == in.Hi && in.OpenHi:
		return fmt.Errorf("%s must be less than %v", s, in.Hi)
	}
	return nil
}

// Float binds a finite number within a range.
func Float(p *float64, in Interval) flag.Value {
	return &bound[float64]{p: p, placeholder: "X", format: formatFloat, parse: func(s string) (float64, error) {
		return parseFloat(s, in)
	}}
}

// Floats binds a list of at least one number, separated by commas: 5e-4,0.
func Floats(p *[]float64, in Interval) flag.Value {
	return &bound[[]float64]{p: p, placeholder: "X,...", list: true,
		format: func(list []float64) string { return joinList(list, formatFloat) },
		parse: func(s string) ([]float64, error) {
			return parseList(s, func(e string) (float64, error) { return parseFloat(e, in) })
		}}
}

func parseInt(s string, lo, hi int) (int, error) {
	v, err := strconv.Atoi(s)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return 0, fmt.Errorf("%s is too large", s)
	case err != nil:
		return 0, fmt.Errorf("%q is not a whole number", s)
	case v < lo:
		return 0, fmt.Errorf("%d is less than %d", v, lo)
	case v > hi:
		return 0, fmt.Errorf("%d is greater than %d", v, hi)
	}
	return v, nil
}

func parseFloat(s string, in Interval) (float64, error) {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0, fmt.Errorf("%q is not a number", s)
	}
	return v, in.check(s, v)
}

func formatFloat(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// parseList splits at commas; spaces around elements do not count.
func parseList[T any](s string, parse func(string) (T, error)) ([]T, error) {
	words := strings.Split(s, ",")
	list := make([]T, len(words))
	for i, w := range words {
		v, err := parse(strings.TrimSpace(w))
		if err != nil {
			return nil, err
		}
		list[i] = v
	}
	return list, nil
}

func joinList[T any](list []T, format func(T) string) string {
	words := make([]string, len(list))
	for i, v := range list {
		words[i] = format(v)
	}
	return strings.Join(words, ",")
}
