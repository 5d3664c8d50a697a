package kernels

import "zerogcn/cuda"

// Load loads the variant of a module that suits the device and its driver. The
// caller closes it.
func Load(dev *cuda.Device, name string) (*cuda.Module, error) {
	img, err := Find(name, dev.Properties().ComputeCapability(), int(dev.Driver().Version()))
	if err != nil {
		return nil, err
	}
	return dev.LoadModule(name, img.PTX)
}
