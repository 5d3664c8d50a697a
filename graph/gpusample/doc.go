// Package gpusample draws the mini-batches of package graph's Sampler on the
// GPU, equal to them bit for bit: same nodes in the same order, same blocks,
// same factors.
//
// Its types:
//
//   - [CSR] is a graph where kernels find it: in GPU memory, or with its edges in
//     page-locked host memory.
//   - [Sampler] has the options of a graph.Sampler, and scratch of 2 bits a node
//     and hop.
//   - [Batch] is a reusable mini-batch in GPU memory: the input frontier and
//     graph.Blocks whose Device is set.
//   - [Epochs] permutes training nodes ahead of time and holds the current
//     epoch's on the device, each batch's part ascending.
//
// # Protocol
//
// Sample queues a whole batch on a stream, as one launch of a graph that was
// captured when the batch was made, and returns: the host neither waits nor
// learns anything. Every array has room for an upper bound, which follows from
// the number of seeds, the fan-outs and the graph's largest in-degrees; kernels
// read the real counts on the device. At the end of the batch's work the counts
// go to page-locked memory and an event is recorded. Wait waits for that event,
// checks for faults and fills in NumNodes, NumDst, NumSrc and NumEdges:
//
//	err = s.Sample(stream, seed, philox.Sample, step, seeds, &b) // returns at once
//	…                                                            // queue other work
//	err = b.Wait()                                               // counts are there
//
// A pipeline that samples one or two batches ahead finds the event passed. What
// only needs the arrays' order, not their lengths, can be queued behind Sample
// on the same stream, or behind Batch.Done on another, before Wait.
//
// # Ownership
//
// Closing goes in the reverse order of making: batches, samplers, the CSR. A
// batch's arrays are valid from the end of Sample's work until the next Sample
// into it, which must be ordered after the work that reads them. A Sampler's
// batches share its scratch, so their sampling is serial: Sample orders it, on
// several streams too, and Clone makes a sampler that works at the same time.
// Each type serves one goroutine at a time; a CSR any number.
//
// # Method
//
// Per hop: a scan over the targets' degrees lays out the block; groups of lanes
// draw each target's neighbours by Philox words and Floyd's algorithm and mark
// them in a bitmap; a scan over the bitmap's words gives new nodes their local
// ids in ascending order; edges look their local ids up by rank. No hash table
// and no sort, and no order of arrival shows in a result: the one place where
// slots are claimed by atomics, the transposed form, orders each source's edges
// afterwards. See graph.Sampler for what is drawn and cuda/kernels/sample*.cu
// for the kernels.
package gpusample
