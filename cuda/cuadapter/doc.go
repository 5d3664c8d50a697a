// Package cuadapter exchanges contexts, streams and pointers with programs that
// use gorgonia.org/cu, so that both work in one context: buffers that one side
// makes are read by the other, and streams keep the order.
//
// It is built with the tag cu only, because gorgonia.org/cu needs cgo and the
// headers of NVIDIA's toolkit:
//
//	CGO_ENABLED=1 go build -tags cu ./...
//
// gorgonia.org/cu v0.9.4 is written for CUDA 9.0 to 11.8; CUDA 12 removed texture
// references, which it binds. It was not compiled where this package was
// written: no CUDA headers could be had there. The names and signatures that it
// uses were checked against that version's source with go/types.
//
// Whoever makes an object destroys it: the functions here convert, they
// transfer nothing. Package cuda uses a device's primary context, so the other
// side should as well (cu.Device.RetainPrimaryCtx).
package cuadapter
