// Package safetensors reads and writes the safetensors format, the file of
// named tensors that PyTorch, JAX and others exchange
// (https://github.com/huggingface/safetensors, format section): a header of
// JSON whose length comes first as 8 bytes, then the data of all tensors,
// little-endian, row-major, without gaps.
//
//   - [Tensor] is a name, a shape and [Data]: one of [F32], [F64], [I64], [I32],
//     [U8], [F16], [BF16], each a slice type.
//   - [Write] writes tensors in the order of the reference implementation, so
//     equal tensors give equal bytes, and files of PyTorch read and written
//     again are the same bytes.
//   - [Open] and [NewFile] read and check a header; [File.Read] and
//     [File.ReadAll] read data.
//
// # Ownership
//
// Data shares the memory of the slice that it was converted from: safetensors.F32(params)
// copies nothing, and Write reads the values while it runs. What Read returns
// belongs to the caller; it stays valid after Close.
//
// # Caveats
//
// Files are not trusted. The header may not exceed 100 MB (the limit of the
// reference implementation) nor the file; shapes, types and offsets must agree,
// and the tensors must cover the data exactly once. Memory is allocated only
// for what the file really holds. Other data types (BOOL, F8, U16 and so on)
// are refused by name. Errors begin with "safetensors: " and name the byte or
// the tensor; callers add the file's name.
package safetensors
