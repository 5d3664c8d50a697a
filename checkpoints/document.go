package checkpoints

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
)

// The names in a checkpoint folder.
const (
	documentName = "checkpoint.json"
	modelName    = "model.safetensors"
	stateName    = "state.safetensors"
	splitName    = "split.safetensors"
)

const (
	format = "zerogcn-checkpoint"
	// version counts up when a folder of this version cannot be read by the
	// programs before it.
	version = 1
	// maxDocument bounds checkpoint.json, in bytes. A configuration has a few
	// thousand.
	maxDocument = 16 << 20
)

// document is checkpoint.json. Format and Checksum come first, so that the
// place of the checksum in the text is known: it is the SHA-256 of the text
// with zeros in that place.
type document struct {
	Format   string            `json:"format"`
	Checksum string            `json:"checksum"`
	Version  int               `json:"version"`
	Files    map[string]digest `json:"files"`
	Checkpoint
}

// digest identifies the bytes of a file.
type digest struct {
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

const checksumDigits = 2 * sha256.Size

// documentHead is what the text begins with, up to the checksum.
const documentHead = "{\n  \"format\": \"" + format + "\",\n  \"checksum\": \""

var noChecksum = bytes.Repeat([]byte("0"), checksumDigits)

// encodeDocument returns the text of checkpoint.json.
func encodeDocument(c *Checkpoint, files map[string]digest) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(document{Format: format, Checksum: string(noChecksum), Version: version, Files: files, Checkpoint: *c}); err != nil {
		return nil, err
	}
	text := b.Bytes()
	if len(text) > maxDocument {
		return nil, fmt.Errorf("%d bytes of counters and configuration are above the limit of %d", len(text), maxDocument)
	}
	sum := sha256.Sum256(text)
	hex.Encode(text[len(documentHead):], sum[:])
	return text, nil
}

// decodeDocument checks and reads the text of checkpoint.json.
func decodeDocument(text []byte) (*document, error) {
	if len(text) < len(documentHead)+checksumDigits || string(text[:len(documentHead)]) != documentHead {
		return nil, errors.New("not the description of a checkpoint of zerogcn, or cut short")
	}
	place := text[len(documentHead):][:checksumDigits]
	checksum := string(place)
	zeroed := bytes.Clone(text)
	copy(zeroed[len(documentHead):], noChecksum)
	if sum := sha256.Sum256(zeroed); hex.EncodeToString(sum[:]) != checksum {
		return nil, errors.New("its contents do not match its checksum: it is damaged or was edited")
	}
	var d document
	if err := json.Unmarshal(text, &d); err != nil {
		return nil, err
	}
	if d.Version != version {
		return nil, fmt.Errorf("version %d of the format; this program reads version %d", d.Version, version)
	}
	if len(d.Config) > 0 {
		var compact bytes.Buffer
		if err := json.Compact(&compact, d.Config); err != nil {
			return nil, err
		}
		d.Config = compact.Bytes()
	}
	return &d, nil
}
