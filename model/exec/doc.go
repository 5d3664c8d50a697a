// Package exec compiles a Gorgonia graph of package op's operations into a
// Program and runs it on a Backend.
//
// A graph is compiled once per model; each Run takes operands of any row counts.
// Compile orders the operations topologically, drops those that no output needs
// (symbolic differentiation builds gradients that nobody asked for), and plans
// buffers by liveness: a buffer is reused as soon as its last reader has run, in
// place where the operation allows it. Run then only derives shapes, grows a
// buffer now and then, and calls kernels: it allocates nothing in the steady
// state.
//
// # Memory
//
// Inputs belong to the caller, who fills the Values that Input returns before
// each Run and leaves their memory alone until Run returns. Outputs have
// buffers of their own, valid until the next Run, unless BindOutput names
// memory of the caller's. Everything else is the program's. A Program serves one
// goroutine at a time.
//
// With a DeviceBackend inputs and outputs are in device memory: Run queues work and
// returns, and a Value's contents are there once the queue has passed it.
//
// Gorgonia's TapeMachine runs the same graphs and is the oracle in tests.
package exec
