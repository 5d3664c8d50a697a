// Package cuda is the executor's back end for NVIDIA GPUs: a kernel for each kind
// of operation, from cuda/kernels' model*.cu, and cuBLAS for products.
//
//   - [Backend]: the kernels and the memory of one device, on one stream.
//   - [Options]: precision, which cuBLAS, and whether sums must repeat to the bit.
//
// # Operands
//
// Matrices are device memory (op.Value.Dev), and so are the arrays of blocks
// (graph.Block.Device), labels (op.Labels.DevClass, with Norm) and dropout keys
// (op.Key.DevRows). A scalar may also be a host value, which is passed by
// argument: graph constants are. Anything else on the host is an error that says
// which operand. Sparse features have no kernels here: give them dense.
//
// # Memory and time
//
// Kernels only queue work on the stream that the Backend was made with; nothing
// here waits for the device except Upload, Download and Close. Scratch memory is
// found in Prepare, so Execute may be captured. All programs of a Backend share
// one scratch buffer, since their kernels run one after another; so a Backend
// serves one goroutine at a time. Buffers come from the device's pool, counted as
// activations, parameters or gradients; a buffer that is freed or outgrown
// returns to the pool once the queued work is past it.
//
// # Determinism
//
// Sums are cut by shape and added in a fixed order, so a program gives the same
// bits in every run on one model of GPU with one cuBLAS, unless Options.Atomics
// allows otherwise. Dropout masks are the CPU's, bit for bit; other results agree
// within rounding.
package cuda
