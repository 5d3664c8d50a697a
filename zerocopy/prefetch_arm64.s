#include "textflag.h"

// func prefetchLines(p unsafe.Pointer, n uintptr)
//
// for a := p &^ 63; a < p+n; a += 64 { prefetch line a }
TEXT ·prefetchLines(SB), NOSPLIT, $0-16
	MOVD p+0(FP), R0
	MOVD n+8(FP), R1
	ADD  R0, R1, R1      // end
	AND  $~63, R0, R0    // first line
loop:
	PRFM (R0), PLDL1KEEP // never faults, whatever the address
	ADD  $64, R0, R0
	CMP  R1, R0
	BLO  loop
	RET
