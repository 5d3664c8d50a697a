package nvml

import (
	"errors"
	"strings"
	"testing"
	"unsafe"

	"github.com/ebitengine/purego"

	"zerogcn/cuda"
)

// The readings through the real argument passing, with a library of Go callbacks.
func TestReadingsOfFake(t *testing.T) {
	u32 := func(v uint32) any {
		return func(dev uintptr, to *uint32) uintptr { *to = v; return 0 }
	}
	inits := 0
	functions := map[string]any{
		"nvmlInit_v2":  func() uintptr { inits++; return 0 },
		"nvmlShutdown": func() uintptr { inits--; return 0 },
		"nvmlDeviceGetHandleByPciBusId_v2": func(name *byte, h *uintptr) uintptr {
			if unsafe.String(name, 12) != "0000:1a:00.0" || unsafe.Slice(name, 13)[12] != 0 {
				return 6
			}
			*h = 99
			return 0
		},
		"nvmlDeviceGetPowerUsage": u32(123_456),
		"nvmlDeviceGetTotalEnergyConsumption": func(dev uintptr, to *uint64) uintptr {
			*to = uint64(dev) * 1e9
			return 0
		},
		"nvmlDeviceGetCurrPcieLinkGeneration": u32(4), "nvmlDeviceGetCurrPcieLinkWidth": u32(8),
		"nvmlDeviceGetMaxPcieLinkGeneration": u32(5), "nvmlDeviceGetMaxPcieLinkWidth": u32(16),
		"nvmlDeviceGetMemoryInfo": func(_ uintptr, to *[3]uint64) uintptr { *to = [3]uint64{100, 60, 40}; return 0 },
		"nvmlDeviceGetUtilizationRates": func(uintptr, uintptr) uintptr {
			return 3 // not supported
		},
		"nvmlSystemGetDriverVersion": func(to *byte, n uintptr) uintptr {
			copy(unsafe.Slice(to, n), "580.1\x00")
			return 0
		},
	}
	l, err := load(func(names ...string) (uintptr, error) {
		if f := functions[names[0]]; f != nil {
			return purego.NewCallback(f), nil
		}
		return 0, errors.New("no " + names[0])
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Device("0000:02:00.0"); err == nil || !strings.Contains(err.Error(), "device 0000:02:00.0: nvmlDeviceGetHandleByPciBusId_v2: no such GPU") {
		t.Errorf("%v", err)
	}
	d, err := l.Device("0000:1a:00.0")
	if err != nil {
		t.Fatal(err)
	}
	if w, err := d.Power(); w != 123.456 || err != nil {
		t.Errorf("power %v, %v", w, err)
	}
	if j, err := d.Energy(); j != 99e6 || err != nil {
		t.Errorf("energy %v, %v", j, err)
	}
	if k, err := d.Link(); k != (Link{4, 8, 5, 16}) || err != nil {
		t.Errorf("link %+v, %v", k, err)
	}
	if used, total, err := d.Memory(); used != 40 || total != 100 || err != nil {
		t.Errorf("memory %d of %d, %v", used, total, err)
	}
	if v, err := l.DriverVersion(); v != "580.1" || err != nil {
		t.Errorf("driver %q, %v", v, err)
	}
	if _, _, err := d.Utilization(); !errors.Is(err, ErrUnsupported) {
		t.Errorf("%v", err)
	}
	delete(functions, "nvmlDeviceGetPowerUsage")
	if _, err := d.Power(); !errors.Is(err, ErrUnsupported) {
		t.Errorf("a library without the function: %v", err)
	}
	if err := errors.Join(l.Close(), l.Close()); err != nil || inits != 0 {
		t.Errorf("%v, initialised %d times", err, inits)
	}
	if _, err := d.Energy(); !errors.Is(err, cuda.ErrClosed) {
		t.Errorf("%v", err)
	}
}
