package zerocopy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"zerogcn/internal/par"
	"zerogcn/internal/usage"
)

// fillTile is the bytes that one call of a Fill reader brings in: large enough
// for full disk speed, small enough to spread over workers and to notice a
// cancelled context.
const fillTile = 8 << 20

// Fill calls read for every tile of rows, each row once, on several goroutines,
// in any order. read stores rows lo to hi (exclusive) in dst, which aliases the
// table and is valid during the call only. The tiles depend on the shape only.
//
// The first error, by row order, of those that occurred ends the fill and is
// returned; the table's contents are undefined then. A cancelled context ends
// it between tiles. Nothing may gather from the table meanwhile.
func (t *Table) Fill(ctx context.Context, read func(lo, hi int, dst []byte) error) error {
	if t.source == mappedFile {
		return fmt.Errorf("%s: a mapped file is read-only and cannot be filled", t.name)
	}
	if err := t.acquire(); err != nil {
		return err
	}
	defer t.release()
	n := t.rowBytes()
	if t.rows == 0 || n == 0 {
		return ctx.Err()
	}
	var (
		mu     sync.Mutex
		first  error
		at     int
		failed atomic.Bool
	)
	par.Workers(t.workers).Range(t.rows, max(1, fillTile/n), func(_, lo, hi int) {
		if failed.Load() {
			return
		}
		err := ctx.Err()
		if err == nil {
			err = read(lo, hi, t.data[lo*n:hi*n:hi*n])
		}
		if err == nil {
			return
		}
		failed.Store(true)
		mu.Lock()
		defer mu.Unlock()
		if first == nil || lo < at {
			first, at = err, lo
		}
	})
	return first
}

// FillFrom fills the table from r, whose byte at offset is the first of row 0,
// with parallel ReadAt calls (pread for an *os.File; the page cache is not
// mapped, so the bytes count once). A source that ends early is an error of
// input that names the byte.
func (t *Table) FillFrom(ctx context.Context, r io.ReaderAt, offset int64) error {
	n := int64(t.rowBytes())
	return t.Fill(ctx, func(lo, hi int, dst []byte) error {
		from := offset + int64(lo)*n
		got, err := r.ReadAt(dst, from)
		switch {
		case got == len(dst):
			return nil
		case errors.Is(err, io.EOF) || err == nil:
			return usage.Errorf("%s: the data end at byte %d, but %v need %d bytes from byte %d: the file is truncated",
				t.name, from+int64(got), t.shape, t.bytes(), offset)
		default:
			return fmt.Errorf("%s: reading %d bytes at byte %d: %w", t.name, len(dst), from, err)
		}
	})
}
