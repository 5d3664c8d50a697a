package main

import (
	"flag"
	"strings"

	"zerogcn/internal/cli"
)

// list binds a comma-separated list of values of one kind.
func list[T any](p *[]T, placeholder string, parse func(string) (T, error), format func(T) string) flag.Value {
	return cli.Parsed(p, placeholder, func(s string) ([]T, error) {
		var out []T
		for part := range strings.SplitSeq(s, ",") {
			v, err := parse(strings.TrimSpace(part))
			if err != nil {
				return nil, err
			}
			out = append(out, v)
		}
		return out, nil
	}, func(v []T) string {
		words := make([]string, len(v))
		for i, x := range v {
			words[i] = format(x)
		}
		return strings.Join(words, ",")
	})
}
