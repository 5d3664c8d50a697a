// Philox4x32-10 (Salmon et al., SC 2011), word for word what internal/philox
// computes: counter = (item, step, draw, purpose<<24 | site), key = the seed,
// low word first. The purposes are numbered in internal/philox.
#pragma once
#include "device.cuh"

DEV uint4 philox_block(uint4 c, u32 k0, u32 k1) {
#pragma unroll
  for (int i = 0; i < 10; i++) {
    u64 p0 = (u64)0xD2511F53u * c.x, p1 = (u64)0xCD9E8D57u * c.z;
    c = uint4{(u32)(p1 >> 32) ^ c.y ^ k0, (u32)p1, (u32)(p0 >> 32) ^ c.w ^ k1, (u32)p0};
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return c;
}

// philox.Below: a word mapped to [0, n).
DEV u32 philox_below(u32 word, u32 n) { return mulhi32(word, n); }

// philox.Float32: a word mapped to [0, 1) with 24 bits.
DEV float philox_f32(u32 word) { return (float)(word >> 8) * (1.0f / (1 << 24)); }
