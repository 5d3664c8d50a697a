#include "textflag.h"

// Widening by AVX2, 8 values a turn. n is a multiple of 8 and positive.

// BROADCAST sets all 8 lanes of Y to a 32-bit constant.
#define BROADCAST(value, X, Y) \
	MOVL value, AX;        \
	VMOVD AX, X;           \
	VPBROADCASTD X, Y

// func widenBF16(dst *float32, src *byte, n int)
//
// for i := range n { dst[i] = float32 of bits uint32(src16[i]) << 16 }
TEXT ·widenBF16(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
bf16:
	VPMOVZXWD (SI), Y0
	VPSLLD $16, Y0, Y0
	VMOVDQU Y0, (DI)
	ADDQ $16, SI
	ADDQ $32, DI
	SUBQ $8, CX
	JNE bf16
	VZEROUPPER
	RET

// func widenF16(dst *float32, src *byte, n int)
//
// for i := range n { dst[i] = dtype.Float16ToFloat32(src16[i]) }
//
// Not VCVTPH2PS: that turns a signalling NaN into a quiet one, and every way of
// gathering shall give the same bits.
TEXT ·widenF16(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
	BROADCAST($0x8000, X8, Y8)       // sign of a half
	BROADCAST($0x7FFF, X9, Y9)       // the rest
	BROADCAST($0x38000000, X10, Y10) // (127-15) << 23: from one bias to the other
	BROADCAST($0x38800000, X11, Y11) // 113 << 23, as a float 2^-14
	BROADCAST($0x00800000, X12, Y12) // below: subnormal
	BROADCAST($0x0F7FFFFF, X13, Y13) // above: infinity or NaN
	BROADCAST($0x7F800000, X14, Y14) // a float's exponent
f16:
	VPMOVZXWD (SI), Y0
	VPAND Y8, Y0, Y1
	VPSLLD $16, Y1, Y1               // sign
	VPAND Y9, Y0, Y0
	VPSLLD $13, Y0, Y0               // m: exponent and mantissa in place
	VPADDD Y10, Y0, Y2               // normal: change the bias
	VPADDD Y11, Y0, Y3
	VSUBPS Y11, Y3, Y3               // subnormal: (2^-14 + m) - 2^-14, exact
	VPOR Y14, Y0, Y4                 // infinity, NaN: keep the payload
	VPCMPGTD Y0, Y12, Y5             // m < 0x00800000
	VPCMPGTD Y13, Y0, Y6             // m > 0x0F7FFFFF
	VBLENDVPS Y5, Y3, Y2, Y2
	VBLENDVPS Y6, Y4, Y2, Y2
	VPOR Y1, Y2, Y2
	VMOVDQU Y2, (DI)
	ADDQ $16, SI
	ADDQ $32, DI
	SUBQ $8, CX
	JNE f16
	VZEROUPPER
	RET

// func widenI8(dst *float32, src *byte, n int, scale float32)
//
// for i := range n { dst[i] = scale * float32(int8(src[i])) }
TEXT ·widenI8(SB), NOSPLIT, $0-28
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
	VBROADCASTSS scale+24(FP), Y1
i8:
	VPMOVSXBD (SI), Y0
	VCVTDQ2PS Y0, Y0
	VMULPS Y1, Y0, Y0
	VMOVUPS Y0, (DI)
	ADDQ $8, SI
	ADDQ $32, DI
	SUBQ $8, CX
	JNE i8
	VZEROUPPER
	RET
