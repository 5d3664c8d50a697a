// Package cuda drives NVIDIA GPUs through the CUDA driver API without cgo and
// without a toolkit: libcuda.so.1 is opened at run time (package purego), and a
// machine without it goes on with an error that says so.
//
// # Types
//
//   - [Driver]: the loaded library. [Load] makes one; there is no global state.
//   - [Device]: a GPU with its primary context, a pool of its memory and counters.
//   - [Stream] and [Event]: order of work. [Binding] pins a goroutine to its
//     thread so that calls on its streams cost least.
//   - [Buffer]: device memory. [HostBuffer]: page-locked host memory.
//     [Registration]: host memory of the caller, page-locked and mapped.
//   - [Module] and [Function]: compiled kernels and their launches.
//   - [Graph], [Executable] and [Replay]: work captured once and launched at
//     the cost of one call.
//
// # Threads and contexts
//
// CUDA keeps the current context per OS thread, and goroutines move between
// threads. Every method here may be called from any goroutine: it holds its
// thread and makes the right context current for the length of the call. A
// goroutine that drives a GPU for long calls [Device.Bind] and pays that once.
//
// # Ownership
//
// Whoever makes an object closes it. Close is idempotent; a method of a closed
// object returns [ErrClosed]; [Device.Close] closes what is still open on the
// device, so nothing outlives it, and reports how much that was. Work that is
// queued on a stream goes on reading and writing memory after the call that
// queued it returned: buffers, registered memory and the host side of copies
// must stay until an event or a synchronisation says that the work is done.
// [Buffer.CloseAfter] does that waiting.
//
// Device memory comes from a pool: a closed buffer is kept for the next
// allocation of its size class and returns to the driver when memory runs
// short, on [Device.Trim] or at Close. New memory holds what was there before.
//
// # Host memory that the GPU reads
//
// Register anonymous memory or /dev/shm, never the mapping of a file on disk:
// that has hung processes inside the driver beyond kill, so Register refuses it
// ([ErrFileMapping]). Memory must not belong to Go's heap.
//
// # Costs
//
// On an H200 with driver 580.159 and 16 cores (2026-12-01): a launch takes 3.5 µs
// of the host's time on a bound stream and 3.8 µs on another, against 3.0 to
// 4.1 µs from C in the same run, and allocates nothing (4.9 and 5.1 µs on
// another such machine). Making the context current for a call is 0.1 to 0.2 µs
// of that, 0.4 µs when several devices are open. Launch and wait: 9 µs. A step
// of 60 small kernels whose sizes change: 225 to 260 µs as launches, 77 to 81 µs
// as a [Replay]. Registering 60 GiB of touched memory: 1.3 s, releasing it 1.0 s.
// Copies from page-locked memory: 55 GB/s, from other memory 14. The benchmarks
// named GPU repeat these.
//
// # Errors
//
// A failed driver call is an [*Error] with the call, CUDA's name and text for
// the code, and what can be done. errors.Is compares with a [Code]:
//
//	if errors.Is(err, cuda.OutOfMemory) { … }
//
// A kernel that faults takes its context with it: from then on every call on
// the device, opening it anew too, returns an error that is [ErrContextLost],
// until the process ends.
package cuda
