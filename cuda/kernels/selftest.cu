// What the tests of package cuda launch: the random generator against Go's,
// storage conversions, a kernel that takes a known time, one that faults.
#include "philox.cuh"

KERNEL empty() {}

// dst[i] = block draw of item first+i, as philox.Stream.Words gives it.
KERNEL philox_words(uint4 *dst, i64 n, u32 first, u32 step, u32 draw, u32 site, u64 seed) {
  for (i64 i = grid_thread(); i < n; i += grid_threads())
    dst[i] = philox_block(uint4{first + (u32)i, step, draw, site}, (u32)seed, (u32)(seed >> 32));
}

// Widens and narrows: f[i] from bf16/f16 bits b[i]; and back from f.
KERNEL convert_bf16(float *f, u16 *back, const u16 *b, i64 n) {
  for (i64 i = grid_thread(); i < n; i += grid_threads()) {
    f[i] = bf16_f32(load_once(b + i));
    back[i] = f32_bf16(f[i]);
  }
}
KERNEL convert_f16(float *f, u16 *back, const u16 *b, i64 n) {
  for (i64 i = grid_thread(); i < n; i += grid_threads()) {
    f[i] = f16_f32(load_once(b + i));
    back[i] = f32_f16(f[i]);
  }
}

// Warp and bit primitives: out[0..31] the warp's sums of in, out[32..63] each
// lane's rank among lanes with in[lane] > 0.5, out[64..67] counts, by one warp.
KERNEL primitives(float *out, const float *in, u32 *counter) {
  u32 l = lane_x();
  float v = load_once(in + l);
  out[l] = warp_sum(v);
  u32 m = warp_ballot(v > 0.5f);
  out[32 + l] = (float)popc(m & ((1u << l) - 1));
  atomic_add(counter, 1u);
  atomic_add(counter + 1, popc(l) & 1u);
  atomic_or(counter + 2, 1u << l);
  atomic_min(counter + 3, 100u - l);
  float4 quad = {v, 1.0f, (float)l, 0.5f};
  red_add4(out + 64, quad);
}

// Keeps one thread per block busy for ns nanoseconds.
KERNEL spin(u64 ns) {
  u64 t = clock_ns();
  while (clock_ns() - t < ns) {}
}

// Writes to address 8, which no allocation covers: the launch that follows
// reports an illegal address.
KERNEL fault() { *(volatile u32 *)8 = 1; }
