// Floats in scalar registers, which RDNA3.5 and RDNA4 have.
#include <algorithm>

#include "exec/define.h"

namespace mgx {
namespace {

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
  SF("s_max_f32", max_number(x, y));
  SF("s_min_f32", min_number(x, y));
  SF("s_maximum_f32", maximum(x, y));
  SF("s_minimum_f32", minimum(x, y));
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
  VS1("v_s_exp_f32", std::exp2(x));
  VS1("v_s_log_f32", std::log2(x));
  VS1("v_s_rcp_f32", 1.0f / x);
  VS1("v_s_rsq_f32", static_cast<float>(1.0 / std::sqrt(static_cast<double>(x))));
  VS1("v_s_sqrt_f32", std::sqrt(x));
  for (const char* name : {"s_fmamk_f32", "s_fmaak_f32"}) {
    MGX_DO(name, write_scalar(w, i.o[0].index, from_f32(std::fma(as_f32(scalar(w, i.o[1])), as_f32(scalar(w, i.o[2])),
                                                                 as_f32(scalar(w, i.o[3]))))));
  }
#define SFC(name, expr)                                            \
  MGX_DO(name, {                                                   \
    const float x = as_f32(scalar(w, i.o[0]));                     \
    const float y = as_f32(scalar(w, i.o[1]));                     \
    w.scc = expr;                                                  \
  })
  SFC("s_cmp_lt_f32", x < y);
  SFC("s_cmp_le_f32", x <= y);
  SFC("s_cmp_gt_f32", x > y);
  SFC("s_cmp_ge_f32", x >= y);
  SFC("s_cmp_eq_f32", x == y);
  SFC("s_cmp_lg_f32", x < y || x > y);
  SFC("s_cmp_nlg_f32", !(x < y || x > y));
  SFC("s_cmp_neq_f32", !(x == y));
  SFC("s_cmp_o_f32", x == x && y == y);
  SFC("s_cmp_u_f32", x != x || y != y);
  SFC("s_cmp_nlt_f32", !(x < y));
  SFC("s_cmp_nle_f32", !(x <= y));
  SFC("s_cmp_ngt_f32", !(x > y));
  SFC("s_cmp_nge_f32", !(x >= y));
}

u32 half(const Wave& w, const Operand& o) {
  return o.kind == Operand::Kind::Constant ? o.bits16 : read_scalar(w, o.index) & 0xffff;
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
  SH2("s_max_f16", max_number(x, y));
  SH2("s_min_f16", min_number(x, y));
  SH2("s_max_num_f16", max_number(x, y));
  SH2("s_min_num_f16", min_number(x, y));
  SH2("s_maximum_f16", maximum(x, y));
  SH2("s_minimum_f16", minimum(x, y));
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
#define SHC(name, expr)                                                                            \
  MGX_DO(name, {                                                                                   \
    const float x = f32_of_f16(half(w, i.o[0]));                                                   \
    const float y = f32_of_f16(half(w, i.o[1]));                                                   \
    w.scc = expr;                                                                                  \
  })
  SHC("s_cmp_lt_f16", x < y);
  SHC("s_cmp_le_f16", x <= y);
  SHC("s_cmp_gt_f16", x > y);
  SHC("s_cmp_ge_f16", x >= y);
  SHC("s_cmp_eq_f16", x == y);
  SHC("s_cmp_lg_f16", x < y || x > y);
  SHC("s_cmp_nlg_f16", !(x < y || x > y));
  SHC("s_cmp_neq_f16", !(x == y));
  SHC("s_cmp_o_f16", x == x && y == y);
  SHC("s_cmp_u_f16", x != x || y != y);
  SHC("s_cmp_nlt_f16", !(x < y));
  SHC("s_cmp_nle_f16", !(x <= y));
  SHC("s_cmp_ngt_f16", !(x > y));
  SHC("s_cmp_nge_f16", !(x >= y));
}

}  // namespace

void define_scalar_floats() {
  define_single();
  define_half();
}

}  // namespace mgx
