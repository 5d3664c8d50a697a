// Package datasets reads graphs with node features and labels from the formats
// that they are published in, and makes synthetic ones.
//
// The main types:
//
//   - Dataset: a graph with its features, labels and splits. Open finds one by
//     path or name; New makes one of parts in memory.
//   - Features: the table of node features, in memory (dense or sparse) or in a
//     file, read by rows.
//   - Labels: classes, label sets or real targets, fetched by node id.
//   - Split: training, validation and test nodes.
//   - Format, Generator: how a format or a synthetic set plugs in, one file
//     each.
//
// # Memory
//
// A Dataset owns its files and mappings until Close; what it hands out is
// read-only and, unless said otherwise, valid until then. A native folder is
// opened in the same time whatever its size: arrays are mapped, not read, so
// contents are checked where they are used (see Dataset).
//
// # Caveats
//
// A file that another program cuts short while it is mapped raises a memory
// fault on the next access, as with any mapping.
package datasets
