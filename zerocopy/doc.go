// Package zerocopy keeps a table of node features in host memory and gathers
// scattered rows of it: on the CPU with threads, or from a GPU that reads the
// rows in place over PCIe ("zero-copy"), after Min et al., "Large Graph
// Convolutional Network Training with GPU-Oriented Data Communication
// Architecture", PVLDB 14(11), 2021.
//
// # Types
//
//   - [Table]: rows × width values of float32, float16, bf16 or int8 (one
//     float32 scale a row), contiguous, in host memory: anonymous ([NewTable]),
//     shared by processes ([NewShared]), the caller's ([FromBytes]), or on
//     machines without a GPU a mapped file ([OpenFile]).
//   - [Gatherer]: copies the rows that a list of ids names into a dense float32
//     matrix, widening narrow rows on the way. [HostGatherer] is the form for
//     the CPU and needs neither GPU nor driver; [DeviceGatherer] gathers into
//     GPU memory, queued on a stream.
//   - [Mode]: how the rows travel to the GPU. Auto measures and picks.
//   - [Batch]: one gather on a GPU. [DeviceGatherer.EnqueueMany] merges several
//     into one ascending pass.
//   - [IDError]: the first id of a gather that names no row.
//
// # Ownership
//
// A Table from [NewTable] owns an anonymous mapping that Close returns to the
// system. A Table from [FromBytes] keeps its caller's slice (and an owner, if
// given) reachable until Close; the caller must not unmap the bytes before
// that. A Table from [OpenFile] maps the file read-only until Close.
// Slices returned by [Table.Row] and [Table.Bytes] alias that memory and die
// with it.
//
// A Gatherer holds a reference to its table: [Table.Close] refuses with
// [ErrInUse] while one is open, and releases nothing. Close the gatherers
// first. Every Close may be called twice. [Table.Memory] leases the bytes to
// views that nobody closes.
//
// What [DeviceGatherer.Enqueue] queues reads and writes the batch's device
// memory after it returned: ids and destination belong to the gather until the
// stream has passed it. A gatherer's own scratch may serve several streams; its
// gathers then wait for each other on the device.
//
// # Caveats
//
// Ids are int32, so a table has at most 2^31-1 rows. Every id is checked where
// it is used; a gather that meets a bad one reports the first and its position,
// and the contents of its destination are undefined.
//
// A file mapping serves CPU gathers only. It is never registered with the
// driver: pages of a disk mapping cannot be pinned for certain, and a file
// that shrinks under a mapping would fault in code that cannot recover. On the
// CPU such a fault becomes [ErrTruncated].
package zerocopy
