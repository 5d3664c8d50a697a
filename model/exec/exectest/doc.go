// Package exectest is the conformance suite of the executor's back ends: each
// kernel against the reference loop of its operation, over random operands of
// all shapes (no rows, one row, odd widths, several tiles), inside guard zones,
// in place where the operation allows that, and with kernels reused from one
// shape to the next as programs do.
//
// A back end's test calls Run with a Device; Same compares back ends bit by bit,
// such as one with different numbers of workers.
package exectest
