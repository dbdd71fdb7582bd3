// gfx950's conversions between small floats and wider ones with a power of 2 beside them: the
// exponent of an f32 operand. From small to wide the value is multiplied by it, else divided.
#include <string_view>

#include "exec/define.h"

namespace mgx {
namespace {

enum class Small : u8 { Fp8, Bf8, Fp4 };
enum class Wide : u8 { F32, F16, Bf16 };

float decode(u32 x, Small kind) {
  if (kind == Small::Fp8) return f32_of_fp8(x & 255, false);
  if (kind == Small::Bf8) return f32_of_bf8(x & 255, false);
  static const float table[] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
  const float value = table[x & 7];
  return x & 8 ? -value : value;
}

// To nearest even; what is too large becomes infinity, NaN where there is none, and 6 in fp4.
u32 encode(float x, Small kind, bool saturates) {
  if (kind == Small::Fp8) return fp8_of_f32(x, false, saturates);
  if (kind == Small::Bf8) return bf8_of_f32(x, false, saturates);
  const float a = std::fabs(x);
  const u32 sign = from_f32(x) >> 31 << 3;
  // halfway between neighbours the one with an even code
  const u32 code = a <= 0.25f ? 0 : a < 0.75f ? 1 : a <= 1.25f ? 2 : a < 1.75f ? 3 : a <= 2.5f ? 4 : a < 3.5f ? 5 : a <= 5.0f ? 6 : 7;
  return sign | code;
}

float half_of(u32 x, int half, Wide kind) {
  const u32 bits = half ? x >> 16 : x & 0xffff;
  return kind == Wide::F16 ? f32_of_f16(bits) : f32_of_bf16(bits);
}
u32 to_half(float x, Wide kind) { return kind == Wide::F16 ? f16_of_f32(x) : bf16_of_f32(x); }

double power(u32 scale) { return std::ldexp(1.0, exponent_of(scale) - 127); }

// Where a pair of small floats stands in its register: a half, or a byte of fp4.
int place_of(const Instruction& i, Small kind, int first_bit) {
  if (kind == Small::Fp4) return 8 * ((i.opsel >> first_bit & 1) | (i.opsel >> (first_bit + 1) & 1) << 1);
  const int bit = first_bit == 0 ? 0 : 3;
  return i.opsel >> bit & 1 ? 16 : 0;
}

// Two values of one register, or of two: packed beside what the result held.
template <Small S, Wide W>
void pack(Wave& w, const Instruction& i) {
  const bool singles = W == Wide::F32;
  LaneArray space[3], r;
  u64 valid = ~u64{0};
  Instruction j = i;
  j.opsel = 0;
  const u32* a = source<Type::F32>(w, j, i.o[1], 0, space[0], valid);
  const u32* b = source<Type::F32>(w, j, i.o[2], 1, space[1], valid);
  const u32* c = singles ? source<Type::F32>(w, j, i.o[3], 2, space[2], valid) : b;
  const u32* old = w.v[i.o[0].index];
  const int shift = place_of(i, S, 2), bits = S == Small::Fp4 ? 4 : 8;
  const u32 mask = S == Small::Fp4 ? 0xff : 0xffff;
  for (int l = 0; l < kLanes; ++l) {
    const double by = power(c[l]);
    u32 pair = 0;
    for (int k = 0; k < 2; ++k) {
      const float x = singles ? as_f32(k ? b[l] : a[l]) : half_of(a[l], k, W);
      pair |= encode(static_cast<float>(static_cast<double>(x) / by), S, w.mode & kOverflowMode) << bits * k;
    }
    r.at[l] = (old[l] & ~(mask << shift)) | pair << shift;
  }
  store_lanes(w.v[i.o[0].index], r.at, w.exec & valid);
}

template <Small S, Wide W>
void unpack(Wave& w, const Instruction& i) {
  LaneArray space[2], r[2];
  const u32 *a = raw_source(w, i.o[1], 0, space[0]), *b = raw_source(w, i.o[2], 0, space[1]);
  const int shift = place_of(i, S, 0), bits = S == Small::Fp4 ? 4 : 8;
  for (int l = 0; l < kLanes; ++l) {
    const double by = power(b[l]);
    float x[2];
    for (int k = 0; k < 2; ++k) x[k] = static_cast<float>(static_cast<double>(decode(a[l] >> (shift + bits * k), S)) * by);
    r[0].at[l] = W == Wide::F32 ? from_f32(x[0]) : to_half(x[0], W) | to_half(x[1], W) << 16;
    r[1].at[l] = from_f32(x[1]);
  }
  store_lanes(w.v[i.o[0].index], r[0].at, w.exec);
  if (W == Wide::F32) store_lanes(w.v[i.o[0].index + 1], r[1].at, w.exec);
}

// One byte, numbered by two bits of op_sel.
template <Small S, Wide W>
void unpack_byte(Wave& w, const Instruction& i) {
  LaneArray space[2], r;
  const u32 *a = raw_source(w, i.o[1], 0, space[0]), *b = raw_source(w, i.o[2], 0, space[1]);
  const u32* old = w.v[i.o[0].index];
  const int shift = 8 * ((i.opsel & 1) | (i.opsel >> 1 & 1) << 1), to = i.opsel & 8 ? 16 : 0;
  for (int l = 0; l < kLanes; ++l) {
    const float x = static_cast<float>(static_cast<double>(decode(a[l] >> shift, S)) * power(b[l]));
    r.at[l] = W == Wide::F32 ? from_f32(x) : (old[l] & ~(0xffffu << to)) | to_half(x, W) << to;
  }
  store_lanes(w.v[i.o[0].index], r.at, w.exec);
}

template <Small S, Wide W>
void define_pair(const std::string& small, const std::string& wide) {
  const std::string stem = "v_cvt_scalef32_";
  define(stem + "pk_" + small + "_" + wide, pack<S, W>, nullptr, W == Wide::F32 ? kHalves | kSigns : kHalves,
         W == Wide::F32 ? "d..." : "d..");
  define(stem + "pk_" + wide + "_" + small, unpack<S, W>, nullptr, kHalves, "d..");
  if (S != Small::Fp4 && W != Wide::Bf16) define(stem + wide + "_" + small, unpack_byte<S, W>, nullptr, kHalves, "d..");
}

template <Small S>
void define_small(const std::string& small) {
  define_pair<S, Wide::F32>(small, "f32");
  define_pair<S, Wide::F16>(small, "f16");
  define_pair<S, Wide::Bf16>(small, "bf16");
}

}  // namespace

void define_scaled_conversions() {
  define_small<Small::Fp8>("fp8");
  define_small<Small::Bf8>("bf8");
  define_small<Small::Fp4>("fp4");
}

}  // namespace mgx
