// 8-bit float conversions.
#include "exec/numeric.h"

namespace mgx {

float known_one = 1.0f;

namespace {

float decode8(u32 bits, int mantissa, int bias, bool fnuz, bool has_infinity) {
  const u32 sign = bits >> 7 & 1, exponent = (bits & 0x7f) >> mantissa, fraction = bits & ((1u << mantissa) - 1);
  const u32 largest = 0x7fu >> mantissa;
  if (fnuz) {
    if ((bits & 0xff) == 0x80) return NAN;
    ++bias;
  } else if (has_infinity && exponent == largest) {
    if (fraction != 0) return NAN;
    return sign ? -INFINITY : INFINITY;
  } else if (!has_infinity && (bits & 0x7f) == 0x7f) {
    return NAN;
  }
  const float scale = 1.0f / static_cast<float>(1u << mantissa);
  const float value = exponent != 0 ? std::ldexp(1.0f + static_cast<float>(fraction) * scale, static_cast<int>(exponent) - bias)
                                    : std::ldexp(static_cast<float>(fraction) * scale, 1 - bias);
  return sign ? -value : value;
}

// To nearest even.
u32 encode8(float x, int mantissa, int bias, bool fnuz, bool has_infinity, bool saturates) {
  const u32 sign = from_f32(x) >> 31 << 7;
  if (fnuz) ++bias;
  if (std::isnan(x)) return fnuz ? 0x80 : sign | 0x7f;
  const u32 largest = fnuz ? 0x7f : has_infinity ? (0x7fu & ~((1u << mantissa) - 1)) - 1 : 0x7e;
  float magnitude = std::fabs(x);
  const u32 beyond = has_infinity && !fnuz ? sign | (largest + 1) : fnuz ? 0x80 : sign | 0x7f;
  if (std::isinf(x)) return beyond;
  if (magnitude == 0) return fnuz ? 0 : sign;
  int exponent;
  std::frexp(magnitude, &exponent);
  --exponent;  // magnitude = 1.f * 2^exponent
  const int least = 1 - bias;
  const int step = (exponent < least ? least : exponent) - mantissa;
  const double units = std::nearbyint(std::ldexp(static_cast<double>(magnitude), -step));
  u32 bits = exponent < least ? static_cast<u32>(units)
                              : (static_cast<u32>(exponent - least + 1) << mantissa) +
                                    (static_cast<u32>(units) - (1u << mantissa));
  if (bits > largest && !saturates) return beyond;
  if (bits > largest) bits = largest;
  if (bits == 0 && fnuz) return 0;
  return sign | bits;
}

}  // namespace

float f32_of_fp8(u32 bits, bool fnuz) { return decode8(bits & 255, 3, 7, fnuz, false); }
float f32_of_bf8(u32 bits, bool fnuz) { return decode8(bits & 255, 2, 15, fnuz, true); }
u32 fp8_of_f32(float x, bool fnuz, bool saturates) { return encode8(x, 3, 7, fnuz, false, saturates); }
u32 bf8_of_f32(float x, bool fnuz, bool saturates) { return encode8(x, 2, 15, fnuz, true, saturates); }

}  // namespace mgx
