// Floats in scalar registers, which RDNA3.5 and RDNA4 have.
#include <algorithm>

#include "exec/define.h"
#include "exec/extremes.h"

namespace mgx {
namespace {

u32 half(const Wave& w, const Operand& o) {
  return o.kind == Operand::Kind::Constant ? o.bits16 : read_scalar(w, o.index) & 0xffff;
}

// The floats of an operand.
float single(const Wave& w, const Operand& o) { return as_f32(scalar(w, o)); }
float half_precision(const Wave& w, const Operand& o) { return f32_of_f16(half(w, o)); }

// SCALAR_COMPARES(suffix of the type, function that reads an operand): all comparisons of a type.
#define SCALAR_COMPARE(kind, type, read, expr)                     \
  MGX_DO("s_cmp_" kind "_" type, {                                 \
    const float x = read(w, i.o[0]), y = read(w, i.o[1]);          \
    w.scc = expr;                                                  \
  })
#define SCALAR_COMPARES(type, read)                                \
  SCALAR_COMPARE("lt", type, read, x < y);                         \
  SCALAR_COMPARE("le", type, read, x <= y);                        \
  SCALAR_COMPARE("gt", type, read, x > y);                         \
  SCALAR_COMPARE("ge", type, read, x >= y);                        \
  SCALAR_COMPARE("eq", type, read, x == y);                        \
  SCALAR_COMPARE("lg", type, read, x < y || x > y);                \
  SCALAR_COMPARE("nlg", type, read, !(x < y || x > y));            \
  SCALAR_COMPARE("neq", type, read, !(x == y));                    \
  SCALAR_COMPARE("o", type, read, x == x && y == y);               \
  SCALAR_COMPARE("u", type, read, x != x || y != y);               \
  SCALAR_COMPARE("nlt", type, read, !(x < y));                     \
  SCALAR_COMPARE("nle", type, read, !(x <= y));                    \
  SCALAR_COMPARE("ngt", type, read, !(x > y));                     \
  SCALAR_COMPARE("nge", type, read, !(x >= y))

void define_single() {
#define SF(name, expr)                                             \
  MGX_DO(name, {                                                   \
    const float x = as_f32(scalar(w, i.o[1]));                     \
    const float y = as_f32(scalar(w, i.o[2]));                     \
    write_scalar(w, i.o[0].index, from_f32(expr));                 \
  })
  SF("s_add_f32", x + y);
  SF("s_sub_f32", x - y);
  SF("s_mul_f32", x * y);
#define SX(name, expr)                                             \
  MGX_DO(name, {                                                   \
    [[maybe_unused]] const bool ieee = w.mode & kIeeeMode;         \
    const u32 a = scalar(w, i.o[1]), b = scalar(w, i.o[2]);        \
    write_scalar(w, i.o[0].index, expr);                           \
  })
  SX("s_max_f32", (extreme<Single, true>(a, b, ieee)));
  SX("s_min_f32", (extreme<Single, false>(a, b, ieee)));
  SX("s_maximum_f32", (ordered<Single, true>(a, b)));
  SX("s_minimum_f32", (ordered<Single, false>(a, b)));
  SF("s_fmac_f32", std::fma(x, y, as_f32(read_scalar(w, i.o[0].index))));
  MGX_DO("s_cvt_f32_u32", write_scalar(w, i.o[0].index, from_f32(static_cast<float>(scalar(w, i.o[1])))));
  MGX_DO("s_cvt_f32_i32", write_scalar(w, i.o[0].index, from_f32(static_cast<float>(s32(scalar(w, i.o[1]))))));
  MGX_DO("s_cvt_u32_f32", {
    const float x = as_f32(scalar(w, i.o[1]));
    write_scalar(w, i.o[0].index, !(x > 0) ? 0 : x >= 4294967296.0f ? ~0u : static_cast<u32>(x));
  });
  MGX_DO("s_cvt_i32_f32", {
    const float x = as_f32(scalar(w, i.o[1]));
    const float bound = std::clamp(std::isnan(x) ? 0.0f : x, -2147483648.0f, 2147483520.0f);
    write_scalar(w, i.o[0].index, x >= 2147483648.0f ? 0x7fffffff : static_cast<u32>(static_cast<i32>(bound)));
  });
#define SF1(name, expr)                                                                            \
  MGX_DO(name, { const float x = as_f32(scalar(w, i.o[1])); write_scalar(w, i.o[0].index, from_f32(expr)); })
  SF1("s_ceil_f32", std::ceil(x));
  SF1("s_floor_f32", std::floor(x));
  SF1("s_trunc_f32", std::trunc(x));
  SF1("s_rndne_f32", std::nearbyint(x));
  // vector units' functions of a scalar
#define VS1(name, expr)                                                                            \
  MGX_LANEWISE(name, kClamp | kSigns, "d.", {                                                                                   \
    float x = as_f32(scalar(w, i.o[1]));                                                           \
    if (i.o[1].abs) x = std::fabs(x);                                                              \
    if (i.o[1].neg) x = -x;                                                                        \
    const float y = expr;                                                                          \
    write_scalar(w, i.o[0].index, from_f32(i.clamp ? clamp01(y) : y));                             \
  })
  VS1("v_s_exp_f32", without_denormals(std::exp2(x)));
  VS1("v_s_log_f32", std::log2(without_denormals(x)));
  VS1("v_s_rcp_f32", 1.0f / x);
  VS1("v_s_rsq_f32", static_cast<float>(1.0 / std::sqrt(static_cast<double>(x))));
  VS1("v_s_sqrt_f32", std::sqrt(x));
  for (const char* name : {"s_fmamk_f32", "s_fmaak_f32"}) {
    MGX_DO(name, write_scalar(w, i.o[0].index, from_f32(std::fma(as_f32(scalar(w, i.o[1])), as_f32(scalar(w, i.o[2])),
                                                                 as_f32(scalar(w, i.o[3]))))));
  }
  SCALAR_COMPARES("f32", single);
}

// f16: the low half of a register; the result's high half is zero.
void define_half() {
#define SH2(name, expr)                                                                            \
  MGX_DO(name, {                                                                                   \
    const float x = f32_of_f16(half(w, i.o[1]));                                                   \
    const float y = f32_of_f16(half(w, i.o[2]));                                                   \
    write_scalar(w, i.o[0].index, f16_of_f32(expr));                                               \
  })
  SH2("s_add_f16", x + y);
  SH2("s_sub_f16", x - y);
  SH2("s_mul_f16", x * y);
#define SHX(name, expr)                                            \
  MGX_DO(name, {                                                   \
    [[maybe_unused]] const bool ieee = w.mode & kIeeeMode;         \
    const u32 a = half(w, i.o[1]), b = half(w, i.o[2]);            \
    write_scalar(w, i.o[0].index, expr);                           \
  })
  for (const char* name : {"s_max_f16", "s_max_num_f16"}) SHX(name, (extreme<Half, true>(a, b, ieee)));
  for (const char* name : {"s_min_f16", "s_min_num_f16"}) SHX(name, (extreme<Half, false>(a, b, ieee)));
  SHX("s_maximum_f16", (ordered<Half, true>(a, b)));
  SHX("s_minimum_f16", (ordered<Half, false>(a, b)));
  MGX_DO("s_fmac_f16", {
    const float z = f32_of_f16(read_scalar(w, i.o[0].index) & 0xffff);
    write_scalar(w, i.o[0].index, fma_f16(f32_of_f16(half(w, i.o[1])), f32_of_f16(half(w, i.o[2])), z));
  });
#define SH1(name, expr)                                                                            \
  MGX_DO(name, { const float x = f32_of_f16(half(w, i.o[1])); write_scalar(w, i.o[0].index, f16_of_f32(expr)); })
  SH1("s_ceil_f16", std::ceil(x));
  SH1("s_floor_f16", std::floor(x));
  SH1("s_trunc_f16", std::trunc(x));
  SH1("s_rndne_f16", std::nearbyint(x));
  MGX_DO("s_cvt_f16_f32", write_scalar(w, i.o[0].index, f16_of_f32(as_f32(scalar(w, i.o[1])))));
  MGX_DO("s_cvt_f32_f16", write_scalar(w, i.o[0].index, from_f32(f32_of_f16(half(w, i.o[1])))));
  MGX_DO("s_cvt_hi_f32_f16", write_scalar(w, i.o[0].index, from_f32(f32_of_f16(scalar(w, i.o[1]) >> 16))));
  MGX_DO("s_cvt_pk_rtz_f16_f32", write_scalar(w, i.o[0].index, f16_of_f32_truncated(as_f32(scalar(w, i.o[1]))) |
                                                                   f16_of_f32_truncated(as_f32(scalar(w, i.o[2]))) << 16));
  SCALAR_COMPARES("f16", half_precision);
}

}  // namespace

void define_scalar_floats() {
  define_single();
  define_half();
}

}  // namespace mgx
