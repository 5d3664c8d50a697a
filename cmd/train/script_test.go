package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"zerogcn/internal/sharedtest"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"train": main})
}

// The scripts run the command as users do, each in a folder of its own. $SHARED
// is the folder of real data; scripts that need it begin with [!shared] skip.
func TestScripts(t *testing.T) {
	shared := ""
	if p, err := filepath.Abs("../../../shared/data"); err == nil {
		if _, err := os.Stat(p); err == nil {
			shared = p
		}
	}
	if os.Getenv("ZEROGCN_REQUIRE_SHARED") == "1" {
		shared = sharedtest.Path(t, "data")
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			configs, err := filepath.Abs("../../configs")
			e.Setenv("SHARED", shared)
			e.Setenv("CONFIGS", configs)
			e.Setenv("HOME", e.WorkDir)
			return err
		},
		Condition: func(cond string) (bool, error) { return cond == "shared" && shared != "", nil },
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"waitfor":   waitFor,
			"within":    within,
			"lines":     lines,
			"samejsonl": sameJSONL,
		},
		RequireExplicitExec: true,
	})
}

// waitFor FILE TEXT waits until a file contains a text.
func waitFor(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: waitfor file text")
	}
	for range 600 {
		b, err := os.ReadFile(ts.MkAbs(args[0]))
		if err == nil && strings.Contains(string(b), args[1]) {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	ts.Fatalf("%s never contained %q", args[0], args[1])
}

// within KEY LO HI checks that the JSON summary on standard output, or in a file
// given as fourth argument, has KEY between LO and HI.
func within(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: within key lo hi [file]")
	}
	text := ts.ReadFile("stdout")
	if len(args) == 4 {
		text = ts.ReadFile(args[3])
	}
	_, rest, ok := strings.Cut(text, strconv.Quote(args[0])+":")
	if !ok {
		ts.Fatalf("no key %s in %s", args[0], text)
	}
	num := strings.TrimSpace(rest)
	if i := strings.IndexAny(num, ",}\n"); i >= 0 {
		num = num[:i]
	}
	v, err := strconv.ParseFloat(num, 64)
	ts.Check(err)
	lo, err := strconv.ParseFloat(args[1], 64)
	ts.Check(err)
	hi, err := strconv.ParseFloat(args[2], 64)
	ts.Check(err)
	if !(v >= lo && v <= hi) {
		ts.Fatalf("%s is %v, want %v to %v", args[0], v, lo, hi)
	}
}

// lines N FILE checks the number of lines of a file (or of stdout, stderr).
func lines(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: lines n file")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	if got := strings.Count(ts.ReadFile(args[1]), "\n"); got != want {
		ts.Fatalf("%s has %d lines, want %d:\n%s", args[1], got, want, ts.ReadFile(args[1]))
	}
}

// sameJSONL A B compares two metrics.jsonl but for the times in them.
func sameJSONL(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: samejsonl a b")
	}
	strip := func(name string) string {
		var out []string
		for _, l := range strings.Split(ts.ReadFile(name), "\n") {
			if i := strings.Index(l, `,"elapsed"`); i >= 0 {
				l = l[:i]
			}
			if i := strings.Index(l, `,"stage_seconds"`); i >= 0 {
				l = l[:i]
			}
			out = append(out, l)
		}
		return strings.Join(out, "\n")
	}
	if a, b := strip(args[0]), strip(args[1]); a != b {
		ts.Fatalf("%s and %s differ:\n%s\n----\n%s", args[0], args[1], a, b)
	}
}
