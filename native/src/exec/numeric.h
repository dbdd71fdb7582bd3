// Number formats: conversions with the hardware's rounding, minima and maxima.
#pragma once

#include <cmath>

#include "bits.h"

#if defined(__F16C__)
#include <immintrin.h>
#endif

namespace mgx {

// ---- f16

inline float f32_of_f16_portable(u16 h) {
  const u32 sign = static_cast<u32>(h & 0x8000) << 16, exponent = h >> 10 & 31, fraction = h & 1023;
  if (exponent == 31) return as_f32(sign | 0x7f800000 | fraction << 13 | (fraction ? 0x400000 : 0));
  if (exponent != 0) return as_f32(sign | (exponent + 112) << 23 | fraction << 13);
  const float magnitude = static_cast<float>(fraction) * 5.9604644775390625e-8f;  // 2^-24
  return as_f32(sign | from_f32(magnitude));
}

// f32 to f16, to nearest even.
inline u16 f16_of_f32_portable(float x) {
  const u32 bits = from_f32(x), sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return static_cast<u16>(sign | 0x7e00 | (magnitude >> 13 & 0x1ff));
  if (magnitude >= 0x477ff000) return static_cast<u16>(sign | 0x7c00);
  if (magnitude >= 0x38800000) {
    const u32 rounded = magnitude - 0x38000000 + 0xfff + (magnitude >> 13 & 1);
    return static_cast<u16>(sign | rounded >> 13);
  }
  if (magnitude < 0x33000000) return static_cast<u16>(sign);
  const u32 shift = 126 - (magnitude >> 23), fraction = (magnitude & 0x7fffff) | 0x800000;
  const u32 kept = fraction >> shift, rest = fraction & ((1u << shift) - 1), half = 1u << (shift - 1);
  return static_cast<u16>(sign | (kept + (rest > half || (rest == half && (kept & 1)))));
}

#if defined(__F16C__)
inline float f32_of_f16(u32 h) { return _cvtsh_ss(static_cast<u16>(h)); }
inline u32 f16_of_f32(float x) { return _cvtss_sh(x, _MM_FROUND_TO_NEAREST_INT); }
inline u32 f16_of_f32_truncated(float x) { return _cvtss_sh(x, _MM_FROUND_TO_ZERO); }
#else
inline float f32_of_f16(u32 h) { return f32_of_f16_portable(static_cast<u16>(h)); }
inline u32 f16_of_f32(float x) { return f16_of_f32_portable(x); }
inline u32 f16_of_f32_truncated(float x) {
  const u32 nearest = f16_of_f32_portable(x);
  if (std::isnan(x) || std::isinf(x)) return nearest;
  const bool above = std::fabs(f32_of_f16_portable(static_cast<u16>(nearest))) > std::fabs(x);
  return above ? nearest - 1 : nearest;
}
#endif

// A double with the bits below f32's made sticky: a second rounding to f16 is then exact.
inline float to_odd(double x) {
  u64 bits = from_f64(x);
  constexpr u64 low = (u64{1} << 29) - 1;
  if (std::isfinite(x) && (bits & low) != 0) bits = (bits & ~low) | (u64{1} << 29);
  return static_cast<float>(as_f64(bits));
}
inline u32 fma_f16(float a, float b, float c) {
  return f16_of_f32(to_odd(static_cast<double>(a) * b + static_cast<double>(c)));
}

// ---- sine and cosine of turns: whole ones are left out first, which is exact

inline float sin_of_turns(float x) {
  const double turns = static_cast<double>(x), part = turns - std::nearbyint(turns);
  return part == 0 ? x * 0.0f : static_cast<float>(std::sin(6.283185307179586 * part));
}
inline float cos_of_turns(float x) {
  const double turns = static_cast<double>(x);
  return static_cast<float>(std::cos(6.283185307179586 * (turns - std::nearbyint(turns))));
}

// ---- bf16

inline float f32_of_bf16(u32 x) { return as_f32(x << 16); }
inline u32 bf16_of_f32(float x) {
  const u32 bits = from_f32(x);
  if ((bits & 0x7fffffff) > 0x7f800000) return bits >> 16 | 0x40;
  return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

// ---- 8-bit floats; fnuz: gfx942's, without infinities and with one NaN at 0x80

float f32_of_fp8(u32 bits, bool fnuz);
float f32_of_bf8(u32 bits, bool fnuz);
// saturates: what is too large becomes the largest number, else infinity, or NaN where there is none.
u32 fp8_of_f32(float x, bool fnuz, bool saturates);
u32 bf8_of_f32(float x, bool fnuz, bool saturates);

// 1, which the compiler does not know to be 1: a product with it is quiet, and flushed as the mode says.
extern float known_one;

// The unit of exponentials and logarithms has no denormals.
inline float without_denormals(float x) { return std::fabs(x) < 1.17549435e-38f ? std::copysign(0.0f, x) : x; }

inline float clamp01(float x) { return x > 0 ? (x > 1 ? 1.0f : x) : 0.0f; }

inline int exponent_of(u32 x) { return static_cast<int>(x >> 23 & 255); }

}  // namespace mgx
