// Package blas multiplies float32 matrices on the CPU, for the model's linear
// layers and their gradients.
//
// An [Engine] is a library to multiply with: [Gonum] is always there,
// [OpenBLAS] is loaded at run time where the machine has it, [Auto] picks. Its
// one operation, [Engine.Gemm], cuts a product into tiles whose sizes depend on
// the shapes alone, runs them on a bounded number of goroutines, and adds
// partial sums in a fixed order, so a result has the same bits for 1 worker and
// 16. The bits are the same on one machine with one engine; [Info] names it, for
// logs and checkpoints.
//
// # Memory
//
// Gemm reads a and b and writes c only while it runs and keeps none of them. An
// Engine keeps the scratch memory of its largest products (partial sums, a
// transposed copy of a right operand) and reuses it: in the steady state a
// product allocates nothing beyond what starting goroutines costs. Engines are
// safe for concurrent use.
//
// # Caveats
//
// OpenBLAS is C code: operands must be ordinary memory. A slice over a mapped
// file that has been truncated raises SIGBUS there, which ends the process.
package blas
