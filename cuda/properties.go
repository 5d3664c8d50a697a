package cuda

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"unsafe"
)

// Properties describe a GPU.
type Properties struct {
	Ordinal     int
	Name        string
	UUID        [16]byte // zero where the driver does not tell
	Major       int      // compute capability
	Minor       int
	PCI         string // "0000:01:00.0", the name under /sys/bus/pci/devices
	NUMANode    int    // host memory node beside the GPU, -1 if unknown
	TotalMemory int64  // bytes

	SMs                int // streaming multiprocessors
	WarpSize           int
	MaxThreadsPerBlock int
	MaxThreadsPerSM    int
	SharedPerBlock     int // bytes without asking
	SharedPerBlockMax  int // bytes with Function.SetDynamicShared
	L2Bytes            int
	CopyEngines        int

	UnifiedAddressing bool // host and device addresses share one space
	MapsHostMemory    bool // kernels read page-locked host memory
	RegistersHost     bool // existing host memory can be page-locked
	RegistersReadOnly bool // also when it is mapped read-only
	SameHostAddress   bool // registered memory has the same address on the device
	Integrated        bool // shares its memory with the host
}

// ComputeCapability returns major*10 + minor: 90 for 9.0.
func (p Properties) ComputeCapability() int { return p.Major*10 + p.Minor }

// String is a line for logs.
func (p Properties) String() string {
	return fmt.Sprintf("device %d: %s, compute capability %d.%d, %d SMs, %s, PCI %s",
		p.Ordinal, p.Name, p.Major, p.Minor, p.SMs, byteCount(p.TotalMemory), p.PCI)
}

// The numbers of CUdevice_attribute.
const (
	attrMaxThreadsPerBlock = 1
	attrSharedPerBlock     = 8
	attrWarpSize           = 10
	attrSMs                = 16
	attrIntegrated         = 18
	attrMapsHostMemory     = 19
	attrPCIBus             = 33
	attrPCIDevice          = 34
	attrL2                 = 38
	attrMaxThreadsPerSM    = 39
	attrCopyEngines        = 40
	attrUnifiedAddressing  = 41
	attrPCIDomain          = 50
	attrMajor              = 75
	attrMinor              = 76
	attrSameHostAddress    = 91
	attrSharedPerBlockMax  = 97
	attrRegistersHost      = 99
	attrRegistersReadOnly  = 113
)

func (d *Driver) properties(ordinal int, h int32) (Properties, error) {
	p := Properties{Ordinal: ordinal, NUMANode: -1}
	name := make([]byte, 256)
	if err := d.do(&d.t.deviceName, uintptr(unsafe.Pointer(&name[0])), uintptr(len(name)-1), uintptr(h)); err != nil {
		return p, err
	}
	p.Name, _, _ = strings.Cut(string(name), "\x00")
	if err := d.do(&d.t.deviceTotalMem, uintptr(unsafe.Pointer(&p.TotalMemory)), uintptr(h)); err != nil {
		return p, err
	}
	uuid := new([16]byte)
	if d.code(&d.t.deviceUUID, uintptr(unsafe.Pointer(uuid)), uintptr(h)) == 0 {
		p.UUID = *uuid
	}
	var domain, bus, device int
	for _, a := range []struct {
		to     *int
		number int
	}{
		{&p.MaxThreadsPerBlock, attrMaxThreadsPerBlock}, {&p.SharedPerBlock, attrSharedPerBlock},
		{&p.WarpSize, attrWarpSize}, {&p.SMs, attrSMs}, {&p.L2Bytes, attrL2},
		{&p.MaxThreadsPerSM, attrMaxThreadsPerSM}, {&p.CopyEngines, attrCopyEngines},
		{&p.Major, attrMajor}, {&p.Minor, attrMinor},
		{&domain, attrPCIDomain}, {&bus, attrPCIBus}, {&device, attrPCIDevice},
	} {
		v, err := d.attribute(h, a.number)
		if err != nil {
			return p, err
		}
		*a.to = v
	}
	for _, a := range []struct {
		to     *bool
		number int
	}{
		{&p.Integrated, attrIntegrated}, {&p.MapsHostMemory, attrMapsHostMemory},
		{&p.UnifiedAddressing, attrUnifiedAddressing}, {&p.SameHostAddress, attrSameHostAddress},
		{&p.RegistersHost, attrRegistersHost}, {&p.RegistersReadOnly, attrRegistersReadOnly},
	} {
		v, err := d.attribute(h, a.number) // newer than some drivers: absent means no
		*a.to = err == nil && v != 0
	}
	p.SharedPerBlockMax = p.SharedPerBlock
	if v, err := d.attribute(h, attrSharedPerBlockMax); err == nil && v > 0 {
		p.SharedPerBlockMax = v
	}
	p.PCI = fmt.Sprintf("%04x:%02x:%02x.0", domain, bus, device)
	if b, err := os.ReadFile("/sys/bus/pci/devices/" + p.PCI + "/numa_node"); err == nil {
		if v, err := strconv.Atoi(strings.TrimSpace(string(b))); err == nil {
			p.NUMANode = v
		}
	}
	return p, nil
}

func (d *Driver) attribute(h int32, number int) (int, error) {
	v := new(int32)
	err := d.do(&d.t.deviceAttribute, uintptr(unsafe.Pointer(v)), uintptr(number), uintptr(h))
	return int(*v), detail(err, "attribute %d", number)
}
