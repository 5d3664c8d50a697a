// Package clitest adds to testscript what tests of the commands need: exact
// exit codes and signals.
package clitest

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// patience bounds how long a command may take to get ready, and to end after
// its signals.
const patience = 60 * time.Second

// apart is the time between two signals: enough for the second to count as one
// of its own, see cli.Main.
const apart = 700 * time.Millisecond

// Commands returns the commands for testscript.Params.Cmds:
//
//	exits CODE COMMAND [ARGS...]
//
// runs a command that must end with that code. As with exec, its output is
// there for the commands stdout and stderr.
//
//	signal CODE READY SIGNALS COMMAND [ARGS...]
//
// starts a command, waits until its output (standard output and standard error
// together) holds the text READY, sends it SIGNALS (INT, TERM, HUP, KILL;
// several with commas between, sent some time apart) and waits for it to end with CODE (-1 if a signal ended
// it). The output lands in the file output.txt.
func Commands() map[string]func(ts *testscript.TestScript, neg bool, args []string) {
	return map[string]func(ts *testscript.TestScript, neg bool, args []string){"exits": exits, "signal": signal}
}

func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND [ARGS...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("%s: %v", args[1], err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("%s: exit code %d, want %d", args[1], got, want)
	}
}

var signals = map[string]syscall.Signal{"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP, "KILL": syscall.SIGKILL}

func signal(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 4 {
		ts.Fatalf("usage: signal CODE READY SIGNALS COMMAND [ARGS...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	out := &watched{text: args[1], seen: make(chan struct{})}
	cmd := command(ts, args[3], args[4:])
	cmd.Stdout, cmd.Stderr = out, out
	ts.Check(cmd.Start())
	ended := make(chan struct{})
	go func() {
		cmd.Wait() // its result is in ProcessState
		close(ended)
	}()
	stop := func(why string) {
		cmd.Process.Kill()
		<-ended
		ts.Fatalf("%s %s; its output:\n%s", args[3], why, out.buf.String())
	}
	select {
	case <-out.seen:
	case <-ended:
		stop("ended before it was ready")
	case <-time.After(patience):
		stop("did not get ready")
	}
	for i, name := range strings.Split(args[2], ",") {
		sig, ok := signals[name]
		if !ok {
			stop("was to get the signal " + name + ", which is none of INT, TERM, HUP, KILL")
		}
		if i > 0 {
			time.Sleep(apart)
		}
		cmd.Process.Signal(sig)
	}
	select {
	case <-ended:
	case <-time.After(patience):
		stop("went on after its signals")
	}
	if got := cmd.ProcessState.ExitCode(); got != want {
		ts.Fatalf("%s: exit code %d, want %d; its output:\n%s", args[3], got, want, out.buf.String())
	}
	ts.Check(os.WriteFile(ts.MkAbs("output.txt"), out.buf.Bytes(), 0o644))
}

// command is like exec.Command within the script's environment and folder.
func command(ts *testscript.TestScript, name string, args []string) *exec.Cmd {
	path := name
	if !strings.Contains(name, "/") {
		for _, dir := range filepath.SplitList(ts.Getenv("PATH")) {
			p := filepath.Join(dir, name)
			if info, err := os.Stat(p); err == nil && !info.IsDir() && info.Mode()&0o111 != 0 {
				path = p
				break
			}
		}
	}
	cmd := exec.Command(path, args...)
	cmd.Dir = ts.MkAbs(".")
	cmd.Env = append(os.Environ(), "PATH="+ts.Getenv("PATH"), "HOME="+ts.Getenv("HOME"), "TMPDIR="+ts.Getenv("TMPDIR"))
	return cmd
}

// watched keeps what is written to it and closes seen once that holds text.
// One writer at a time, which os/exec grants for equal Stdout and Stderr.
type watched struct {
	text string
	buf  bytes.Buffer
	seen chan struct{}
	done bool
}

func (w *watched) Write(p []byte) (int, error) {
	w.buf.Write(p)
	if !w.done && strings.Contains(w.buf.String(), w.text) {
		w.done = true
		close(w.seen)
	}
	return len(p), nil
}
