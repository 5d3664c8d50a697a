// Package fetch transfers published datasets from where they are offered and
// converts them to native folders.
//
//   - [Download] does all of it for one set: transfer, verification, unpacking,
//     conversion. It can be interrupted at any point, by a signal, a crash or a
//     broken line, and goes on from there when it is called again.
//   - [Options] say where the set goes, from which mirror it comes, and how
//     patient the transfer is.
//   - [Event] tells a listener how far it is. The package prints nothing.
//   - [Unpack] expands a zip or tar.gz that nobody vouches for.
//
// # Files
//
// Everything happens in the folder ROOT/.NAME.download, which one process at a
// time holds a lock on. A file is transferred to FILE.part; FILE.part.json
// beside it keeps the address and what identifies the version of the file
// there (ETag, Last-Modified, length), so that a later request asks for the rest of
// that version only (RFC 9110, sections 13.1.5 and 14.2: Range with If-Range).
// Without either, a transfer begins anew. The finished set gets the name
// ROOT/NAME in one step (package atomicfile); then the folder is removed.
//
// # Trust
//
// A file of known checksum (datasets.PublishedFile.SHA256) is compared with it.
// The checksums of all others are recorded in ROOT/.checksums.json once they have
// been read as a dataset, and compared ever after: a file that changed at its
// publisher is an error, not a silent change of results. Redirects are followed
// five times, to http and https only and never from https to http. Archives may
// not leave their folder, hold links or devices, or expand beyond the room that
// the set is known to take.
//
// The package needs Linux.
package fetch
