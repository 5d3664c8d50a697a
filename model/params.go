package model

import (
	"fmt"
	"math"

	"zerogcn/internal/philox"
)

// Param is one named parameter: a view of the flat buffers.
type Param struct {
	Name   string // PyTorch Geometric's state_dict name
	Shape  []int  // [out, in] for weights, [out] for biases
	Layer  int    // the layer it belongs to, from 0 at the input
	Offset int    // position in Params.Data and Params.Grad
	bound  float64
}

// Len returns the number of elements.
func (p *Param) Len() int {
	n := 1
	for _, d := range p.Shape {
		n *= d
	}
	return n
}

// Params holds a network's parameters and their gradients, each in one flat
// buffer in the order of List.
type Params struct {
	List       []Param
	Data, Grad []float32
}

// View returns parameter i's values; they alias Data.
func (p *Params) View(i int) []float32 { return p.view(p.Data, i) }

// GradView returns parameter i's gradient; it aliases Grad.
func (p *Params) GradView(i int) []float32 { return p.view(p.Grad, i) }

func (p *Params) view(flat []float32, i int) []float32 {
	q := &p.List[i]
	return flat[q.Offset : q.Offset+q.Len() : q.Offset+q.Len()]
}

// newParams lays out the parameters of a configuration.
func newParams(c *Config) *Params {
	p := &Params{}
	size := 0
	add := func(layer int, name string, bound float64, shape ...int) {
		q := Param{Name: name, Shape: shape, Layer: layer, Offset: size, bound: bound}
		size += q.Len()
		p.List = append(p.List, q)
	}
	for l := range c.Layers {
		in, out := c.widths(l)
		// PyTorch Geometric's initialisers: uniform on ±1/√in (kaiming_uniform
		// with a = √5) for SAGE and linear layers, on ±√(6/(in+out)) (glorot)
		// for GCN's weights, zero for its bias.
		uniform := 1 / math.Sqrt(float64(in))
		switch c.Arch {
		case SAGE:
			add(l, fmt.Sprintf("convs.%d.lin_l.weight", l), uniform, out, in)
			add(l, fmt.Sprintf("convs.%d.lin_l.bias", l), uniform, out)
			if c.Aggregator != "gcn" {
				add(l, fmt.Sprintf("convs.%d.lin_r.weight", l), uniform, out, in)
			}
		case GCN:
			add(l, fmt.Sprintf("convs.%d.lin.weight", l), math.Sqrt(6/float64(in+out)), out, in)
			add(l, fmt.Sprintf("convs.%d.bias", l), 0, out)
		case MLP:
			add(l, fmt.Sprintf("lins.%d.weight", l), uniform, out, in)
			add(l, fmt.Sprintf("lins.%d.bias", l), uniform, out)
		}
	}
	p.Data, p.Grad = make([]float32, size), make([]float32, size)
	return p
}

// Init sets the initial values of a seed: element e of parameter i is a draw
// keyed by (e, i).
func (p *Params) Init(seed uint64) {
	for i := range p.List {
		s := philox.NewStream(seed, philox.Init, uint32(i), 0)
		v := p.View(i)
		for e := range v {
			v[e] = float32(p.List[i].bound) * (2*philox.Float32(s.Word(uint32(e), 0)) - 1)
		}
	}
}

// Index returns the position of a named parameter, -1 if there is none.
func (p *Params) Index(name string) int {
	for i := range p.List {
		if p.List[i].Name == name {
			return i
		}
	}
	return -1
}
