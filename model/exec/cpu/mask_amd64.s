#include "textflag.h"

// Offsets of the four blocks of a group from its first.
DATA lanes<>+0(SB)/8, $0
DATA lanes<>+8(SB)/8, $1
DATA lanes<>+16(SB)/8, $2
DATA lanes<>+24(SB)/8, $3
GLOBL lanes<>(SB), RODATA|NOPTR, $32

// ROUND is one Philox round of four blocks. C0 and C2 are replaced; the new C1
// is left in Q and the new C3 in P, so that C1 and C3 are free: calls alternate
// the two pairs. Only the low half of each lane counts. Y8, Y9 hold the round
// keys, Y12, Y13 the multipliers.
#define ROUND(C0, C1, C2, C3, P, Q) \
	VPMULUDQ C0, Y12, P; \
	VPMULUDQ C2, Y13, Q; \
	VPXOR    C1, Y8, C0; \
	VPSRLQ   $32, Q, C1; \
	VPXOR    C1, C0, C0; \
	VPXOR    C3, Y9, C2; \
	VPSRLQ   $32, P, C3; \
	VPXOR    C3, C2, C2

// ROUNDS is two rounds of both groups; KEYS is the offset of their four keys.
#define ROUNDS(KEYS) \
	VPBROADCASTQ (KEYS+0)(R8), Y8;       \
	VPBROADCASTQ (KEYS+8)(R8), Y9;       \
	ROUND(Y0, Y1, Y2, Y3, Y10, Y11);     \
	ROUND(Y4, Y5, Y6, Y7, Y14, Y15);     \
	VPBROADCASTQ (KEYS+16)(R8), Y8;      \
	VPBROADCASTQ (KEYS+24)(R8), Y9;      \
	ROUND(Y0, Y11, Y2, Y10, Y3, Y1);     \
	ROUND(Y4, Y15, Y6, Y14, Y7, Y5)

// PACK turns a group's words 0 to 3, in lanes by block, into 16 words in order:
// the first 8 in C0, the others in C1.
#define PACK(C0, C1, C2, C3) \
	VPSLLQ      $32, C1, C1;          \
	VPSLLQ      $32, C3, C3;          \
	VPBLENDD    $0xAA, C1, C0, C0;    \
	VPBLENDD    $0xAA, C3, C2, C2;    \
	VPUNPCKLQDQ C2, C0, C1;           \
	VPUNPCKHQDQ C2, C0, C3;           \
	VPERM2I128  $0x20, C3, C1, C0;    \
	VPERM2I128  $0x31, C3, C1, C1

// MULTIPLIERS sets what ROUND expects.
#define MULTIPLIERS \
	MOVL         $0xD2511F53, AX; \
	VMOVD        AX, X12;         \
	VPBROADCASTQ X12, Y12;        \
	MOVL         $0xCD9E8D57, AX; \
	VMOVD        AX, X13;         \
	VPBROADCASTQ X13, Y13

// BLOCKS turns the counters of two groups, Y0 to Y3 and Y4 to Y7, into their
// words in order: Y0, Y1, Y4, Y5.
#define BLOCKS \
	ROUNDS(0);             \
	ROUNDS(32);            \
	ROUNDS(64);            \
	ROUNDS(96);            \
	ROUNDS(128);           \
	PACK(Y0, Y1, Y2, Y3);  \
	PACK(Y4, Y5, Y6, Y7)

// APPLY masks 8 elements by the words in W. Y8 holds the threshold, Y9 the
// scale.
#define APPLY(W, OFFSET) \
	VPMAXUD  Y8, W, Y10;          \
	VPCMPEQD W, Y10, Y10;         \
	VMULPS   OFFSET(SI), Y9, Y11; \
	VANDPS   Y10, Y11, Y11;       \
	VMOVUPS  Y11, OFFSET(DI)

// func maskVector(dst, src *float32, n int, keys *[20]uint64, ctr *[4]uint64, threshold uint32, scale float32)
TEXT ·maskVector(SB), NOSPLIT, $0-48
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
	MOVQ keys+24(FP), R8
	MOVQ ctr+32(FP), R9
	MOVQ 16(R9), R10              // the first block of this turn
	MOVL threshold+40(FP), R11
	MOVL scale+44(FP), R12

	MULTIPLIERS

turn:
	VPBROADCASTQ 0(R9), Y0        // item
	VPBROADCASTQ 8(R9), Y1        // step
	VPBROADCASTQ 24(R9), Y3       // site
	VMOVDQA      Y0, Y4
	VMOVDQA      Y1, Y5
	VMOVDQA      Y3, Y7
	VMOVQ        R10, X2
	VPBROADCASTQ X2, Y2
	VPADDQ       lanes<>(SB), Y2, Y2
	ADDQ         $4, R10
	VMOVQ        R10, X6
	VPBROADCASTQ X6, Y6
	VPADDQ       lanes<>(SB), Y6, Y6
	ADDQ         $4, R10

	BLOCKS

	VMOVD        R11, X8
	VPBROADCASTD X8, Y8
	VMOVD        R12, X9
	VPBROADCASTD X9, Y9
	APPLY(Y0, 0)
	APPLY(Y1, 32)
	APPLY(Y4, 64)
	APPLY(Y5, 96)

	ADDQ $128, SI
	ADDQ $128, DI
	SUBQ $32, CX
	JNE  turn
	VZEROUPPER
	RET

// func blocksVector(dst *[32]uint32, items, draws *[8]uint64, keys *[20]uint64, step, site uint64)
TEXT ·blocksVector(SB), NOSPLIT, $0-48
	MOVQ         dst+0(FP), DI
	MOVQ         items+8(FP), SI
	MOVQ         draws+16(FP), DX
	MOVQ         keys+24(FP), R8
	MULTIPLIERS
	VMOVDQU      (SI), Y0
	VMOVDQU      32(SI), Y4
	VPBROADCASTQ step+32(FP), Y1
	VMOVDQA      Y1, Y5
	VMOVDQU      (DX), Y2
	VMOVDQU      32(DX), Y6
	VPBROADCASTQ site+40(FP), Y3
	VMOVDQA      Y3, Y7
	BLOCKS
	VMOVDQU      Y0, (DI)
	VMOVDQU      Y1, 32(DI)
	VMOVDQU      Y4, 64(DI)
	VMOVDQU      Y5, 96(DI)
	VZEROUPPER
	RET
