package cli

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"strings"
)

// helpColumn is where the help text begins; longer flags take a line more.
const helpColumn = 30

// WriteHelp prints the usage line, the summary and every flag under its
// group's heading, with its default.
func (fs *Flags) WriteHelp(w io.Writer) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "usage: %s [flags]\n", fs.set.Name())
	if fs.summary != "" {
		fmt.Fprintf(b, "\n%s\n", fs.summary)
	}
	for _, group := range fs.groups() {
		if group == "" {
			group = "Flags"
		}
		fmt.Fprintf(b, "\n%s\n", group)
		for _, d := range fs.order {
			if d.group == group || d.group == "" && group == "Flags" {
				writeFlag(b, d.Flag)
			}
		}
	}
	return b.Flush()
}

// groups lists the headings in the order of their first flags.
func (fs *Flags) groups() []string {
	var list []string
	seen := map[string]bool{}
	for _, d := range fs.order {
		if !seen[d.group] {
			seen[d.group] = true
			list = append(list, d.group)
		}
	}
	return list
}

func writeFlag(w io.Writer, f *flag.Flag) {
	left := "  -" + f.Name
	if p := placeholder(f); p != "" {
		left += " " + p
	}
	if len(left) > helpColumn-2 {
		left += "\n" + strings.Repeat(" ", helpColumn)
	} else {
		left += strings.Repeat(" ", helpColumn-len(left))
	}
	_, help := flag.UnquoteUsage(f)
	switch f.DefValue {
	case "", "false":
	default:
		help += " (default " + f.DefValue + ")"
	}
	fmt.Fprintf(w, "%s%s\n", left, help)
}

// placeholder is the word that stands for a flag's value: the one in back
// quotes in the help, else the one of its type, "" for a boolean.
func placeholder(f *flag.Flag) string {
	if strings.Count(f.Usage, "`") >= 2 {
		name, _ := flag.UnquoteUsage(f)
		return name
	}
	if p, ok := f.Value.(interface{ Placeholder() string }); ok {
		return p.Placeholder()
	}
	if isBool(f.Value) {
		return ""
	}
	return "VALUE"
}
