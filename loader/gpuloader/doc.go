// Package gpuloader is package loader on a GPU: the same batches, sampled,
// gathered and kept in GPU memory, each stage on a stream of its own so that the
// device overlaps them.
//
//	sample (batch n+2) ─▶ gather (n+1) ─▶ your stream (n)
//
// Its types:
//
//   - Features is a dataset's feature table in host memory that the GPU can read,
//     with a gatherer of the chosen mode.
//   - Loader samples with package gpusample and gathers with package zerocopy, a
//     few batches ahead.
//   - Batch is one mini-batch: device addresses, and counts that the host knows.
//
// # Order of work
//
// No stage waits for the device on the host, except the gather for the number of
// rows that its batch has, which the sampler runs ahead to provide. A batch is
// handed out before its rows have arrived: Acquire makes a stream wait for them.
// Release says on which stream the batch is last read; its memory is written again
// only after that.
//
// # Memory
//
// Batches and all they point to belong to the loader. A Batch may be used until
// the loop asks for the next one, its device memory until the work before Release
// is done. Timing is an exception: it stays valid for the next few batches.
// Features outlive the loaders that use them. Close everything in the reverse
// order of making.
package gpuloader
