package checkpoints

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"zerogcn/checkpoints/safetensors"
	"zerogcn/internal/atomicfile"
	"zerogcn/internal/usage"
)

// maxTries bounds how often Load starts again because the folder was replaced
// while it was read.
const maxTries = 10

// Load reads the checkpoint in the folder path, or the weights alone if path is
// a safetensors file. What is missing, damaged or of another kind is an error
// of usage (package usage) that names the file. A folder that Save replaces
// meanwhile gives the old checkpoint or the new one.
func Load(ctx context.Context, path string) (*Checkpoint, error) {
	if err := atomicfile.Recover(path); err != nil {
		return nil, usage.Errorf("checkpoint: %w", err)
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, usage.Errorf("no checkpoint at %s; give a checkpoint's folder or a .safetensors file", path)
	case err != nil:
		return nil, usage.Errorf("checkpoint: %w", err)
	case !info.IsDir():
		return loadWeights(ctx, path)
	}
	for try := 1; ; try++ {
		c, replaced, err := loadDir(ctx, path)
		switch {
		case err == nil:
			return c, nil
		case context.Cause(ctx) != nil:
			return nil, context.Cause(ctx)
		case !replaced || try == maxTries:
			return nil, usage.Wrap(err)
		}
	}
}

// loadWeights reads a file of tensors from anywhere.
func loadWeights(ctx context.Context, path string) (*Checkpoint, error) {
	f, err := safetensors.Open(path)
	if err != nil {
		return nil, usage.Errorf("weights: %w", err)
	}
	defer f.Close()
	tensors, err := f.ReadAll()
	if err != nil {
		return nil, usage.Errorf("weights: %s: %w", path, err)
	}
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	return &Checkpoint{Model: tensors, WeightsOnly: true}, nil
}

// loadDir reads a folder through one open handle, so that all files are of the
// same checkpoint. After an error, replaced tells whether path leads to another
// folder by now.
func loadDir(ctx context.Context, path string) (c *Checkpoint, replaced bool, err error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, errors.Is(err, fs.ErrNotExist), fmt.Errorf("checkpoint: %w", err)
	}
	defer root.Close()
	defer func() {
		if err != nil {
			replaced = !leadsTo(path, root)
		}
	}()
	doc, err := readDocument(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, fmt.Errorf("%s: holds no %s%s", path, documentName, hint(path))
	}
	if err != nil {
		return nil, false, fmt.Errorf("%s: %w", filepath.Join(path, documentName), err)
	}
	c = &doc.Checkpoint
	for _, part := range []struct {
		name    string
		tensors *[]Tensor
	}{{modelName, &c.Model}, {stateName, &c.State}, {splitName, &c.Split}} {
		want, ok := doc.Files[part.name]
		if !ok && part.name != modelName {
			continue
		}
		if *part.tensors, err = readTensors(ctx, root, part.name, want); err != nil {
			return nil, false, fmt.Errorf("%s: %w", filepath.Join(path, part.name), err)
		}
	}
	return c, false, nil
}

// leadsTo reports whether path still names the open folder.
func leadsTo(path string, root *os.Root) bool {
	a, errA := root.Stat(".")
	b, errB := os.Stat(path)
	return errA == nil && errB == nil && os.SameFile(a, b)
}

// hint points from a run's folder to the checkpoint that was most likely meant.
func hint(path string) string {
	for _, sub := range []string{"checkpoints/best", "best", "checkpoints/last", "last"} {
		p := filepath.Join(path, filepath.FromSlash(sub))
		if _, err := os.Stat(filepath.Join(p, documentName)); err == nil {
			return "; did you mean " + p + "?"
		}
	}
	return "; give a checkpoint's folder or a .safetensors file"
}

// readDocument reads checkpoint.json.
func readDocument(root *os.Root) (*document, error) {
	f, err := root.Open(documentName)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxDocument+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxDocument {
		return nil, fmt.Errorf("more than %d bytes: not the description of a checkpoint", maxDocument)
	}
	return decodeDocument(text)
}

// readTensors reads a file of tensors after checking that it is the one that
// checkpoint.json was written with.
func readTensors(ctx context.Context, root *os.Root, name string, want digest) ([]Tensor, error) {
	f, err := root.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errors.New("missing from the checkpoint")
	} else if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() != want.Bytes {
		return nil, fmt.Errorf("%d bytes, %s has %d for it: it is damaged or was replaced", info.Size(), documentName, want.Bytes)
	}
	h := sha256.New()
	if _, err := io.Copy(&contextWriter{ctx: ctx, w: h}, f); err != nil {
		return nil, err
	}
	if hex.EncodeToString(h.Sum(nil)) != want.SHA256 {
		return nil, fmt.Errorf("its bytes do not match the checksum in %s: it is damaged or was replaced (given by itself, a .safetensors file is read without that check)", documentName)
	}
	file, err := safetensors.NewFile(f, want.Bytes)
	if err != nil {
		return nil, err
	}
	return file.ReadAll()
}
