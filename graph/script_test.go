package graph

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"zerogcn/internal/philox"
)

var rewrite = flag.Bool("rewrite", false, "write the results of testdata/*.txt into those files")

// TestScripts runs the commands in testdata/*.txt: a command line, its input, a
// line of four dashes, the expected result, and an empty line.
//
//	graph nodes=N [symmetrize] [deduplicate] [remove-self-loops] [add-self-loops]
//	    builds from lines "source target [weight]" and prints the rows
//	sample seeds=… fanouts=… seed=… [step=…] [options]
//	    samples the last graph and prints the batch
//	transpose | stats
//	    of the last graph
//
// -rewrite replaces the expected results by what the commands print.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts in testdata: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := runScript(string(text))
			if *rewrite {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, have := strings.Split(string(text), "\n"), strings.Split(got, "\n")
			for i := range max(len(want), len(have)) {
				w, h := at(want, i), at(have, i)
				if w != h {
					t.Fatalf("%s:%d: got %q, want %q (-rewrite accepts what it prints)", file, i+1, h, w)
				}
			}
		})
	}
}

func at(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "end of file"
}

// runScript returns the script with the results that its commands have now.
func runScript(text string) string {
	var out strings.Builder
	g := &CSR{}
	for section := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n\n") {
		if out.Len() > 0 {
			out.WriteString("\n")
		}
		command, _, found := strings.Cut(section, "\n----")
		out.WriteString(command + "\n")
		if !found {
			continue // comments
		}
		out.WriteString("----\n")
		var body []string
		for line := range strings.Lines(command) {
			if !strings.HasPrefix(line, "#") {
				body = append(body, strings.TrimSpace(line))
			}
		}
		result, err := runCommand(&g, strings.Fields(body[0]), body[1:])
		if err != nil {
			result = "error: " + err.Error() + "\n"
		}
		out.WriteString(result)
	}
	return out.String()
}

func runCommand(g **CSR, args, input []string) (string, error) {
	words := map[string]string{}
	for _, a := range args[1:] {
		key, value, _ := strings.Cut(a, "=")
		words[key] = value
	}
	has := func(key string) bool { _, ok := words[key]; return ok }
	number := func(key string) uint64 { n, _ := strconv.ParseUint(words[key], 10, 64); return n }
	ctx := context.Background()
	switch args[0] {
	case "graph":
		e, err := parseEdges(input)
		if err != nil {
			return "", err
		}
		b := Builder{NumNodes: int(number("nodes")), Symmetrize: has("symmetrize"), Deduplicate: has("deduplicate"),
			RemoveSelfLoops: has("remove-self-loops"), AddSelfLoops: has("add-self-loops")}
		c, err := b.Build(ctx, e.One())
		if err != nil {
			return "", err
		}
		*g = c
		return printGraph(c), nil
	case "transpose":
		c, err := (*g).Transpose(ctx, 0)
		if err != nil {
			return "", err
		}
		return printGraph(c), nil
	case "stats":
		s, err := (*g).Stats(ctx, 0)
		return fmt.Sprintln(s), err
	case "sample":
		s, err := NewSampler(*g, Options{Fanouts: parseInts[int](words["fanouts"]), Replace: has("replace"), Weighted: has("weighted"),
			DropSelfLoops: has("drop-self-loops"), EdgeIDs: has("edge-ids"), Degrees: has("degrees"), Scale: has("scale"),
			Transpose: has("transpose"), TransposeAll: has("transpose-all")})
		if err != nil {
			return "", err
		}
		var b Batch
		if err := s.Sample(number("seed"), philox.Sample, number("step"), parseInts[int32](words["seeds"]), &b); err != nil {
			return "", err
		}
		return printBatch(&b), nil
	}
	return "", fmt.Errorf("unknown command %q", args[0])
}

func parseInts[T int | int32](list string) []T {
	var out []T
	for field := range strings.SplitSeq(list, ",") {
		if n, err := strconv.Atoi(field); err == nil {
			out = append(out, T(n))
		}
	}
	return out
}

func parseEdges(lines []string) (Edges, error) {
	var e Edges
	for _, line := range lines {
		var s, t int32
		var w float32
		n, err := fmt.Sscan(line, &s, &t, &w)
		if n < 2 {
			return e, fmt.Errorf("edge %q: %v", line, err)
		}
		e.Sources, e.Targets = append(e.Sources, s), append(e.Targets, t)
		if n == 3 {
			e.Weights = append(e.Weights, w)
		}
	}
	return e, nil
}

func printGraph(c *CSR) string {
	var out bytes.Buffer
	for v := range c.NumNodes() {
		fmt.Fprintf(&out, "%d <-", v)
		for i, s := range c.Row(int32(v)) {
			fmt.Fprintf(&out, " %d", s)
			if c.Weights != nil {
				fmt.Fprintf(&out, ":%g", c.RowWeights(int32(v))[i])
			}
		}
		out.WriteByte('\n')
	}
	return out.String()
}

func printBatch(b *Batch) string {
	var out bytes.Buffer
	out.WriteString("nodes")
	for i, v := range b.Nodes {
		for _, x := range b.Blocks {
			if i == x.NumDst {
				out.WriteString(" |")
				break
			}
		}
		fmt.Fprintf(&out, " %d", v)
	}
	out.WriteByte('\n')
	for i := range b.Blocks {
		x := &b.Blocks[i]
		fmt.Fprintf(&out, "block %d: %d targets, %d sources, %d edges\n", i, x.NumDst, x.NumSrc, x.NumEdges())
		for t := range x.NumDst {
			fmt.Fprintf(&out, "  %d <-", t)
			for j := x.Indptr[t]; j < x.Indptr[t+1]; j++ {
				fmt.Fprintf(&out, " %d", x.Indices[j])
				if x.EdgeIDs != nil {
					fmt.Fprintf(&out, "@%d", x.EdgeIDs[j])
				}
				if x.EdgeScale != nil {
					fmt.Fprintf(&out, "×%.4g", x.EdgeScale[j])
				}
			}
			if x.Scale != nil {
				fmt.Fprintf(&out, " (×%.4g)", x.Scale[t])
			}
			out.WriteByte('\n')
		}
		if x.Degree != nil {
			fmt.Fprintf(&out, "  degrees %v\n", x.Degree)
		}
		if x.TIndptr != nil {
			out.WriteString("  transposed")
			for s := range x.NumSrc {
				fmt.Fprintf(&out, " %d->%v", s, x.TIndices[x.TIndptr[s]:x.TIndptr[s+1]])
			}
			out.WriteByte('\n')
		}
	}
	return out.String()
}
