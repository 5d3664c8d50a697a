// Package cpu is the executor's back end for the host: every operation of
// package op as a kernel in Go, run in parallel on a bounded number of
// goroutines, with matrix products by internal/blas.
//
// Results have the same bits for any number of workers: work is cut into tiles
// whose sizes depend on shapes only, each element of a result is computed by one
// tile in a fixed order, and where tiles make partial sums (losses, column sums,
// gradients of weights) those are added in the order of the tiles. The bits are
// the same on one machine with one BLAS, which Backend.BLAS().Info() names.
//
// Sums run in float32, in the order of the edges or rows; losses and the sums of
// partial sums run in float64.
//
// # Memory
//
// Buffers are ordinary slices of the garbage-collected heap. A kernel belongs to
// one instruction of one program and keeps its scratch memory (transposed
// weights, a sparse matrix sorted by columns, coefficients) as long as the
// program lives, so a program of settled sizes allocates nothing but what
// starting goroutines costs. Kernels drop their operands when they return.
//
// # Inner loops
//
// Rows are combined with gonum's Saxpy, which uses SSE on amd64 and plain loops
// elsewhere; rows scattered over a large matrix are prefetched some edges ahead.
// Dropout's Philox words are drawn eight blocks at a time with AVX2 where the
// processor has it; the Go code beside it gives the same words everywhere else.
// Choices between kept and dropped elements are conditional moves, not branches:
// masks are random, and a branch would be mispredicted half of the time.
package cpu
