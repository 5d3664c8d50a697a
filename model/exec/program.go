package exec

import (
	"errors"
	"fmt"
	"time"

	G "gorgonia.org/gorgonia"

	"zerogcn/model/op"
)

// Program is a compiled graph. See the package comment for who owns what.
type Program struct {
	backend Backend
	instrs  []instr
	inputs  map[*G.Node]*op.Value
	outputs []output
	slots   []Buffer

	// Observe, if set, is called after each instruction with the time its kernel
	// took on the host.
	Observe func(o *op.Op, out *op.Value, d time.Duration)
}

// instr is one operation with its operands and the buffer of its result.
type instr struct {
	op       *op.Op
	kernel   Kernel
	preparer Preparer // the kernel, if it is one
	in       []*op.Value
	out      *op.Value
	buf      *Buffer
}

// output is a result that outlives the run.
type output struct {
	node  *G.Node
	value *op.Value
	buf   *Buffer
	bound bool // the buffer is the caller's
}

// Input returns the Value that stands for an input node, to be filled before
// Run, or nil if the program does not need that input.
func (p *Program) Input(n *G.Node) *op.Value { return p.inputs[n] }

// Output returns the i-th output of Compile's list. Its shape and memory are
// valid after a Run, until the next.
func (p *Program) Output(i int) *op.Value { return p.outputs[i].value }

// BindOutput makes the i-th output write to memory of the caller's, which must
// stay valid for as long as the program runs, and is an error at Run if it is
// too small.
func (p *Program) BindOutput(i int, b Buffer) {
	o := &p.outputs[i]
	if !o.bound {
		p.backend.Free(*o.buf)
	}
	*o.buf, o.bound = b, true
}

// NumInstructions returns the number of operations that a Run executes.
func (p *Program) NumInstructions() int { return len(p.instrs) }

// NumBuffers returns the number of buffers that all intermediate results share.
func (p *Program) NumBuffers() int { return len(p.slots) }

// Bytes returns the memory that the program's own buffers hold now.
func (p *Program) Bytes() int64 {
	var n int64
	for i := range p.slots {
		n += 4 * int64(p.slots[i].Cap)
	}
	for i := range p.outputs {
		if !p.outputs[i].bound {
			n += 4 * int64(p.outputs[i].buf.Cap)
		}
	}
	return n
}

// Run executes the program: Prepare, then Execute.
func (p *Program) Run() error {
	if err := p.Prepare(); err != nil {
		return err
	}
	return p.Execute()
}

// Prepare derives all shapes from the inputs and finds memory for the results.
// Operands that do not fit each other, and outputs too large for their bound
// memory, are errors that name the operation.
func (p *Program) Prepare() error {
	for i := range p.instrs {
		in := &p.instrs[i]
		rows, cols, err := in.op.Infer(in.in)
		if err != nil {
			return err
		}
		in.out.Rows, in.out.Cols = rows, cols
		if n := rows * cols; in.buf.Cap < n {
			if err := p.grow(in, n); err != nil {
				return err
			}
		}
	}
	// Only now, since a buffer may have been replaced for a later holder.
	for i := range p.instrs {
		in := &p.instrs[i]
		in.buf.place(in.out, in.out.Len())
		if in.preparer != nil {
			if err := in.preparer.Prepare(in.out, in.in); err != nil {
				return fmt.Errorf("%v on %s: %w", in.op, p.backend.Name(), err)
			}
		}
	}
	return nil
}

// Execute runs the kernels with what Prepare found. On an asynchronous device it
// only enqueues, and allocates nothing: it may be captured.
func (p *Program) Execute() error {
	for i := range p.instrs {
		in := &p.instrs[i]
		var err error
		if p.Observe != nil {
			start := time.Now()
			err = in.kernel.Run(in.out, in.in)
			p.Observe(in.op, in.out, time.Since(start))
		} else {
			err = in.kernel.Run(in.out, in.in)
		}
		if err != nil {
			return fmt.Errorf("%v on %s: %w", in.op, p.backend.Name(), err)
		}
	}
	return nil
}

// grow replaces an instruction's buffer by a larger one.
func (p *Program) grow(in *instr, n int) error {
	for i := range p.outputs {
		if o := &p.outputs[i]; o.buf == in.buf && o.bound {
			return fmt.Errorf("%v: result of %d elements for bound memory of %d", in.op, n, o.buf.Cap)
		}
	}
	// A little more than asked for, since row counts vary from batch to batch.
	want := n + n/8
	b, err := p.backend.Alloc(want)
	if err != nil {
		return fmt.Errorf("%v: result of %d elements: %w", in.op, n, err)
	}
	p.backend.Free(*in.buf)
	*in.buf = b
	return nil
}

// Close gives the program's buffers back. The program cannot run afterwards.
func (p *Program) Close() {
	for i := range p.slots {
		p.backend.Free(p.slots[i])
	}
	for i := range p.outputs {
		if o := &p.outputs[i]; !o.bound {
			p.backend.Free(*o.buf)
		}
	}
	p.slots, p.outputs, p.instrs = nil, nil, nil
}

var errForeignOp = errors.New("no lowering for this operation")
