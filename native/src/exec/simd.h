// Sixteen floats at once: AVX-512, AVX2 with FMA, or plain C++ with the same results.
#pragma once

#include <cmath>

#include "exec/numeric.h"

#if defined(__AVX512F__) || (defined(__AVX2__) && defined(__FMA__))
#include <immintrin.h>
#endif

namespace mgx {

#if defined(__AVX512F__)
struct Floats {
  __m512 x;
  static Floats load(const float* p) { return {_mm512_loadu_ps(p)}; }
  static Floats all(float f) { return {_mm512_set1_ps(f)}; }
  void store(float* p) const { _mm512_storeu_ps(p, x); }
  void add_product(Floats a, Floats b) { x = _mm512_fmadd_ps(a.x, b.x, x); }
};
#elif defined(__AVX2__) && defined(__FMA__)
struct Floats {
  __m256 x, y;
  static Floats load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
  static Floats all(float f) { return {_mm256_set1_ps(f), _mm256_set1_ps(f)}; }
  void store(float* p) const {
    _mm256_storeu_ps(p, x);
    _mm256_storeu_ps(p + 8, y);
  }
  void add_product(Floats a, Floats b) {
    x = _mm256_fmadd_ps(a.x, b.x, x);
    y = _mm256_fmadd_ps(a.y, b.y, y);
  }
};
#else
struct Floats {
  float x[16];
  static Floats load(const float* p) {
    Floats f;
    std::memcpy(f.x, p, sizeof f.x);
    return f;
  }
  static Floats all(float v) {
    Floats f;
    for (float& e : f.x) e = v;
    return f;
  }
  void store(float* p) const { std::memcpy(p, x, sizeof x); }
  void add_product(Floats a, Floats b) {
    for (int k = 0; k < 16; ++k) x[k] = std::fma(a.x[k], b.x[k], x[k]);
  }
};
#endif

// One half (shift 0 or 16) of each of `count` registers' lanes, as f32. count: a multiple of 4.
inline void unpack_f16(const u32* from, int shift, float* to, int count) {
  int k = 0;
#if defined(__AVX512F__)
  for (; k + 16 <= count; k += 16) {
    const __m512i x = _mm512_srli_epi32(_mm512_loadu_si512(from + k), static_cast<unsigned>(shift));
    _mm512_storeu_ps(to + k, _mm512_cvtph_ps(_mm512_cvtepi32_epi16(x)));
  }
#endif
  for (; k < count; ++k) to[k] = f32_of_f16(from[k] >> shift & 0xffff);
}

}  // namespace mgx
