package kernels

import (
	"embed"
	"fmt"
	"slices"
	"strings"
)

//go:embed ptx/*.ptx
var files embed.FS

// Variant is one target that every module is compiled for.
type Variant struct {
	SM     int // least compute capability, major*10 + minor
	PTX    int // PTX ISA version, major*10 + minor
	Driver int // least driver API version that loads it, as cuDriverGetVersion counts
}

// Variants lists the targets, newest first. build.sh makes the same three.
func Variants() []Variant {
	return []Variant{{90, 81, 12010}, {80, 74, 11040}, {70, 60, 9000}}
}

// Image is a module's PTX for one variant.
type Image struct {
	Name    string // the module: "gather" for gather.cu
	Variant Variant
	PTX     []byte // text without a closing zero; the caller may keep it
}

// Names lists the modules, sorted.
func Names() []string {
	entries, err := files.ReadDir("ptx")
	if err != nil { // the folder is embedded: cannot happen
		return nil
	}
	var names []string
	for _, e := range entries {
		name, _, _ := strings.Cut(e.Name(), ".")
		names = append(names, name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Find returns the newest variant of a module that runs on a GPU of compute
// capability cc (major*10 + minor) under a driver of the given API version
// (12010 is CUDA 12.1).
func Find(name string, cc, driver int) (Image, error) {
	for _, v := range Variants() {
		if cc < v.SM || driver < v.Driver {
			continue
		}
		ptx, err := files.ReadFile(fmt.Sprintf("ptx/%s.sm%d.ptx", name, v.SM))
		if err != nil {
			return Image{}, fmt.Errorf("kernels: no module %q (there are %s)", name, strings.Join(Names(), ", "))
		}
		return Image{name, v, ptx}, nil
	}
	oldest := Variants()[len(Variants())-1]
	return Image{}, fmt.Errorf("kernels: compute capability %d.%d with driver CUDA %d.%d is too old: kernels need %d.%d (Volta) and CUDA %d.%d",
		cc/10, cc%10, driver/1000, driver%1000/10, oldest.SM/10, oldest.SM%10, oldest.Driver/1000, oldest.Driver%1000/10)
}
