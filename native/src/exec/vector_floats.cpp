// Vector f32 instructions, and the steps of exact division.
#include "exec/define.h"
#include "exec/extremes.h"

namespace mgx {
namespace {

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
  // an estimate that is none: its steps overflowed
  if (std::isnan(as_f32(quotient))) return sign | 0x7f800000;
  return sign | (quotient & 0x7fffffff);
}

// The power of 2 above |x|, of denormals too.
int magnitude(float x) {
  int e;
  std::frexp(x, &e);
  return e;
}

// One operand of a division, scaled so that no intermediate is denormal; whether to scale back.
// Where a quotient may overflow the denominator alone is scaled, where it may be denormal the
// numerator alone, or a denominator whose reciprocal would be denormal.
u32 division_scale(u32 a, u32 denominator, u32 numerator, bool& scaled) {
  const float d = as_f32(denominator), n = as_f32(numerator);
  scaled = true;
  if (n == 0 || d == 0) return 0x7fc00000;
  const auto times = [a](int power) { return from_f32(std::ldexp(as_f32(a), power)); };
  if (exponent_of(numerator) - exponent_of(denominator) >= 96) return a == denominator ? times(64) : a;
  const bool tiny = exponent_of(denominator) >= 253, small = magnitude(n) - magnitude(d) <= -126;
  const bool denormal = exponent_of(denominator) == 0;
  if (!denormal && tiny && small) return a == denominator ? times(-64) : a;
  if (!denormal && !tiny && small) return a == numerator ? times(64) : a;
  scaled = false;
  if (denormal) return times(64);
  if (tiny) return times(-64);
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
  const u64 mask = w.exec & valid;
  store_lanes(w.v[i.o[0].index], r.at, mask);
  write_mask(w, i.o[1], flags & mask);
}

// (a * b + c) * 2^power with one rounding: the sum is made odd where bits of it are lost.
float scaled_fma(float a, float b, float c, int power) {
  const double product = static_cast<double>(a) * b, third = c, sum = product + third;
  if (!std::isfinite(sum)) return static_cast<float>(sum);
  const double part = sum - product, lost = (product - (sum - part)) + (third - part);
  u64 bits = from_f64(sum);
  if (lost != 0 && !(bits & 1)) bits += (lost > 0) == (sum > 0) ? 1 : u64(-1);
  return static_cast<float>(std::ldexp(as_f64(bits), power));
}

void div_fmas(Wave& w, const Instruction& i) {
  LaneArray space[3], r;
  u64 valid = ~u64{0};
  const u32* a = source<Type::F32>(w, i, i.o[1], 0, space[0], valid);
  const u32* b = source<Type::F32>(w, i, i.o[2], 1, space[1], valid);
  const u32* c = source<Type::F32>(w, i, i.o[3], 2, space[2], valid);
  const u64 flags = read_vcc(w);
  for (int l = 0; l < kLanes; ++l) {
    const bool scales = flags >> l & 1;
    r.at[l] = from_f32(scales ? scaled_fma(as_f32(a[l]), as_f32(b[l]), as_f32(c[l]), exponent_of(c[l]) > 127 ? 64 : -64)
                              : std::fma(as_f32(a[l]), as_f32(b[l]), as_f32(c[l])));
  }
  finish<Type::F32>(w, i, r, w.exec & valid);
}

float fract(float x) {
  const float part = x - std::floor(x);
  return part > 0.99999994f ? 0.99999994f : part;  // NaN of infinities and NaN
}
// What the mode flushes is zero here, too.
float mantissa(float x) {
  int e;
  return std::isfinite(x) && x != 0 ? std::frexp(x, &e) : x * known_one;
}
u32 exponent(float x) {
  int e = 0;
  if (std::isfinite(x) && x != 0) std::frexp(x, &e);
  return static_cast<u32>(e);
}
float times_zero(float x, float y) { return x == 0 || y == 0 ? 0.0f : x * y; }

// Of lighting: no product where the third source is not positive, or the second the least number.
float multiply_lit(float x, float y, float z) {
  const bool least = y == -3.4028234663852886e38f || y == -INFINITY || std::isnan(y);
  if (least || !(z > 0)) return -3.4028234663852886e38f;
  return times_zero(x, y);
}

#define SINGLE_EXTREME(name, n, ...)                                                                      \
  MGX_LANEWISE(name, forms_of(Type::F32, Type::F32), sources_of(n), {                                      \
    [[maybe_unused]] const bool ieee = w.mode & kIeeeMode;                                                 \
    vector_op<n, Type::F32, Type::F32>(w, i, [ieee](u32 a, u32 b, [[maybe_unused]] u32 c) -> u32 {         \
      (void)ieee;                                                                                          \
      return __VA_ARGS__;                                                                                  \
    });                                                                                                    \
  })

// The face of a cube that a direction (x, y, z) meets, and the coordinates there.
int largest_axis(float x, float y, float z) {
  const float a = std::fabs(x), b = std::fabs(y), c = std::fabs(z);
  return c >= a && c >= b ? 2 : b >= a ? 1 : 0;
}
float face(float x, float y, float z) {
  const int axis = largest_axis(x, y, z);
  const float along = axis == 2 ? z : axis == 1 ? y : x;
  return static_cast<float>(2 * axis + (along < 0));
}
float face_across(float x, float y, float z) {
  const int axis = largest_axis(x, y, z);
  if (axis == 0) return x < 0 ? z : -z;
  return axis == 2 && z < 0 ? -x : x;
}
float face_down(float x, float y, float z) {
  if (largest_axis(x, y, z) != 1) return -y;
  return y < 0 ? -z : z;
}
float face_axis(float x, float y, float z) {
  const int axis = largest_axis(x, y, z);
  return 2.0f * (axis == 2 ? z : axis == 1 ? y : x);
}

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
  FLOAT3("v_mullit_f32", multiply_lit(x, y, z));
  FLOAT3("v_mad_legacy_f32", times_zero(x, y) + z);
  FLOAT2("v_mul_legacy_f32", times_zero(x, y));
  MGX_EXTREMES(SINGLE_EXTREME, Single, "f32");
  MGX_EXTREMES_OF_THREE(SINGLE_EXTREME, Single, "f32");
  FLOAT1("v_exp_f32", without_denormals(std::exp2(x)));
  FLOAT1("v_log_f32", std::log2(without_denormals(x)));
  FLOAT1("v_rcp_f32", 1.0f / x);
  FLOAT1("v_rcp_iflag_f32", 1.0f / x);
  FLOAT1("v_rsq_f32", static_cast<float>(1.0 / std::sqrt(static_cast<double>(x))));
  FLOAT1("v_sqrt_f32", std::sqrt(x));
  FLOAT1("v_rndne_f32", std::nearbyint(x));
  FLOAT1("v_floor_f32", std::floor(x));
  FLOAT1("v_ceil_f32", std::ceil(x));
  FLOAT1("v_trunc_f32", std::trunc(x));
  FLOAT1("v_fract_f32", fract(x));
  FLOAT1("v_sin_f32", sin_of_turns(x));
  FLOAT1("v_cos_f32", cos_of_turns(x));
  FLOAT1("v_frexp_mant_f32", mantissa(x));
  MGX_OP("v_frexp_exp_i32_f32", 1, F32, I32, exponent(as_f32(a)));
  FLOAT3("v_cubeid_f32", face(x, y, z));
  FLOAT3("v_cubesc_f32", face_across(x, y, z));
  FLOAT3("v_cubetc_f32", face_down(x, y, z));
  FLOAT3("v_cubema_f32", face_axis(x, y, z));
  MGX_OP("v_ldexp_f32", 2, F32, F32, from_f32(std::ldexp(as_f32(a) * known_one, s32(b))));
  define("v_div_scale_f32", div_scale, nullptr, kDpp | kMask | kSigns, "d!...");
  define("v_div_fmas_f32", div_fmas, nullptr, kDpp | kClamp | kOmod | kSigns, "d...");
  MGX_OP("v_div_fixup_f32", 3, F32, F32, division_fixup(a, b, c));
}

}  // namespace mgx
