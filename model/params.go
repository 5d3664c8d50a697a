package model

import (
	"fmt"
	"math"

	"zerogcn/internal/philox"
	"zerogcn/model/exec"
	"zerogcn/model/op"
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
//
// With a back end of device memory the buffers that training reads and writes are
// there, at DeviceData and DeviceGrad; Data and Grad are then the host's copies,
// which Upload sends and Download and DownloadGrad fetch.
type Params struct {
	List       []Param
	Data, Grad []float32

	device     exec.DeviceBackend // nil: Data and Grad are all there is
	data, grad exec.Buffer
}

// View returns parameter i's values; they alias Data.
func (p *Params) View(i int) []float32 { return p.view(p.Data, i) }

// GradView returns parameter i's gradient; it aliases Grad.
func (p *Params) GradView(i int) []float32 { return p.view(p.Grad, i) }

func (p *Params) view(flat []float32, i int) []float32 {
	q := &p.List[i]
	return flat[q.Offset : q.Offset+q.Len() : q.Offset+q.Len()]
}

// place gives the parameters memory on a device and sends their values there.
func (p *Params) place(b exec.DeviceBackend) error {
	var err error
	n := len(p.Data)
	if p.data, err = b.AllocFor(exec.Parameters, n); err != nil {
		return fmt.Errorf("model: %d parameters: %w", n, err)
	}
	p.device = b
	if p.grad, err = b.AllocFor(exec.Gradients, n); err != nil {
		return fmt.Errorf("model: %d gradients: %w", n, err)
	}
	return p.Upload()
}

// free gives device memory back.
func (p *Params) free() {
	if p.device != nil {
		p.device.Free(p.data)
		p.device.Free(p.grad)
	}
	p.device, p.data, p.grad = nil, exec.Buffer{}, exec.Buffer{}
}

// DeviceData returns the device address of the parameters, 0 on the host.
func (p *Params) DeviceData() uintptr { return p.data.Dev }

// DeviceGrad returns the device address of the gradients, 0 on the host.
func (p *Params) DeviceGrad() uintptr { return p.grad.Dev }

// Upload sends Data to the device. On the host there is nothing to do.
func (p *Params) Upload() error {
	if p.device == nil {
		return nil
	}
	if err := p.device.Upload(p.data.Dev, p.Data); err != nil {
		return fmt.Errorf("model: parameters: %w", err)
	}
	return nil
}

// Download fetches Data from the device, as it is after what was queued so far.
// On the host there is nothing to do.
func (p *Params) Download() error { return p.fetch(p.Data, p.data) }

// DownloadGrad is Download of the gradients, into Grad.
func (p *Params) DownloadGrad() error { return p.fetch(p.Grad, p.grad) }

func (p *Params) fetch(to []float32, from exec.Buffer) error {
	if p.device == nil {
		return nil
	}
	if err := p.device.Download(to, from.Dev); err != nil {
		return fmt.Errorf("model: parameters: %w", err)
	}
	return nil
}

// value returns parameter i as an operand, where programs read it.
func (p *Params) value(i int) op.Value {
	q := &p.List[i]
	v := op.Value{Rows: 1, Cols: q.Shape[0]}
	if len(q.Shape) == 2 {
		v.Rows, v.Cols = q.Shape[0], q.Shape[1]
	}
	if p.device != nil {
		v.Dev = p.data.Dev + 4*uintptr(q.Offset)
	} else {
		v.Data = p.View(i)
	}
	return v
}

// gradBuffer returns where programs write parameter i's gradient.
func (p *Params) gradBuffer(i int) exec.Buffer {
	if p.device != nil {
		q := &p.List[i]
		return exec.Buffer{Dev: p.grad.Dev + 4*uintptr(q.Offset), Cap: q.Len()}
	}
	return exec.HostBuffer(p.GradView(i))
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
