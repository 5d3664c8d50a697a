package datasets

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"os"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"

	"zerogcn/graph"
	"zerogcn/internal/par"
)

const (
	// bucketBits is the logarithm of the files that edges are dealt to at a
	// time: enough to leave the memory after one pass or two, few enough to be
	// open all at once.
	bucketBits = 7
	// dealEdges is how many edges are dealt at a time, dealTile how many by one
	// task.
	dealEdges = 1 << 18
	dealTile  = 1 << 15
)

// externalBuilder makes the graph that a graph.Builder makes, without holding its
// edges: a distribution sort (Vitter, "External Memory Algorithms and Data
// Structures", ACM Computing Surveys 33, 2001, section 5.1). An edge is a key,
// target first, then source. The edges are read once and dealt by their keys'
// highest bits into files, in input order; a file that does not fit the memory
// is dealt again by the next bits; what fits is sorted stably, and written
// behind what came before. Repeated edges meet in one file, in input order, so
// the first is known.
//
// Which keys lie in one file depends on the bound; the result does not.
type externalBuilder struct {
	ctx      context.Context
	b        graph.Builder
	s        spill
	idBits   uint // of a node's number
	keyBits  uint
	weighted bool
	edges    int64 // read so far

	stage graph.Edges
	deal  dealer
	arena arena

	indptr, indices, weights scratchWriter
	row                      int   // rows that have begun
	rowStart                 int64 // of the row begun last
	total                    int64 // edges written
	ids                      [1 << 14]int32
}

// buildExternal builds a graph whose arrays are mapped temporary files. release
// unmaps them.
func buildExternal(ctx context.Context, b graph.Builder, src graph.EdgeSource, s spill) (g *graph.CSR, release func() error, err error) {
	if b.NumNodes < 0 || b.NumNodes > graph.MaxNodes {
		return nil, nil, fmt.Errorf("graph: %d nodes, possible are 0 to %d", b.NumNodes, graph.MaxNodes)
	}
	x := &externalBuilder{ctx: ctx, b: b, s: s, idBits: uint(bits.Len32(uint32(max(b.NumNodes, 1) - 1)))}
	x.keyBits = 2 * x.idBits
	defer func() {
		for _, w := range []*scratchWriter{&x.indptr, &x.indices, &x.weights} {
			err = errors.Join(err, w.close()) // a mapping outlives its file
		}
		if err != nil && release != nil {
			err = errors.Join(err, release())
			g, release = nil, nil
		}
	}()
	top := x.newBucket(0, x.keyBits)
	parts, err := x.split(top, bucketBits, func(yield func(keys []uint64, weights []float32) error) error { return x.read(src, yield) })
	if err != nil {
		return nil, nil, errors.Join(err, closeBuckets(parts))
	}
	for _, w := range []*scratchWriter{&x.indptr, &x.indices} {
		if err := w.open(s.dir); err != nil {
			return nil, nil, errors.Join(err, closeBuckets(parts))
		}
	}
	if x.weighted {
		if err := x.weights.open(s.dir); err != nil {
			return nil, nil, errors.Join(err, closeBuckets(parts))
		}
	}
	if err := x.place(parts); err != nil {
		return nil, nil, err
	}
	return x.finish()
}

// read yields the keys of the edges in input order, a segment at a time, with
// their reverses where those are asked for.
func (x *externalBuilder) read(src graph.EdgeSource, yield func(keys []uint64, weights []float32) error) error {
	var keys []uint64
	var weights []float32
	flush := func() error {
		if err := x.ctx.Err(); err != nil {
			return err
		}
		var err error
		keys, weights, err = x.keys(keys[:0], weights[:0])
		if err != nil {
			return err
		}
		x.edges += int64(x.stage.Len())
		x.stage.Sources, x.stage.Targets, x.stage.Weights = x.stage.Sources[:0], x.stage.Targets[:0], x.stage.Weights[:0]
		return yield(keys, weights)
	}
	some := false
	for e, err := range src {
		if err != nil {
			return err
		}
		if len(e.Targets) != e.Len() || e.Weights != nil && len(e.Weights) != e.Len() {
			return fmt.Errorf("graph: %d sources, %d targets and %d weights do not make edges", e.Len(), len(e.Targets), len(e.Weights))
		}
		if e.Len() == 0 {
			continue
		}
		if !some {
			some, x.weighted = true, e.Weights != nil
		}
		if x.weighted != (e.Weights != nil) {
			return fmt.Errorf("graph: edge %d: some chunks of edges have weights and some have none", x.edges+int64(x.stage.Len()))
		}
		for lo := 0; lo < e.Len(); {
			hi := min(e.Len(), lo+dealEdges-x.stage.Len())
			x.stage.Sources = append(x.stage.Sources, e.Sources[lo:hi]...)
			x.stage.Targets = append(x.stage.Targets, e.Targets[lo:hi]...)
			if x.weighted {
				x.stage.Weights = append(x.stage.Weights, e.Weights[lo:hi]...)
			}
			if lo = hi; x.stage.Len() == dealEdges {
				if err := flush(); err != nil {
					return err
				}
			}
		}
	}
	return flush()
}

// keys checks the staged edges and appends their keys.
func (x *externalBuilder) keys(keys []uint64, weights []float32) ([]uint64, []float32, error) {
	n := uint32(x.b.NumNodes)
	dropSelf := x.b.RemoveSelfLoops || x.b.AddSelfLoops
	for i, s := range x.stage.Sources {
		t := x.stage.Targets[i]
		if uint32(s) >= n || uint32(t) >= n {
			what, id := "source", s
			if uint32(s) < n {
				what, id = "target", t
			}
			return nil, nil, fmt.Errorf("graph: edge %d (%d -> %d): %s %d is not in [0, %d)", x.edges+int64(i), s, t, what, id, n)
		}
		if x.weighted {
			if w := x.stage.Weights[i]; w-w != 0 {
				return nil, nil, fmt.Errorf("graph: edge %d (%d -> %d): weight %v is not finite", x.edges+int64(i), s, t, w)
			}
		}
		if s == t && dropSelf {
			continue
		}
		keys = append(keys, uint64(t)<<x.idBits|uint64(s))
		if x.weighted {
			weights = append(weights, x.stage.Weights[i])
		}
		if x.b.Symmetrize && s != t {
			keys = append(keys, uint64(s)<<x.idBits|uint64(t))
			if x.weighted {
				weights = append(weights, x.stage.Weights[i])
			}
		}
	}
	return keys, weights, nil
}

// bucket is the edges whose keys lie in [lo, lo + 2^span), in input order, in
// files; in none where there are no edges.
type bucket struct {
	lo    uint64
	span  uint
	count int64
	self  int64 // self loops to be added in its range
	keys  *os.File
	vals  *os.File // weights, nil if there are none
}

// newBucket makes an empty bucket.
func (x *externalBuilder) newBucket(lo uint64, span uint) *bucket {
	p := &bucket{lo: lo, span: span}
	if x.b.AddSelfLoops {
		first, end := x.selfRange(p)
		p.self = int64(end - first)
	}
	return p
}

// selfRange returns the nodes [first, end) whose self loops have keys in p.
func (x *externalBuilder) selfRange(p *bucket) (first, end uint64) {
	step := uint64(1)<<x.idBits + 1 // the key of node v's self loop is v × step
	n := uint64(x.b.NumNodes)
	last := p.lo + (uint64(1)<<p.span - 1)
	return min(n, (p.lo+step-1)/step), min(n, last/step+1)
}

func (p *bucket) close() error {
	var errs []error
	for _, f := range []*os.File{p.keys, p.vals} {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	p.keys, p.vals = nil, nil
	return errors.Join(errs...)
}

func closeBuckets(parts []*bucket) error {
	var errs []error
	for _, p := range parts {
		errs = append(errs, p.close())
	}
	return errors.Join(errs...)
}

// split deals the keys that each yields, all of them in p's range, to 2^digit
// buckets of that range. The buckets are returned in any case, for the caller to
// close.
func (x *externalBuilder) split(p *bucket, digit uint, each func(yield func(keys []uint64, weights []float32) error) error) ([]*bucket, error) {
	shift := p.span - min(p.span, digit)
	parts := make([]*bucket, 1<<(p.span-shift))
	for i := range parts {
		parts[i] = x.newBucket(p.lo+uint64(i)<<shift, shift)
	}
	err := each(func(keys []uint64, weights []float32) error {
		x.deal.run(keys, weights, p.lo, shift, len(parts), x.b.Workers)
		errs := make([]error, len(parts))
		x.b.Workers.Range(len(parts), 1, func(i, _, _ int) {
			k, w := x.deal.bucket(i)
			errs[i] = parts[i].append(k, w, x.s.dir)
		})
		return errors.Join(errs...)
	})
	return parts, err
}

// append writes keys and weights behind those of the bucket.
func (p *bucket) append(keys []uint64, weights []float32, dir string) (err error) {
	if len(keys) == 0 {
		return nil
	}
	if p.keys == nil {
		if p.keys, err = scratchFile(dir); err != nil {
			return err
		}
		if len(weights) > 0 {
			if p.vals, err = scratchFile(dir); err != nil {
				return err
			}
		}
	}
	if _, err := p.keys.Write(keyBytes(keys)); err != nil {
		return err
	}
	if p.vals != nil {
		if _, err := p.vals.Write(bytesOf(weights)); err != nil {
			return err
		}
	}
	p.count += int64(len(keys))
	return nil
}

// segments yields a bucket's keys and weights as they were appended, dealEdges at a
// time.
func (p *bucket) segments(ctx context.Context, yield func(keys []uint64, weights []float32) error) error {
	if p.count == 0 {
		return nil
	}
	keys := make([]uint64, min(p.count, dealEdges))
	var weights []float32
	if p.vals != nil {
		weights = make([]float32, len(keys))
	}
	for at := int64(0); at < p.count; {
		if err := ctx.Err(); err != nil {
			return err
		}
		n := min(int64(len(keys)), p.count-at)
		if err := p.read(at, keys[:n], weights[:min(n, int64(len(weights)))]); err != nil {
			return err
		}
		if err := yield(keys[:n], weights[:min(n, int64(len(weights)))]); err != nil {
			return err
		}
		at += n
	}
	return nil
}

// read fills keys and, where there are any, weights from the at-th on.
func (p *bucket) read(at int64, keys []uint64, weights []float32) error {
	if len(keys) == 0 {
		return nil
	}
	if _, err := p.keys.ReadAt(keyBytes(keys), 8*at); err != nil {
		return fmt.Errorf("temporary file: %w", err)
	}
	if len(weights) == 0 {
		return nil
	}
	if _, err := p.vals.ReadAt(bytesOf(weights), 4*at); err != nil {
		return fmt.Errorf("temporary file: %w", err)
	}
	return nil
}

// keyBytes returns the memory of keys; the files are read by the process that wrote them.
func keyBytes(keys []uint64) []byte {
	if len(keys) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&keys[0])), 8*len(keys))
}

// bytesPerKey is what a key in memory takes while it is sorted, with a weight.
const bytesPerKey = 2 * (8 + 4)

// place writes the graph's rows from the buckets, in order, and closes them.
func (x *externalBuilder) place(parts []*bucket) (err error) {
	defer func() { err = errors.Join(err, closeBuckets(parts)) }()
	half := max(x.s.memory/2/bytesPerKey, 1) // keys in memory at a time
	var batch []*bucket
	held := int64(0)
	flush := func() error {
		err := x.placeBatch(batch)
		batch, held = batch[:0], 0
		return err
	}
	for _, p := range parts {
		n := p.count + p.self
		switch {
		case n == 0:
			continue
		case n > half/2 && p.span > 0:
			if err := flush(); err != nil {
				return err
			}
			// To a quarter of what fits, as keys are seldom spread evenly.
			digit := min(bucketBits, uint(bits.Len64(uint64(n/max(half/8, 1)))))
			finer, err := x.split(p, digit, func(yield func([]uint64, []float32) error) error { return p.segments(x.ctx, yield) })
			if err != nil {
				return errors.Join(err, closeBuckets(finer))
			}
			if err := p.close(); err != nil {
				return errors.Join(err, closeBuckets(finer))
			}
			if err := x.place(finer); err != nil {
				return err
			}
			continue
		case p.count > half/2: // copies of one edge
			if err := flush(); err != nil {
				return err
			}
			if err := x.placeCopies(p); err != nil {
				return err
			}
			continue
		case held+n > half:
			if err := flush(); err != nil {
				return err
			}
		}
		batch = append(batch, p)
		held += n
	}
	return flush()
}

// placeCopies writes the edges of a bucket of one key.
func (x *externalBuilder) placeCopies(p *bucket) error {
	first := true
	return p.segments(x.ctx, func(keys []uint64, weights []float32) error {
		if x.b.Deduplicate {
			if !first {
				return nil
			}
			keys, weights = keys[:1], weights[:min(1, len(weights))]
			first = false
		}
		return x.write(keys, weights)
	})
}

// leaf is a bucket in memory.
type leaf struct {
	keys    []uint64
	weights []float32
	err     error
}

// placeBatch sorts buckets that fit the memory together, in parallel, and writes
// them in order.
func (x *externalBuilder) placeBatch(batch []*bucket) error {
	if len(batch) == 0 {
		return nil
	}
	if err := x.ctx.Err(); err != nil {
		return err
	}
	total := int64(0)
	for _, p := range batch {
		total += p.count + p.self
	}
	x.arena.reset(int(total), x.weighted)
	leaves := make([]leaf, len(batch))
	spare := make([]leaf, len(batch))
	for i, p := range batch {
		n := int(p.count + p.self)
		leaves[i].keys, leaves[i].weights = x.arena.take(n)
		spare[i].keys, spare[i].weights = x.arena.take(n)
	}
	x.b.Workers.Range(len(batch), 1, func(i, _, _ int) { x.sortLeaf(batch[i], &leaves[i], &spare[i]) })
	for i := range leaves {
		if leaves[i].err != nil {
			return leaves[i].err
		}
		if err := x.write(leaves[i].keys, leaves[i].weights); err != nil {
			return err
		}
	}
	return nil
}

// sortLeaf reads a bucket, adds its self loops, sorts it and drops repeated edges.
func (x *externalBuilder) sortLeaf(p *bucket, l, spare *leaf) {
	w := l.weights
	if x.weighted {
		w = w[:p.count]
	}
	if l.err = p.read(0, l.keys[:p.count], w); l.err != nil {
		return
	}
	if x.b.AddSelfLoops {
		first, end := x.selfRange(p)
		for v := first; v < end; v++ {
			at := p.count + int64(v-first)
			l.keys[at] = v<<x.idBits | v
			if x.weighted {
				l.weights[at] = 1
			}
		}
	}
	sortKeys(l, spare, p.span)
	if !x.b.Deduplicate {
		return
	}
	kept := 0
	for i, k := range l.keys {
		if i > 0 && k == l.keys[kept-1] {
			continue
		}
		l.keys[kept] = k
		if x.weighted {
			l.weights[kept] = l.weights[i]
		}
		kept++
	}
	l.keys = l.keys[:kept]
	if x.weighted {
		l.weights = l.weights[:kept]
	}
}

// write appends edges of ascending keys to the graph.
func (x *externalBuilder) write(keys []uint64, weights []float32) error {
	mask := uint64(1)<<x.idBits - 1
	for part := range slices.Chunk(keys, len(x.ids)) {
		for i, k := range part {
			for t := int(k >> x.idBits); x.row <= t; {
				if err := x.begin(x.total + int64(i)); err != nil {
					return err
				}
			}
			x.ids[i] = int32(k & mask)
		}
		x.total += int64(len(part))
		if _, err := x.indices.buf.Write(bytesOf(x.ids[:len(part)])); err != nil {
			return err
		}
	}
	if len(weights) == 0 {
		return nil
	}
	_, err := x.weights.buf.Write(bytesOf(weights))
	return err
}

// begin begins the next row, or ends the last one, at an edge.
func (x *externalBuilder) begin(at int64) error {
	if n := at - x.rowStart; n > graph.MaxNodes {
		return fmt.Errorf("graph: node %d has %d incoming edges, at most %d are possible", x.row-1, n, graph.MaxNodes)
	}
	x.row, x.rowStart = x.row+1, at
	_, err := x.indptr.buf.Write(binary.LittleEndian.AppendUint64(x.indptr.buf.AvailableBuffer(), uint64(at)))
	return err
}

// finish maps what was written.
func (x *externalBuilder) finish() (g *graph.CSR, release func() error, err error) {
	for x.row <= x.b.NumNodes {
		if err := x.begin(x.total); err != nil {
			return nil, nil, err
		}
	}
	var mapped [][]byte
	release = func() error {
		var errs []error
		for _, m := range mapped {
			if m != nil {
				errs = append(errs, unix.Munmap(m))
			}
		}
		mapped = nil
		return errors.Join(errs...)
	}
	for _, w := range []*scratchWriter{&x.indptr, &x.indices, &x.weights} {
		m, err := w.finish()
		if err != nil {
			return nil, nil, errors.Join(err, release())
		}
		mapped = append(mapped, m)
	}
	g = &graph.CSR{Indptr: elements[int64](mapped[0]), Indices: elements[int32](mapped[1])}
	if x.weighted {
		g.Weights = elements[float32](mapped[2])
	}
	return g, release, nil
}

// elements is the inverse of bytesOf.
func elements[T number](b []byte) []T {
	var z T
	if len(b) == 0 {
		return []T{}
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&b[0])), len(b)/int(unsafe.Sizeof(z)))
}

// scratchWriter writes a temporary file.
type scratchWriter struct {
	file *os.File
	buf  *bufio.Writer
}

func (w *scratchWriter) open(dir string) (err error) {
	if w.file, err = scratchFile(dir); err == nil {
		w.buf = bufio.NewWriterSize(w.file, 1<<20)
	}
	return err
}

// finish maps what was written; nil where nothing was.
func (w *scratchWriter) finish() ([]byte, error) {
	if w.file == nil {
		return nil, nil
	}
	if err := w.buf.Flush(); err != nil {
		return nil, err
	}
	return mapScratch(w.file)
}

func (w *scratchWriter) close() error {
	if w.file == nil {
		return nil
	}
	err := w.file.Close()
	w.file = nil
	return err
}

// dealer deals keys to buckets, stably.
type dealer struct {
	keys    []uint64
	weights []float32
	next    []int32 // per tile and bucket: count, then next place
	starts  []int32 // per bucket
}

// run deals keys by (key - lo) >> shift, which is below buckets.
func (d *dealer) run(keys []uint64, weights []float32, lo uint64, shift uint, buckets int, w par.Workers) {
	tiles := par.Tiles(len(keys), dealTile)
	d.next = append(d.next[:0], make([]int32, tiles*buckets)...)
	w.Range(len(keys), dealTile, func(t, first, end int) {
		count := d.next[t*buckets:][:buckets]
		for _, k := range keys[first:end] {
			count[(k-lo)>>shift]++
		}
	})
	d.starts = append(d.starts[:0], 0)
	total := int32(0)
	for b := range buckets {
		for t := range tiles {
			at := &d.next[t*buckets+b]
			*at, total = total, total+*at
		}
		d.starts = append(d.starts, total)
	}
	if cap(d.keys) < len(keys) {
		d.keys = make([]uint64, len(keys))
	}
	d.keys = d.keys[:len(keys)]
	if cap(d.weights) < len(weights) {
		d.weights = make([]float32, len(weights))
	}
	d.weights = d.weights[:len(weights)]
	w.Range(len(keys), dealTile, func(t, first, end int) {
		next := d.next[t*buckets:][:buckets]
		for i := first; i < end; i++ {
			at := &next[(keys[i]-lo)>>shift]
			d.keys[*at] = keys[i]
			if len(weights) > 0 {
				d.weights[*at] = weights[i]
			}
			*at++
		}
	})
}

// bucket returns what was dealt to the i-th bucket.
func (d *dealer) bucket(i int) ([]uint64, []float32) {
	lo, hi := d.starts[i], d.starts[i+1]
	if len(d.weights) == 0 {
		return d.keys[lo:hi], nil
	}
	return d.keys[lo:hi], d.weights[lo:hi]
}
