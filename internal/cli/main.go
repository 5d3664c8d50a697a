package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"zerogcn/internal/usage"
)

// Exit codes of every command.
const (
	ExitDone        = 0
	ExitFailed      = 1
	ExitUsage       = 2   // bad usage or bad input: see package usage
	ExitInterrupted = 130 // a signal ended the run early
)

// settle is how long after the first signal another counts as the same one:
// timeout(1) sends its signal to the process and then to its whole group, and
// that must not cost the checkpoint.
const settle = 500 * time.Millisecond

// Main runs a command and ends the process. Its context is cancelled by the
// first SIGINT, SIGTERM or SIGHUP (unless that is ignored, as under nohup); a
// second one, at least half a second later, ends the process at once. An error is
// printed to standard error, one line per fault, each after the command's
// name, and decides the exit code:
//
//   - 0 for nil and flag.ErrHelp;
//   - 130 for context.Canceled after a signal;
//   - 2 for errors marked by package usage, Faults among them;
//   - 1 for all others and for a panic, whose stack is printed only if
//     ZEROGCN_DEBUG=1.
//
// A panic in a goroutine that run started is beyond Main's reach, as Go ends
// the process there: whoever starts goroutines has to carry their panics over.
func Main(command string, run func(ctx context.Context) error) {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(signals, syscall.SIGHUP)
	}
	os.Exit(runMain(command, run, signals, os.Stderr, os.Exit))
}

// runMain is Main with its surroundings passed in. It returns the exit code;
// exit is called only for a second signal.
func runMain(command string, run func(ctx context.Context) error, signals <-chan os.Signal, stderr io.Writer, exit func(int)) int {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	out := &lines{w: stderr, prefix: command + ": "}
	done := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case s := <-signals:
			out.print(fmt.Sprintf("%v: stopping; once more stops at once", s))
			cancel(&interruption{fmt.Sprint(s)})
		case <-done:
			return
		}
		for first := time.Now(); ; {
			select {
			case <-signals:
				if time.Since(first) >= settle {
					exit(ExitInterrupted)
					return
				}
			case <-done:
				return
			}
		}
	})
	err := guarded(ctx, run, out)
	close(done)
	watch.Wait()

	_, interrupted := errors.AsType[*interruption](context.Cause(ctx))
	switch {
	case err == nil || errors.Is(err, flag.ErrHelp):
		return ExitDone
	case errors.Is(err, errPanicked):
		return ExitFailed
	case interrupted && (errors.Is(err, context.Canceled) || errors.Is(err, context.Cause(ctx))):
		if stop, ok := errors.AsType[*Stopped](err); ok {
			out.print(stop.Text)
		}
		return ExitInterrupted
	}
	printError(out, err)
	if usage.Is(err) {
		return ExitUsage
	}
	return ExitFailed
}

// interruption is the cause of a context that a signal cancelled.
type interruption struct{ signal string }

func (i *interruption) Error() string { return "interrupted by signal: " + i.signal }
func (i *interruption) Unwrap() error { return context.Canceled }

// Stopped is the error of a command that a cancelled context ended in good
// order. It counts as context.Canceled; Main prints its text, which says what
// was kept and how to go on.
type Stopped struct{ Text string }

func (s *Stopped) Error() string { return s.Text }
func (s *Stopped) Unwrap() error { return context.Canceled }

var errPanicked = errors.New("panic")

// guarded calls run and turns a panic into one line and errPanicked.
func guarded(ctx context.Context, run func(ctx context.Context) error, out *lines) (err error) {
	defer func() {
		r := recover()
		if r == nil {
			return
		}
		err = errPanicked
		if os.Getenv("ZEROGCN_DEBUG") == "1" {
			out.print(fmt.Sprintf("internal error: %v", r))
			out.raw(debug.Stack())
			return
		}
		out.print(fmt.Sprintf("internal error: %v (this is a bug; ZEROGCN_DEBUG=1 shows where)", r))
	}()
	return run(ctx)
}

// printError prints a list of faults line by line, joined errors too, and any
// other error as one line.
func printError(out *lines, err error) {
	if list, ok := err.(interface{ Unwrap() []error }); ok && len(list.Unwrap()) > 1 {
		if _, faults := err.(Faults); faults || isJoin(err, list.Unwrap()) {
			for _, e := range list.Unwrap() {
				printError(out, e)
			}
			return
		}
	}
	out.print(err.Error())
}

// isJoin tells errors.Join, whose text is that of its parts and nothing else,
// from fmt.Errorf with several %w.
func isJoin(err error, parts []error) bool { return err.Error() == errors.Join(parts...).Error() }

// lines writes lines after a prefix; it may be used by several goroutines.
type lines struct {
	mu     sync.Mutex
	w      io.Writer
	prefix string
}

func (l *lines) print(s string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintf(l.w, "%s%s\n", l.prefix, oneLine(s))
}

func (l *lines) raw(p []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.w.Write(p)
}
