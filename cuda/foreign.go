package cuda

// Call is a call of another library on a stream, between Stream.Begin and End.
type Call struct {
	stream *Stream
	entry  entry
}

// Begin prepares the calling goroutine for calls of another library (cuBLAS,
// NCCL, one's own) that queue work on the stream: until End it stays on its
// thread with the device's context current, and the stream stays open.
func (s *Stream) Begin() (Call, error) {
	e, err := s.begin()
	return Call{s, e}, err
}

// End undoes Begin. It must be called on the same goroutine, once.
func (c Call) End() { c.stream.end(c.entry) }
