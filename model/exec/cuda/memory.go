package cuda

import (
	"fmt"

	"zerogcn/cuda"
	"zerogcn/model/exec"
)

// Alloc returns device memory for n float32, aligned to 512 bytes.
func (b *Backend) Alloc(n int) (exec.Buffer, error) { return b.AllocFor(exec.Activations, n) }

// AllocFor is Alloc with what the memory is for, which Device.Metrics counts by.
func (b *Backend) AllocFor(u exec.Use, n int) (exec.Buffer, error) {
	purpose := cuda.Activations
	switch u {
	case exec.Parameters:
		purpose = cuda.Parameters
	case exec.Gradients:
		purpose = cuda.Gradients
	}
	if n == 0 {
		return exec.Buffer{}, nil
	}
	buf, err := b.dev.Alloc(purpose, 4*int64(n))
	if err != nil {
		return exec.Buffer{}, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.buffers == nil {
		return exec.Buffer{}, fmt.Errorf("exec/cuda: back end: %w", closeWith(cuda.ErrClosed, buf))
	}
	p := uintptr(buf.Ptr())
	b.buffers[p] = buf
	return exec.Buffer{Dev: p, Cap: n}, nil
}

// Free returns a buffer to the pool once the work queued so far is past it.
func (b *Backend) Free(x exec.Buffer) {
	b.mu.Lock()
	buf := b.buffers[x.Dev]
	delete(b.buffers, x.Dev)
	b.mu.Unlock()
	if buf != nil {
		b.discard(buf)
	}
}

// discard closes a buffer behind the queued work. Where the stream can take no
// event it is closed or its context is lost, and nothing uses the memory.
func (b *Backend) discard(buf *cuda.Buffer) {
	if err := buf.CloseAfter(b.stream); err != nil {
		_ = buf.Close()
	}
}

func closeWith(err error, buf *cuda.Buffer) error {
	if e := buf.Close(); e != nil {
		return fmt.Errorf("%w (and %v)", err, e)
	}
	return err
}

// Upload copies src to device memory; it waits for the copy and for what was
// queued before.
func (b *Backend) Upload(dst uintptr, src []float32) error {
	return cuda.Upload(b.stream, cuda.DevicePtr(dst), src)
}

// Download copies device memory to dst; it waits for what was queued before.
func (b *Backend) Download(dst []float32, src uintptr) error {
	return cuda.Download(b.stream, dst, cuda.DevicePtr(src))
}

// need makes the scratch buffer that all kernels share at least n bytes large.
// Kernels call it in Prepare and read the address when they run, since another
// kernel may have enlarged it in between.
func (b *Backend) need(n int64) error {
	if n <= b.scratchBytes {
		return nil
	}
	// A little more than asked for, since row counts vary from batch to batch.
	buf, err := b.dev.Alloc(cuda.Workspace, n+n/8)
	if err != nil {
		return err
	}
	if b.scratch != nil {
		b.discard(b.scratch)
	}
	b.scratch, b.scratchBytes = buf, buf.Len()
	return nil
}

// work returns the scratch buffer, which Prepare must have made n bytes large.
func (b *Backend) work(n int64) (cuda.DevicePtr, error) {
	if n > b.scratchBytes {
		return 0, fmt.Errorf("exec/cuda: needs %d bytes of scratch, has %d: Prepare was not called", n, b.scratchBytes)
	}
	return b.scratch.Ptr(), nil
}
