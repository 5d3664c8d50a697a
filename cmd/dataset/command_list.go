package main

import (
	"bufio"
	"context"
	"fmt"
	"os"

	"zerogcn/datasets"
	"zerogcn/internal/cli"
)

func list(_ context.Context, args []string) error {
	var root string
	var asJSON bool
	fs := cli.NewFlags("dataset list", "Print the known formats, generators, published names, and the sets under -root.")
	fs.Var(cli.String(&root), "root", "folder of named datasets (default $ZEROGCN_DATA, else ~/.cache/zerogcn)")
	fs.Var(cli.Bool(&asJSON), "json", "print one line of JSON")
	if err := fs.Parse(args); err != nil {
		return err
	}
	folder, names, err := datasets.Names(datasets.Options{Root: root})
	if err != nil {
		return err
	}
	type entry struct {
		Name        string `json:"name"`
		Description string `json:"description"`
	}
	var out struct {
		Root       string   `json:"root"`
		Sets       []string `json:"sets"`
		Published  []entry  `json:"published"`
		Generators []entry  `json:"generators"`
		Formats    []entry  `json:"formats"`
	}
	out.Root, out.Sets = folder, names
	for _, p := range datasets.Published() {
		out.Published = append(out.Published, entry{p.Name, p.Describe + " (" + p.Terms() + ")"})
	}
	for _, g := range datasets.Generators() {
		out.Generators = append(out.Generators, entry{g.Name, g.Describe})
	}
	for _, f := range datasets.Formats() {
		out.Formats = append(out.Formats, entry{f.Name, f.Describe})
	}
	if asJSON {
		return printJSON(os.Stdout, out)
	}
	b := bufio.NewWriter(os.Stdout)
	fmt.Fprintf(b, "sets in %s\n", folder)
	for _, n := range names {
		fmt.Fprintf(b, "  %s\n", n)
	}
	if len(names) == 0 {
		fmt.Fprintln(b, "  none")
	}
	for _, part := range []struct {
		title   string
		entries []entry
	}{
		{"published sets (dataset download brings them; or put one at ROOT/NAME in any format below)", out.Published},
		{"made on the spot", out.Generators},
		{"formats", out.Formats},
	} {
		fmt.Fprintf(b, "\n%s\n", part.title)
		for _, e := range part.entries {
			fmt.Fprintf(b, "  %-16s %s\n", e.Name, e.Description)
		}
	}
	return b.Flush()
}
