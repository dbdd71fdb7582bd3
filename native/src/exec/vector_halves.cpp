// Vector f16 and bf16 instructions, and the mixed-precision multiply-adds.
#include "exec/define.h"
#include "exec/extremes.h"

namespace mgx {
namespace {

u32 fixup16(u32 quotient, u32 denominator, u32 numerator) {
  const float d = f32_of_f16(denominator & 0xffff), n = f32_of_f16(numerator & 0xffff);
  const u32 sign = (denominator ^ numerator) & 0x8000;
  if (std::isnan(n)) return (numerator & 0xffff) | 0x200;
  if (std::isnan(d)) return (denominator & 0xffff) | 0x200;
  if ((d == 0 && n == 0) || (std::isinf(d) && std::isinf(n))) return 0xfe00;
  if (d == 0 || std::isinf(n)) return sign | 0x7c00;
  if (std::isinf(d) || n == 0) return sign;
  if (std::isnan(f32_of_f16(quotient & 0xffff))) return sign | 0x7c00;
  return sign | (quotient & 0x7fff);
}

float mantissa(float x) {
  int e;
  return std::isfinite(x) ? std::frexp(x, &e) : x;
}
u32 exponent(float x) {
  int e = 0;
  if (std::isfinite(x)) std::frexp(x, &e);
  return static_cast<u32>(e) & 0xffff;
}
// Of the next lower number than 1 at most.
float fract(float x) {
  const float part = x - std::floor(x);
  return part > 0.99951172f ? 0.99951172f : part;
}

#define HALF_EXTREME(name, n, ...)                                                                        \
  MGX_LANEWISE(name, forms_of(Type::F16, Type::F16), sources_of(n), {                                      \
    [[maybe_unused]] const bool ieee = w.mode & kIeeeMode;                                                 \
    vector_op<n, Type::F16, Type::F16>(w, i, [ieee](u32 first, u32 second, [[maybe_unused]] u32 third) -> u32 { \
      [[maybe_unused]] const u32 a = first & 0xffff, b = second & 0xffff, c = third & 0xffff;              \
      (void)ieee;                                                                                          \
      return __VA_ARGS__;                                                                                  \
    });                                                                                                    \
  })

enum class To { Single, Low, High };

// fma of operands that are each f32 or a half of an f16 pair.
template <To R>
void mix(Wave& w, const Instruction& i) {
  LaneArray space[3], r;
  float in[3][kLanes];
  u64 valid = ~u64{0};
  for (int k = 0; k < 3; ++k) {
    const Operand& o = i.o[k + 1];
    const bool half = i.opselhi >> k & 1, high = i.opsel >> k & 1;
    if (half && o.kind == Operand::Kind::Constant) {
      for (int l = 0; l < kLanes; ++l) in[k][l] = f32_of_f16(o.bits16);
    } else {
      const u32* a = raw_source(w, o, 0, space[k]);
      if (k == 0 && (i.dpp || i.dpp8)) {
        valid &= dpp_source(w, i, a, space[k]);
        a = space[k].at;
      }
      for (int l = 0; l < kLanes; ++l) {
        in[k][l] = !half ? as_f32(a[l]) : f32_of_f16(high ? a[l] >> 16 : a[l] & 0xffff);
      }
    }
    if (i.neghi >> k & 1) {
      for (float& x : in[k]) x = std::fabs(x);
    }
    if (i.neglo >> k & 1) {
      for (float& x : in[k]) x = -x;
    }
  }
  const u32* old = w.v[i.o[0].index];
  for (int l = 0; l < kLanes; ++l) {
    if (R == To::Single) {
      float x = std::fma(in[0][l], in[1][l], in[2][l]);
      r.at[l] = from_f32(i.clamp ? clamp01(x) : x);
      continue;
    }
    float x = to_odd(std::fma(static_cast<double>(in[0][l]), static_cast<double>(in[1][l]), static_cast<double>(in[2][l])));
    if (i.clamp) x = clamp01(x);
    const u32 half = f16_of_f32(x);
    r.at[l] = R == To::Low ? (old[l] & 0xffff0000) | half : (old[l] & 0xffff) | half << 16;
  }
  store_lanes(w.v[i.o[0].index], r.at, w.exec & valid);
}

}  // namespace

void define_vector_halves() {
  HALF2("v_add_f16", x + y);
  HALF2("v_sub_f16", x - y);
  HALF2("v_subrev_f16", y - x);
  HALF2("v_mul_f16", x * y);
  MGX_EXTREMES(HALF_EXTREME, Half, "f16");
  MGX_EXTREMES_OF_THREE(HALF_EXTREME, Half, "f16");
  HALF1("v_exp_f16", std::exp2(x));
  HALF1("v_log_f16", std::log2(x));
  HALF1("v_rcp_f16", 1.0f / x);
  HALF1("v_rsq_f16", 1.0f / std::sqrt(x));
  HALF1("v_sqrt_f16", std::sqrt(x));
  HALF1("v_floor_f16", std::floor(x));
  HALF1("v_ceil_f16", std::ceil(x));
  HALF1("v_trunc_f16", std::trunc(x));
  HALF1("v_rndne_f16", std::nearbyint(x));
  HALF1("v_fract_f16", fract(x));
  HALF1("v_sin_f16", sin_of_turns(x));
  HALF1("v_cos_f16", cos_of_turns(x));
  HALF1("v_frexp_mant_f16", mantissa(x));
  MGX_OP("v_frexp_exp_i16_f16", 1, F16, I16, exponent(f32_of_f16(a & 0xffff)));
  MGX_OP("v_ldexp_f16", 2, F16, F16, f16_of_f32(std::ldexp(f32_of_f16(a & 0xffff), s16(b))));
  MGX_HALF("v_fma_f16", 3, false, fma_f16(x, y, z));
  MGX_HALF("v_fmamk_f16", 3, false, fma_f16(x, y, z));
  MGX_HALF("v_fmaak_f16", 3, false, fma_f16(x, y, z));
  MGX_HALF("v_fmac_f16", 2, true, fma_f16(x, y, z));
  MGX_HALF("v_mac_f16", 2, true, f16_of_f32(f32_of_f16(f16_of_f32(x * y)) + z));
  for (const char* name : {"v_mad_f16", "v_mad_legacy_f16", "v_madmk_f16", "v_madak_f16"}) {
    MGX_HALF(name, 3, false, f16_of_f32(f32_of_f16(f16_of_f32(x * y)) + z));
  }
  MGX_HALF("v_fma_legacy_f16", 3, false, fma_f16(x, y, z));
  MGX_OP("v_div_fixup_legacy_f16", 3, F16, F16, fixup16(a, b, c));
  MGX_OP("v_div_fixup_f16", 3, F16, F16, fixup16(a, b, c));
  define("v_fma_mix_f32", mix<To::Single>, nullptr, kDpp | kClamp | kPacked, "d...");
  define("v_fma_mixlo_f16", mix<To::Low>, nullptr, kDpp | kClamp | kPacked, "d...");
  define("v_fma_mixhi_f16", mix<To::High>, nullptr, kDpp | kClamp | kPacked, "d...");
}

}  // namespace mgx
