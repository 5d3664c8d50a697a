package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"

	"zerogcn/datasets"
	"zerogcn/internal/cli"
	"zerogcn/internal/par"
)

func inspect(ctx context.Context, args []string) error {
	var s source
	var asJSON bool
	fs := cli.NewFlags("dataset inspect", "Read a set through and describe it.")
	s.define(fs)
	fs.Group("Output")
	fs.Var(cli.Bool(&asJSON), "json", "print one line of JSON: meta.json's keys and the counts")
	s.defineWorkers(fs)
	if err := fs.Parse(args); err != nil {
		return err
	}
	d, err := s.open(ctx)
	if err != nil {
		return err
	}
	defer d.Close()
	r, err := datasets.Inspect(ctx, d, par.Workers(s.workers))
	if err != nil {
		return err
	}
	if asJSON {
		return printJSON(os.Stdout, r)
	}
	return printReport(os.Stdout, r)
}

func printReport(w io.Writer, r *datasets.Report) error {
	b := bufio.NewWriter(w)
	line := func(name, format string, args ...any) {
		fmt.Fprintf(b, "%-12s %s\n", name, fmt.Sprintf(format, args...))
	}
	line("name", "%s (%s)", r.Name, r.Source)
	line("task", "%s, %d classes, labels or targets", r.Task, r.NumClasses)
	g := r.Graph
	kind := "directed"
	if g.Symmetric {
		kind = "symmetric"
	}
	line("nodes", "%d, %d without neighbours, order %s", r.NumNodes, g.Isolated, r.Order)
	line("edges", "%d %s, %d without a reverse, %d self loops, %d repeated", r.NumEdges, kind, g.Unpaired, g.SelfLoops, g.Duplicates)
	line("in-degree", "mean %.2f, median %d, 99%% below %d, largest %d; out-degree largest %d", g.MeanDegree, g.MedianDegree, g.P99Degree+1, g.MaxDegree, g.MaxOutDegree)
	if g.Homophily != nil {
		line("homophily", "%.3f of the edges join nodes of one class", *g.Homophily)
	}
	f := r.Features
	line("features", "%d of %s, from %.6g to %.6g, mean %.4g, %.2f%% not zero, %d rows all zero", r.NumFeatures, r.FeatureType, f.Min, f.Max, f.Mean, 100*f.NonZero, f.ZeroRows)
	if l := r.Labels; l != nil {
		line("labelled", "%d of %d nodes", l.Labelled, r.NumNodes)
		if l.Counts != nil {
			line("per class", "%s", counts(l.Counts, r.ClassNames))
		} else {
			line("targets", "from %.6g to %.6g, mean %.4g", l.Min, l.Max, l.Mean)
		}
	}
	for i, s := range r.Splits {
		line(fmt.Sprintf("split %d", i), "%d train, %d valid, %d test", s.Train, s.Valid, s.Test)
		if i == 0 && s.TrainCounts != nil {
			line("", "train per class: %s", counts(s.TrainCounts, nil))
		}
	}
	line("fingerprint", "%s", r.Fingerprint)
	for _, text := range r.Warnings {
		line("mind", "%s", text)
	}
	return b.Flush()
}

// printable keeps a name from a file on its line.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, s)
}

// counts writes at most 50 counts, with their classes' names where known.
func counts(n []int, names []string) string {
	var out []string
	for c, k := range n {
		switch {
		case c == 50:
			return strings.Join(append(out, fmt.Sprintf("… (%d in all)", len(n))), " ")
		case names != nil:
			out = append(out, fmt.Sprintf("%s %d", printable(names[c]), k))
		default:
			out = append(out, fmt.Sprint(k))
		}
	}
	if names != nil {
		return strings.Join(out, ", ")
	}
	return strings.Join(out, " ")
}
