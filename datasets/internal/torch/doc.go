// Package torch reads tensors out of PyTorch's .pt files, as torch.save has
// written them since version 1.6: a zip archive of stored members, a pickle and
// the bytes of each storage.
//
// Nothing is unpickled but plain data: the pickle may name the functions that
// rebuild tensors and the types of storages, and nothing that it names is
// called (package pickle). Tensors are made for dense numeric storages, row-major
// or column-major, as npy.Array.
//
// The main type is File. A File holds the pickle; storages are read when their
// tensor is asked for, and belong to the caller. Sizes are checked against the
// file before anything is allocated.
package torch
