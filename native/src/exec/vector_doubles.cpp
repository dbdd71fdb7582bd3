// Vector f64 instructions.
#include "exec/define.h"

namespace mgx {
namespace {

double min_double(double x, double y) { return std::fmin(x, y); }
double max_double(double x, double y) { return std::fmax(x, y); }

u64 division_fixup(u64 quotient, u64 denominator, u64 numerator) {
  const double d = as_f64(denominator), n = as_f64(numerator);
  const u64 sign = (denominator ^ numerator) & (u64{1} << 63);
  constexpr u64 infinity = u64{0x7ff} << 52, quiet = u64{1} << 51;
  if (std::isnan(n)) return numerator | quiet;
  if (std::isnan(d)) return denominator | quiet;
  if ((d == 0 && n == 0) || (std::isinf(d) && std::isinf(n))) return u64{0xfff8} << 48;
  if (d == 0 || std::isinf(n)) return sign | infinity;
  if (std::isinf(d) || n == 0) return sign;
  return sign | (quotient & ~(u64{1} << 63));
}

int exponent64(u64 x) { return static_cast<int>(x >> 52 & 0x7ff); }
bool denormal64(double x) { return x != 0 && std::fabs(x) < 2.2250738585072014e-308; }

u64 division_scale(u64 a, u64 denominator, u64 numerator, bool& scaled) {
  const double d = as_f64(denominator), n = as_f64(numerator);
  scaled = false;
  if (n == 0 || d == 0) return u64{0x7ff8} << 48;
  const auto times = [a](int power) { return from_f64(std::ldexp(as_f64(a), power)); };
  if (exponent64(numerator) - exponent64(denominator) >= 768) {
    scaled = true;
    return a == denominator ? times(128) : a;
  }
  if (denormal64(d)) return times(128);
  const bool tiny = denormal64(1.0 / d), small = denormal64(n / d);
  if (tiny && small) {
    scaled = true;
    return a == denominator ? times(128) : a;
  }
  if (tiny) return times(-128);
  if (small) {
    scaled = true;
    return a == numerator ? times(128) : a;
  }
  return exponent64(numerator) <= 53 ? times(128) : a;
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
  const u64 flags = read_vcc(w);
  for (int l = 0; l < kLanes; ++l) {
    if (!(w.exec >> l & 1)) continue;
    const u64 c = pair(w, i.o[3], l);
    double x = std::fma(as_f64(pair(w, i.o[1], l)), as_f64(pair(w, i.o[2], l)), as_f64(c));
    if (flags >> l & 1) x = std::ldexp(x, exponent64(c) > 1023 ? 128 : -128);
    store_pair(w, i.o[0], l, from_f64(x));
  }
}

// One source of 64 bits to a result of 32, and the other way round.
template <class F>
void narrow(Wave& w, const Instruction& i, F f) {
  LaneArray r;
  for (int l = 0; l < kLanes; ++l) r.at[l] = f(as_f64(pair(w, i.o[1], l)));
  finish<Type::I32>(w, i, r, w.exec);
}
template <class F>
void widen(Wave& w, const Instruction& i, F f) {
  LaneArray space;
  u64 valid = ~u64{0};
  const u32* a = source<Type::F32>(w, i, i.o[1], 0, space, valid);
  for (int l = 0; l < kLanes; ++l) {
    if (w.exec >> l & 1) store_pair(w, i.o[0], l, from_f64(f(a[l])));
  }
}

u32 saturated(double x, double low, double high) {
  if (std::isnan(x)) return 0;
  return x <= low ? static_cast<u32>(static_cast<i64>(low))
                  : x >= high ? static_cast<u32>(static_cast<i64>(high)) : static_cast<u32>(static_cast<i64>(x));
}

}  // namespace

void define_vector_doubles() {
  MGX_DOUBLE("v_add_f64", 2, x + y);
  MGX_DOUBLE("v_mul_f64", 2, x * y);
  MGX_DOUBLE("v_fma_f64", 3, std::fma(x, y, z));
  MGX_DOUBLE("v_max_f64", 2, max_double(x, y));
  MGX_DOUBLE("v_min_f64", 2, min_double(x, y));
  MGX_DOUBLE("v_rcp_f64", 1, 1.0 / x);
  MGX_DOUBLE("v_rsq_f64", 1, 1.0 / std::sqrt(x));
  MGX_DOUBLE("v_sqrt_f64", 1, std::sqrt(x));
  MGX_DOUBLE("v_rndne_f64", 1, std::nearbyint(x));
  MGX_DOUBLE("v_floor_f64", 1, std::floor(x));
  MGX_DOUBLE("v_ceil_f64", 1, std::ceil(x));
  MGX_DOUBLE("v_trunc_f64", 1, std::trunc(x));
  MGX_DOUBLE("v_fract_f64", 1, std::fmin(x - std::floor(x), 0.99999999999999989));
  define("v_fmac_f64", [](Wave& w, const Instruction& i) {
    Instruction j = i;
    j.o[3] = i.o[0];
    vector_op64<3, 2, 2, 2, true>(
        w, j, [](u64 a, u64 b, u64 c) { return from_f64(std::fma(as_f64(a), as_f64(b), as_f64(c))); });
  });
  define("v_ldexp_f64", [](Wave& w, const Instruction& i) {
    vector_op64<2, 2, 1, 1, true>(
        w, i, [](u64 a, u64 b, u64) { return from_f64(std::ldexp(as_f64(a), static_cast<i32>(b))); });
  });
  define("v_frexp_mant_f64", [](Wave& w, const Instruction& i) {
    vector_op64<1, 2, 2, 2, true>(w, i, [](u64 a, u64, u64) {
      int e;
      return std::isfinite(as_f64(a)) ? from_f64(std::frexp(as_f64(a), &e)) : a;
    });
  });
  MGX_DO("v_frexp_exp_i32_f64", narrow(w, i, [](double x) {
           int e = 0;
           if (std::isfinite(x)) std::frexp(x, &e);
           return static_cast<u32>(e);
         }));
  MGX_DO("v_div_scale_f64", div_scale(w, i));
  MGX_DO("v_div_fmas_f64", div_fmas(w, i));
  define("v_div_fixup_f64", [](Wave& w, const Instruction& i) {
    vector_op64<3, 2, 2, 2, true>(w, i, [](u64 a, u64 b, u64 c) { return division_fixup(a, b, c); });
  });
  MGX_DO("v_cvt_f32_f64", narrow(w, i, [](double x) { return from_f32(static_cast<float>(x)); }));
  MGX_DO("v_cvt_i32_f64", narrow(w, i, [](double x) { return saturated(x, -2147483648.0, 2147483647.0); }));
  MGX_DO("v_cvt_u32_f64", narrow(w, i, [](double x) { return saturated(x, 0.0, 4294967295.0); }));
  MGX_DO("v_cvt_f64_f32", widen(w, i, [](u32 a) { return static_cast<double>(as_f32(a)); }));
  MGX_DO("v_cvt_f64_i32", widen(w, i, [](u32 a) { return static_cast<double>(s32(a)); }));
  MGX_DO("v_cvt_f64_u32", widen(w, i, [](u32 a) { return static_cast<double>(a); }));
}

}  // namespace mgx
