package exec

import (
	"fmt"

	G "gorgonia.org/gorgonia"

	"zerogcn/model/op"
)

// Compile lowers the part of g that the outputs need to a program for the back
// end. Inputs are the nodes without an operation. An output that is an input, or
// is listed twice, is copied, so that every output has memory of its own.
func Compile(b Backend, g *G.ExprGraph, outputs ...*G.Node) (*Program, error) {
	c := &compiler{
		Program:  &Program{backend: b, inputs: map[*G.Node]*op.Value{}},
		g:        g,
		operands: map[*G.Node][]*G.Node{},
		values:   map[*G.Node]*op.Value{},
	}
	for _, o := range outputs {
		c.need(o)
	}
	if err := c.lower(); err != nil {
		return nil, err
	}
	if err := c.addOutputs(outputs); err != nil {
		return nil, err
	}
	c.planBuffers()
	return c.Program, nil
}

type compiler struct {
	*Program
	g        *G.ExprGraph
	operands map[*G.Node][]*G.Node // of needed nodes, in order
	values   map[*G.Node]*op.Value
}

// need marks n and all it depends on. Graphs are as deep as models, so
// recursion is fine.
func (c *compiler) need(n *G.Node) {
	if _, done := c.operands[n]; done {
		return
	}
	ops := children(c.g, n)
	c.operands[n] = ops
	for _, o := range ops {
		c.need(o)
	}
}

// children returns the operands of n in order, duplicates kept: that is what
// ExprGraph.From iterates over.
func children(g *G.ExprGraph, n *G.Node) []*G.Node {
	it := g.From(n.ID())
	if it == nil {
		return nil
	}
	out := make([]*G.Node, 0, it.Len())
	for it.Next() {
		out = append(out, it.Node().(*G.Node))
	}
	return out
}

// lower makes an instruction of every needed operation. AllNodes lists nodes in
// order of insertion, which is topological.
func (c *compiler) lower() error {
	for _, n := range c.g.AllNodes() {
		operands, needed := c.operands[n]
		if !needed {
			continue
		}
		v := &op.Value{}
		c.values[n] = v
		if n.Op() == nil {
			c.inputs[n] = v
			continue
		}
		if len(operands) == 0 {
			if err := lowerConstant(n, v); err != nil {
				return err
			}
			continue
		}
		o, err := lowerOp(n, operands)
		if err != nil {
			return err
		}
		in := make([]*op.Value, len(operands))
		for i, a := range operands {
			if in[i] = c.values[a]; in[i] == nil {
				return fmt.Errorf("%v: graph is not in topological order", o)
			}
		}
		if err := c.emit(o, v, in); err != nil {
			return err
		}
	}
	return nil
}

func (c *compiler) emit(o *op.Op, out *op.Value, in []*op.Value) error {
	k, err := c.backend.Kernel(o)
	if err != nil {
		return fmt.Errorf("%v on %s: %w", o, c.backend.Name(), err)
	}
	p, _ := k.(Preparer)
	c.instrs = append(c.instrs, instr{op: o, kernel: k, preparer: p, in: in, out: out})
	return nil
}

func lowerConstant(n *G.Node, v *op.Value) error {
	if k, ok := n.Op().(interface{ Value() G.Value }); ok {
		if f, ok := k.Value().(*G.F32); ok {
			*v = op.Matrix(1, 1, []float32{float32(*f)})
			return nil
		}
	}
	return fmt.Errorf("%v: only float32 constants are lowered", n)
}

// lowerOp returns n's operation as ours. Where a node is used several times,
// differentiation sums its gradients with Gorgonia's own addition, which is
// recognised by comparing it with a newly made one.
func lowerOp(n *G.Node, operands []*G.Node) (*op.Op, error) {
	if o, ok := n.Op().(*op.Op); ok {
		return o, nil
	}
	if len(operands) == 2 && n.Op() == G.NewAddOp(operands[0], operands[1], G.ExecutionContext{}).Op {
		return op.New(op.Add, op.Attr{}), nil
	}
	return nil, fmt.Errorf("%v: %w", n.Op(), errForeignOp)
}

func (c *compiler) addOutputs(nodes []*G.Node) error {
	taken := map[*op.Value]bool{}
	for _, v := range c.inputs {
		taken[v] = true
	}
	for _, n := range nodes {
		v := c.values[n]
		if v == nil {
			return fmt.Errorf("output %v is not a node of the graph", n)
		}
		if taken[v] || len(c.operands[n]) == 0 {
			dup := &op.Value{}
			if err := c.emit(op.New(op.Copy, op.Attr{}), dup, []*op.Value{v}); err != nil {
				return err
			}
			v = dup
		}
		taken[v] = true
		c.outputs = append(c.outputs, output{node: n, value: v, buf: &Buffer{}})
	}
	return nil
}

// planBuffers gives every result a buffer. Outputs keep theirs; the others share
// slots, each free again after its holder's last reader. Slots are reused only
// among results of one placeholder shape: those have about the same size at run
// time too, so buffers stop growing after a few batches.
func (c *compiler) planBuffers() {
	last := map[*op.Value]int{}
	for i := range c.instrs {
		for _, v := range c.instrs[i].in {
			last[v] = i
		}
	}
	class := map[*op.Value]string{}
	for n, v := range c.values {
		class[v] = fmt.Sprint(n.Shape())
	}
	buf := map[*op.Value]*Buffer{}
	for i := range c.outputs {
		buf[c.outputs[i].value] = c.outputs[i].buf
	}
	owned := map[*op.Value]int{} // slot of a value that is not an output
	free := map[string][]int{}
	slotOf := make([]int, len(c.instrs)) // -1: an output's own buffer
	numSlots := 0
	for i := range c.instrs {
		in := &c.instrs[i]
		slotOf[i] = -1
		reused := -1
		if buf[in.out] == nil {
			first, mine := owned[in.in[0]]
			k := class[in.out]
			switch {
			case in.op.InPlace() && mine && last[in.in[0]] == i && class[in.in[0]] == k:
				slotOf[i], reused = first, first
			case len(free[k]) > 0:
				slotOf[i] = free[k][len(free[k])-1]
				free[k] = free[k][:len(free[k])-1]
			default:
				slotOf[i] = numSlots
				numSlots++
			}
			owned[in.out] = slotOf[i]
		}
		for _, v := range in.in {
			if s, ok := owned[v]; ok && last[v] == i {
				delete(owned, v)
				if s != reused {
					free[class[v]] = append(free[class[v]], s)
				}
			}
		}
	}
	c.slots = make([]Buffer, numSlots)
	for i := range c.instrs {
		if s := slotOf[i]; s >= 0 {
			c.instrs[i].buf = &c.slots[s]
		} else {
			c.instrs[i].buf = buf[c.instrs[i].out]
		}
	}
}
