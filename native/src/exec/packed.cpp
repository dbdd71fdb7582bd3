// Packed instructions: two 16-bit or two 32-bit values in one operand.
#include <algorithm>

#include "exec/define.h"
#include "exec/extremes.h"

namespace mgx {
namespace {

// result half h = f(a, b, c): op_sel says which half feeds the low result, op_sel_hi the high.
template <int N, bool Float, bool Accumulate = false, class F>
void packed16(Wave& w, const Instruction& i, F f) {
  LaneArray space[3], r;
  const u32* p[3];
  u32 shift[2][3] = {}, flip[2][3] = {};
  u64 valid = ~u64{0};
  for (int k = 0; k < 3; ++k) {
    p[k] = w.v[i.o[0].index];
    shift[1][k] = 16;
    if (k >= N) continue;
    const Operand& o = i.o[k + 1];
    if (o.kind == Operand::Kind::Constant) {
      // an f16 constant stands in the low half; an integer's operand, and a literal, has 32 bits
      const u32 value = o.literal || !Float ? o.bits : o.bits16;
      for (int l = 0; l < kLanes; ++l) space[k].at[l] = value;
      p[k] = space[k].at;
    } else {
      p[k] = raw_source(w, o, 0, space[k]);
    }
    if ((i.dpp || i.dpp8) && k == 0) {
      valid &= dpp_source(w, i, p[k], space[k]);
      p[k] = space[k].at;
    }
    shift[0][k] = i.opsel >> k & 1 ? 16 : 0;
    shift[1][k] = i.opselhi >> k & 1 ? 16 : 0;
    flip[0][k] = Float && (i.neglo >> k & 1) ? 0x8000 : 0;
    flip[1][k] = Float && (i.neghi >> k & 1) ? 0x8000 : 0;
  }
  for (int l = 0; l < kLanes; ++l) {
    u32 out = 0;
    for (int h = 0; h < 2; ++h) {
      u32 x = f((p[0][l] >> shift[h][0] & 0xffff) ^ flip[h][0], (p[1][l] >> shift[h][1] & 0xffff) ^ flip[h][1],
                (p[2][l] >> shift[h][2] & 0xffff) ^ flip[h][2]);
      if (Float && i.clamp) x = f16_of_f32(clamp01(f32_of_f16(x & 0xffff)));
      out |= (x & 0xffff) << 16 * h;
    }
    r.at[l] = out;
  }
  store_lanes(w.v[i.o[0].index], r.at, w.exec & valid);
}

template <int N, class F>
void packed32(Wave& w, const Instruction& i, F f) {
  LaneArray space[6], r[2];
  u64 valid = ~u64{0};
  const u32* p[3][2];
  for (int k = 0; k < N; ++k) {
    const Operand& o = i.o[k + 1];
    p[k][0] = raw_source(w, o, 0, space[2 * k]);
    p[k][1] = p[k][0];
    if (o.kind == Operand::Kind::Constant) {
      for (int l = 0; l < kLanes; ++l) space[2 * k].at[l] = o.bits;
      p[k][0] = p[k][1] = space[2 * k].at;
    } else if (o.size > 1) {
      p[k][1] = raw_source(w, o, 1, space[2 * k + 1]);
    }
    if (k == 0 && (i.dpp || i.dpp8)) {
      for (int h = 0; h < 2; ++h) {
        valid &= dpp_source(w, i, p[0][h], space[h]);
        p[0][h] = space[h].at;
      }
    }
  }
  for (int h = 0; h < 2; ++h) {
    for (int l = 0; l < kLanes; ++l) {
      float x[3] = {};
      for (int k = 0; k < N; ++k) {
        const int part = (h ? i.opselhi : i.opsel) >> k & 1;
        const u32 sign = (h ? i.neghi : i.neglo) >> k & 1 ? 0x80000000 : 0;
        x[k] = as_f32(p[k][part][l] ^ sign);
      }
      float y = f(x[0], x[1], x[2]);
      r[h].at[l] = from_f32(i.clamp ? clamp01(y) : y);
    }
  }
  store_lanes(w.v[i.o[0].index], r[0].at, w.exec & valid);
  store_lanes(w.v[i.o[0].index + 1], r[1].at, w.exec & valid);
}

void packed_move(Wave& w, const Instruction& i) {
  LaneArray space[2], r[2];
  for (int k = 0; k < 2; ++k) {
    const Operand& o = i.o[k + 1];
    const int part = i.opsel >> k & 1;
    const u32* p;
    if (o.kind == Operand::Kind::Constant) {
      for (int l = 0; l < kLanes; ++l) space[k].at[l] = o.bits;
      p = space[k].at;
    } else {
      p = raw_source(w, o, part, space[k]);
    }
    std::memcpy(r[k].at, p, sizeof r[k].at);
  }
  store_lanes(w.v[i.o[0].index], r[0].at, w.exec);
  store_lanes(w.v[i.o[0].index + 1], r[1].at, w.exec);
}

void no_signs(Instruction& i, Generation) {
  if (i.neglo != 0 || i.neghi != 0) throw Error("'" + std::string(i.name()) + "' with neg_lo or neg_hi is not emulated");
}

constexpr u16 kPackedForms = kDpp | kPacked;
#define PACKED_INT(name, n, ...)                                                                   \
  define(name, []([[maybe_unused]] Wave& w, [[maybe_unused]] const Instruction& i) {               \
    packed16<n, false>(w, i, []([[maybe_unused]] u32 a, [[maybe_unused]] u32 b,                    \
                                [[maybe_unused]] u32 c) -> u32 { return __VA_ARGS__; });           \
  }, no_signs, kPackedForms, sources_of(n))
#define PACKED_HALF(name, n, ...)                                                                  \
  MGX_LANEWISE(name, kPackedForms | kClamp, sources_of(n), packed16<n, true>(w, i, []([[maybe_unused]] u32 a, [[maybe_unused]] u32 b, \
                                                                        [[maybe_unused]] u32 c) -> u32 { \
           [[maybe_unused]] const float x = f32_of_f16(a), y = f32_of_f16(b), z = f32_of_f16(c); \
           return __VA_ARGS__;                                                              \
         }))

#define PACKED_EXTREME(name, n, ...)                                                               \
  MGX_LANEWISE(name, kPackedForms | kClamp, sources_of(n), {                                        \
    [[maybe_unused]] const bool ieee = w.mode & kIeeeMode;                                          \
    packed16<n, true>(w, i, [ieee](u32 a, u32 b, [[maybe_unused]] u32 c) -> u32 {                   \
      (void)ieee;                                                                                   \
      return __VA_ARGS__;                                                                           \
    });                                                                                             \
  })

// Sums, differences and products that saturate, under their names with " clamp".
void define_saturating() {
  PACKED_INT("v_pk_add_u16 clamp", 2, std::min(a + b, 0xffffu));
  PACKED_INT("v_pk_sub_u16 clamp", 2, a < b ? 0 : a - b);
  PACKED_INT("v_pk_add_i16 clamp", 2, static_cast<u32>(std::clamp(s16(a) + s16(b), -32768, 32767)));
  PACKED_INT("v_pk_sub_i16 clamp", 2, static_cast<u32>(std::clamp(s16(a) - s16(b), -32768, 32767)));
  PACKED_INT("v_pk_mad_u16 clamp", 3, std::min(a * b + c, 0xffffu));
  PACKED_INT("v_pk_mad_i16 clamp", 3, static_cast<u32>(std::clamp(s16(a) * s16(b) + s16(c), -32768, 32767)));
}

}  // namespace

void define_packed() {
  define_saturating();
  PACKED_HALF("v_pk_add_f16", 2, f16_of_f32(x + y));
  PACKED_HALF("v_pk_mul_f16", 2, f16_of_f32(x * y));
  PACKED_EXTREME("v_pk_max_f16", 2, extreme<Half, true>(a, b, ieee));
  PACKED_EXTREME("v_pk_min_f16", 2, extreme<Half, false>(a, b, ieee));
  PACKED_EXTREME("v_pk_maximum_f16", 2, ordered<Half, true>(a, b));
  PACKED_EXTREME("v_pk_minimum_f16", 2, ordered<Half, false>(a, b));
  PACKED_EXTREME("v_pk_maximum3_f16", 3, ordered<Half, true>(ordered<Half, true>(a, b), c));
  PACKED_EXTREME("v_pk_minimum3_f16", 3, ordered<Half, false>(ordered<Half, false>(a, b), c));
  PACKED_HALF("v_pk_fma_f16", 3, fma_f16(x, y, z));
  MGX_LANEWISE("v_pk_fmac_f16", kDpp, "d..", packed16<2, true, true>(w, i, [](u32 a, u32 b, u32 c) -> u32 {
           return fma_f16(f32_of_f16(a), f32_of_f16(b), f32_of_f16(c));
         }));
  PACKED_INT("v_pk_add_u16", 2, a + b);
  PACKED_INT("v_pk_add_i16", 2, a + b);
  PACKED_INT("v_pk_sub_i16", 2, a - b);
  PACKED_INT("v_pk_sub_u16", 2, a - b);
  PACKED_INT("v_pk_mul_lo_u16", 2, a * b);
  PACKED_INT("v_pk_lshlrev_b16", 2, b << (a & 15));
  PACKED_INT("v_pk_lshrrev_b16", 2, b >> (a & 15));
  PACKED_INT("v_pk_ashrrev_i16", 2, static_cast<u32>(s16(b) >> (a & 15)));
  PACKED_INT("v_pk_mad_u16", 3, a * b + c);
  PACKED_INT("v_pk_mad_i16", 3, a * b + c);
  PACKED_INT("v_pk_max_i16", 2, static_cast<u32>(std::max(s16(a), s16(b))));
  PACKED_INT("v_pk_min_i16", 2, static_cast<u32>(std::min(s16(a), s16(b))));
  PACKED_INT("v_pk_max_u16", 2, std::max(a, b));
  PACKED_INT("v_pk_min_u16", 2, std::min(a, b));
  MGX_LANEWISE("v_pk_add_f32", kPackedForms | kClamp, "d..", packed32<2>(w, i, [](float x, float y, float) { return x + y; }));
  MGX_LANEWISE("v_pk_mul_f32", kPackedForms | kClamp, "d..", packed32<2>(w, i, [](float x, float y, float) { return x * y; }));
  MGX_LANEWISE("v_pk_fma_f32", kPackedForms | kClamp, "d...", packed32<3>(w, i, [](float x, float y, float z) { return std::fma(x, y, z); }));
  define("v_pk_mov_b32", packed_move, no_signs, kPacked, "d..");
}

}  // namespace mgx
