// Package console shows a download of package fetch to whoever waits for it: a
// bar on a terminal, else a line now and then. [Download] is fetch.Download with
// that.
package console

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"zerogcn/datasets"
	"zerogcn/datasets/fetch"
	"zerogcn/internal/cli"
)

// between is the time from one line to the next where there is no terminal.
const between = 10 * time.Second

// Download downloads a set and writes to w what is done. A cancelled context ends
// it with a *cli.Stopped, which says how to go on. o.Listen is not used.
func Download(ctx context.Context, set datasets.PublishedSet, o fetch.Options, w io.Writer) (string, error) {
	fmt.Fprintf(w, "dataset %s: downloading %s\n", set.Name, set.Terms())
	v := &view{w: w}
	if f, ok := w.(*os.File); ok {
		v.terminal = term.IsTerminal(int(f.Fd()))
	}
	o.Listen = v.event
	path, err := fetch.Download(ctx, set, o)
	v.end()
	if errors.Is(err, context.Canceled) {
		return "", &cli.Stopped{Text: fmt.Sprintf("dataset %s: what was transferred is kept: the same command goes on from there", set.Name)}
	}
	if err != nil {
		return "", err
	}
	fmt.Fprintf(w, "dataset %s: in %s\n", set.Name, path)
	return path, nil
}

// view is what is on the screen. Events come from one goroutine at a time.
type view struct {
	w        io.Writer
	terminal bool
	bar      *progressbar.ProgressBar
	shown    fetch.Event // of the bar, or of the last line
	at       time.Time
}

var verbs = map[fetch.Stage]string{fetch.Transfer: "receiving", fetch.Unpacking: "unpacking", fetch.Converting: "converting"}

func (v *view) event(e fetch.Event) {
	if e.Note != "" {
		v.end()
		fmt.Fprintf(v.w, "%s: %s\n", e.Name, e.Note)
		return
	}
	same := e.Stage == v.shown.Stage && e.Name == v.shown.Name
	if !v.terminal || e.Total == 0 {
		if same && time.Since(v.at) < between {
			return
		}
		v.end()
		v.shown, v.at = e, time.Now()
		fmt.Fprintf(v.w, "%s %s%s\n", verbs[e.Stage], e.Name, share(e))
		return
	}
	if !same || v.bar == nil {
		v.end()
		v.shown = e
		v.bar = progressbar.NewOptions64(e.Total,
			progressbar.OptionSetWriter(v.w),
			progressbar.OptionSetDescription(verbs[e.Stage]+" "+e.Name),
			progressbar.OptionShowBytes(true),
			progressbar.OptionShowTotalBytes(true),
			progressbar.OptionSetPredictTime(true),
			progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionClearOnFinish(),
			progressbar.OptionSetWidth(30),
		)
	}
	_ = v.bar.Set64(e.Done)
}

// end takes the bar away.
func (v *view) end() {
	if v.bar != nil {
		_ = v.bar.Clear()
		v.bar = nil
	}
}

func share(e fetch.Event) string {
	switch {
	case e.Total > 0:
		return fmt.Sprintf(": %s of %s", datasets.SizeText(e.Done), datasets.SizeText(e.Total))
	case e.Done > 0:
		return ": " + datasets.SizeText(e.Done)
	}
	return ""
}
