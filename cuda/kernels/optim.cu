// Optimiser steps over flat buffers (package model/optim has their definitions).
// Floating point is not contracted, so the bits are those of the host's loops.
#include "device.cuh"

// Weight decay by segment: segment s ends before element ends[s]; the last ends
// at n. A thread's elements ascend, so it walks the list once.
struct Decay {
  const i64 *ends;
  const double *decay;
  i32 s;
};
DEV double decay_of(Decay &d, i64 i) {
  while (i >= d.ends[d.s]) d.s++;
  return d.decay[d.s];
}

// Adam, and AdamW if decoupled: p -= size · m / (√v·root + ε).
KERNEL adam(float *p, const float *g, float *m, float *v, i64 n, const i64 *ends, const double *decay, float b1, float b2,
            float c1, float c2, float size, float root, float eps, double lr, i32 decoupled) {
  Decay d = {ends, decay, 0};
  for (i64 i = grid_thread(); i < n; i += grid_threads()) {
    double w = decay_of(d, i);
    float join = decoupled ? 0.0f : (float)w, shrink = decoupled ? (float)(1.0 - lr * w) : 1.0f;
    float x = p[i] * shrink;
    float e = g[i] + join * x;
    float mi = b1 * m[i] + c1 * e, vi = b2 * v[i] + c2 * e * e;
    m[i] = mi;
    v[i] = vi;
    p[i] = x - size * mi / (sqrt_rn(vi) * root + eps);
  }
}

// Stochastic gradient descent, with momentum if m is not null.
KERNEL sgd(float *p, const float *g, float *m, i64 n, const i64 *ends, const double *decay, float mu, float rate,
           i32 nesterov) {
  Decay d = {ends, decay, 0};
  for (i64 i = grid_thread(); i < n; i += grid_threads()) {
    float x = p[i];
    float e = g[i] + (float)decay_of(d, i) * x;
    if (m) {
      float u = mu * m[i] + e;
      m[i] = u;
      e = nesterov ? e + mu * u : u;
    }
    p[i] = x - rate * e;
  }
}
