package cli

import (
	"flag"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// GPUs selects devices. The zero value selects none, so the CPU does the work.
type GPUs struct {
	Auto    bool  // one GPU if there is any, else the CPU
	Count   int   // the first Count devices; 0 if Devices counts
	Devices []int // these, in this order
}

// CPU reports whether no device is asked for.
func (g GPUs) CPU() bool { return !g.Auto && g.Count == 0 && len(g.Devices) == 0 }

func (g GPUs) String() string {
	switch {
	case g.Auto:
		return "auto"
	case len(g.Devices) == 1:
		return strconv.Itoa(g.Devices[0]) + "," // without the comma it would be a count
	case len(g.Devices) > 1:
		return joinList(g.Devices, strconv.Itoa)
	}
	return strconv.Itoa(g.Count)
}

// ParseGPUs reads "auto", a count ("0" is the CPU), or a list of device
// numbers with at least one comma: "0,2", or "2," for device 2 alone.
func ParseGPUs(s string) (GPUs, error) {
	s = strings.TrimSpace(s)
	if s == "auto" {
		return GPUs{Auto: true}, nil
	}
	if !strings.Contains(s, ",") {
		n, err := parseInt(s, 0, math.MaxInt32)
		if err != nil {
			return GPUs{}, fmt.Errorf("%w; want auto, a count (0 is the CPU), or a list such as 0,2 (2, is device 2 alone)", err)
		}
		return GPUs{Count: n}, nil
	}
	devices, err := parseList(strings.TrimSuffix(s, ","), func(e string) (int, error) { return parseInt(e, 0, math.MaxInt32) })
	if err != nil {
		return GPUs{}, fmt.Errorf("%w; want device numbers such as 0,2 (2, is device 2 alone)", err)
	}
	seen := make(map[int]bool, len(devices))
	for _, d := range devices {
		if seen[d] {
			return GPUs{}, fmt.Errorf("device %d is listed twice", d)
		}
		seen[d] = true
	}
	return GPUs{Devices: devices}, nil
}

// GPUSelection binds a selection of GPUs. Configuration files write it as a
// string: a sequence of one could be taken for a count.
func GPUSelection(p *GPUs) flag.Value {
	return &bound[GPUs]{p: p, placeholder: "auto|N|LIST", parse: ParseGPUs, format: GPUs.String}
}
