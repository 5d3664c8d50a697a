package cli

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"zerogcn/internal/cli/clitest"
	"zerogcn/internal/usage"
)

// TestMain makes the test binary double as a tiny command for the scripts.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"tiny": func() { Main("tiny", tiny) }})
}

// tiny ends in the way that its flag says.
func tiny(ctx context.Context) error {
	var end string
	o := defaults()
	fs := newFlags(&o)
	fs.Var(Choice(&end, "done", "fail", "input", "join", "panic", "goroutine", "wait", "wait-stopped", "hang"), "end", "how to end")
	return Dispatch(ctx, "tiny", os.Args[1:], os.Stdout, Verb{"end", "end in some way", func(ctx context.Context, args []string) error {
		if err := fs.Parse(args); err != nil {
			return err
		}
		switch end {
		case "fail":
			return errors.New("disk full:\nnothing written")
		case "input":
			return fmt.Errorf("load: %w", usage.Errorf("x.npy: byte 10: not an npy file"))
		case "join":
			return errors.Join(errors.New("first"), errors.New("second"))
		case "panic":
			var rows []int
			_ = rows[len(args)]
		case "wait", "wait-stopped":
			fmt.Println("ready")
			<-ctx.Done()
			if end == "wait-stopped" {
				return fmt.Errorf("trainer: %w", &Stopped{"kept runs/x at step 12; go on with: train -resume runs/x"})
			}
			return context.Cause(ctx)
		case "hang":
			fmt.Println("ready")
			select {}
		}
		return nil
	}})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:  "testdata/script",
		Cmds: clitest.Commands(),
	})
}

func TestRunMain(t *testing.T) {
	interrupted := make(chan os.Signal, 2)
	interrupted <- os.Interrupt
	twice := make(chan os.Signal, 2)
	twice <- os.Interrupt
	twice <- os.Interrupt
	tests := []struct {
		name    string
		err     error
		signals <-chan os.Signal
		code    int
		stderr  string
	}{
		{name: "done"},
		{name: "help", err: flag.ErrHelp},
		{name: "cancelled without a signal", err: context.Canceled, code: ExitFailed, stderr: "x: context canceled\n"},
		{name: "faults", err: Faults{errors.New("a"), usage.Errorf("b")}, code: ExitUsage, stderr: "x: a\nx: b\n"},
		{name: "two causes", err: fmt.Errorf("%w, then %w", errors.New("a"), errors.New("b")), code: ExitFailed, stderr: "x: a, then b\n"},
		{name: "two signals in one instant", err: context.Canceled, signals: twice, code: ExitInterrupted,
			stderr: "x: interrupt: stopping; once more stops at once\n"},
		{name: "failed after a signal", err: errors.New("disk full"), signals: interrupted, code: ExitFailed,
			stderr: "x: interrupt: stopping; once more stops at once\nx: disk full\n"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var stderr bytes.Buffer
			code := runMain("x", func(ctx context.Context) error {
				if test.signals != nil {
					<-ctx.Done()
				}
				for len(test.signals) > 0 { // until Main has seen them all
					time.Sleep(time.Millisecond)
				}
				return test.err
			}, test.signals, &stderr, func(int) { t.Error("exit called") })
			if code != test.code || stderr.String() != test.stderr {
				t.Errorf("code %d, standard error %q; want %d, %q", code, &stderr, test.code, test.stderr)
			}
		})
	}
}

func TestDispatch(t *testing.T) {
	verbs := []Verb{{Name: "list", Run: func(context.Context, []string) error { return nil }}, {Name: "convert"}}
	for args, want := range map[string]string{
		"":       "say what to do: dataset list|convert",
		"convrt": `"convrt": no such verb; did you mean dataset convert?`,
		"zzz":    `"zzz": no such verb; dataset -help lists them`,
		"list":   "",
	} {
		err := Dispatch(t.Context(), "dataset", strings.Fields(args), io.Discard, verbs...)
		if got := fmt.Sprint(err); want != "" && (got != want || !usage.Is(err)) || want == "" && err != nil {
			t.Errorf("%q: got %v, want %s", args, err, want)
		}
	}
}
