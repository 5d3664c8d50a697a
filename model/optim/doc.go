// Package optim updates parameters by gradients: Adam, AdamW and SGD, as
// PyTorch defines them.
//
// An Optimizer works on one flat parameter buffer and one gradient buffer of the
// same length, divided into Segments that differ in weight decay only. The
// buffers are the caller's; the optimiser owns its moments, which State exposes
// for checkpoints. Updates are element-wise, so results do not depend on the
// number of workers. An Optimizer serves one goroutine at a time.
//
// Device is the same for buffers in GPU memory, with its moments there; the bits
// are those of Optimizer on processors that do not fuse multiplications and
// additions (amd64).
package optim
