package datasets

import (
	"context"
	"sync"

	"zerogcn/graph"
	"zerogcn/internal/npy"
)

// arrayEdges yields the edges of an array of the shape (2, edges) or (edges, 2)
// each time it is ranged over, without holding them. open opens the array anew:
// two positions of a deflated member are two streams.
func arrayEdges(ctx context.Context, open func() (*npy.Array, error), nodes int64) graph.EdgeSource {
	return func(yield func(graph.Edges, error) bool) {
		a, err := open()
		if err == nil {
			err = a.WantShape(-1, -1)
		}
		if err == nil && a.Shape[0] != 2 && a.Shape[1] != 2 {
			err = a.Errorf("the shape is %s: want (2, edges) or (edges, 2)", a.ShapeString())
		}
		if err != nil {
			yield(graph.Edges{}, err)
			return
		}
		// The values lie as pairs or as two rows; either way they are read flat.
		across := a.Shape[0] == 2
		m, rows := a.Shape[1], a.Shape[1]*a.Shape[0]
		if !across {
			m = a.Shape[0]
		}
		pairs := across == (a.Fortran && !a.RowMajor())
		second := a
		flatten := func(a *npy.Array) { a.Fortran, a.Shape = false, []int64{rows} }
		flatten(a)
		if !pairs {
			if second, err = open(); err != nil {
				yield(graph.Edges{}, err)
				return
			}
			flatten(second)
		}
		const step = 1 << 18
		e := graph.Edges{Sources: make([]int32, min(step, m)), Targets: make([]int32, min(step, m))}
		var flat []int32
		if pairs {
			flat = make([]int32, 2*len(e.Sources))
		}
		for lo := int64(0); lo < m; lo += step {
			hi := min(m, lo+step)
			part := graph.Edges{Sources: e.Sources[:hi-lo], Targets: e.Targets[:hi-lo]}
			err := ctx.Err()
			switch {
			case err != nil:
			case pairs:
				if err = npy.ReadRows(a, 2*lo, 2*hi, flat); err == nil {
					for i := range part.Sources {
						part.Sources[i], part.Targets[i] = flat[2*i], flat[2*i+1]
					}
				}
			default:
				if err = npy.ReadRows(a, lo, hi, part.Sources); err == nil {
					err = npy.ReadRows(second, m+lo, m+hi, part.Targets)
				}
			}
			if err == nil {
				err = checkIDs(a, part, lo, nodes)
			}
			if !yield(part, err) || err != nil {
				return
			}
		}
	}
}

// checkIDs checks the edges from number first on.
func checkIDs(a *npy.Array, e graph.Edges, first, nodes int64) error {
	for i, u := range e.Sources {
		if v := e.Targets[i]; u < 0 || v < 0 || int64(u) >= nodes || int64(v) >= nodes {
			return a.Errorf("edge %d leads from node %d to node %d: there are %d nodes, numbered from 0", first+int64(i), u, v, nodes)
		}
	}
	return nil
}

// heldFeatures is the size up to which features of a deflated member are read
// into memory; larger ones are read as a stream each time.
const heldFeatures = 1 << 30

// archiveFeatures makes Features of an array in an archive, which must stay
// open.
func archiveFeatures(a *npy.Array) (*Features, error) {
	if err := a.WantShape(-1, -1); err != nil {
		return nil, err
	}
	if a.Shape[1] > maxFeatures {
		return nil, a.Errorf("%d columns: want at most %d", a.Shape[1], maxFeatures)
	}
	if a.Shape[0] > graph.MaxNodes {
		return nil, a.Errorf("%d nodes: at most %d are possible", a.Shape[0], graph.MaxNodes)
	}
	f, err := arrayFeatures(a, storageOf(a))
	if err != nil || !a.Sequential() {
		return f, err
	}
	size := int64(f.Rows) * int64(f.RowBytes())
	if size <= heldFeatures || !a.RowMajor() {
		return f.inMemory()
	}
	f.file = newStreamedRows(f.file, f.Rows, f.RowBytes(), 4<<20, 64)
	return f, nil
}

// streamedRows makes rows that are fast to read in ascending order only fast
// for several readers who ascend together: it holds the last blocks that were
// read. Who steps further back pays for all that lies before.
type streamedRows struct {
	from           rowReader
	rows, rowBytes int
	per            int // rows of a block

	mu    sync.Mutex
	held  [][]byte // block b is in place b modulo their number
	which []int    // the block in that place, -1 none
	next  int      // the block that comes next in the stream
}

func newStreamedRows(from rowReader, rows, rowBytes, blockBytes, blocks int) *streamedRows {
	s := &streamedRows{from: from, rows: rows, rowBytes: rowBytes, per: max(1, blockBytes/max(1, rowBytes)), held: make([][]byte, blocks), which: make([]int, blocks)}
	for i := range s.which {
		s.which[i] = -1
	}
	return s
}

func (s *streamedRows) readRows(lo, hi int, dst []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for lo < hi {
		b := lo / s.per
		n := min(hi, (b+1)*s.per) - lo
		from, err := s.block(b)
		if err != nil {
			return err
		}
		copy(dst, from[(lo-b*s.per)*s.rowBytes:][:n*s.rowBytes])
		dst = dst[n*s.rowBytes:]
		lo += n
	}
	return nil
}

// block returns block b, read now unless it is held.
func (s *streamedRows) block(b int) ([]byte, error) {
	at := b % len(s.held)
	if s.which[at] == b {
		return s.held[at], nil
	}
	if b < s.next || b >= s.next+len(s.held) {
		s.next = b // a step back, or far ahead: what lies between is not wanted
	}
	for ; s.next <= b; s.next++ {
		at := s.next % len(s.held)
		lo := s.next * s.per
		hi := min(s.rows, lo+s.per)
		if s.held[at] == nil {
			s.held[at] = make([]byte, s.per*s.rowBytes)
		}
		s.which[at] = -1
		if err := s.from.readRows(lo, hi, s.held[at][:(hi-lo)*s.rowBytes]); err != nil {
			return nil, err
		}
		s.which[at] = s.next
	}
	return s.held[at], nil
}
