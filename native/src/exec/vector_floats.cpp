// Vector f32 instructions, and the steps of exact division.
#include "exec/define.h"

namespace mgx {
namespace {

bool is_denormal(float x) { return x != 0 && std::fabs(x) < 1.17549435e-38f; }

// The sign and special cases of numerator / denominator round a quotient that is nearly right.
u32 division_fixup(u32 quotient, u32 denominator, u32 numerator) {
  const float d = as_f32(denominator), n = as_f32(numerator);
  const u32 sign = (denominator ^ numerator) & 0x80000000;
  if (std::isnan(n)) return numerator | 0x400000;
  if (std::isnan(d)) return denominator | 0x400000;
  if ((d == 0 && n == 0) || (std::isinf(d) && std::isinf(n))) return 0xffc00000;
  if (d == 0 || std::isinf(n)) return sign | 0x7f800000;
  if (std::isinf(d) || n == 0) return sign;
  if (exponent_of(numerator) - exponent_of(denominator) < -150) return sign;
  if (exponent_of(denominator) == 255) return sign | 0x7f800000;
  return sign | (quotient & 0x7fffffff);
}

// One operand of a division, scaled so that no intermediate is denormal; whether to scale back.
u32 division_scale(u32 a, u32 denominator, u32 numerator, bool& scaled) {
  const float d = as_f32(denominator), n = as_f32(numerator);
  const double reciprocal = 1.0 / static_cast<double>(d);
  const float quotient = n / d;
  scaled = false;
  if (n == 0 || d == 0) return 0x7fc00000;
  const auto times = [a](int power) { return from_f32(std::ldexp(as_f32(a), power)); };
  if (exponent_of(numerator) - exponent_of(denominator) >= 96) {
    scaled = true;
    return a == denominator ? times(64) : a;
  }
  if (is_denormal(d)) return times(64);
  const bool tiny = std::fabs(reciprocal) < 1.1754943508222875e-38;
  if (tiny && is_denormal(quotient)) {
    scaled = true;
    return a == denominator ? times(64) : a;
  }
  if (tiny) return times(-64);
  if (is_denormal(quotient)) {
    scaled = true;
    return a == numerator ? times(64) : a;
  }
  return exponent_of(numerator) <= 23 ? times(64) : a;
}

void div_scale(Wave& w, const Instruction& i) {
  LaneArray space[3], r;
  u64 valid = ~u64{0};
  const u32* a = source<Type::F32>(w, i, i.o[2], 0, space[0], valid);
  const u32* b = source<Type::F32>(w, i, i.o[3], 1, space[1], valid);
  const u32* c = source<Type::F32>(w, i, i.o[4], 2, space[2], valid);
  u64 flags = 0;
  for (int l = 0; l < kLanes; ++l) {
    bool scaled;
    r.at[l] = division_scale(a[l], b[l], c[l], scaled);
    flags |= u64{scaled} << l;
  }
  store_lanes(w.v[i.o[0].index], r.at, w.exec);
  write_mask(w, i.o[1], flags & w.exec);
}

void div_fmas(Wave& w, const Instruction& i) {
  LaneArray space[3], r;
  u64 valid = ~u64{0};
  const u32* a = source<Type::F32>(w, i, i.o[1], 0, space[0], valid);
  const u32* b = source<Type::F32>(w, i, i.o[2], 1, space[1], valid);
  const u32* c = source<Type::F32>(w, i, i.o[3], 2, space[2], valid);
  const u64 flags = read_vcc(w);
  for (int l = 0; l < kLanes; ++l) {
    float x = std::fma(as_f32(a[l]), as_f32(b[l]), as_f32(c[l]));
    if (flags >> l & 1) x = std::ldexp(x, exponent_of(c[l]) > 127 ? 64 : -64);
    r.at[l] = from_f32(x);
  }
  finish<Type::F32>(w, i, r, w.exec);
}

float fract(float x) { return std::fmin(x - std::floor(x), 0.99999994f); }
float turns_sin(float x) { return static_cast<float>(std::sin(6.283185307179586 * static_cast<double>(x))); }
float turns_cos(float x) { return static_cast<float>(std::cos(6.283185307179586 * static_cast<double>(x))); }
float mantissa(float x) {
  int e;
  return std::isfinite(x) ? std::frexp(x, &e) : x;
}
u32 exponent(float x) {
  int e = 0;
  if (std::isfinite(x)) std::frexp(x, &e);
  return static_cast<u32>(e);
}
float times_zero(float x, float y) { return x == 0 || y == 0 ? 0.0f : x * y; }

void define_fused() {
  FLOAT3("v_fma_f32", std::fma(x, y, z));
  FLOAT3("v_fmamk_f32", std::fma(x, y, z));  // a * K + b, in this order
  FLOAT3("v_fmaak_f32", std::fma(x, y, z));
  FLOAT2_ACC("v_fmac_f32", std::fma(x, y, z));
  FLOAT2_ACC("v_mac_f32", x * y + z);
  FLOAT3("v_mad_f32", x * y + z);
  FLOAT3("v_madmk_f32", x * y + z);  // a * K + b, as above
  FLOAT3("v_madak_f32", x * y + z);
  FLOAT2_ACC("v_fmac_dx9_zero_f32", x == 0 || y == 0 ? z : std::fma(x, y, z));
  FLOAT3("v_fma_dx9_zero_f32", x == 0 || y == 0 ? z : std::fma(x, y, z));
}

}  // namespace

void define_vector_floats() {
  define_fused();
  FLOAT2("v_add_f32", x + y);
  FLOAT2("v_sub_f32", x - y);
  FLOAT2("v_subrev_f32", y - x);
  FLOAT2("v_mul_f32", x * y);
  FLOAT2("v_mul_legacy_f32", times_zero(x, y));
  FLOAT2("v_max_f32", max_number(x, y));
  FLOAT2("v_min_f32", min_number(x, y));
  FLOAT2("v_maximum_f32", maximum(x, y));
  FLOAT2("v_minimum_f32", minimum(x, y));
  FLOAT3("v_max3_f32", max_number(max_number(x, y), z));
  FLOAT3("v_min3_f32", min_number(min_number(x, y), z));
  FLOAT3("v_maximum3_f32", maximum(maximum(x, y), z));
  FLOAT3("v_minimum3_f32", minimum(minimum(x, y), z));
  FLOAT3("v_maxmin_f32", min_number(max_number(x, y), z));
  FLOAT3("v_minmax_f32", max_number(min_number(x, y), z));
  FLOAT3("v_maximumminimum_f32", minimum(maximum(x, y), z));
  FLOAT3("v_minimummaximum_f32", maximum(minimum(x, y), z));
  FLOAT3("v_med3_f32", median(x, y, z));
  FLOAT1("v_exp_f32", std::exp2(x));
  FLOAT1("v_log_f32", std::log2(x));
  FLOAT1("v_rcp_f32", 1.0f / x);
  FLOAT1("v_rcp_iflag_f32", 1.0f / x);
  FLOAT1("v_rsq_f32", static_cast<float>(1.0 / std::sqrt(static_cast<double>(x))));
  FLOAT1("v_sqrt_f32", std::sqrt(x));
  FLOAT1("v_rndne_f32", std::nearbyint(x));
  FLOAT1("v_floor_f32", std::floor(x));
  FLOAT1("v_ceil_f32", std::ceil(x));
  FLOAT1("v_trunc_f32", std::trunc(x));
  FLOAT1("v_fract_f32", fract(x));
  FLOAT1("v_sin_f32", turns_sin(x));
  FLOAT1("v_cos_f32", turns_cos(x));
  FLOAT1("v_frexp_mant_f32", mantissa(x));
  MGX_OP("v_frexp_exp_i32_f32", 1, F32, I32, exponent(as_f32(a)));
  MGX_OP("v_ldexp_f32", 2, F32, F32, from_f32(std::ldexp(as_f32(a), s32(b))));
  MGX_DO("v_div_scale_f32", div_scale(w, i));
  MGX_DO("v_div_fmas_f32", div_fmas(w, i));
  MGX_OP("v_div_fixup_f32", 3, F32, F32, division_fixup(a, b, c));
}

}  // namespace mgx
