#include "textflag.h"

// func prefetchRow(x *float32, n int)
TEXT ·prefetchRow(SB), NOSPLIT, $0-16
	MOVQ x+0(FP), SI
	MOVQ n+8(FP), CX
	LEAQ (SI)(CX*4), DI
line:
	PREFETCHT0 (SI)
	ADDQ $64, SI
	CMPQ SI, DI
	JLT  line
	PREFETCHT0 -4(DI) // a row that begins inside a line ends in one more
	RET
