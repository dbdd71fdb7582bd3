// What every vector instruction does round its arithmetic: operands of all lanes, modifiers, results.
#pragma once

#include "exec/numeric.h"
#include "exec/wave.h"

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

namespace mgx {

// Makes the host's rounding and denormals those of 16- and 64-bit floats; program.h has those of f32.
void apply_wide_mode(const Wave& w);
void apply_mode(const Wave& w);

// The mode of 16- and 64-bit floats for as long as this lives, where it is another than that of f32.
class WideMode {
 public:
  explicit WideMode(const Wave& w) : w_(w), differs_(((w.mode >> 2 ^ w.mode) & 0x33) != 0) {
    if (differs_) apply_wide_mode(w_);
  }
  ~WideMode() {
    if (differs_) apply_mode(w_);
  }
  WideMode(const WideMode&) = delete;
  WideMode& operator=(const WideMode&) = delete;

 private:
  const Wave& w_;
  const bool differs_;
};

// How an operand is read and a result is written.
enum class Type { I32, I16, F32, F16, BF16 };

#if defined(__clang__)
#define MGX_LANES _Pragma("clang loop vectorize(enable)") for (int l = 0; l < kLanes; ++l)
#else
#define MGX_LANES _Pragma("GCC ivdep") for (int l = 0; l < kLanes; ++l)
#endif

struct alignas(64) LaneArray {
  u32 at[kLanes];
};

inline void store_lanes(u32* to, const u32* from, u64 mask) {
  if (mask == ~u64{0}) {
    std::memcpy(to, from, sizeof(u32) * kLanes);
    return;
  }
#if defined(__AVX512F__)
  for (int k = 0; k < 4; ++k) {
    _mm512_mask_storeu_epi32(to + 16 * k, static_cast<__mmask16>(mask >> 16 * k), _mm512_loadu_si512(from + 16 * k));
  }
#else
  for (int l = 0; l < kLanes; ++l) {
    if (mask >> l & 1) to[l] = from[l];
  }
#endif
}

// Component c of a 32-bit-per-component operand, without modifiers.
inline const u32* raw_source(const Wave& w, const Operand& o, int c, LaneArray& space) {
  if (o.kind == Operand::Kind::Vector) return w.v[o.index + c];
  u32 value;
  if (o.kind == Operand::Kind::Constant) {
    value = o.size > 1 ? static_cast<u32>(o.bits64 >> 32 * c) : o.bits;
  } else if (is_aperture(o.index)) {
    value = static_cast<u32>(aperture(o.index) >> 32 * c);
  } else {
    value = o.index == kNull ? 0 : read_scalar(w, static_cast<u32>(o.index + c));
  }
  for (int l = 0; l < kLanes; ++l) space.at[l] = value;
  return space.at;
}

// The lanes that DPP lets through, with their first source in `space`.
u64 dpp_source(const Wave& w, const Instruction& i, const u32* from, LaneArray& space);

inline u32 select_part(u32 x, int select, bool sign) {
  if (select < 4) {
    x = x >> 8 * select & 255;
    return sign ? static_cast<u32>(static_cast<i32>(static_cast<i8>(x))) : x;
  }
  if (select < 6) {
    x = x >> 16 * (select - 4) & 0xffff;
    return sign ? static_cast<u32>(static_cast<i32>(static_cast<i16>(x))) : x;
  }
  return x;
}

// The fast path reads registers where they stand. `position`: 0 for the first source.
template <Type T>
inline const u32* source(const Wave& w, const Instruction& i, const Operand& o, int position, LaneArray& space,
                         u64& valid) {
  if ((T == Type::F16 || T == Type::I16 || T == Type::BF16) && o.kind == Operand::Kind::Constant) {
    for (int l = 0; l < kLanes; ++l) space.at[l] = o.bits16;
    if (i.plain) return space.at;
  }
  const u32* from = o.kind == Operand::Kind::Constant && T != Type::I32 && T != Type::F32
                        ? space.at
                        : raw_source(w, o, 0, space);
  if (i.plain) return from;
  u32* to = space.at;
  if ((i.dpp || i.dpp8) && position == 0) {
    valid &= dpp_source(w, i, from, space);
    from = to;
  }
  if (i.sdwa && position < 2) {
    const int select = position ? i.src1_sel : i.src0_sel;
    if (select != 6 || o.sext) {
      for (int l = 0; l < kLanes; ++l) to[l] = select_part(from[l], select, o.sext);
      from = to;
    }
  }
  if ((T == Type::F16 || T == Type::I16 || T == Type::BF16) && o.kind != Operand::Kind::Constant &&
      i.opsel >> position & 1) {
    for (int l = 0; l < kLanes; ++l) to[l] = from[l] >> 16;
    from = to;
  }
  if (o.abs || o.neg) {
    const u32 sign = T == Type::F32 || T == Type::I32 ? 0x80000000u : 0x8000u;
    const u32 keep = o.abs ? ~sign : ~0u, flip = o.neg ? sign : 0;
    for (int l = 0; l < kLanes; ++l) to[l] = (from[l] & keep) ^ flip;
    from = to;
  }
  return from;
}

// Output modifiers do nothing where results may be denormal or where the mode asks for IEEE 754.
inline bool scales_result(const Wave& w, const Instruction& i, bool single) {
  return i.omod != 0 && !(w.mode & kIeeeMode) && !(w.mode & (single ? 0x20 : 0x80));
}
inline double scale_of(const Instruction& i) { return i.omod == 1 ? 2.0 : i.omod == 2 ? 4.0 : 0.5; }
// With them a result is no denormal, and no negative zero.
inline float scaled(float x, const Instruction& i) {
  const float y = x * static_cast<float>(scale_of(i));
  return std::fabs(y) < 1.17549435e-38f ? 0.0f : y;
}

// Instructions of GFX9 whose 16-bit results leave the other half of the register alone.
bool keeps_high_half(const Instruction& i, Generation g);

template <Type T>
inline void finish(Wave& w, const Instruction& i, LaneArray& r, u64 mask) {
  const Operand& d = i.o[0];
  u32* old = w.v[d.index];
  if (T == Type::F32 && (i.omod || i.clamp)) {
    const bool scales = scales_result(w, i, true);
    for (int l = 0; l < kLanes; ++l) {
      const float x = scales ? scaled(as_f32(r.at[l]), i) : as_f32(r.at[l]);
      r.at[l] = from_f32(i.clamp ? clamp01(x) : x);
    }
  }
  if (T == Type::F16 && (i.omod || i.clamp)) {
    const bool scales = scales_result(w, i, false);
    for (int l = 0; l < kLanes; ++l) {
      float x = f32_of_f16(r.at[l] & 0xffff);
      if (scales) x = f32_of_f16(f16_of_f32(x * static_cast<float>(scale_of(i))));
      if (scales && std::fabs(x) < 6.103515625e-5f) x = 0;
      r.at[l] = f16_of_f32(i.clamp ? clamp01(x) : x);
    }
  }
  if (T == Type::F16 || T == Type::I16 || T == Type::BF16) {
    if (i.opsel & 8) {
      for (int l = 0; l < kLanes; ++l) r.at[l] = (old[l] & 0xffff) | r.at[l] << 16;
    } else if (w.generation != Generation::Gfx9 || (!i.sdwa && keeps_high_half(i, w.generation))) {
      for (int l = 0; l < kLanes; ++l) r.at[l] = (old[l] & 0xffff0000) | (r.at[l] & 0xffff);
    } else {
      for (int l = 0; l < kLanes; ++l) r.at[l] &= 0xffff;
    }
  }
  if (i.sdwa && i.dst_sel != 6) {
    const int bytes = i.dst_sel < 4;
    const int shift = bytes ? 8 * i.dst_sel : 16 * (i.dst_sel - 4);
    const u32 part = (bytes ? 0xffu : 0xffffu) << shift;
    for (int l = 0; l < kLanes; ++l) {
      const u32 placed = (r.at[l] << shift) & part;
      u32 rest = 0;
      if (i.dst_unused == 2) rest = old[l] & ~part;
      if (i.dst_unused == 1 && (placed >> (shift + (bytes ? 7 : 15)) & 1)) rest = ~part & ~((1u << shift) - 1);
      r.at[l] = placed | rest;
    }
  }
  store_lanes(old, r.at, mask);
}

// result[lane] = f(first, second, third): sources of type S (operands 1..N), a result of type D.
// Accumulate: the third source is the result register, read as D.
template <int N, Type S, Type D, bool Accumulate = false, class F>
inline void vector_op(Wave& w, const Instruction& i, F f) {
  LaneArray space[3], r;
  u64 valid = ~u64{0};
  const u32* a = source<S>(w, i, i.o[1], 0, space[0], valid);
  const u32* b = a;
  const u32* c = a;
  if (N > 1) b = source<S>(w, i, i.o[2], 1, space[1], valid);
  if (N > 2) c = source<S>(w, i, i.o[3], 2, space[2], valid);
  if (Accumulate) {
    c = w.v[i.o[0].index];
    if (D != Type::F32 && D != Type::I32 && (i.opsel & 8)) {
      for (int l = 0; l < kLanes; ++l) space[2].at[l] = c[l] >> 16;
      c = space[2].at;
    }
  }
  const u64 mask = w.exec & valid;
  if constexpr (S == Type::F16 || D == Type::F16) {
    const WideMode halves(w);
    MGX_LANES r.at[l] = f(a[l], b[l], c[l]);
    finish<D>(w, i, r, mask);
    return;
  }
  if (i.plain && mask == ~u64{0} && (D == Type::I32 || D == Type::F32)) {
    u32* to = w.v[i.o[0].index];
    MGX_LANES to[l] = f(a[l], b[l], c[l]);
    return;
  }
  MGX_LANES r.at[l] = f(a[l], b[l], c[l]);
  finish<D>(w, i, r, mask);
}

// The same over 64-bit values: register pairs, or one register where `Sk` is 1.
template <int N, int S0, int S1, int S2, bool Float, class F>
inline void vector_op64(Wave& w, const Instruction& i, F f) {
  LaneArray low_space[3], high_space[3], zero, low, high;
  const u32 *lo[3], *hi[3];
  u64 valid = ~u64{0};
  const bool scales = Float && scales_result(w, i, false);
  constexpr int sizes[3] = {S0, S1, S2};
  const WideMode doubles(w);
  for (int l = 0; l < kLanes; ++l) zero.at[l] = 0;
  for (int k = 0; k < 3; ++k) {
    lo[k] = hi[k] = zero.at;
    if (k >= N) continue;
    Operand o = i.o[k + 1];
    o.size = static_cast<u8>(sizes[k]);
    lo[k] = raw_source(w, o, 0, low_space[k]);
    const bool moved = k == 0 && (i.dpp || i.dpp8);
    if (moved) {
      valid &= dpp_source(w, i, lo[k], low_space[k]);
      lo[k] = low_space[k].at;
    }
    if (sizes[k] == 1) continue;
    hi[k] = raw_source(w, o, 1, high_space[k]);
    if (moved) {
      dpp_source(w, i, hi[k], high_space[k]);
      hi[k] = high_space[k].at;
    }
    if (o.neg || o.abs) {
      u32* to = high_space[k].at;
      const u32 keep = o.abs ? 0x7fffffffu : ~0u, flip = o.neg ? 0x80000000u : 0;
      for (int l = 0; l < kLanes; ++l) to[l] = (hi[k][l] & keep) ^ flip;
      hi[k] = to;
    }
  }
  for (int l = 0; l < kLanes; ++l) {
    u64 x = f(lo[0][l] | u64{hi[0][l]} << 32, lo[1][l] | u64{hi[1][l]} << 32, lo[2][l] | u64{hi[2][l]} << 32);
    if (Float && (scales || i.clamp)) {
      double d = as_f64(x);
      if (scales) d *= scale_of(i);
      if (scales && std::fabs(d) < 2.2250738585072014e-308) d = 0;
      if (i.clamp) d = d > 0 ? (d > 1 ? 1.0 : d) : 0.0;
      x = from_f64(d);
    }
    low.at[l] = static_cast<u32>(x);
    high.at[l] = static_cast<u32>(x >> 32);
  }
  store_lanes(w.v[i.o[0].index], low.at, w.exec & valid);
  store_lanes(w.v[i.o[0].index + 1], high.at, w.exec & valid);
}

}  // namespace mgx
