// Package mat reads numeric arrays, dense and sparse, out of MATLAB files of
// level 5, without trust: MathWorks, "MAT-File Format", R2024a, chapter 1. Cells,
// structures, characters and objects are passed over. Files of version 7.3 are
// HDF5 and are refused by name; those of version 4 have no header to be known by.
//
// The main types: Matrix, made by Read.
//
// # Memory
//
// Read holds the file's bytes, and one unpacked variable at a time beside those
// it returns. Nothing is allocated by a size that the bytes do not account for;
// deflated variables may expand by a bounded ratio only. Values are converted
// where they are asked for.
//
// Errors are *Fault: one line with the byte, counted in the unpacked variable
// where it is deflated.
package mat
