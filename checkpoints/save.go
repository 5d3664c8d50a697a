package checkpoints

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"zerogcn/checkpoints/safetensors"
	"zerogcn/internal/atomicfile"
	"zerogcn/internal/usage"
)

// Save writes a checkpoint as the folder dir, in place of one that is there.
// Until it returns nil, dir is what it was before; a cancelled context ends it
// early that way. A folder has one writer at a time.
func Save(ctx context.Context, dir string, c *Checkpoint) error {
	p, err := prepare(ctx, c)
	if err != nil {
		return fmt.Errorf("checkpoint %s: %w", dir, err)
	}
	return p.write(ctx, dir, nil)
}

// prepared is a checkpoint whose bytes are known, though not in memory.
type prepared struct {
	parts []part
	text  []byte // of checkpoint.json
}

// part is a file of tensors.
type part struct {
	name    string
	tensors []Tensor
	digest  digest
}

func prepare(ctx context.Context, c *Checkpoint) (*prepared, error) {
	var p prepared
	files := map[string]digest{}
	for _, part := range []part{{name: modelName, tensors: c.Model}, {name: stateName, tensors: c.State}, {name: splitName, tensors: c.Split}} {
		if len(part.tensors) == 0 && part.name != modelName {
			continue
		}
		var err error
		if part.digest, err = digestOf(ctx, part.tensors); err != nil {
			return nil, fmt.Errorf("%s: %w", part.name, err)
		}
		p.parts = append(p.parts, part)
		files[part.name] = part.digest
	}
	var err error
	if p.text, err = encodeDocument(c, files); err != nil {
		return nil, fmt.Errorf("%s: %w", documentName, err)
	}
	return &p, nil
}

// write makes the folder. Files that a checkpoint in one of the folders
// siblings has with the same bytes are linked.
func (p *prepared) write(ctx context.Context, dir string, siblings []string) error {
	if err := refuseForeign(dir); err != nil {
		return err
	}
	shared := p.findShared(siblings)
	err := atomicfile.WriteDir(dir, func(temp string) error {
		for _, part := range p.parts {
			path := filepath.Join(temp, part.name)
			// Where links are not possible, the bytes are written once more.
			if source := shared[part.name]; source != "" && os.Link(source, path) == nil {
				continue
			}
			if err := writeTensors(ctx, path, part.tensors); err != nil {
				return err
			}
		}
		return os.WriteFile(filepath.Join(temp, documentName), p.text, 0o666)
	})
	if err != nil {
		return fmt.Errorf("checkpoint %s: %w", dir, err)
	}
	return nil
}

// refuseForeign keeps Save from replacing a folder with something else in it.
func refuseForeign(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil // nothing there, or WriteDir says what is wrong
	}
	for _, e := range entries {
		switch e.Name() {
		case documentName, modelName, stateName, splitName:
		default:
			return usage.Errorf("checkpoint %s: the folder holds %s, which is no part of a checkpoint; choose another folder, or remove it", dir, e.Name())
		}
	}
	return nil
}

// modelMetadata marks files the way PyTorch's package does; some readers of its
// files ask for it.
var modelMetadata = map[string]string{"format": "pt"}

// digestOf is the digest of the file that writeTensors would write.
func digestOf(ctx context.Context, tensors []Tensor) (digest, error) {
	h := sha256.New()
	w := &contextWriter{ctx: ctx, w: h}
	if err := safetensors.Write(w, tensors, modelMetadata); err != nil {
		return digest{}, err
	}
	return digest{Bytes: w.n, SHA256: hex.EncodeToString(h.Sum(nil))}, nil
}

func writeTensors(ctx context.Context, path string, tensors []Tensor) (err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return safetensors.Write(&contextWriter{ctx: ctx, w: f}, tensors, modelMetadata)
}

// contextWriter counts bytes and ends with its context.
type contextWriter struct {
	ctx context.Context
	w   io.Writer
	n   int64
}

func (c *contextWriter) Write(p []byte) (int, error) {
	if err := context.Cause(c.ctx); err != nil {
		return 0, err
	}
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

// findShared looks for the same files in other checkpoints and returns their
// paths by name. A checkpoint that cannot be read has none to share.
func (p *prepared) findShared(siblings []string) map[string]string {
	shared := map[string]string{}
	for _, dir := range siblings {
		root, err := os.OpenRoot(dir)
		if err != nil {
			continue
		}
		doc, err := readDocument(root)
		root.Close()
		if err != nil {
			continue
		}
		for _, part := range p.parts {
			path := filepath.Join(dir, part.name)
			info, err := os.Lstat(path)
			if err == nil && info.Mode().IsRegular() && info.Size() == part.digest.Bytes && doc.Files[part.name] == part.digest {
				shared[part.name] = path
			}
		}
	}
	return shared
}
