// Dot products of small elements, and sums of absolute differences.
#include <algorithm>

#include "exec/define.h"

namespace mgx {
namespace {

// Element k of `Bits` bits.
template <int Bits>
i32 element(u32 x, int k, bool is_signed) {
  const u32 raw = x >> Bits * k & ((1u << Bits) - 1);
  return is_signed ? static_cast<i32>(raw << (32 - Bits)) >> (32 - Bits) : static_cast<i32>(raw);
}

template <int Bits>
i64 dot(u32 a, u32 b, bool sa, bool sb) {
  i64 sum = 0;
  for (int k = 0; k < 32 / Bits; ++k) sum += i64{element<Bits>(a, k, sa)} * element<Bits>(b, k, sb);
  return sum;
}

// The sum with c of 32 bits: modulo 2^32, or to the nearest that there is.
template <int Bits, bool Clamp>
u32 dot_sum(u32 a, u32 b, u32 c, bool sa, bool sb) {
  const i64 sum = dot<Bits>(a, b, sa, sb);
  if (!Clamp) return static_cast<u32>(sum) + c;
  if (sa || sb) return static_cast<u32>(std::clamp<i64>(sum + s32(c), INT32_MIN, INT32_MAX));
  return static_cast<u32>(std::clamp<i64>(sum + c, 0, i64{0xffffffff}));
}

void only_signs(Instruction& i, Generation) {
  if (i.opsel != 0 || (i.opselhi & 7) != 7 || i.neghi != 0 || i.neglo > 3) {
    throw Error("'" + std::string(i.name()) + "' with op_sel is not emulated");
  }
}

// Integer dots, plain and saturating: v_dot4_i32_i8, its accumulating form, and those where neg_lo
// says which operand is signed.
#define DOT(name, bits, is_signed)                                                                           \
  MGX_LANEWISE(name, kDpp, "d...", vector_op<3, Type::I32, Type::I32>(w, i, [](u32 a, u32 b, u32 c) {        \
                 return dot_sum<bits, false>(a, b, c, is_signed, is_signed);                                 \
               }));                                                                                          \
  MGX_LANEWISE(name " clamp", kDpp, "d...", vector_op<3, Type::I32, Type::I32>(w, i, [](u32 a, u32 b, u32 c) { \
                 return dot_sum<bits, true>(a, b, c, is_signed, is_signed);                                  \
               }))
#define DOT_ADD(name, bits)                                                                                  \
  MGX_LANEWISE(name, kDpp, "d..", vector_op<2, Type::I32, Type::I32, true>(w, i, [](u32 a, u32 b, u32 c) {   \
                 return dot_sum<bits, false>(a, b, c, true, true);                                           \
               }));                                                                                          \
  MGX_LANEWISE(name " clamp", kDpp, "d..", vector_op<2, Type::I32, Type::I32, true>(w, i, [](u32 a, u32 b, u32 c) { \
                 return dot_sum<bits, true>(a, b, c, true, true);                                            \
               }))

template <int Bits, bool Clamp>
void dot_of_signs(Wave& w, const Instruction& i) {
  vector_op<3, Type::I32, Type::I32>(w, i, [n = i.neglo](u32 a, u32 b, u32 c) {
    return dot_sum<Bits, Clamp>(a, b, c, n & 1, n >> 1 & 1);
  });
}

void define_integer_dots() {
  DOT("v_dot2_i32_i16", 16, true);
  DOT("v_dot2_u32_u16", 16, false);
  DOT("v_dot4_i32_i8", 8, true);
  DOT("v_dot4_u32_u8", 8, false);
  DOT("v_dot8_i32_i4", 4, true);
  DOT("v_dot8_u32_u4", 4, false);
  DOT_ADD("v_dot2c_i32_i16", 16);
  DOT_ADD("v_dot4c_i32_i8", 8);
  DOT_ADD("v_dot8c_i32_i4", 4);
  define("v_dot4_i32_iu8", dot_of_signs<8, false>, only_signs, kDpp | kPacked, "d...");
  define("v_dot4_i32_iu8 clamp", dot_of_signs<8, true>, only_signs, kDpp | kPacked, "d...");
  define("v_dot8_i32_iu4", dot_of_signs<4, false>, only_signs, kDpp | kPacked, "d...");
  define("v_dot8_i32_iu4 clamp", dot_of_signs<4, true>, only_signs, kDpp | kPacked, "d...");
}

// Products of 16-bit floats are exact in f32. They are added to c one after the other, but bf16 ones
// on CDNA to each other first (`c_last`).
template <float (*Decode)(u32)>
u32 dot2(u32 a, u32 b, u32 c, bool c_last) {
  const float low = Decode(a & 0xffff) * Decode(b & 0xffff), high = Decode(a >> 16) * Decode(b >> 16);
  return from_f32(c_last ? low + high + as_f32(c) : as_f32(c) + low + high);
}
float half(u32 x) { return f32_of_f16(x); }

// Packed operands: op_sel and op_sel_hi choose the halves of a and b, neg_lo and neg_hi their signs.
template <float (*Decode)(u32)>
void dot2_packed(Wave& w, const Instruction& i) {
  const auto pair = [&i](u32 x, int k) {
    const u32 low = (i.opsel >> k & 1 ? x >> 16 : x & 0xffff) ^ (i.neglo >> k & 1 ? 0x8000 : 0);
    const u32 high = (i.opselhi >> k & 1 ? x >> 16 : x & 0xffff) ^ (i.neghi >> k & 1 ? 0x8000 : 0);
    return low | high << 16;
  };
  const bool c_last = w.generation == Generation::Gfx9 && Decode == f32_of_bf16;
  const bool negative = i.neglo >> 2 & 1, magnitude = i.neghi >> 2 & 1;
  LaneArray space[3], r;
  u64 valid = ~u64{0};
  const u32* a = source<Type::I32>(w, i, i.o[1], 0, space[0], valid);
  const u32* b = source<Type::I32>(w, i, i.o[2], 1, space[1], valid);
  const u32* c = source<Type::I32>(w, i, i.o[3], 2, space[2], valid);
  for (int l = 0; l < kLanes; ++l) {
    u32 third = c[l];
    if (magnitude) third &= 0x7fffffff;
    if (negative) third ^= 0x80000000;
    r.at[l] = dot2<Decode>(pair(a[l], 0), pair(b[l], 1), third, c_last);
  }
  finish<Type::F32>(w, i, r, w.exec & valid);
}

// A constant stands in the low half of a packed operand.
void packed_constants(Instruction& i, Generation) {
  if ((i.opsel & 4) || !(i.opselhi & 4)) throw Error("'" + std::string(i.name()) + "' with op_sel of its f32 operand is not emulated");
  for (u8 k = 1; k < 3; ++k) {
    Operand& o = i.o[k];
    if (o.kind == Operand::Kind::Constant && !o.literal) o.bits = o.bits16;
  }
}

template <float (*Decode)(u32)>
void dot2_add(Wave& w, const Instruction& i) {
  vector_op<2, Type::I32, Type::F32, true>(w, i, [](u32 a, u32 b, u32 c) { return dot2<Decode>(a, b, c, false); });
}

// 16-bit results, rounded once. op_sel chooses the half of c and of the result.
template <float (*Decode)(u32), u32 (*Encode)(float)>
void dot2_halves(Wave& w, const Instruction& i) {
  LaneArray space[3], r;
  u64 valid = ~u64{0};
  const u32* a = source<Type::I32>(w, i, i.o[1], 0, space[0], valid);
  const u32* b = source<Type::I32>(w, i, i.o[2], 1, space[1], valid);
  const u32* c = raw_source(w, i.o[3], 0, space[2]);
  const bool high = i.opsel >> 2 & 1;
  for (int l = 0; l < kLanes; ++l) {
    const u32 third = high ? c[l] >> 16 : c[l] & 0xffff;
    const double low = static_cast<double>(Decode(a[l] & 0xffff)) * static_cast<double>(Decode(b[l] & 0xffff));
    const double rest = static_cast<double>(Decode(a[l] >> 16)) * static_cast<double>(Decode(b[l] >> 16));
    r.at[l] = Encode(to_odd(low + rest + static_cast<double>(Decode(third))));
  }
  finish<Type::F16>(w, i, r, w.exec & valid);
}

void third_half_alone(Instruction& i, Generation) {
  if (i.opsel & 3) throw Error("'" + std::string(i.name()) + "' with op_sel of its packed operands is not emulated");
}

template <float (*A)(u32, bool), float (*B)(u32, bool)>
void dot4_bytes(Wave& w, const Instruction& i) {
  vector_op<3, Type::I32, Type::I32>(w, i, [](u32 a, u32 b, u32 c) {
    float sum = as_f32(c);
    for (int k = 0; k < 4; ++k) sum = std::fma(A(a >> 8 * k & 255, false), B(b >> 8 * k & 255, false), sum);
    return from_f32(sum);
  });
}

void define_float_dots() {
  define("v_dot2_f32_f16", dot2_packed<half>, packed_constants, kDpp | kClamp | kPacked, "d...");
  define("v_dot2_f32_bf16", dot2_packed<f32_of_bf16>, packed_constants, kDpp | kClamp | kPacked, "d...");
  for (const char* name : {"v_dot2c_f32_f16", "v_dot2acc_f32_f16"}) define(name, dot2_add<half>, nullptr, kDpp, "d..");
  for (const char* name : {"v_dot2c_f32_bf16", "v_dot2acc_f32_bf16"}) define(name, dot2_add<f32_of_bf16>, nullptr, kDpp, "d..");
  define("v_dot2_f16_f16", dot2_halves<half, f16_of_f32>, third_half_alone, kHalves, "d...");
  define("v_dot2_bf16_bf16", dot2_halves<f32_of_bf16, bf16_of_f32>, third_half_alone, kHalves, "d...");
  define("v_dot4_f32_fp8_fp8", dot4_bytes<f32_of_fp8, f32_of_fp8>, nullptr, kDpp, "d...");
  define("v_dot4_f32_fp8_bf8", dot4_bytes<f32_of_fp8, f32_of_bf8>, nullptr, kDpp, "d...");
  define("v_dot4_f32_bf8_fp8", dot4_bytes<f32_of_bf8, f32_of_fp8>, nullptr, kDpp, "d...");
  define("v_dot4_f32_bf8_bf8", dot4_bytes<f32_of_bf8, f32_of_bf8>, nullptr, kDpp, "d...");
}

u32 apart(u32 a, u32 b) { return a > b ? a - b : b - a; }
u64 bytes_apart(u32 a, u32 b, bool masked) {
  u64 sum = 0;
  for (int k = 0; k < 4; ++k) {
    const u32 x = a >> 8 * k & 255, y = b >> 8 * k & 255;
    if (!masked || y != 0) sum += apart(x, y);
  }
  return sum;
}
u64 shorts_apart(u32 a, u32 b) { return u64{apart(a & 0xffff, b & 0xffff)} + apart(a >> 16, b >> 16); }

// Four sums of bytes, each one byte further on, in 16 bits each.
template <bool Masked>
void four_sums(Wave& w, const Instruction& i) {
  vector_op64<3, 2, 1, 2, false>(w, i, [](u64 a, u64 b, u64 c) {
    u64 r = 0;
    for (int k = 0; k < 4; ++k) {
      const u64 sum = bytes_apart(static_cast<u32>(a >> 8 * k), static_cast<u32>(b), Masked) + (c >> 16 * k);
      r |= (sum & 0xffff) << 16 * k;
    }
    return r;
  });
}

// The same in 32 bits each, added to four registers.
void four_wide_sums(Wave& w, const Instruction& i) {
  LaneArray space[3], third[4], r[4];
  Operand o = i.o[1], c = i.o[3];
  o.size = 2;
  c.size = 4;
  const u32 *low = raw_source(w, o, 0, space[0]), *high = raw_source(w, o, 1, space[1]), *b = raw_source(w, i.o[2], 0, space[2]);
  for (int k = 0; k < 4; ++k) {
    const u32* sum = raw_source(w, c, k, third[k]);
    for (int l = 0; l < kLanes; ++l) {
      const u64 a = low[l] | u64{high[l]} << 32;
      r[k].at[l] = static_cast<u32>(bytes_apart(static_cast<u32>(a >> 8 * k), b[l], true) + sum[l]);
    }
  }
  for (int k = 0; k < 4; ++k) store_lanes(w.v[i.o[0].index + k], r[k].at, w.exec);
}

void registers_alone(Instruction& i, Generation) {
  if (i.o[3].kind == Operand::Kind::Constant) throw Error("'" + std::string(i.name()) + "' with a constant to add to is not emulated");
}

#define SAD(name, ...)                                                                                \
  INT3(name, static_cast<u32>(__VA_ARGS__ + u64{c}));                                                 \
  INT3(name " clamp", static_cast<u32>(std::min<u64>(__VA_ARGS__ + u64{c}, ~0u)))

void define_differences() {
  SAD("v_sad_u8", bytes_apart(a, b, false));
  SAD("v_sad_hi_u8", (bytes_apart(a, b, false) << 16));
  SAD("v_msad_u8", bytes_apart(a, b, true));
  SAD("v_sad_u16", shorts_apart(a, b));
  SAD("v_sad_u32", u64{apart(a, b)});
  define("v_qsad_pk_u16_u8", four_sums<false>, nullptr, kPlain, "d...");
  define("v_mqsad_u32_u8", four_wide_sums, registers_alone, kPlain, "d...");
  define("v_mqsad_pk_u16_u8", four_sums<true>, nullptr, kPlain, "d...");
}

}  // namespace

void define_sums() {
  define_integer_dots();
  define_float_dots();
  define_differences();
}

}  // namespace mgx
