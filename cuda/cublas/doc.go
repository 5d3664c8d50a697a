// Package cublas multiplies matrices with NVIDIA's cuBLAS, opened at run time.
//
//   - [Library]: the loaded library. [Load] looks for the user's path, what
//     ldconfig knows, the toolkit under CUDA_HOME, Python's nvidia packages.
//   - [Handle]: cuBLAS on one stream, with a workspace of its own, so that its
//     calls may be captured into graphs and give the same bits every time.
//   - [Matrix]: row-major device memory of the caller's, which stays theirs.
//
// A call queues work on the handle's stream and returns; the matrices must stay
// until the stream has passed it. It costs some 20 µs of the host's time
// (cuBLAS's choice of kernel), which a graph saves where it is replayed as it is.
package cublas
