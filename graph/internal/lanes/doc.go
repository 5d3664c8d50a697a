// Package lanes draws neighbours for eight targets at a time, one per lane of
// an AVX2 register: Philox words, Floyd's algorithm and the sort of the
// positions, without a branch that depends on the data.
//
// Each kernel is written twice. The plain form, in lanes.go, says what it
// computes, runs on every platform and with the build tag noasm, and is what
// the tests compare the assembly with. Results are the same bit for bit.
package lanes
