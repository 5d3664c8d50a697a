package nvml

import (
	"errors"
	"testing"

	"zerogcn/cuda"
	"zerogcn/cuda/cudatest"
	"zerogcn/cuda/internal/dynlib"
)

func TestLinkBandwidth(t *testing.T) {
	for _, c := range []struct {
		l    Link
		want float64
	}{{Link{MaxGeneration: 5, MaxWidth: 16}, 63.008e9}, {Link{MaxGeneration: 3, MaxWidth: 8}, 7.88e9}, {Link{MaxGeneration: 9, MaxWidth: 16}, 0}, {Link{}, 0}} {
		if got := c.l.Bandwidth(); got < c.want*0.999 || got > c.want*1.001 {
			t.Errorf("%+v: %v, want %v", c.l, got, c.want)
		}
	}
}

// On this machine the library loads, or the error says that it is not there.
func TestLoadHere(t *testing.T) {
	var e *Error // a library without a working driver
	if l, err := Load(); err == nil {
		l.Close()
	} else if !errors.Is(err, dynlib.ErrNotFound) && !errors.As(err, &e) {
		t.Error(err)
	}
}

func TestErrorText(t *testing.T) {
	if s := (&Error{"nvmlInit_v2", 9}).Error(); s != "nvmlInit_v2: the driver's kernel module is not loaded (NVML error 9)" {
		t.Error(s)
	}
	if s := (&Error{"x", 77}).Error(); s != "x: failed (NVML error 77)" {
		t.Error(s)
	}
}

func TestGPUReadings(t *testing.T) {
	dev := cudatest.Device(t)
	l, err := Load()
	if err != nil {
		t.Skip(err)
	}
	d, err := l.Device(dev.Properties().PCI)
	if err != nil {
		t.Skip(err)
	}
	version, err := l.DriverVersion()
	t.Logf("driver %s, %v", version, err)
	watts, err := d.Power()
	if err != nil && !errors.Is(err, ErrUnsupported) || err == nil && (watts < 5 || watts > 2000) {
		t.Errorf("power %v W, %v", watts, err)
	}
	before, err := d.Energy()
	if err != nil && !errors.Is(err, ErrUnsupported) {
		t.Error(err)
	}
	link, err := d.Link()
	if err != nil && !errors.Is(err, ErrUnsupported) || err == nil && (link.MaxWidth < 1 || link.Width > link.MaxWidth) {
		t.Errorf("link %+v, %v", link, err)
	}
	used, total, err := d.Memory()
	if err != nil || used <= 0 || used > total {
		t.Errorf("memory %d of %d, %v", used, total, err)
	}
	gpu, mem, err := d.Utilization()
	t.Logf("%.1f W, %.0f J so far, %+v (%.1f GB/s), %d of %d bytes, busy %d %% and %d %%, %v", watts, before, link, link.Bandwidth()/1e9, used, total, gpu, mem, err)
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if _, err := d.Power(); !errors.Is(err, cuda.ErrClosed) {
		t.Errorf("closed library: %v", err)
	}
}
