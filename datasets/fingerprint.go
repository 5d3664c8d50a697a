package datasets

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"slices"
	"sync"
	"unsafe"

	"zerogcn/internal/par"
)

// fingerprintBytes is how much of an array goes into one chunk's hash.
const fingerprintBytes = 1 << 20

// Fingerprint hashes the content of a dataset: graph, weights, features,
// labels, original ids, given splits and edge sets. It is the same for a set
// and for its conversion to the native format with the same storage type,
// whether features are held densely or as sparse rows. Name, source and class
// names do not enter.
//
// It is a tree of SHA-256 of depth two, so that cores share the work: each
// array is cut into chunks of about 1 MiB, and the hash of the arrays' names,
// shapes and chunk hashes, in a fixed order, is the fingerprint. Feature rows
// enter as their 64-byte pieces that are not all zero, each preceded by its
// number.
//
// It reads every byte of the set: seconds for tens of gigabytes. Meta has the
// figure that was computed when the set was made; Verify compares the two.
func Fingerprint(ctx context.Context, d *Dataset, w par.Workers) (string, error) {
	h := &treeHash{ctx: ctx, w: w, top: sha256.New()}
	g := d.Graph
	hashSlice(h, "indptr", g.Indptr)
	hashSlice(h, "indices", g.Indices)
	if g.Weights != nil {
		hashSlice(h, "edge_weight", g.Weights)
	}
	if d.Features != nil {
		h.features(d.Features)
	}
	if d.Labels != nil {
		h.labels(d.Labels)
	}
	if d.NodeIDs != nil {
		hashSlice(h, "node_ids", d.NodeIDs)
	}
	for i := range d.NumGivenSplits() {
		s, err := d.splits.split(i)
		if err != nil {
			return "", err
		}
		for _, p := range s.parts() {
			slices.Sort(p.ids)
			hashSlice(h, fmt.Sprintf("splits/%d/%s", i, p.name), p.ids)
		}
	}
	if d.links != nil {
		e, err := d.EdgeSets()
		if err != nil {
			return "", err
		}
		for _, p := range e.parts() {
			hashSlice(h, p.name+" sources", p.list.Sources)
			hashSlice(h, p.name+" targets", p.list.Targets)
		}
	}
	if h.err != nil {
		return "", fmt.Errorf("dataset %s: fingerprint: %w", d.Name, h.err)
	}
	return "sha256:" + hex.EncodeToString(h.top.Sum(nil)), nil
}

// treeHash collects the chunk hashes of one array after the other. The first
// error sticks.
type treeHash struct {
	ctx context.Context
	w   par.Workers
	top hash.Hash
	err error
	// buffers are *rowBuffer: garbage of the table's size would let the heap
	// grow far beyond the set.
	buffers sync.Pool
}

// rowBuffer holds the rows of a chunk, and what is hashed of them.
type rowBuffer struct{ rows, pieces []byte }

// array hashes n items, per of them to a chunk; emit writes the items [lo, hi).
func (h *treeHash) array(name string, shape []int, n, per int, emit func(to hash.Hash, lo, hi int) error) {
	if h.err != nil {
		return
	}
	sums := make([][sha256.Size]byte, par.Tiles(n, per))
	h.err = eachTile(h.ctx, h.w, n, per, func(lo, hi int) error {
		to := sha256.New()
		if err := emit(to, lo, hi); err != nil {
			return err
		}
		to.Sum(sums[lo/per][:0])
		return nil
	})
	fmt.Fprintf(h.top, "%s %v\n", name, shape)
	for i := range sums {
		h.top.Write(sums[i][:])
	}
}

type number interface {
	int8 | uint8 | int32 | int64 | float32
}

// bytesOf returns the memory of s, which is little-endian on the platforms
// that Go and CUDA share.
func bytesOf[T number](s []T) []byte {
	if len(s) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&s[0])), len(s)*int(unsafe.Sizeof(s[0])))
}

func hashSlice[T number](h *treeHash, name string, s []T) {
	var z T
	per := fingerprintBytes / int(unsafe.Sizeof(z))
	h.array(fmt.Sprintf("%s %T", name, z), []int{len(s)}, len(s), per, func(to hash.Hash, lo, hi int) error {
		to.Write(bytesOf(s[lo:hi]))
		return nil
	})
}

func (h *treeHash) labels(l *Labels) {
	switch {
	case l.multi != nil:
		hashSlice(h, fmt.Sprintf("labels of width %d", l.width), l.multi)
	case l.value != nil:
		hashSlice(h, fmt.Sprintf("targets of width %d", l.width), l.value)
	default:
		h.array("labels class", []int{l.n, l.width}, l.n, fingerprintBytes/4, func(to hash.Hash, lo, hi int) error {
			if l.class32 != nil {
				to.Write(bytesOf(l.class32[lo:hi]))
				return nil
			}
			buf := make([]int32, hi-lo)
			for i, c := range l.class64[lo:hi] {
				if c < -1 || c >= int64(l.width) {
					return l.badClass(lo+i, c)
				}
				buf[i] = int32(c)
			}
			to.Write(bytesOf(buf))
			return nil
		})
	}
}

// zeroRun is the piece of a feature row that is left out where it is all zero:
// one block of SHA-256.
const zeroRun = 64

func (h *treeHash) features(f *Features) {
	rb := f.RowBytes()
	per := max(1, fingerprintBytes/max(1, rb))
	h.array("features "+f.Type.String(), []int{f.Rows, f.Dim}, f.Rows, per, func(to hash.Hash, lo, hi int) error {
		if f.sparse != nil {
			hashSparseRows(to, f, lo, hi)
			return nil
		}
		b, _ := h.buffers.Get().(*rowBuffer)
		if b == nil {
			b = &rowBuffer{make([]byte, per*rb), make([]byte, 0, per*(rb+4*(rb/zeroRun+1)+4))}
		}
		defer h.buffers.Put(b)
		rows := b.rows[:(hi-lo)*rb]
		if err := f.ReadRows(h.ctx, lo, hi, rows); err != nil {
			return err
		}
		out := b.pieces[:0]
		for r := range hi - lo {
			out = appendPieces(out, rows[r*rb:(r+1)*rb], lo+r)
		}
		to.Write(out)
		return nil
	})
	if f.scales != nil {
		hashSlice(h, "scales", f.scales)
	}
}

// appendPieces appends the pieces of row r that are not zero, each after its
// number, then the row's number.
func appendPieces(out, row []byte, r int) []byte {
	for p := 0; p*zeroRun < len(row); p++ {
		piece := row[p*zeroRun : min(len(row), (p+1)*zeroRun)]
		if !allZero(piece) {
			out = binary.LittleEndian.AppendUint32(out, uint32(p))
			out = append(out, piece...)
		}
	}
	return binary.LittleEndian.AppendUint32(out, ^uint32(r))
}

func allZero(b []byte) bool {
	for ; len(b) >= 8; b = b[8:] {
		if binary.LittleEndian.Uint64(b) != 0 {
			return false
		}
	}
	for _, x := range b {
		if x != 0 {
			return false
		}
	}
	return true
}

// hashSparseRows writes what appendPieces would for the dense rows.
func hashSparseRows(to hash.Hash, f *Features, lo, hi int) {
	const per = zeroRun / 4
	var out []byte
	var piece [per]float32
	for r := lo; r < hi; r++ {
		cols, vals := f.sparse.Row(r)
		for len(cols) > 0 {
			p := int(cols[0]) / per
			clear(piece[:])
			some := false
			for len(cols) > 0 && int(cols[0])/per == p {
				piece[int(cols[0])%per] = vals[0]
				some = some || vals[0] != 0
				cols, vals = cols[1:], vals[1:]
			}
			if !some {
				continue
			}
			out = binary.LittleEndian.AppendUint32(out, uint32(p))
			out = append(out, bytesOf(piece[:min(per, f.Dim-p*per)])...)
		}
		out = binary.LittleEndian.AppendUint32(out, ^uint32(r))
	}
	to.Write(out)
}
