package cli

import (
	"flag"
	"fmt"
	"strconv"
	"strings"
	"time"

	"zerogcn/internal/nearest"
)

// bound is a flag.Value over a variable of any type.
type bound[T any] struct {
	p           *T
	placeholder string
	parse       func(string) (T, error)
	format      func(T) string
	boolean     bool
	list        bool // configuration files may write it as a sequence
	text        bool // configuration files write it as a string, quoted if need be
}

func (b *bound[T]) String() string {
	if b.p == nil { // package flag makes zero values of its own to compare with
		return ""
	}
	return b.format(*b.p)
}

func (b *bound[T]) Set(s string) error {
	v, err := b.parse(s)
	if err != nil {
		return err
	}
	*b.p = v
	return nil
}

func (b *bound[T]) Get() any            { return *b.p }
func (b *bound[T]) IsBoolFlag() bool    { return b.boolean }
func (b *bound[T]) Placeholder() string { return b.placeholder }
func (b *bound[T]) isList() bool        { return b.list }
func (b *bound[T]) isText() bool        { return b.text }

// Parsed binds a variable of any type, by its own parser and printer. format's
// text must be such that parse gives the same value back.
func Parsed[T any](p *T, placeholder string, parse func(string) (T, error), format func(T) string) flag.Value {
	return &bound[T]{p: p, placeholder: placeholder, parse: parse, format: format, text: true}
}

// String binds a string; every value is good.
func String(p *string) flag.Value {
	return Parsed(p, "STRING", func(s string) (string, error) { return s, nil }, func(s string) string { return s })
}

// Bool binds a switch: -name, -name=true or -name=false.
func Bool(p *bool) flag.Value {
	return &bound[bool]{p: p, boolean: true, format: strconv.FormatBool, parse: func(s string) (bool, error) {
		v, err := strconv.ParseBool(s)
		if err != nil {
			return false, fmt.Errorf("%q is neither true nor false", s)
		}
		return v, nil
	}}
}

// Choice binds one of several words. Options must not be empty.
func Choice[T ~string](p *T, options ...T) flag.Value {
	words := make([]string, len(options))
	for i, o := range options {
		words[i] = string(o)
	}
	placeholder := strings.Join(words, "|")
	if len(placeholder) > helpColumn+10 {
		placeholder = "NAME"
	}
	return Parsed(p, placeholder, func(s string) (T, error) {
		for _, o := range options {
			if string(o) == s {
				return o, nil
			}
		}
		return "", fmt.Errorf("%q is not one of %s%s", s, strings.Join(words, ", "), suggest("", nearest.Name(s, words), ""))
	}, func(v T) string { return string(v) })
}

// Duration binds a time span of at least min, such as 90s or 1h30m.
func Duration(p *time.Duration, min time.Duration) flag.Value {
	return &bound[time.Duration]{p: p, placeholder: "DURATION", format: time.Duration.String, parse: func(s string) (time.Duration, error) {
		v, err := time.ParseDuration(s)
		switch {
		case err != nil:
			return 0, fmt.Errorf("%q is not a duration such as 90s or 1h30m", s)
		case v < min:
			return 0, fmt.Errorf("%s is less than %s", s, min)
		}
		return v, nil
	}}
}
