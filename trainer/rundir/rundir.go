// Package rundir lays out the folder of a run:
//
//	config.yaml     the resolved configuration; train -config takes it
//	metrics.jsonl   one JSON object per step, epoch and evaluation
//	summary.json    what the run came to, once it is done
//	curves.png      loss and metrics by epoch
//	log.txt         notes and milestones with their times
//	checkpoints/    last, best and those kept by number
//
// A Folder is locked while it is open, so that two processes cannot write to one
// run. Close releases it.
package rundir

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"zerogcn/internal/atomicfile"
	"zerogcn/internal/usage"
)

// Names of the files in a run's folder.
const (
	ConfigName      = "config.yaml"
	MetricsName     = "metrics.jsonl"
	SummaryName     = "summary.json"
	CurvesName      = "curves.png"
	LogName         = "log.txt"
	CheckpointsName = "checkpoints"
)

// Folder is the open folder of a run. It owns its files until Close.
type Folder struct {
	Path    string
	lock    *os.File
	metrics *os.File
	log     *os.File
}

// DefaultPath returns runs/<time>-<dataset>-<model>, a name that is not taken.
func DefaultPath(now time.Time, dataset, model string) string {
	clean := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_', r == '.':
			return r
		}
		return '-'
	}, filepath.Base(dataset))
	base := filepath.Join("runs", fmt.Sprintf("%s-%s-%s", now.Format("20060102-150405"), strings.Trim(clean, "-."), model))
	path := base
	for i := 2; ; i++ {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return path
		}
		path = fmt.Sprintf("%s-%d", base, i)
	}
}

// CheckNew reports a path at which Create would refuse to begin a run.
func CheckNew(path string) error {
	entries, err := os.ReadDir(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return usage.Errorf("run folder %s: %w", path, err)
	case len(entries) > 0:
		return usage.Errorf("run folder %s is not empty: continue it with -resume %s, or name another", path, path)
	}
	return nil
}

// Create begins a run in a folder that must not exist or be empty.
func Create(path string) (*Folder, error) {
	if err := CheckNew(path); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(path, 0o777); err != nil {
		return nil, usage.Errorf("run folder: %w", err)
	}
	return open(path)
}

// Open continues a run.
func Open(path string) (*Folder, error) {
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		return nil, usage.Errorf("run folder %s: there is none", path)
	}
	return open(path)
}

func open(path string) (*Folder, error) {
	f := &Folder{Path: path}
	dir, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	f.lock = dir
	if err := unix.Flock(int(dir.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		dir.Close()
		return nil, usage.Errorf("run folder %s is in use by another process", path)
	}
	if f.metrics, err = f.append(MetricsName); err == nil {
		f.log, err = f.append(LogName)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func (f *Folder) append(name string) (*os.File, error) {
	return os.OpenFile(f.File(name), os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o666)
}

// File returns the path of a file of the run.
func (f *Folder) File(name string) string { return filepath.Join(f.Path, name) }

// HasConfig reports whether the run's configuration was written.
func HasConfig(path string) bool {
	_, err := os.Stat(filepath.Join(path, ConfigName))
	return err == nil
}

// Metrics appends to metrics.jsonl. A Write is one system call, so that a killed
// process loses no line.
func (f *Folder) Metrics() io.Writer { return f.metrics }

// Log appends to log.txt.
func (f *Folder) Log() io.Writer { return f.log }

// Write replaces a file of the run atomically.
func (f *Folder) Write(name string, fill func(w io.Writer) error) error {
	return atomicfile.Write(f.File(name), 0o666, fill)
}

// WriteJSON writes a value as indented JSON to a file of the run.
func (f *Folder) WriteJSON(name string, v any) error { return WriteJSON(f.File(name), v) }

// WriteJSON replaces a file by a value as indented JSON, atomically.
func WriteJSON(path string, v any) error {
	return atomicfile.Write(path, 0o666, func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(v)
	})
}

// Point is what CutMetrics and callers need of a line of metrics.jsonl.
type Point struct {
	Event   string             `json:"event"`
	Epoch   int                `json:"epoch"`
	Step    int64              `json:"step"`
	Loss    float64            `json:"loss"`
	Metrics map[string]float64 `json:"metrics"`
}

// CutMetrics drops from metrics.jsonl what a resumed run will do again, and
// returns the lines that stay. The checkpoint was written after step steps; with
// midEpoch its epoch had not ended, so that even an epoch that ends with that
// step is still to be reported.
func (f *Folder) CutMetrics(step int64, midEpoch bool) ([]Point, error) {
	if _, err := f.metrics.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	var kept []Point
	var out bytes.Buffer
	sc := bufio.NewScanner(f.metrics)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		var p Point
		if json.Unmarshal(sc.Bytes(), &p) != nil {
			break // the torn last line of a process that was killed
		}
		if p.Step > step || p.Step == step && midEpoch && p.Event != "step" {
			break
		}
		kept = append(kept, p)
		out.Write(sc.Bytes())
		out.WriteByte('\n')
	}
	if err := sc.Err(); err != nil {
		return nil, err
	}
	if err := f.Write(MetricsName, func(w io.Writer) error { _, err := w.Write(out.Bytes()); return err }); err != nil {
		return nil, err
	}
	err := f.metrics.Close()
	if err != nil {
		return nil, err
	}
	f.metrics, err = f.append(MetricsName)
	return kept, err
}

// Close closes the files and releases the lock.
func (f *Folder) Close() error {
	var errs []error
	for _, c := range []*os.File{f.metrics, f.log, f.lock} {
		if c != nil {
			errs = append(errs, c.Close())
		}
	}
	return errors.Join(errs...)
}
