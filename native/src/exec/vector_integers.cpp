// Vector integer instructions: 32- and 16-bit arithmetic, bits, shifts, carries, 64-bit products.
#include <algorithm>

#include "exec/define.h"

namespace mgx {
namespace {

u32 reverse(u32 a) {
  u32 r = 0;
  for (int k = 0; k < 32; ++k) r |= (a >> k & 1) << (31 - k);
  return r;
}

u32 permute_bytes(u32 a, u32 b, u32 select) {
  const u64 data = u64{a} << 32 | b;
  u32 r = 0;
  for (int k = 0; k < 4; ++k) {
    const u32 s = select >> 8 * k & 255;
    u32 x;
    if (s < 8) {
      x = static_cast<u32>(data >> 8 * s & 255);
    } else if (s < 12) {
      x = data >> (16 * (s - 8) + 15) & 1 ? 255 : 0;
    } else {
      x = s == 12 ? 0 : 255;
    }
    r |= x << 8 * k;
  }
  return r;
}

u32 extract(u32 a, u32 offset, u32 width) {
  offset &= 31;
  width &= 31;
  if (width == 0) return 0;
  return offset + width < 32 ? (a >> offset) & ((1u << width) - 1) : a >> offset;
}

u32 extract_signed(u32 a, u32 offset, u32 width) {
  offset &= 31;
  width &= 31;
  if (width == 0) return 0;
  if (offset + width >= 32) return static_cast<u32>(s32(a) >> offset);
  return static_cast<u32>(s32(a << (32 - offset - width)) >> (32 - width));
}

// Means of bytes, up where c's byte is odd.
u32 means(u32 a, u32 b, u32 c) {
  u32 r = 0;
  for (int k = 0; k < 32; k += 8) r |= ((a >> k & 255) + (b >> k & 255) + (c >> k & 1)) >> 1 << k;
  return r;
}

i32 s24(u32 x) { return s32(x << 8) >> 8; }

enum class Limit { None, Unsigned };

// Additions and subtractions with a carry result (operand 1) and perhaps a carry source (4).
// Saturating ones end at 0 or at the largest number where there is a carry.
template <Limit L, class F>
void carry(Wave& w, const Instruction& i, F f, bool subtracts) {
  LaneArray space[2], r;
  u64 valid = ~u64{0};
  const u32* a = source<Type::I32>(w, i, i.o[2], 0, space[0], valid);
  const u32* b = source<Type::I32>(w, i, i.o[3], 1, space[1], valid);
  const u64 in = i.count > 4 ? read_mask(w, i.o[4]) : 0;
  const u64 mask = w.exec & valid;
  u64 out = 0;
  for (int l = 0; l < kLanes; ++l) {
    const u64 sum = f(u64{a[l]}, u64{b[l]}, in >> l & 1);
    const bool carried = sum >> 32 & 1;
    r.at[l] = L == Limit::Unsigned && carried ? (subtracts ? 0 : ~0u) : static_cast<u32>(sum);
    out |= u64{carried} << l;
  }
  finish<Type::I32>(w, i, r, mask);
  write_mask(w, i.o[1], out & mask);
}
#define CARRY(name, subtracts, ...)                                                                      \
  MGX_LANEWISE(name, kDpp | kSdwa | kMask, "d!..|d!...",                                                 \
               carry<Limit::None>(w, i, [](u64 a, u64 b, [[maybe_unused]] u64 c) -> u64 { return __VA_ARGS__; }, subtracts)); \
  MGX_LANEWISE(name " clamp", kDpp | kSdwa | kMask, "d!..|d!...",                                        \
               carry<Limit::Unsigned>(w, i, [](u64 a, u64 b, [[maybe_unused]] u64 c) -> u64 { return __VA_ARGS__; }, subtracts))

// 32x32+64 products and bit 64 of their sums: operands d2, carry, a, b, c2.
template <bool Signed>
void mad64(Wave& w, const Instruction& i) {
  LaneArray space[4], low, high;
  u64 valid = ~u64{0};
  const u32* a = source<Type::I32>(w, i, i.o[2], 0, space[0], valid);
  const u32* b = source<Type::I32>(w, i, i.o[3], 1, space[1], valid);
  Operand o = i.o[4];
  o.size = 2;
  const u32 *cl = raw_source(w, o, 0, space[2]), *ch = raw_source(w, o, 1, space[3]);
  u64 out = 0;
  for (int l = 0; l < kLanes; ++l) {
    const u64 c = cl[l] | u64{ch[l]} << 32;
    const u64 product = Signed ? static_cast<u64>(i64{s32(a[l])} * s32(b[l])) : u64{a[l]} * b[l];
    const u64 sum = product + c;
    low.at[l] = static_cast<u32>(sum);
    high.at[l] = static_cast<u32>(sum >> 32);
    // bit 64 of a sum of 65-bit numbers: signed ones have their sign there
    const u64 signs = Signed ? (product >> 63) + (c >> 63) : 0;
    out |= ((signs + (sum < product)) & 1) << l;
  }
  const u64 mask = w.exec & valid;
  store_lanes(w.v[i.o[0].index], low.at, mask);
  store_lanes(w.v[i.o[0].index + 1], high.at, mask);
  write_mask(w, i.o[1], out & mask);
}

// Sums and differences that saturate, under their names with " clamp".
void define_saturating() {
  INT2("v_add_u32 clamp", a + b < a ? ~0u : a + b);
  INT2("v_sub_u32 clamp", a < b ? 0 : a - b);
  INT2("v_subrev_u32 clamp", b < a ? 0 : b - a);
  INT2("v_add_i32 clamp", static_cast<u32>(std::clamp<i64>(i64{s32(a)} + s32(b), INT32_MIN, INT32_MAX)));
  INT2("v_sub_i32 clamp", static_cast<u32>(std::clamp<i64>(i64{s32(a)} - s32(b), INT32_MIN, INT32_MAX)));
  SHORT2("v_add_u16 clamp", std::min(u16_of(a) + u16_of(b), 0xffffu));
  SHORT2("v_sub_u16 clamp", u16_of(a) < u16_of(b) ? 0 : u16_of(a) - u16_of(b));
  SHORT2("v_subrev_u16 clamp", u16_of(b) < u16_of(a) ? 0 : u16_of(b) - u16_of(a));
  SHORT2("v_add_i16 clamp", static_cast<u32>(std::clamp(s16(a) + s16(b), -32768, 32767)));
  SHORT2("v_sub_i16 clamp", static_cast<u32>(std::clamp(s16(a) - s16(b), -32768, 32767)));
  SHORT3("v_mad_u16 clamp", std::min(u16_of(a) * u16_of(b) + u16_of(c), 0xffffu));
  SHORT3("v_mad_i16 clamp", static_cast<u32>(std::clamp(s16(a) * s16(b) + s16(c), -32768, 32767)));
  SHORT3("v_mad_legacy_u16 clamp", std::min(u16_of(a) * u16_of(b) + u16_of(c), 0xffffu));
  SHORT3("v_mad_legacy_i16 clamp", static_cast<u32>(std::clamp(s16(a) * s16(b) + s16(c), -32768, 32767)));
  INT3("v_mad_u32_u24 clamp", static_cast<u32>(std::min<u64>(u64{a & 0xffffff} * (b & 0xffffff) + c, ~0u)));
  INT3("v_mad_i32_i24 clamp", static_cast<u32>(std::clamp<i64>(i64{s24(a)} * s24(b) + s32(c), INT32_MIN, INT32_MAX)));
}

// a and b are halves that op_sel chooses, c is whole.
#define MGX_MAD16(name, ...)                                                                           \
  MGX_LANEWISE(name, kDpp | kHalves, "d...",                                                           \
               vector_op<3, Type::I32, Type::I32>(w, i, [s = i.opsel](u32 first, u32 second, u32 c) -> u32 { \
                 const u32 a = s & 1 ? first >> 16 : first, b = s & 2 ? second >> 16 : second;         \
                 return __VA_ARGS__;                                                                   \
               }))

void define_shorts() {
  SHORT2("v_add_u16", a + b);
  SHORT2("v_sub_u16", a - b);
  SHORT2("v_subrev_u16", b - a);
  SHORT2("v_mul_lo_u16", u16_of(a) * u16_of(b));
  SHORT2("v_lshlrev_b16", b << (a & 15));
  SHORT2("v_lshrrev_b16", u16_of(b) >> (a & 15));
  SHORT2("v_ashrrev_i16", static_cast<u32>(s16(b) >> (a & 15)));
  SHORT2("v_min_u16", std::min(u16_of(a), u16_of(b)));
  SHORT2("v_max_u16", std::max(u16_of(a), u16_of(b)));
  SHORT2("v_min_i16", static_cast<u32>(std::min(s16(a), s16(b))));
  SHORT2("v_max_i16", static_cast<u32>(std::max(s16(a), s16(b))));
  SHORT2("v_add_i16", a + b);
  SHORT2("v_sub_i16", a - b);
  SHORT2("v_and_b16", a & b);
  SHORT2("v_or_b16", a | b);
  SHORT2("v_xor_b16", a ^ b);
  SHORT1("v_not_b16", ~a);
  SHORT1("v_mov_b16", a);
  SHORT3("v_mad_u16", u16_of(a) * u16_of(b) + c);
  SHORT3("v_mad_i16", static_cast<u32>(s16(a) * s16(b)) + c);
  SHORT3("v_mad_legacy_u16", u16_of(a) * u16_of(b) + c);
  SHORT3("v_mad_legacy_i16", static_cast<u32>(s16(a) * s16(b)) + c);
  SHORT3("v_min3_u16", std::min({u16_of(a), u16_of(b), u16_of(c)}));
  SHORT3("v_max3_u16", std::max({u16_of(a), u16_of(b), u16_of(c)}));
  SHORT3("v_min3_i16", static_cast<u32>(std::min({s16(a), s16(b), s16(c)})));
  SHORT3("v_max3_i16", static_cast<u32>(std::max({s16(a), s16(b), s16(c)})));
  SHORT3("v_med3_i16", static_cast<u32>(std::max(std::min(s16(a), s16(b)), std::min(std::max(s16(a), s16(b)), s16(c)))));
  SHORT3("v_med3_u16", std::max(std::min(u16_of(a), u16_of(b)), std::min(std::max(u16_of(a), u16_of(b)), u16_of(c))));
  MGX_OP("v_pack_b32_f16", 2, I16, I32, u16_of(a) | b << 16);
  MGX_OP("v_cvt_i32_i16", 1, I16, I32, static_cast<u32>(s16(a)));
  MGX_OP("v_cvt_u32_u16", 1, I16, I32, u16_of(a));
  // the first two sources are 16-bit, the third 32-bit
  MGX_MAD16("v_mad_u32_u16", u16_of(a) * u16_of(b) + c);
  MGX_MAD16("v_mad_i32_i16", static_cast<u32>(s16(a) * s16(b)) + c);
  MGX_MAD16("v_mad_u32_u16 clamp", static_cast<u32>(std::min<u64>(u64{u16_of(a) * u16_of(b)} + c, ~0u)));
  MGX_MAD16("v_mad_i32_i16 clamp", static_cast<u32>(std::clamp<i64>(i64{s16(a) * s16(b)} + s32(c), INT32_MIN, INT32_MAX)));
}

void define_wide() {
  MGX_LANEWISE("v_mov_b64", kDpp, "d.", vector_op64<1, 2, 2, 2, false>(w, i, [](u64 a, u64, u64) { return a; }));
  MGX_LANEWISE("v_lshlrev_b64", kDpp, "d..", vector_op64<2, 1, 2, 2, false>(w, i, [](u64 a, u64 b, u64) { return b << (a & 63); }));
  MGX_LANEWISE("v_lshrrev_b64", kDpp, "d..", vector_op64<2, 1, 2, 2, false>(w, i, [](u64 a, u64 b, u64) { return b >> (a & 63); }));
  MGX_LANEWISE("v_ashrrev_i64", kDpp, "d..", vector_op64<2, 1, 2, 2, false>(w, i, [](u64 a, u64 b, u64) {
                 return static_cast<u64>(static_cast<i64>(b) >> (a & 63));
               }));
  MGX_LANEWISE("v_lshl_add_u64", kDpp, "d...", vector_op64<3, 2, 1, 2, false>(w, i, [](u64 a, u64 b, u64 c) { return (a << (b & 7)) + c; }));
  define("v_mad_u64_u32", mad64<false>, nullptr, kDpp | kMask, "d!...");
  define("v_mad_i64_i32", mad64<true>, nullptr, kDpp | kMask, "d!...");
  CARRY("v_add_co_u32", false, a + b);
  CARRY("v_addc_co_u32", false, a + b + c);
  CARRY("v_sub_co_u32", true, a - b);
  CARRY("v_subb_co_u32", true, a - b - c);
  CARRY("v_subrev_co_u32", true, b - a);
  CARRY("v_subbrev_co_u32", true, b - a - c);
}

// Bit by bit, the entry of an 8-row truth table.
u32 truth(u32 table, u32 a, u32 b, u32 c) {
  u32 r = 0;
  for (int k = 0; k < 8; ++k) {
    if (table >> k & 1) r |= (k & 4 ? a : ~a) & (k & 2 ? b : ~b) & (k & 1 ? c : ~c);
  }
  return r;
}

// Their format's bits for matrix instructions, of which none is heeded. Where packed forms have op_sel_hi, LLVM sets
// all three.
void no_matrix_forms(Instruction& i, Generation) {
  const bool as_llvm_does = i.abid == 8 && (i.words[1] >> 27 & 3) == 3;
  if (i.cbsz || (i.abid && !as_llvm_does) || i.blgp || (i.words[0] >> 15 & 1)) {
    throw Error("'" + std::string(i.name()) + "' with modifiers is not emulated");
  }
}

}  // namespace

void define_vector_integers() {
  define_shorts();
  define_saturating();
  define_wide();
  INT1("v_mov_b32", a);
  for (const char* name : {"v_accvgpr_read_b32", "v_accvgpr_write_b32"}) {
    define(name, [](Wave& w, const Instruction& i) {
      vector_op<1, Type::I32, Type::I32>(w, i, [](u32 a, u32, u32) { return a; });
    }, no_matrix_forms, kPlain, "d.");
  }
  INT1("v_accvgpr_mov_b32", a);
  INT1("v_not_b32", ~a);
  INT1("v_bfrev_b32", reverse(a));
  INT1("v_ffbh_u32", a ? static_cast<u32>(__builtin_clz(a)) : ~0u);
  INT1("v_ffbl_b32", a ? static_cast<u32>(__builtin_ctz(a)) : ~0u);
  INT1("v_ffbh_i32", (a == 0 || a == ~0u) ? ~0u : static_cast<u32>(__builtin_clz(s32(a) < 0 ? ~a : a)));
  INT2("v_add_u32", a + b);
  INT2("v_sub_u32", a - b);
  INT2("v_subrev_u32", b - a);
  INT2("v_add_i32", a + b);
  INT2("v_sub_i32", a - b);
  INT2("v_mul_lo_u32", a * b);
  INT2("v_mul_hi_u32", static_cast<u32>(u64{a} * b >> 32));
  INT2("v_mul_hi_i32", static_cast<u32>(static_cast<u64>(i64{s32(a)} * s32(b)) >> 32));
  INT2("v_mul_u32_u24", (a & 0xffffff) * (b & 0xffffff));
  INT2("v_mul_i32_i24", static_cast<u32>(static_cast<u32>(s24(a)) * static_cast<u32>(s24(b))));
  INT2("v_mul_hi_u32_u24", static_cast<u32>(u64{a & 0xffffff} * (b & 0xffffff) >> 32));
  INT2("v_mul_hi_i32_i24", static_cast<u32>(static_cast<u64>(i64{s24(a)} * s24(b)) >> 32));
  INT2("v_lshlrev_b32", b << (a & 31));
  INT2("v_lshrrev_b32", b >> (a & 31));
  INT2("v_ashrrev_i32", static_cast<u32>(s32(b) >> (a & 31)));
  INT2("v_and_b32", a & b);
  INT2("v_or_b32", a | b);
  INT2("v_xor_b32", a ^ b);
  INT2("v_xnor_b32", ~(a ^ b));
  INT2("v_min_u32", std::min(a, b));
  INT2("v_max_u32", std::max(a, b));
  INT2("v_min_i32", static_cast<u32>(std::min(s32(a), s32(b))));
  INT2("v_max_i32", static_cast<u32>(std::max(s32(a), s32(b))));
  INT2("v_bfm_b32", ((1u << (a & 31)) - 1) << (b & 31));
  INT2("v_bcnt_u32_b32", static_cast<u32>(__builtin_popcount(a)) + b);
  INT2("v_cvt_pk_u16_u32", std::min(a, 0xffffu) | std::min(b, 0xffffu) << 16);
  INT2("v_cvt_pk_i16_i32", u16_of(static_cast<u32>(std::clamp(s32(a), -32768, 32767))) |
                               static_cast<u32>(std::clamp(s32(b), -32768, 32767)) << 16);
  INT3("v_lshl_or_b32", a << (b & 31) | c);
  INT3("v_lshl_add_u32", (a << (b & 31)) + c);
  INT3("v_add_lshl_u32", (a + b) << (c & 31));
  INT3("v_add3_u32", a + b + c);
  INT3("v_or3_b32", a | b | c);
  INT3("v_xor3_b32", a ^ b ^ c);
  INT3("v_and_or_b32", (a & b) | c);
  INT3("v_xad_u32", (a ^ b) + c);
  INT3("v_mad_u32_u24", (a & 0xffffff) * (b & 0xffffff) + c);
  INT3("v_mad_i32_i24", static_cast<u32>(s24(a)) * static_cast<u32>(s24(b)) + c);
  INT3("v_lerp_u8", means(a, b, c));
  INT3("v_perm_b32", permute_bytes(a, b, c));
  INT3("v_alignbit_b32", static_cast<u32>((u64{a} << 32 | b) >> (c & 31)));
  INT3("v_alignbyte_b32", static_cast<u32>((u64{a} << 32 | b) >> 8 * (c & 3)));
  INT3("v_bfe_u32", extract(a, b, c));
  INT3("v_bfe_i32", extract_signed(a, b, c));
  INT3("v_bfi_b32", (a & b) | (~a & c));
  INT3("v_min3_u32", std::min({a, b, c}));
  INT3("v_max3_u32", std::max({a, b, c}));
  INT3("v_min3_i32", static_cast<u32>(std::min({s32(a), s32(b), s32(c)})));
  INT3("v_max3_i32", static_cast<u32>(std::max({s32(a), s32(b), s32(c)})));
  INT3("v_maxmin_u32", std::min(std::max(a, b), c));
  INT3("v_minmax_u32", std::max(std::min(a, b), c));
  INT3("v_maxmin_i32", static_cast<u32>(std::min(std::max(s32(a), s32(b)), s32(c))));
  INT3("v_minmax_i32", static_cast<u32>(std::max(std::min(s32(a), s32(b)), s32(c))));
  INT3("v_med3_i32", static_cast<u32>(std::max(std::min(s32(a), s32(b)), std::min(std::max(s32(a), s32(b)), s32(c)))));
  INT3("v_med3_u32", std::max(std::min(a, b), std::min(std::max(a, b), c)));
  MGX_LANEWISE("v_bitop3_b32", kPlain, "d...", vector_op<3, Type::I32, Type::I32>(
                                                   w, i, [t = i.aux](u32 a, u32 b, u32 c) { return truth(t, a, b, c); }));
  MGX_LANEWISE("v_bitop3_b16", kHalves, "d...", vector_op<3, Type::I16, Type::I16>(w, i, [t = i.aux](u32 a, u32 b, u32 c) {
                 return u16_of(truth(t, a, b, c));
               }));
  for (const char* name : {"v_nop", "v_pipeflush"}) MGX_DO(name, {});
}

}  // namespace mgx
