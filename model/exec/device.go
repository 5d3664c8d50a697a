package exec

import "errors"

// ErrUnsupported is the error of Backend.Kernel for an operation that the back
// end does not offer by design, as against one that is missing.
var ErrUnsupported = errors.New("not supported by this back end")

// Use is what memory of a DeviceBackend is for, so that reports can tell.
type Use uint8

// The uses.
const (
	Activations Use = iota // what Alloc gives
	Parameters
	Gradients
)

// DeviceBackend is a Backend whose memory the host does not reach: Values have
// addresses (Dev) instead of slices (Data). Its kernels are queued; Upload and
// Download wait for what was queued before.
type DeviceBackend interface {
	Backend
	// AllocFor is Alloc with a use; Free takes the buffer back.
	AllocFor(u Use, n int) (Buffer, error)
	// Upload copies src to device memory.
	Upload(dst uintptr, src []float32) error
	// Download copies device memory to dst.
	Download(dst []float32, src uintptr) error
	// NewReplay returns a Replay on the back end's queue; the caller closes it.
	NewReplay() Replay
}

// Replay turns the many small launches of a step into one. The step may differ
// from run to run in its sizes, addresses and values.
type Replay interface {
	// Run records what f queues, without running it, and launches that as a
	// whole. f must not allocate on the device, nor wait for it. An error of f
	// is returned and nothing is launched.
	Run(f func() error) error
	// Close gives up what was recorded; launches under way end undisturbed.
	Close() error
}
