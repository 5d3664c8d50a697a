// Package columns reads the columns of Parquet files as Go values, through
// parquet-go, and keeps its faults inside: a panic of the library over a damaged
// file is an error of the user's, like any other fault of the content.
//
// The main type is File, which owns the file until Close. Values go to a
// callback and are valid during it. Memory follows the pages of the file, one of
// each column at a time.
package columns

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	"github.com/parquet-go/parquet-go"

	"zerogcn/internal/usage"
)

// Kind is what the values of a column are.
type Kind uint8

// The kinds that are read; others are Other.
const (
	Other Kind = iota
	Whole      // integers and booleans
	Real
	Text
)

// Column is a leaf of a file's schema.
type Column struct {
	Name string // of its outermost group: "features" of a list
	List bool   // rows have any number of values
	Kind Kind
	leaf int
}

// Value is a value of a column: one of the fields, by its Kind.
type Value struct {
	Null  bool
	First bool // the first of its row
	Whole int64
	Real  float64
	Text  []byte
}

// Recognise reports whether a file begins like a Parquet file.
func Recognise(head []byte) bool { return strings.HasPrefix(string(head), "PAR1") }

// File is an open Parquet file.
type File struct {
	Columns []Column
	Rows    int64
	path    string
	file    *os.File
	p       *parquet.File
}

// guard runs f and turns a panic into an error about the file.
func guard(path string, f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = usage.Errorf("%s: the Parquet data is damaged (%.100s)", path, strings.ReplaceAll(fmt.Sprint(r), "\n", " "))
		}
	}()
	return f()
}

// fault marks an error of the library.
func fault(path string, err error) error {
	var no syscall.Errno
	if errors.As(err, &no) { // the disk, not the content
		return fmt.Errorf("%s: %w", path, err)
	}
	return usage.Errorf("%s: the Parquet data is damaged (%.200s)", path, strings.ReplaceAll(err.Error(), "\n", " "))
}

// Open opens a file and reads its schema.
func Open(path string) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, usage.Wrap(err)
	}
	c := &File{path: path, file: f}
	st, err := f.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = usage.Errorf("%s: not a regular file", path)
	}
	if err == nil {
		err = guard(path, func() error { return c.open(st.Size()) })
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return c, nil
}

func (c *File) open(size int64) error {
	p, err := parquet.OpenFile(io.NewSectionReader(c.file, 0, size), size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return fault(c.path, err)
	}
	c.p = p
	schema := p.Schema()
	for _, path := range schema.Columns() {
		leaf, ok := schema.Lookup(path...)
		if !ok {
			return usage.Errorf("%s: column %.80q is not in the schema", c.path, path)
		}
		col := Column{Name: path[0], List: leaf.Node.Repeated() || leaf.MaxRepetitionLevel > 0, leaf: int(leaf.ColumnIndex)}
		switch leaf.Node.Type().Kind() {
		case parquet.Boolean, parquet.Int32, parquet.Int64:
			col.Kind = Whole
		case parquet.Float, parquet.Double:
			col.Kind = Real
		case parquet.ByteArray:
			col.Kind = Text
		}
		c.Columns = append(c.Columns, col)
	}
	c.Rows = p.NumRows()
	return nil
}

// Close closes the file.
func (c *File) Close() error { return c.file.Close() }

// Path returns the path of the file.
func (c *File) Path() string { return c.path }

// Read gives every value of a column to f, in the order of the rows. An error of f
// ends the reading and is returned as it is.
func (c *File) Read(col Column, f func(v Value) error) error {
	return guard(c.path, func() error {
		rows := int64(0)
		buf := make([]parquet.Value, 1024)
		for _, g := range c.p.RowGroups() {
			pages := g.ColumnChunks()[col.leaf].Pages()
			err := c.pages(pages, buf, &rows, f)
			if err := errors.Join(err, pages.Close()); err != nil {
				return err
			}
		}
		if rows != c.Rows {
			return usage.Errorf("%s: column %.40q has %d rows, and the file says %d", c.path, col.Name, rows, c.Rows)
		}
		return nil
	})
}

func (c *File) pages(pages parquet.Pages, buf []parquet.Value, rows *int64, f func(v Value) error) error {
	for {
		p, err := pages.ReadPage()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fault(c.path, err)
		}
		values := p.Values()
		for {
			n, err := values.ReadValues(buf)
			for _, x := range buf[:n] {
				v := Value{Null: x.IsNull(), First: x.RepetitionLevel() == 0}
				if v.First {
					*rows++
				}
				if !v.Null {
					switch x.Kind() {
					case parquet.Boolean:
						if x.Boolean() {
							v.Whole = 1
						}
					case parquet.Int32:
						v.Whole = int64(x.Int32())
					case parquet.Int64:
						v.Whole = x.Int64()
					case parquet.Float:
						v.Real = float64(x.Float())
					case parquet.Double:
						v.Real = x.Double()
					case parquet.ByteArray:
						v.Text = x.ByteArray()
					}
				}
				if err := f(v); err != nil {
					parquet.Release(p)
					return err
				}
			}
			if err == io.EOF {
				break
			}
			if err != nil {
				parquet.Release(p)
				return fault(c.path, err)
			}
			if n == 0 {
				parquet.Release(p)
				return usage.Errorf("%s: the Parquet data is damaged (an endless page)", c.path)
			}
		}
		parquet.Release(p)
	}
}
