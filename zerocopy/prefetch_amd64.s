#include "textflag.h"

// func prefetchLines(p unsafe.Pointer, n uintptr)
//
// for a := p &^ 63; a < p+n; a += 64 { prefetch line a }
TEXT ·prefetchLines(SB), NOSPLIT, $0-16
	MOVQ p+0(FP), AX
	MOVQ n+8(FP), BX
	ADDQ AX, BX          // end
	ANDQ $~63, AX        // first line
loop:
	PREFETCHT0 (AX)      // never faults, whatever the address
	ADDQ $64, AX
	CMPQ AX, BX
	JB   loop
	RET
