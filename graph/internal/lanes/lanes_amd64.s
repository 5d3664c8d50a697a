//go:build !noasm

#include "textflag.h"

// MULHILO sets hi and lo to the halves of the products of a and m, lane by
// lane. VPMULUDQ multiplies the even lanes only, so the odd ones are moved
// down first. Clobbers even and odd.
#define MULHILO(a, m, hi, lo, even, odd) \
	VPSRLQ $32, a, odd           \ // odd lanes of a, moved down
	VPMULUDQ m, a, even          \ // products of the even lanes
	VPMULUDQ m, odd, odd         \ // products of the odd lanes
	VPSLLQ $32, odd, lo          \
	VPBLENDD $0xAA, lo, even, lo \ // low halves
	VPSRLQ $32, even, hi         \
	VPBLENDD $0xAA, odd, hi, hi    // high halves

// func wordsAVX2(s *Stream, items, blocks *Vector, w *[4]Vector)
TEXT ·wordsAVX2(SB), NOSPLIT, $0-32
	MOVQ s+0(FP), SI
	MOVQ items+8(FP), DX
	MOVQ blocks+16(FP), BX
	MOVQ w+24(FP), DI
	VMOVDQU (DX), Y0             // c0: the item
	VPBROADCASTD 8(SI), Y1       // c1: the step
	VMOVDQU (BX), Y2             // c2: the block
	VPBROADCASTD 12(SI), Y3      // c3: purpose and hop
	VPBROADCASTD 0(SI), Y4       // the key
	VPBROADCASTD 4(SI), Y5
	VPBROADCASTD weyl0<>(SB), Y6
	VPBROADCASTD weyl1<>(SB), Y7
	VPBROADCASTD mul0<>(SB), Y8
	VPBROADCASTD mul1<>(SB), Y9
	MOVQ $10, CX                 // rounds

round:
	MULHILO(Y0, Y8, Y10, Y11, Y14, Y15) // mul0 · c0
	MULHILO(Y2, Y9, Y12, Y13, Y14, Y15) // mul1 · c2
	VPXOR Y12, Y1, Y0            // c0 = high(mul1·c2) ^ c1 ^ key0
	VPXOR Y4, Y0, Y0
	VMOVDQA Y13, Y1              // c1 = low(mul1·c2)
	VPXOR Y10, Y3, Y2            // c2 = high(mul0·c0) ^ c3 ^ key1
	VPXOR Y5, Y2, Y2
	VMOVDQA Y11, Y3              // c3 = low(mul0·c0)
	VPADDD Y6, Y4, Y4            // the next round's key
	VPADDD Y7, Y5, Y5
	DECQ CX
	JNZ round

	VMOVDQU Y0, 0(DI)
	VMOVDQU Y1, 32(DI)
	VMOVDQU Y2, 64(DI)
	VMOVDQU Y3, 96(DI)
	VZEROUPPER
	RET

DATA weyl0<>+0(SB)/4, $0x9E3779B9
GLOBL weyl0<>(SB), RODATA|NOPTR, $4
DATA weyl1<>+0(SB)/4, $0xBB67AE85
GLOBL weyl1<>(SB), RODATA|NOPTR, $4
DATA mul0<>+0(SB)/4, $0xD2511F53
GLOBL mul0<>(SB), RODATA|NOPTR, $4
DATA mul1<>+0(SB)/4, $0xCD9E8D57
GLOBL mul1<>(SB), RODATA|NOPTR, $4

// BELOW sets t to the high halves of the products of w and n, lane by lane,
// where odd has n's odd lanes moved down. Clobbers u.
#define BELOW(w, n, odd, t, u) \
	VPSRLQ $32, w, u           \
	VPMULUDQ n, w, t           \
	VPMULUDQ odd, u, u         \
	VPSRLQ $32, t, t           \
	VPBLENDD $0xAA, u, t, t

// func floydAVX2(x *[Max]Vector, degrees *Vector, k int)
TEXT ·floydAVX2(SB), NOSPLIT, $0-24
	MOVQ x+0(FP), DI
	MOVQ degrees+8(FP), SI
	MOVQ k+16(FP), CX
	TESTQ CX, CX
	JLE floydDone
	VPCMPEQD Y15, Y15, Y15       // -1 in every lane
	VMOVD CX, X1
	VPBROADCASTD X1, Y1
	VMOVDQU (SI), Y0
	VPSUBD Y1, Y0, Y0            // j = degree - k
	MOVQ DI, R8                  // where draw i lies

draw:
	VPSUBD Y15, Y0, Y1           // j + 1
	VPSRLQ $32, Y1, Y2
	VMOVDQU (R8), Y3
	BELOW(Y3, Y1, Y2, Y4, Y5)    // t
	VPXOR Y6, Y6, Y6             // lanes where t was drawn before
	MOVQ DI, R9
	JMP compared

compare:
	VPCMPEQD (R9), Y4, Y5
	VPOR Y5, Y6, Y6
	ADDQ $32, R9

compared:
	CMPQ R9, R8
	JNE compare
	VPBLENDVB Y6, Y0, Y4, Y4     // there j is drawn instead
	VMOVDQU Y4, (R8)
	ADDQ $32, R8
	VMOVDQA Y1, Y0
	DECQ CX
	JNZ draw

floydDone:
	VZEROUPPER
	RET

// func belowAVX2(x *[Max]Vector, degrees *Vector, k int)
TEXT ·belowAVX2(SB), NOSPLIT, $0-24
	MOVQ x+0(FP), DI
	MOVQ degrees+8(FP), SI
	MOVQ k+16(FP), CX
	TESTQ CX, CX
	JLE belowDone
	VMOVDQU (SI), Y1
	VPSRLQ $32, Y1, Y2

number:
	VMOVDQU (DI), Y3
	BELOW(Y3, Y1, Y2, Y4, Y5)
	VMOVDQU Y4, (DI)
	ADDQ $32, DI
	DECQ CX
	JNZ number

belowDone:
	VZEROUPPER
	RET

// func sortAVX2(x *[Max]Vector, net []Comparator)
TEXT ·sortAVX2(SB), NOSPLIT, $0-32
	MOVQ x+0(FP), DI
	MOVQ net_base+8(FP), SI
	MOVQ net_len+16(FP), CX
	TESTQ CX, CX
	JLE sortDone

exchange:
	MOVBQZX 0(SI), AX
	MOVBQZX 1(SI), BX
	SHLQ $5, AX
	SHLQ $5, BX
	VMOVDQU (DI)(AX*1), Y0
	VMOVDQU (DI)(BX*1), Y1
	VPMINUD Y1, Y0, Y2
	VPMAXUD Y1, Y0, Y3
	VMOVDQU Y2, (DI)(AX*1)
	VMOVDQU Y3, (DI)(BX*1)
	ADDQ $2, SI
	DECQ CX
	JNZ exchange

sortDone:
	VZEROUPPER
	RET

// func prefetch(indices *int32, positions *int64, n int)
TEXT ·prefetch(SB), NOSPLIT, $0-24
	MOVQ indices+0(FP), DI
	MOVQ positions+8(FP), SI
	MOVQ n+16(FP), CX
	TESTQ CX, CX
	JLE prefetchDone

fetch:
	MOVQ (SI), AX
	PREFETCHT0 (DI)(AX*4)
	ADDQ $8, SI
	DECQ CX
	JNZ fetch

prefetchDone:
	RET
