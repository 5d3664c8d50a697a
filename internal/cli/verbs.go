package cli

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"strings"

	"zerogcn/internal/nearest"
	"zerogcn/internal/usage"
)

// Verb is one of the things that a command can do: dataset convert.
type Verb struct {
	Name    string
	Summary string // one line of help
	// Run does it; args are what follows the verb.
	Run func(ctx context.Context, args []string) error
}

// Dispatch runs the verb that args[0] names. Help (-h, -help or help) goes to
// stdout and gives flag.ErrHelp; no verb or an unknown one is an error of usage.
func Dispatch(ctx context.Context, command string, args []string, stdout io.Writer, verbs ...Verb) error {
	names := make([]string, len(verbs))
	for i, v := range verbs {
		names[i] = v.Name
	}
	if len(args) == 0 {
		return usage.Errorf("say what to do: %s %s", command, strings.Join(names, "|"))
	}
	switch args[0] {
	case "-h", "--h", "-help", "--help", "help":
		if err := writeVerbs(stdout, command, verbs); err != nil {
			return err
		}
		return flag.ErrHelp
	}
	for _, v := range verbs {
		if v.Name == args[0] {
			return v.Run(ctx, args[1:])
		}
	}
	return usage.Errorf("%q: no such verb%s", args[0], suggest(command+" ", nearest.Name(args[0], names), "; "+command+" -help lists them"))
}

func writeVerbs(w io.Writer, command string, verbs []Verb) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "usage: %s <verb> [flags]\n\n", command)
	for _, v := range verbs {
		fmt.Fprintf(b, "  %-12s %s\n", v.Name, v.Summary)
	}
	fmt.Fprintf(b, "\n%s <verb> -help lists the flags of a verb\n", command)
	return b.Flush()
}
