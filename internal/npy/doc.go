// Package npy reads and writes NumPy's array files, .npy and .npz, from sources
// that are not trusted.
//
// The format is that of NumPy Enhancement Proposal 1 and of
// numpy.lib.format, versions 1.0, 2.0 and 3.0: any integer width, bool, float16,
// float32, float64, either byte order, C and Fortran order, any number of
// dimensions; fixed-width strings on request. Object arrays hold pickles and are
// never read.
//
// The main types:
//
//   - Array: one array, its header checked against the real size of what holds
//     it before anything is allocated.
//   - Archive: an .npz file, whose members are Arrays. Stored members are read
//     in place, deflated ones as a stream.
//   - Writer: writes one .npy of a known shape as a stream.
//
// Read and ReadRows convert to the element type that the caller names and check
// that each value fits. View maps a file instead, where its layout allows it.
//
// # Memory
//
// An Array made by Open owns its file until Close, one of an Archive borrows
// the archive's. What View returns is a read-only mapping that lives until
// Close. Everything else is the caller's.
//
// Errors are one line that names the file and the byte, and are marked as the
// user's with internal/usage, unless reading itself failed.
package npy
