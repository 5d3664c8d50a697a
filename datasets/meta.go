package datasets

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"zerogcn/dtype"
	"zerogcn/graph"
)

// Task says what is to be predicted, and so what Labels hold.
type Task string

// The tasks.
const (
	Multiclass Task = "multiclass" // one of NumClasses classes per node
	Binary     Task = "binary"     // one of two classes per node, scored by ROC-AUC
	Multilabel Task = "multilabel" // any subset of NumClasses labels per node
	Regression Task = "regression" // NumClasses real targets per node
	Link       Task = "link"       // edges; nodes need no labels
)

func (t Task) valid() bool {
	switch t {
	case Multiclass, Binary, Multilabel, Regression, Link:
		return true
	}
	return false
}

// Order says how the nodes are numbered.
type Order string

// The orders. Original ids of reordered sets are in Dataset.NodeIDs.
const (
	Original Order = "original" // as the source numbers them
	ByDegree Order = "degree"   // in-degree descending
	ByAccess Order = "access"   // access counts of a sampled warm-up, descending
)

// Meta describes a dataset; it is what meta.json of the native format holds.
type Meta struct {
	Name string `json:"name"`
	// Source is one line on where the set comes from: the format that it was
	// read from, or "synthetic" and the parameters.
	Source      string `json:"source,omitempty"`
	Task        Task   `json:"task"`
	NumNodes    int    `json:"num_nodes"`
	NumEdges    int64  `json:"num_edges"` // directed, as stored in Graph
	NumFeatures int    `json:"num_features"`
	// NumClasses is the number of classes, labels (multilabel) or targets
	// (regression); 0 for link sets.
	NumClasses int   `json:"num_classes"`
	Order      Order `json:"order"`
	// FeatureType is the storage type of the features: float32, float16, bf16
	// or int8.
	FeatureType string `json:"feature_dtype"`
	// ClassNames, if known, has NumClasses names.
	ClassNames []string `json:"class_names,omitempty"`
	// Fingerprint is a hash of the content; see Fingerprint for what it covers.
	Fingerprint string `json:"fingerprint"`
}

// hashKey is the key of meta.json that holds the hash of the others.
const hashKey = "meta_hash"

// maxMetaBytes bounds meta.json; class names are the only part that grows.
const maxMetaBytes = 4 << 20

// encode writes meta.json with its own hash in it.
func (m *Meta) encode() ([]byte, error) {
	text, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	sum, err := metaHash(text)
	if err != nil {
		return nil, err
	}
	text = append(bytes.TrimSuffix(text, []byte("}")), fmt.Sprintf(",%q:%q}", hashKey, sum)...)
	v := jsontext.Value(text)
	if err := v.Indent(jsontext.WithIndent("  ")); err != nil {
		return nil, err
	}
	return append(v, '\n'), nil
}

// metaHash is the SHA-256 of the canonical form (RFC 8785) of a JSON object
// without the key meta_hash, in hexadecimal.
func metaHash(text []byte) (string, error) {
	var members map[string]jsontext.Value
	if err := json.Unmarshal(text, &members); err != nil {
		return "", err
	}
	delete(members, hashKey)
	rest, err := json.Marshal(members)
	if err != nil {
		return "", err
	}
	v := jsontext.Value(rest)
	if err := v.Canonicalize(); err != nil {
		return "", err
	}
	sum := sha256.Sum256(v)
	return hex.EncodeToString(sum[:]), nil
}

// decodeMeta reads meta.json. Unknown keys are kept out, as later versions may
// add some; duplicate keys are refused. A file without a hash, as one writes by
// hand, is taken as it is.
func decodeMeta(text []byte) (*Meta, error) {
	var m Meta
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, jsonFault(err)
	}
	var own struct {
		Hash *string `json:"meta_hash"`
	}
	if err := json.Unmarshal(text, &own); err != nil {
		return nil, jsonFault(err)
	}
	if own.Hash != nil {
		sum, err := metaHash(text)
		if err != nil {
			return nil, err
		}
		if *own.Hash != sum {
			return nil, fmt.Errorf("key %q: its hash does not fit the other keys: the file was changed; undo that, or remove this key", hashKey)
		}
	}
	return &m, m.check()
}

func (m *Meta) check() error {
	if m.Order == "" {
		m.Order = Original
	}
	switch {
	case len(m.Name) > 200 || strings.ContainsFunc(m.Name, func(r rune) bool { return !unicode.IsPrint(r) || r == '/' }):
		return fmt.Errorf("key %q is %.220q: want at most 200 bytes, printable and without slashes: folders are named after it", "name", m.Name)
	case !m.Task.valid():
		return fmt.Errorf("key %q is %.40q: want multiclass, binary, multilabel, regression or link", "task", string(m.Task))
	case m.NumNodes < 0 || m.NumNodes > graph.MaxNodes:
		return fmt.Errorf("key %q is %d: want 0 to %d", "num_nodes", m.NumNodes, graph.MaxNodes)
	case m.NumEdges < 0 || m.NumEdges > 1<<46:
		return fmt.Errorf("key %q is %d: want 0 to 2^46", "num_edges", m.NumEdges)
	case m.NumFeatures < 0 || m.NumFeatures > 1<<24:
		return fmt.Errorf("key %q is %d: want 0 to 2^24", "num_features", m.NumFeatures)
	case m.NumClasses < 0 || m.NumClasses > 1<<24:
		return fmt.Errorf("key %q is %d: want 0 to 2^24", "num_classes", m.NumClasses)
	case m.Order != Original && m.Order != ByDegree && m.Order != ByAccess:
		return fmt.Errorf("key %q is %.40q: want original, degree or access", "order", string(m.Order))
	case m.ClassNames != nil && len(m.ClassNames) != m.NumClasses:
		return fmt.Errorf("key %q has %d names for %d classes", "class_names", len(m.ClassNames), m.NumClasses)
	}
	if m.FeatureType != "" {
		if _, err := dtype.Parse(m.FeatureType); err != nil {
			return fmt.Errorf("key %q: %w", "feature_dtype", err)
		}
	}
	return nil
}

// jsonFault makes one short line of a JSON error.
func jsonFault(err error) error {
	msg := strings.ReplaceAll(err.Error(), "\n", " ")
	if len(msg) > 300 {
		msg = msg[:300] + "..."
	}
	return fmt.Errorf("not the JSON that is wanted: %s", msg)
}
