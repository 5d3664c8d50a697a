// Elementary kernels: fills, ramps, y += a*x. All take any grid (grid-stride).
#include "device.cuh"

// dst[i] = value for i < n.
KERNEL fill_u32(u32 *dst, i64 n, u32 value) {
  for (i64 i = grid_thread(); i < n; i += grid_threads()) dst[i] = value;
}
KERNEL fill_u64(u64 *dst, i64 n, u64 value) {
  for (i64 i = grid_thread(); i < n; i += grid_threads()) dst[i] = value;
}

// dst[i] = first + i*step for i < n, modulo the type's range.
KERNEL iota_i32(i32 *dst, i64 n, i32 first, i32 step) {
  for (i64 i = grid_thread(); i < n; i += grid_threads()) dst[i] = (i32)((u32)first + (u32)i * (u32)step);
}
KERNEL iota_i64(i64 *dst, i64 n, i64 first, i64 step) {
  for (i64 i = grid_thread(); i < n; i += grid_threads()) dst[i] = (i64)((u64)first + (u64)i * (u64)step);
}

// y[i] = fma(a, x[i], y[i]) for i < n.
KERNEL saxpy(float *y, const float *x, i64 n, float a) {
  for (i64 i = grid_thread(); i < n; i += grid_threads()) y[i] = fma_(a, x[i], y[i]);
}
