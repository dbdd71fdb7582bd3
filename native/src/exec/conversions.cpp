// Conversions between number formats.
#include <algorithm>

#include "exec/define.h"

namespace mgx {
namespace {

u32 to_i32(float x) {
  if (std::isnan(x)) return 0;
  return x >= 2147483648.0f ? 0x7fffffff : x <= -2147483648.0f ? 0x80000000 : static_cast<u32>(static_cast<i32>(x));
}
u32 to_u32(float x) { return !(x > 0) ? 0 : x >= 4294967296.0f ? ~0u : static_cast<u32>(x); }
u32 to_i16(float x) {
  return std::isnan(x) ? 0 : static_cast<u32>(static_cast<i32>(std::clamp(x, -32768.0f, 32767.0f))) & 0xffff;
}
u32 to_u16(float x) { return !(x > 0) ? 0 : static_cast<u32>(std::min(x, 65535.0f)); }
u32 normalized(float x, float scale, float low) {
  return std::isnan(x) ? 0 : static_cast<u32>(static_cast<i32>(std::nearbyint(std::clamp(x, low, 1.0f) * scale)));
}

using Decode = float (*)(u32, bool);
using Encode = u32 (*)(float, bool, bool);

// The first source, from another lane under DPP.
const u32* whole_source(const Wave& w, const Instruction& i, LaneArray& space, u64& valid) {
  const u32* a = raw_source(w, i.o[1], 0, space);
  if (!i.dpp && !i.dpp8) return a;
  valid &= dpp_source(w, i, a, space);
  return space.at;
}

// One byte of the source, by SDWA or op_sel.
template <Decode decode>
void unpack_one(Wave& w, const Instruction& i) {
  LaneArray space, r;
  u64 valid = ~u64{0};
  const u32* a = whole_source(w, i, space, valid);
  // op_sel's two bits number the bytes from the high one down: 0, 2, 1, 3
  const int part = i.sdwa ? (i.src0_sel < 4 ? i.src0_sel : 0) : (i.opsel & 1) << 1 | (i.opsel >> 1 & 1);
  for (int l = 0; l < kLanes; ++l) r.at[l] = from_f32(decode(a[l] >> 8 * part & 255, w.fnuz));
  Instruction j = i;
  j.sdwa = false;
  finish<Type::F32>(w, j, r, w.exec & valid);
}

template <Decode decode>
void unpack_two(Wave& w, const Instruction& i) {
  LaneArray space, low, high;
  u64 valid = ~u64{0};
  const u32* a = whole_source(w, i, space, valid);
  const int shift = (i.sdwa && i.src0_sel == 5) || (i.opsel & 1) ? 16 : 0;
  for (int l = 0; l < kLanes; ++l) {
    low.at[l] = from_f32(decode(a[l] >> shift & 255, w.fnuz));
    high.at[l] = from_f32(decode(a[l] >> (shift + 8) & 255, w.fnuz));
  }
  store_lanes(w.v[i.o[0].index], low.at, w.exec & valid);
  store_lanes(w.v[i.o[0].index + 1], high.at, w.exec & valid);
}

template <Encode encode>
void pack_two(Wave& w, const Instruction& i) {
  LaneArray space[2], r;
  u64 valid = ~u64{0};
  Instruction j = i;
  j.opsel = 0;
  const u32* a = source<Type::F32>(w, j, i.o[1], 0, space[0], valid);
  const u32* b = source<Type::F32>(w, j, i.o[2], 1, space[1], valid);
  const u32* old = w.v[i.o[0].index];
  const int shift = i.opsel & 8 ? 16 : 0;
  for (int l = 0; l < kLanes; ++l) {
    const u32 pair = encode(as_f32(a[l]), w.fnuz, w.mode & kOverflowMode) | encode(as_f32(b[l]), w.fnuz, w.mode & kOverflowMode) << 8;
    r.at[l] = (old[l] & ~(0xffffu << shift)) | pair << shift;
  }
  store_lanes(w.v[i.o[0].index], r.at, w.exec & valid);
}

// Rounded away from zero where the seed's high bits carry: they are added to the bits that do not fit,
// which are then cut off. What is below the smallest normal number is aligned to it first.
float by_seed(float x, u32 seed, int fraction, int least) {
  const u32 bits = from_f32(x);
  const int field = exponent_of(bits);
  if (field == 255 || field == 0) return field == 0 ? std::copysign(0.0f, x) : x;
  const int exponent = std::max(field - 127, least), below = exponent - (field - 127);
  u32 whole = below < 32 ? ((bits & 0x7fffff) | 0x800000) >> below : 0;
  whole = (whole + (seed >> (9 + fraction))) >> (23 - fraction);
  return std::copysign(std::ldexp(static_cast<float>(whole), exponent - fraction), x);
}

// A part of the result, `mask` moved up by `shift`; the rest stays. `encode` makes its bits of what the
// seed rounds.
template <class Part>
void round_part(Wave& w, const Instruction& i, int shift, u32 mask, int fraction, int least, Part encode) {
  LaneArray space[2], r;
  u64 valid = ~u64{0};
  Instruction j = i;
  j.opsel = 0;
  const u32* a = source<Type::F32>(w, j, i.o[1], 0, space[0], valid);
  const u32* seed = raw_source(w, i.o[2], 0, space[1]);
  const u32* old = w.v[i.o[0].index];
  for (int l = 0; l < kLanes; ++l) {
    r.at[l] = (old[l] & ~(mask << shift)) | encode(by_seed(as_f32(a[l]), seed[l], fraction, least)) << shift;
  }
  store_lanes(w.v[i.o[0].index], r.at, w.exec & valid);
}

// One byte, numbered by op_sel's two high bits.
template <Encode encode, int Fraction, int Least>
void pack_by_seed(Wave& w, const Instruction& i) {
  round_part(w, i, 8 * (i.opsel >> 2 & 3), 0xff, Fraction, Least - (w.fnuz ? 1 : 0),
             [&](float x) { return u32{encode(x, w.fnuz, w.mode & kOverflowMode)}; });
}

// One half, by op_sel's high bit.
template <u32 (*encode)(float), int Fraction, int Least>
void half_by_seed(Wave& w, const Instruction& i) {
  round_part(w, i, i.opsel & 8 ? 16 : 0, 0xffff, Fraction, Least, encode);
}

// Signs of the seed would be those of no number; op_sel chooses a part of the result alone, among
// bytes or halves.
template <int Reserved>
void seed_alone(Instruction& i, Generation) {
  if (i.o[2].neg || i.o[2].abs) throw Error("'" + std::string(i.name()) + "' with a sign of its seed is not emulated");
  if (i.opsel & Reserved) throw Error("'" + std::string(i.name()) + "' with op_sel of its sources is not emulated");
}

// A pair of bytes is a half of the source.
void halves_alone(Instruction& i, Generation) {
  if (i.sdwa && i.src0_sel < 4) throw Error("'" + std::string(i.name()) + "' of a byte is not emulated");
}

}  // namespace

void define_conversions() {
  INT1("v_cvt_f32_u32", from_f32(static_cast<float>(a)));
  INT1("v_cvt_f32_i32", from_f32(static_cast<float>(s32(a))));
  INT1("v_cvt_f32_ubyte0", from_f32(static_cast<float>(a & 255)));
  INT1("v_cvt_f32_ubyte1", from_f32(static_cast<float>(a >> 8 & 255)));
  INT1("v_cvt_f32_ubyte2", from_f32(static_cast<float>(a >> 16 & 255)));
  INT1("v_cvt_f32_ubyte3", from_f32(static_cast<float>(a >> 24)));
  MGX_OP("v_cvt_i32_f32", 1, F32, I32, to_i32(as_f32(a)));
  MGX_OP("v_cvt_u32_f32", 1, F32, I32, to_u32(as_f32(a)));
  MGX_OP("v_cvt_rpi_i32_f32", 1, F32, I32, to_i32(std::floor(as_f32(a) + 0.5f)));
  MGX_OP("v_cvt_flr_i32_f32", 1, F32, I32, to_i32(std::floor(as_f32(a))));
  MGX_OP("v_cvt_f16_f32", 1, F32, F16, f16_of_f32(as_f32(a)));
  MGX_OP("v_cvt_f32_f16", 1, F16, F32, from_f32(f32_of_f16(a & 0xffff)));
  MGX_OP("v_cvt_f32_bf16", 1, BF16, F32, a << 16);
  MGX_OP("v_cvt_f16_u16", 1, I16, F16, f16_of_f32(static_cast<float>(a & 0xffff)));
  MGX_OP("v_cvt_f16_i16", 1, I16, F16, f16_of_f32(static_cast<float>(s16(a))));
  MGX_OP("v_cvt_u16_f16", 1, F16, I16, to_u16(f32_of_f16(a & 0xffff)));
  MGX_OP("v_cvt_i16_f16", 1, F16, I16, to_i16(f32_of_f16(a & 0xffff)));
  MGX_OP("v_cvt_f32_i16", 1, I16, F32, from_f32(static_cast<float>(s16(a))));
  MGX_OP("v_cvt_pkrtz_f16_f32", 2, F32, I32,
         f16_of_f32_truncated(as_f32(a)) | f16_of_f32_truncated(as_f32(b)) << 16);
  MGX_OP("v_cvt_pk_f16_f32", 2, F32, I32, f16_of_f32(as_f32(a)) | f16_of_f32(as_f32(b)) << 16);
  MGX_OP("v_cvt_pk_bf16_f32", 2, F32, I32, bf16_of_f32(as_f32(a)) | bf16_of_f32(as_f32(b)) << 16);
  MGX_OP("v_cvt_pknorm_i16_f32", 2, F32, I32,
         u16_of(normalized(as_f32(a), 32767, -1)) | normalized(as_f32(b), 32767, -1) << 16);
  MGX_OP("v_cvt_pknorm_u16_f32", 2, F32, I32,
         u16_of(normalized(as_f32(a), 65535, 0)) | normalized(as_f32(b), 65535, 0) << 16);
  constexpr u16 one = kDpp | kSdwaSources | kHalves | kClamp | kOmod, two = kDpp | kSdwaSources | kHalves;
  define("v_cvt_f32_fp8", unpack_one<f32_of_fp8>, nullptr, one, "d.");
  define("v_cvt_f32_bf8", unpack_one<f32_of_bf8>, nullptr, one, "d.");
  define("v_cvt_pk_f32_fp8", unpack_two<f32_of_fp8>, halves_alone, two, "d.");
  define("v_cvt_pk_f32_bf8", unpack_two<f32_of_bf8>, halves_alone, two, "d.");
  define("v_cvt_pk_fp8_f32", pack_two<fp8_of_f32>, nullptr, kDpp | kHalves | kSigns, "d..");
  define("v_cvt_pk_bf8_f32", pack_two<bf8_of_f32>, nullptr, kDpp | kHalves | kSigns, "d..");
  define("v_cvt_sr_fp8_f32", pack_by_seed<fp8_of_f32, 3, -6>, seed_alone<3>, kHalves | kSigns, "d..");
  define("v_cvt_sr_bf8_f32", pack_by_seed<bf8_of_f32, 2, -14>, seed_alone<3>, kHalves | kSigns, "d..");
  define("v_cvt_sr_f16_f32", half_by_seed<f16_of_f32, 10, -14>, seed_alone<7>, kHalves | kSigns, "d..");
  define("v_cvt_sr_bf16_f32", half_by_seed<bf16_of_f32, 7, -126>, seed_alone<7>, kHalves | kSigns, "d..");
  MGX_OP("v_cvt_norm_i16_f16", 1, F16, I16, u16_of(normalized(f32_of_f16(a & 0xffff), 32767, -1)));
  MGX_OP("v_cvt_norm_u16_f16", 1, F16, I16, u16_of(normalized(f32_of_f16(a & 0xffff), 65535, 0)));
  MGX_OP("v_cvt_pknorm_i16_f16", 2, F16, I32,
         u16_of(normalized(f32_of_f16(a & 0xffff), 32767, -1)) | normalized(f32_of_f16(b & 0xffff), 32767, -1) << 16);
  MGX_OP("v_cvt_pknorm_u16_f16", 2, F16, I32,
         u16_of(normalized(f32_of_f16(a & 0xffff), 65535, 0)) | normalized(f32_of_f16(b & 0xffff), 65535, 0) << 16);
  MGX_OP("v_cvt_pk_i16_f32", 2, F32, I32, to_i16(as_f32(a)) | to_i16(as_f32(b)) << 16);
  MGX_OP("v_cvt_pk_u16_f32", 2, F32, I32, to_u16(as_f32(a)) | to_u16(as_f32(b)) << 16);
  INT1("v_cvt_off_f32_i4", from_f32(static_cast<float>(static_cast<i32>((a & 15) ^ 8) - 8) / 16.0f));
  MGX_OP("v_sat_pk_u8_i16", 1, I32, I16, static_cast<u32>(std::clamp(s16(a), 0, 255)) | static_cast<u32>(std::clamp(s16(a >> 16), 0, 255)) << 8);
  MGX_OP("v_cvt_pk_u8_f32", 3, F32, I32,
         (c & ~(255u << 8 * (b & 3))) | to_u32(std::clamp(as_f32(a), 0.0f, 255.0f)) << 8 * (b & 3));
}

}  // namespace mgx
