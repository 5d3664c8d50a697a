package checkpoints

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"zerogcn/internal/atomicfile"
)

// ErrNone is returned, wrapped, where a run has no such checkpoint yet.
var ErrNone = errors.New("no checkpoint yet")

// Store is the folder with the checkpoints of a run:
//
//	last/              the state to resume from
//	best/              the state with the best validation metric
//	step-000000001200/ the most recent ones, if more than one is kept
//
// Files with equal bytes are hard links to one copy: best costs nothing while
// it is the last, and the split is stored once. Where the file system has no
// hard links they are copies.
//
// An evaluation that finds a new best must call SaveBest before SaveLast. Then
// a crash between the two leaves a best that is ahead of last, and the resumed
// run comes to the same best again; in the other order last would speak of a
// best that was never written.
type Store struct {
	dir  string
	keep int
}

// NewStore returns the store in the folder dir, which is made by the first
// save. Of the last checkpoints it keeps as many as keep says, the very last
// included; 0 counts as 1. One process at a time may save.
func NewStore(dir string, keep int) *Store { return &Store{dir: dir, keep: max(keep, 1)} }

func (s *Store) lastDir() string { return filepath.Join(s.dir, "last") }
func (s *Store) bestDir() string { return filepath.Join(s.dir, "best") }

// Last returns the folder of the last checkpoint, for Load, or ErrNone.
func (s *Store) Last() (string, error) { return s.find(s.lastDir()) }

// Best returns the folder of the best checkpoint, for Load, or ErrNone.
func (s *Store) Best() (string, error) { return s.find(s.bestDir()) }

func (s *Store) find(dir string) (string, error) {
	if err := atomicfile.Recover(dir); err != nil {
		return "", fmt.Errorf("checkpoint: %w", err)
	}
	switch _, err := os.Stat(dir); {
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("%s: %w", dir, ErrNone)
	case err != nil:
		return "", fmt.Errorf("checkpoint: %w", err)
	}
	return dir, nil
}

// SaveBest makes c the best checkpoint.
func (s *Store) SaveBest(ctx context.Context, c *Checkpoint) error {
	p, err := prepare(ctx, c)
	if err != nil {
		return fmt.Errorf("checkpoint %s: %w", s.bestDir(), err)
	}
	return p.write(ctx, s.bestDir(), s.siblings())
}

// SaveLast makes c the last checkpoint and removes those that are no longer
// kept, as well as those of later steps: they belong to a run that was taken
// back to an earlier one.
func (s *Store) SaveLast(ctx context.Context, c *Checkpoint) error {
	p, err := prepare(ctx, c)
	if err != nil {
		return fmt.Errorf("checkpoint %s: %w", s.lastDir(), err)
	}
	if err := p.write(ctx, s.lastDir(), s.siblings()); err != nil {
		return err
	}
	if s.keep > 1 {
		if err := p.write(ctx, s.StepDir(c.Step), s.siblings()); err != nil {
			return err
		}
	}
	return s.prune(c.Step)
}

func (s *Store) siblings() []string { return []string{s.bestDir(), s.lastDir()} }

const stepPrefix = "step-"

func stepName(step int64) string { return fmt.Sprintf("%s%012d", stepPrefix, step) }

// StepDir is the folder of a checkpoint that is kept by number.
func (s *Store) StepDir(step int64) string { return filepath.Join(s.dir, stepName(step)) }

// Steps lists the steps of the checkpoints that are kept by number, ascending;
// Load them from StepDir.
func (s *Store) Steps() ([]int64, error) {
	steps, err := s.stepDirs()
	return slices.DeleteFunc(steps, func(step int64) bool {
		_, err := os.Stat(filepath.Join(s.StepDir(step), documentName))
		return err != nil // prune was killed in the middle of it
	}), err
}

// stepDirs lists the folders with the name of a step, ascending.
func (s *Store) stepDirs() ([]int64, error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var steps []int64
	for _, e := range entries {
		digits, ok := strings.CutPrefix(e.Name(), stepPrefix)
		step, err := strconv.ParseInt(digits, 10, 64)
		if ok && err == nil && stepName(step) == e.Name() && e.IsDir() {
			steps = append(steps, step)
		}
	}
	slices.Sort(steps)
	return steps, nil
}

// prune removes the numbered checkpoints that are older than the ones to keep
// or newer than now, and what killed writers left.
func (s *Store) prune(now int64) error {
	atomicfile.Sweep(s.dir)
	steps, err := s.stepDirs()
	if err != nil {
		return err
	}
	kept := 0
	for _, step := range slices.Backward(steps) {
		if step <= now && kept < s.keep && s.keep > 1 {
			kept++
			continue
		}
		dir := s.StepDir(step)
		// The description goes first: without it the rest is no checkpoint.
		err := os.Remove(filepath.Join(dir, documentName))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	return nil
}
