// Package kernels holds the project's CUDA kernels: sources (*.cu), the PTX
// that clang makes of them (ptx/, committed and embedded) and the choice of the
// variant that a GPU and a driver can run. No NVIDIA toolkit takes part.
//
// # Modules
//
// Each NAME.cu becomes a module of its own, NAME, so that a program compiles
// (the driver does that once and caches it) only what it launches, and a new
// file collides with nobody's names. To add one: write NAME.cu, include
// device.cuh (intrinsics, loads, atomics, conversions) and philox.cuh (the
// random generator) as needed, declare kernels as
//
//	KERNEL name(float *y, const float *x, i64 n) { ... }
//
// run `make kernels` (build.sh) and commit the new ptx/NAME.sm*.ptx. Code for
// one variant goes under #if ZG_SM >= 90 or #if ZG_PTX >= 74.
//
// A kernel argument is a scalar of at most 8 bytes or a pointer; structures are
// passed as pointers to device memory.
//
// # Variants
//
// Every module exists three times: sm_70 with PTX 6.0, which every driver since
// CUDA 9 loads on every GPU since Volta; sm_80 with PTX 7.4 (driver 11.4 or
// newer); sm_90 with PTX 8.1 (driver 12.1 or newer). Find picks the newest that
// both GPU and driver take.
package kernels

//go:generate ./build.sh
