// Vector f64 instructions.
#include "exec/define.h"
#include "exec/extremes.h"

namespace mgx {
namespace {

int exponent64(u64 x) { return static_cast<int>(x >> 52 & 0x7ff); }

u64 division_fixup(u64 quotient, u64 denominator, u64 numerator) {
  const double d = as_f64(denominator), n = as_f64(numerator);
  const u64 sign = (denominator ^ numerator) & (u64{1} << 63);
  constexpr u64 infinity = u64{0x7ff} << 52, quiet = u64{1} << 51;
  if (std::isnan(n)) return numerator | quiet;
  if (std::isnan(d)) return denominator | quiet;
  if ((d == 0 && n == 0) || (std::isinf(d) && std::isinf(n))) return u64{0xfff8} << 48;
  if (d == 0 || std::isinf(n)) return sign | infinity;
  if (std::isinf(d) || n == 0) return sign;
  if (exponent64(numerator) - exponent64(denominator) < -1075) return sign;
  if (std::isnan(as_f64(quotient))) return sign | infinity;  // its steps overflowed
  return sign | (quotient & ~(u64{1} << 63));
}

// The power of 2 above |x|, of denormals too.
int magnitude(double x) {
  int e;
  std::frexp(x, &e);
  return e;
}

// As that of f32 does.
u64 division_scale(u64 a, u64 denominator, u64 numerator, bool& scaled) {
  const double d = as_f64(denominator), n = as_f64(numerator);
  scaled = true;
  if (n == 0 || d == 0) return u64{0x7ff8} << 48;
  const auto times = [a](int power) { return from_f64(std::ldexp(as_f64(a), power)); };
  if (exponent64(numerator) - exponent64(denominator) >= 768) return a == denominator ? times(128) : a;
  const bool tiny = exponent64(denominator) >= 2045, small = magnitude(n) - magnitude(d) <= -1022;
  const bool denormal = exponent64(denominator) == 0;
  if (!denormal && tiny && small) return a == denominator ? times(-128) : a;
  if (!denormal && !tiny && small) return a == numerator ? times(128) : a;
  scaled = false;
  if (denormal) return times(128);
  if (tiny) return times(-128);
  return exponent64(numerator) <= 53 ? times(128) : a;
}

// (a * b + c) * 2^power, rounded to f64 once: 113 bits hold the product.
double scaled_fma(double a, double b, double c, int power) {
  const __float128 sum = static_cast<__float128>(a) * b + c;
  return static_cast<double>(sum * static_cast<__float128>(std::ldexp(1.0, power)));
}

u64 pair(const Wave& w, const Operand& o, int l) {
  u64 x;
  if (o.kind == Operand::Kind::Vector) {
    x = w.v[o.index][l] | u64{w.v[o.index + 1][l]} << 32;
  } else {
    x = scalar64(w, o);
  }
  if (o.abs) x &= ~(u64{1} << 63);
  if (o.neg) x ^= u64{1} << 63;
  return x;
}

void store_pair(Wave& w, const Operand& o, int l, u64 x) {
  w.v[o.index][l] = static_cast<u32>(x);
  w.v[o.index + 1][l] = static_cast<u32>(x >> 32);
}

void div_scale(Wave& w, const Instruction& i) {
  const WideMode doubles(w);
  u64 flags = 0;
  for (int l = 0; l < kLanes; ++l) {
    if (!(w.exec >> l & 1)) continue;
    bool scaled;
    const u64 x = division_scale(pair(w, i.o[2], l), pair(w, i.o[3], l), pair(w, i.o[4], l), scaled);
    store_pair(w, i.o[0], l, x);
    flags |= u64{scaled} << l;
  }
  write_mask(w, i.o[1], flags);
}

void div_fmas(Wave& w, const Instruction& i) {
  const WideMode doubles(w);
  const u64 flags = read_vcc(w);
  for (int l = 0; l < kLanes; ++l) {
    if (!(w.exec >> l & 1)) continue;
    const u64 c = pair(w, i.o[3], l);
    const double a = as_f64(pair(w, i.o[1], l)), b = as_f64(pair(w, i.o[2], l));
    double x = flags >> l & 1 ? scaled_fma(a, b, as_f64(c), exponent64(c) > 1023 ? 128 : -128) : std::fma(a, b, as_f64(c));
    if (i.clamp) x = x > 0 ? (x > 1 ? 1.0 : x) : 0.0;
    store_pair(w, i.o[0], l, from_f64(x));
  }
}

// One source of 64 bits to a result of 32, and the other way round.
template <Type Result, class F>
void narrow(Wave& w, const Instruction& i, F f) {
  LaneArray r;
  LaneArray low_space, high_space;
  const Operand& o = i.o[1];
  u64 valid = ~u64{0};
  Operand wide = o;
  wide.size = 2;
  const u32 *low = raw_source(w, wide, 0, low_space), *high = raw_source(w, wide, 1, high_space);
  if (i.dpp || i.dpp8) {
    valid &= dpp_source(w, i, low, low_space);
    dpp_source(w, i, high, high_space);
    low = low_space.at;
    high = high_space.at;
  }
  const WideMode doubles(w);
  for (int l = 0; l < kLanes; ++l) {
    u64 x = low[l] | u64{high[l]} << 32;
    if (o.abs) x &= ~(u64{1} << 63);
    if (o.neg) x ^= u64{1} << 63;
    r.at[l] = f(as_f64(x));
  }
  finish<Result>(w, i, r, w.exec & valid);
}
template <class F>
void widen(Wave& w, const Instruction& i, F f) {
  LaneArray space;
  u64 valid = ~u64{0};
  const u32* a = source<Type::F32>(w, i, i.o[1], 0, space, valid);
  const u64 mask = w.exec & valid;
  LaneArray low, high;
  for (int l = 0; l < kLanes; ++l) {
    double x = f(a[l]);
    if (i.clamp) x = x > 0 ? (x > 1 ? 1.0 : x) : 0.0;
    low.at[l] = static_cast<u32>(from_f64(x));
    high.at[l] = static_cast<u32>(from_f64(x) >> 32);
  }
  store_lanes(w.v[i.o[0].index], low.at, mask);
  store_lanes(w.v[i.o[0].index + 1], high.at, mask);
}

double fract(double x) {
  const double part = x - std::floor(x);
  return part > 0.99999999999999989 ? 0.99999999999999989 : part;
}

// 2/pi in binary, 1200 bits behind the point, the highest first.
constexpr u64 kTwoOverPi[] = {
    0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041, 0xfe5163abdebbc561,
    0xb7246e3a424dd2e0, 0x06492eea09d1921c, 0xfe1deb1cb129a73e, 0xe88235f52ebb4484,
    0xe99c7026b45f7e41, 0x3991d639835339f4, 0x9c845f8bbdf9283b, 0x1ff897ffde05980f,
    0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7, 0x4f463f669e5fea2d, 0x7527bac7ebe5f17b,
    0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08, 0x56033046fc7b0000};

// 53 bits of 2/pi: the b-th such piece (b of 5 bits) behind the bits that a number of a's size does
// without, as a float of its place.
double two_over_pi(u64 a, u32 b) {
  int shift = static_cast<int>(b & 31) * 53;
  const int exponent = exponent64(a);
  if (exponent > 1077) shift += exponent - 1077;
  u64 bits = 0;
  for (int k = 0; k < 53; ++k) {
    const int at = shift + k;
    const u64 bit = at < 1201 ? kTwoOverPi[at / 64] >> (63 - at % 64) & 1 : 0;
    bits = bits << 1 | bit;
  }
  int scale = -53 - shift;
  if (exponent >= 1968) scale += 128;
  return std::ldexp(static_cast<double>(bits), scale);
}

u32 saturated(double x, double low, double high) {
  if (std::isnan(x)) return 0;
  return x <= low ? static_cast<u32>(static_cast<i64>(low))
                  : x >= high ? static_cast<u32>(static_cast<i64>(high)) : static_cast<u32>(static_cast<i64>(x));
}

#define DOUBLE_EXTREME(name, n, ...)                                                                      \
  MGX_LANEWISE(name, kDoubleForms, sources_of(n), {                                                        \
    [[maybe_unused]] const bool ieee = w.mode & kIeeeMode;                                                 \
    vector_op64<n, 2, 2, 2, true>(w, i, [ieee](u64 a, u64 b, u64) -> u64 {                                  \
      (void)ieee;                                                                                          \
      return __VA_ARGS__;                                                                                  \
    });                                                                                                    \
  })

}  // namespace

void define_vector_doubles() {
  MGX_DOUBLE("v_add_f64", 2, x + y);
  MGX_DOUBLE("v_mul_f64", 2, x * y);
  MGX_DOUBLE("v_fma_f64", 3, std::fma(x, y, z));
  MGX_EXTREMES(DOUBLE_EXTREME, Double, "f64");
  MGX_DOUBLE("v_rcp_f64", 1, 1.0 / x);
  MGX_DOUBLE("v_rsq_f64", 1, 1.0 / std::sqrt(x));
  MGX_DOUBLE("v_sqrt_f64", 1, std::sqrt(x));
  MGX_DOUBLE("v_rndne_f64", 1, std::nearbyint(x));
  MGX_DOUBLE("v_floor_f64", 1, std::floor(x));
  MGX_DOUBLE("v_ceil_f64", 1, std::ceil(x));
  MGX_DOUBLE("v_trunc_f64", 1, std::trunc(x));
  MGX_DOUBLE("v_fract_f64", 1, fract(x));
  MGX_LANEWISE("v_fmac_f64", kDoubleForms, "d..", {
    Instruction j = i;
    j.o[3] = i.o[0];
    vector_op64<3, 2, 2, 2, true>(
        w, j, [](u64 a, u64 b, u64 c) { return from_f64(std::fma(as_f64(a), as_f64(b), as_f64(c))); });
  });
  MGX_LANEWISE("v_ldexp_f64", kDoubleForms, "d..", vector_op64<2, 2, 1, 1, true>(w, i, [](u64 a, u64 b, u64) {
                 return from_f64(std::ldexp(as_f64(a), static_cast<i32>(b)));
               }));
  MGX_LANEWISE("v_frexp_mant_f64", kDoubleForms, "d.", vector_op64<1, 2, 2, 2, true>(w, i, [](u64 a, u64, u64) {
                 int e;
                 return std::isfinite(as_f64(a)) ? from_f64(std::frexp(as_f64(a), &e)) : a;
               }));
  MGX_LANEWISE("v_frexp_exp_i32_f64", kDpp | kSigns, "d.", narrow<Type::I32>(w, i, [](double x) {
                 int e = 0;
                 if (std::isfinite(x)) std::frexp(x, &e);
                 return static_cast<u32>(e);
               }));
  define("v_div_scale_f64", div_scale, nullptr, kMask | kSigns, "d!...");
  define("v_div_fmas_f64", div_fmas, nullptr, kClamp | kSigns, "d...");
  MGX_LANEWISE("v_div_fixup_f64", kDoubleForms, "d...",
               vector_op64<3, 2, 2, 2, true>(w, i, [](u64 a, u64 b, u64 c) { return division_fixup(a, b, c); }));
  MGX_LANEWISE("v_trig_preop_f64", kDoubleForms, "d..", vector_op64<2, 2, 1, 1, true>(w, i, [](u64 a, u64 b, u64) {
                 return from_f64(two_over_pi(a, static_cast<u32>(b)));
               }));
  MGX_LANEWISE("v_cvt_f32_f64", kDpp | kSigns | kClamp | kOmod, "d.",
               narrow<Type::F32>(w, i, [](double x) { return from_f32(static_cast<float>(x)); }));
  MGX_LANEWISE("v_cvt_i32_f64", kDpp | kSigns, "d.",
               narrow<Type::I32>(w, i, [](double x) { return saturated(x, -2147483648.0, 2147483647.0); }));
  MGX_LANEWISE("v_cvt_u32_f64", kDpp | kSigns, "d.",
               narrow<Type::I32>(w, i, [](double x) { return saturated(x, 0.0, 4294967295.0); }));
  constexpr u16 forms = kDpp | kSdwaSources | kClamp;
  MGX_LANEWISE("v_cvt_f64_f32", forms | kSigns, "d.", widen(w, i, [](u32 a) { return static_cast<double>(as_f32(a)); }));
  MGX_LANEWISE("v_cvt_f64_i32", forms, "d.", widen(w, i, [](u32 a) { return static_cast<double>(s32(a)); }));
  MGX_LANEWISE("v_cvt_f64_u32", forms, "d.", widen(w, i, [](u32 a) { return static_cast<double>(a); }));
}

}  // namespace mgx
