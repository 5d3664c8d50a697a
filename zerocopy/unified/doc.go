// Package unified shows a feature table as a tensor of Gorgonia's: the "unified
// tensor" of Min et al. (PVLDB 14(11), 2021), which lives in host memory and is
// indexed by the GPU.
//
// [New] gives a *tensor.Dense over the bytes of a float32 [zerocopy.Table], not
// a copy, and the [Engine] that it carries. Every tensor.ByIndices on it, called
// directly or by a Gorgonia graph, goes to the table's gatherer:
//
//   - ids in host memory (tensor.Int, or tensor.Int32 in a direct call) give a
//     tensor in host memory;
//   - ids in GPU memory ([Engine.Upload], or a result of other code wrapped by
//     [Engine.Wrap]) give a tensor in GPU memory, and no row passes the CPU.
//
// Gorgonia's TapeMachine replaces the engine of every tensor bound to it by its
// own: give it this one, gorgonia.WithEngine(engine).
//
// # Ownership
//
// The engine holds a gatherer and with it the table; close the engine, then the
// table. Later calls of ByIndices return an error that wraps
// zerocopy.ErrClosed. The bytes stay mapped as long as the Dense, the table or
// the engine is reachable, so a forgotten tensor never points to nothing; its
// GPU registration ends with the engine.
//
// A tensor in GPU memory keeps its buffer until [Release], or until it is
// unreachable.
//
// # Caveats
//
// The rows are read-only input: no gradient flows into a table. Tensors in GPU
// memory are opaque to Go: printing or Data on one faults; [Host] copies it.
// This package alone links gorgonia.org/tensor, which the users of package
// zerocopy need not.
package unified
