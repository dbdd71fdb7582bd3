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

i32 s24(u32 x) { return s32(x << 8) >> 8; }

// Additions and subtractions with a carry result (operand 1) and perhaps a carry source (4).
template <class F>
void carry(Wave& w, const Instruction& i, F f) {
  LaneArray space[2], r;
  u64 valid = ~u64{0};
  const u32* a = source<Type::I32>(w, i, i.o[2], 0, space[0], valid);
  const u32* b = source<Type::I32>(w, i, i.o[3], 1, space[1], valid);
  const u64 in = i.count > 4 ? read_mask(w, i.o[4]) : 0;
  const u64 mask = w.exec & valid;
  u64 out = 0;
  for (int l = 0; l < kLanes; ++l) {
    const u64 sum = f(u64{a[l]}, u64{b[l]}, in >> l & 1);
    r.at[l] = static_cast<u32>(sum);
    out |= (sum >> 32 & 1) << l;
  }
  store_lanes(w.v[i.o[0].index], r.at, mask);
  write_mask(w, i.o[1], out & w.exec);
}
#define CARRY(name, ...) \
  MGX_DO(name, carry(w, i, [](u64 a, u64 b, [[maybe_unused]] u64 c) -> u64 { return __VA_ARGS__; }))

// 32x32+64 products: operands d2, carry, a, b, c2.
template <class F>
void mad64(Wave& w, const Instruction& i, F f) {
  Instruction j = i;
  for (int k = 1; k < 4; ++k) j.o[k] = i.o[k + 1];
  vector_op64<3, 1, 1, 2, false>(w, j, f);
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
}

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
  define("v_mad_u32_u16", [](Wave& w, const Instruction& i) {
    vector_op<3, Type::I32, Type::I32>(w, i, [s = i.opsel](u32 a, u32 b, u32 c) -> u32 {
      return u16_of(s & 1 ? a >> 16 : a) * u16_of(s & 2 ? b >> 16 : b) + c;
    });
  });
  define("v_mad_i32_i16", [](Wave& w, const Instruction& i) {
    vector_op<3, Type::I32, Type::I32>(w, i, [s = i.opsel](u32 a, u32 b, u32 c) -> u32 {
      return static_cast<u32>(s16(s & 1 ? a >> 16 : a) * s16(s & 2 ? b >> 16 : b)) + c;
    });
  });
}

void define_wide() {
  MGX_DO("v_mov_b64", vector_op64<1, 2, 2, 2, false>(w, i, [](u64 a, u64, u64) { return a; }));
  MGX_DO("v_lshlrev_b64", vector_op64<2, 1, 2, 2, false>(w, i, [](u64 a, u64 b, u64) { return b << (a & 63); }));
  MGX_DO("v_lshrrev_b64", vector_op64<2, 1, 2, 2, false>(w, i, [](u64 a, u64 b, u64) { return b >> (a & 63); }));
  MGX_DO("v_ashrrev_i64", vector_op64<2, 1, 2, 2, false>(
                              w, i, [](u64 a, u64 b, u64) { return static_cast<u64>(static_cast<i64>(b) >> (a & 63)); }));
  MGX_DO("v_lshl_add_u64", vector_op64<3, 2, 1, 2, false>(w, i, [](u64 a, u64 b, u64 c) { return (a << (b & 7)) + c; }));
  MGX_DO("v_mad_u64_u32", mad64(w, i, [](u64 a, u64 b, u64 c) { return u64{static_cast<u32>(a)} * static_cast<u32>(b) + c; }));
  MGX_DO("v_mad_i64_i32", mad64(w, i, [](u64 a, u64 b, u64 c) {
           return static_cast<u64>(i64{static_cast<i32>(a)} * static_cast<i32>(b)) + c;
         }));
  CARRY("v_add_co_u32", a + b);
  CARRY("v_addc_co_u32", a + b + c);
  CARRY("v_sub_co_u32", a - b);
  CARRY("v_subb_co_u32", a - b - c);
  CARRY("v_subrev_co_u32", b - a);
  CARRY("v_subbrev_co_u32", b - a - c);
}

i32 dot4(u32 a, u32 b, bool sa, bool sb) {
  i32 sum = 0;
  for (int k = 0; k < 4; ++k) {
    const u32 x = a >> 8 * k & 255, y = b >> 8 * k & 255;
    sum += (sa ? static_cast<i8>(x) : static_cast<i32>(x)) * (sb ? static_cast<i8>(y) : static_cast<i32>(y));
  }
  return sum;
}

// Bit by bit, the entry of an 8-row truth table.
u32 truth(u32 table, u32 a, u32 b, u32 c) {
  u32 r = 0;
  for (int k = 0; k < 8; ++k) {
    if (table >> k & 1) r |= (k & 4 ? a : ~a) & (k & 2 ? b : ~b) & (k & 1 ? c : ~c);
  }
  return r;
}

}  // namespace

void define_vector_integers() {
  define_shorts();
  define_saturating();
  define_wide();
  INT1("v_mov_b32", a);
  INT1("v_accvgpr_read_b32", a);
  INT1("v_accvgpr_write_b32", a);
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
  INT3("v_dot4_i32_i8", static_cast<u32>(dot4(a, b, true, true)) + c);
  INT3("v_dot4_u32_u8", static_cast<u32>(dot4(a, b, false, false)) + c);
  define("v_dot4c_i32_i8", [](Wave& w, const Instruction& i) {
    vector_op<2, Type::I32, Type::I32, true>(
        w, i, [](u32 a, u32 b, u32 c) -> u32 { return static_cast<u32>(dot4(a, b, true, true)) + c; });
  });
  define("v_dot4_i32_iu8", [](Wave& w, const Instruction& i) {  // neg_lo says which are signed
    vector_op<3, Type::I32, Type::I32>(w, i, [n = i.neglo](u32 a, u32 b, u32 c) -> u32 {
      return static_cast<u32>(dot4(a, b, n & 1, n >> 1 & 1)) + c;
    });
  });
  MGX_DO("v_bitop3_b32", vector_op<3, Type::I32, Type::I32>(
                             w, i, [t = i.aux](u32 a, u32 b, u32 c) { return truth(t, a, b, c); }));
  MGX_DO("v_bitop3_b16", vector_op<3, Type::I16, Type::I16>(
                             w, i, [t = i.aux](u32 a, u32 b, u32 c) { return u16_of(truth(t, a, b, c)); }));
}

}  // namespace mgx
