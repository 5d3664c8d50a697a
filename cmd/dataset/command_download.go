package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"

	"golang.org/x/term"

	"zerogcn/datasets"
	"zerogcn/datasets/fetch"
	"zerogcn/datasets/fetch/console"
	"zerogcn/internal/cli"
	"zerogcn/internal/nearest"
	"zerogcn/internal/par"
	"zerogcn/internal/usage"
)

func download(ctx context.Context, args []string) error {
	var s source
	var yes, keep bool
	var set datasets.PublishedSet
	fs := cli.NewFlags("dataset download", "Bring a published set to -root as a native folder; an interrupted download goes on.")
	fs.Group("Dataset")
	fs.Var(cli.String(&s.name), "dataset", "a name that dataset list prints as published")
	fs.Var(cli.String(&s.root), "root", "folder of named datasets (default $ZEROGCN_DATA, else ~/.cache/zerogcn)")
	fs.Var(cli.Bool(&yes), "yes", "agree to the set's size and licence")
	fs.Var(cli.Bool(&keep), "keep", "keep the files as they were published, in ROOT/.NAME.download")
	s.defineWorkers(fs)
	fs.Check(func() (err error) { set, err = publishedSet(s.name); return err }, "dataset")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if !yes {
		if err := agree(set); err != nil {
			return err
		}
	}
	_, err := console.Download(ctx, set, fetch.Options{Root: s.root, Keep: keep, Workers: par.Workers(s.workers)}, os.Stderr)
	return err
}

func publishedSet(name string) (datasets.PublishedSet, error) {
	if set, ok := datasets.FindPublished(name); ok {
		return set, nil
	}
	var names []string
	for _, p := range datasets.Published() {
		names = append(names, p.Name)
	}
	near := ""
	if n := nearest.Name(name, names); n != "" {
		near = ": did you mean " + n + "?"
	}
	return datasets.PublishedSet{}, usage.Errorf("%q is no published set%s (known: %s)", name, near, strings.Join(names, ", "))
}

// agree asks whoever sits at the terminal, and refuses where nobody does.
func agree(set datasets.PublishedSet) error {
	if !term.IsTerminal(int(os.Stdin.Fd())) {
		return usage.Errorf("dataset %s is %s (%s): add -yes to agree", set.Name, set.Terms(), set.Home)
	}
	fmt.Fprintf(os.Stderr, "%s: %s\n%s, %s on disk\nDownload it? [y/N] ", set.Name, set.Terms(), set.Home, datasets.SizeText(set.Disk))
	line, _ := bufio.NewReader(os.Stdin).ReadString('\n')
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		return nil
	}
	return usage.Errorf("dataset %s: not agreed to, nothing was downloaded", set.Name)
}
