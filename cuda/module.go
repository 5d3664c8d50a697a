package cuda

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"unsafe"
)

// Module is compiled device code, loaded on one device.
type Module struct {
	dev    *Device
	name   string
	handle uintptr
	params map[string]int // nil where the image is no PTX
	life   lifetime

	mu        sync.Mutex
	functions map[string]*Function
}

// ModuleError is a failure to load a module, with what the driver's compiler
// wrote about it.
type ModuleError struct {
	Name string // the module
	Log  string // the compiler's messages, may be empty
	Err  error  // the driver's error
}

// Error puts the first line of the log into the one line.
func (e *ModuleError) Error() string {
	first, _, _ := strings.Cut(strings.TrimSpace(e.Log), "\n")
	if first == "" {
		return fmt.Sprintf("cuda: load module %s: %v", e.Name, e.Err)
	}
	return fmt.Sprintf("cuda: load module %s: %v: %s", e.Name, e.Err, strings.TrimSpace(first))
}

// Unwrap returns the driver's error.
func (e *ModuleError) Unwrap() error { return e.Err }

// LoadModule loads PTX text, which the driver compiles (some 0.15 s the first
// time, then from its cache), or a cubin. The name is for messages. A failure
// is a *ModuleError.
func (d *Device) LoadModule(name string, image []byte) (*Module, error) {
	if err := checkImage(image); err != nil {
		return nil, err
	}
	m := &Module{dev: d, name: name, functions: make(map[string]*Function)}
	if isPTX(image) {
		m.params = ptxParameters(image)
		image = append(bytes.Clone(image), 0) // the driver reads a C string
	}
	err := d.within(func() error {
		if err := m.load(image); err != nil {
			return err
		}
		if err := d.track(m); err != nil {
			return errors.Join(err, d.drv.do(&d.drv.t.moduleUnload, m.handle))
		}
		d.counters.modules.Add(1)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return m, nil
}

func (m *Module) load(image []byte) error {
	const logBuffer, logBytes = 5, 6 // CU_JIT_ERROR_LOG_BUFFER and its size
	log := make([]byte, 16<<10)
	// The option values hold a pointer as a number, which keeps nothing alive:
	// log escapes through the call below, and Go's heap does not move.
	in := &struct {
		names  [2]int32
		values [2]uintptr
		handle uintptr
	}{names: [2]int32{logBuffer, logBytes}}
	in.values = [2]uintptr{uintptr(unsafe.Pointer(&log[0])), uintptr(len(log))}
	err := m.dev.drv.doKeeping(&m.dev.drv.t.moduleLoad, uintptr(unsafe.Pointer(&log[0])),
		uintptr(unsafe.Pointer(&in.handle)), uintptr(unsafe.Pointer(&image[0])),
		uintptr(len(in.names)), uintptr(unsafe.Pointer(&in.names[0])), uintptr(unsafe.Pointer(&in.values[0])))
	if err != nil {
		text, _, _ := bytes.Cut(log, []byte{0})
		return &ModuleError{m.name, strings.TrimSpace(string(text)), err}
	}
	m.handle = in.handle
	return nil
}

func (m *Module) kind() string { return "module" }

// Name returns the name given to LoadModule.
func (m *Module) Name() string { return m.name }

// Function returns the kernel of the given name (extern "C"). It lives as long
// as the module.
func (m *Module) Function(name string) (*Function, error) {
	if err := m.life.use(); err != nil {
		return nil, fmt.Errorf("cuda: module %s: %w", m.name, err)
	}
	defer m.life.done()
	m.mu.Lock()
	defer m.mu.Unlock()
	if f := m.functions[name]; f != nil {
		return f, nil
	}
	if strings.IndexByte(name, 0) >= 0 {
		return nil, fmt.Errorf("cuda: module %s: kernel name %q holds a zero", m.name, name)
	}
	f := &Function{module: m, name: name, params: -1}
	if n, ok := m.params[name]; ok {
		f.params = n
	}
	if f.params > MaxArgs {
		return nil, fmt.Errorf("cuda: kernel %s takes %d arguments, Launch at most %d", name, f.params, MaxArgs)
	}
	err := m.dev.inContext(func() error {
		c := append([]byte(name), 0)
		h := new(uintptr)
		if err := m.dev.drv.do(&m.dev.drv.t.moduleFunction, uintptr(unsafe.Pointer(h)), m.handle, uintptr(unsafe.Pointer(&c[0]))); err != nil {
			return detail(err, "kernel %s of module %s", name, m.name)
		}
		f.handle = *h
		return nil
	})
	if err != nil {
		return nil, err
	}
	m.functions[name] = f
	return f, nil
}

// Close unloads the module; none of its kernels may be running. Closing twice
// does nothing.
func (m *Module) Close() error {
	if m == nil || !m.life.end() {
		return nil
	}
	m.dev.untrack(m)
	m.dev.counters.modules.Add(-1)
	return m.dev.inContext(func() error { return m.dev.drv.do(&m.dev.drv.t.moduleUnload, m.handle) })
}
