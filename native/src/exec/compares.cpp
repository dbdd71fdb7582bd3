// Vector comparisons: v_cmp and v_cmpx of every type, and tests of float classes.
#include "exec/define.h"

namespace mgx {
namespace {

template <Type T, bool Exec, class F>
void compare(Wave& w, const Instruction& i, F f) {
  LaneArray space[2];
  const int first = i.results & 1 ? 1 : 0;  // v_cmpx of later generations has no result but exec
  u64 valid = ~u64{0};
  const u32* a = source<T>(w, i, i.o[first], 0, space[0], valid);
  const u32* b = source<T>(w, i, i.o[first + 1], 1, space[1], valid);
  u64 mask = 0;
  for (int l = 0; l < kLanes; ++l) mask |= u64{f(a[l], b[l])} << l;
  mask &= w.exec & valid;
  if (first) write_mask(w, i.o[0], mask);
  if (Exec) w.exec = mask;
}

template <bool Exec, class F>
void compare64(Wave& w, const Instruction& i, F f) {
  LaneArray space[4];
  const int first = i.results & 1 ? 1 : 0;
  Operand x = i.o[first], y = i.o[first + 1];
  x.size = y.size = 2;
  const u32 *al = raw_source(w, x, 0, space[0]), *ah = raw_source(w, x, 1, space[1]);
  u64 valid = ~u64{0};
  if (i.dpp || i.dpp8) {
    valid &= dpp_source(w, i, al, space[0]);
    dpp_source(w, i, ah, space[1]);
    al = space[0].at;
    ah = space[1].at;
  }
  const u32 *bl = raw_source(w, y, 0, space[2]), *bh = raw_source(w, y, 1, space[3]);
  u64 mask = 0;
  const WideMode doubles(w);
  const auto modified = [](u64 v, const Operand& o) {
    if (o.abs) v &= ~(u64{1} << 63);
    return o.neg ? v ^ u64{1} << 63 : v;
  };
  for (int l = 0; l < kLanes; ++l) {
    mask |= u64{f(modified(al[l] | u64{ah[l]} << 32, x), modified(bl[l] | u64{bh[l]} << 32, y))} << l;
  }
  mask &= w.exec & valid;
  if (first) write_mask(w, i.o[0], mask);
  if (Exec) w.exec = mask;
}

// The operands of v_cmp, and of v_cmpx where exec alone is its result.
constexpr const char* kCompared = "!..|..";
// clamp asks for an exception of a quiet NaN: there are none
constexpr u16 compare_forms(Type t) { return static_cast<u16>((forms_of(t, Type::I32) & ~kSdwaResult) | (t == Type::F32 || t == Type::F16 ? kClamp : 0)); }
#define CMP(name, type, pre, ...)                                                                 \
  define("v_cmp_" name, [](Wave& w, const Instruction& i) {                                       \
    compare<Type::type, false>(w, i, [](u32 a, u32 b) -> bool { pre; return __VA_ARGS__; });      \
  }, nullptr, compare_forms(Type::type), kCompared);                                              \
  define("v_cmpx_" name, [](Wave& w, const Instruction& i) {                                      \
    compare<Type::type, true>(w, i, [](u32 a, u32 b) -> bool { pre; return __VA_ARGS__; });       \
  }, nullptr, compare_forms(Type::type), kCompared)
// Integers have no signs to change.
constexpr u16 wide_forms(const char* name) {
  bool is_float = false;
  for (const char* s = name; *s != 0; ++s) is_float = is_float || (s[0] == '_' && s[1] == 'f' && s[2] == '6');
  return static_cast<u16>(kDpp | (is_float ? kSigns | kClamp : 0));
}
#define CMP64(name, pre, ...)                                                                     \
  define("v_cmp_" name, [](Wave& w, const Instruction& i) {                                       \
    compare64<false>(w, i, [](u64 a, u64 b) -> bool { pre; return __VA_ARGS__; });                \
  }, nullptr, wide_forms(name), kCompared);                                                       \
  define("v_cmpx_" name, [](Wave& w, const Instruction& i) {                                      \
    compare64<true>(w, i, [](u64 a, u64 b) -> bool { pre; return __VA_ARGS__; });                 \
  }, nullptr, wide_forms(name), kCompared)
#define INTEGER_COMPARES(DEF, type, ...)            \
  DEF("lt_" type, __VA_ARGS__, x < y);              \
  DEF("eq_" type, __VA_ARGS__, x == y);             \
  DEF("le_" type, __VA_ARGS__, x <= y);             \
  DEF("gt_" type, __VA_ARGS__, x > y);              \
  DEF("ne_" type, __VA_ARGS__, x != y);             \
  DEF("ge_" type, __VA_ARGS__, x >= y)
#define FLOAT_COMPARES(DEF, type, ...)              \
  DEF("lt_" type, __VA_ARGS__, x < y);              \
  DEF("eq_" type, __VA_ARGS__, x == y);             \
  DEF("le_" type, __VA_ARGS__, x <= y);             \
  DEF("gt_" type, __VA_ARGS__, x > y);              \
  DEF("lg_" type, __VA_ARGS__, x < y || x > y);     \
  DEF("ge_" type, __VA_ARGS__, x >= y);             \
  DEF("o_" type, __VA_ARGS__, x == x && y == y);    \
  DEF("u_" type, __VA_ARGS__, x != x || y != y);    \
  DEF("nge_" type, __VA_ARGS__, !(x >= y));         \
  DEF("nlg_" type, __VA_ARGS__, !(x < y || x > y)); \
  DEF("ngt_" type, __VA_ARGS__, !(x > y));          \
  DEF("nle_" type, __VA_ARGS__, !(x <= y));         \
  DEF("neq_" type, __VA_ARGS__, !(x == y));         \
  DEF("nlt_" type, __VA_ARGS__, !(x < y))

// The bit of v_cmp_class's mask that a float of these fields belongs to.
int class_of(bool negative, bool all_ones, bool zero_exponent, u64 fraction, bool quiet) {
  if (all_ones) return fraction ? (quiet ? 1 : 0) : (negative ? 2 : 9);
  if (zero_exponent) return fraction ? (negative ? 4 : 7) : (negative ? 5 : 6);
  return negative ? 3 : 8;
}

bool class32(u32 a, u32 mask) {
  const u32 fraction = a & 0x7fffff, exponent = a >> 23 & 255;
  return mask >> class_of(a >> 31, exponent == 255, exponent == 0, fraction, fraction >> 22) & 1;
}
bool class16(u32 a, u32 mask) {
  const u32 fraction = a & 0x3ff, exponent = a >> 10 & 31;
  return mask >> class_of(a >> 15 & 1, exponent == 31, exponent == 0, fraction, fraction >> 9) & 1;
}
bool class64(u64 a, u64 mask) {
  const u64 fraction = a & ((u64{1} << 52) - 1), exponent = a >> 52 & 0x7ff;
  return mask >> class_of(a >> 63, exponent == 0x7ff, exponent == 0, fraction, fraction >> 51) & 1;
}

// The second source of a class is one register of bits.
template <bool Exec>
void class_double(Wave& w, const Instruction& i) {
  const int first = i.results & 1 ? 1 : 0;
  LaneArray space, low, high;
  const u32* m = raw_source(w, i.o[first + 1], 0, space);
  Operand x = i.o[first];
  x.size = 2;
  const u32 *lo = raw_source(w, x, 0, low), *hi = raw_source(w, x, 1, high);
  u64 mask = 0;
  for (int l = 0; l < kLanes; ++l) {
    u64 bits = lo[l] | u64{hi[l]} << 32;
    if (x.abs) bits &= ~(u64{1} << 63);
    if (x.neg) bits ^= u64{1} << 63;
    mask |= u64{class64(bits, m[l])} << l;
  }
  mask &= w.exec;
  if (first) write_mask(w, i.o[0], mask);
  if (Exec) w.exec = mask;
}

template <bool Exec, bool Result>
void constant_mask(Wave& w, const Instruction& i) {
  const u64 mask = Result ? w.exec : 0;
  if (i.results & 1) write_mask(w, i.o[0], mask);
  if (Exec) w.exec = mask;
}
#define FALSE_AND_TRUE(type)                                                                     \
  for (const char* name : {"f_" type, "t_" type, "tru_" type}) {                                 \
    const bool is_true = name[0] == 't';                                                         \
    define(std::string("v_cmp_") + name, is_true ? constant_mask<false, true> : constant_mask<false, false>, nullptr, \
           kSdwaSources | kSigns | kClamp | kHalves, kCompared);                                 \
    define(std::string("v_cmpx_") + name, is_true ? constant_mask<true, true> : constant_mask<true, false>, nullptr, \
           kSdwaSources | kSigns | kClamp | kHalves, kCompared);                                 \
  }

#define F32_PAIR const float x = as_f32(a); const float y = as_f32(b)
#define F16_PAIR const float x = f32_of_f16(a & 0xffff); const float y = f32_of_f16(b & 0xffff)
#define U32_PAIR const u32 x = a; const u32 y = b
#define I32_PAIR const i32 x = s32(a); const i32 y = s32(b)
#define U16_PAIR const u32 x = u16_of(a); const u32 y = u16_of(b)
#define I16_PAIR const i32 x = s16(a); const i32 y = s16(b)
#define F64_PAIR const double x = as_f64(a); const double y = as_f64(b)
#define U64_PAIR const u64 x = a; const u64 y = b
#define I64_PAIR const i64 x = static_cast<i64>(a); const i64 y = static_cast<i64>(b)

}  // namespace

void define_compares() {
  FLOAT_COMPARES(CMP, "f32", F32, F32_PAIR);
  FLOAT_COMPARES(CMP, "f16", F16, F16_PAIR);
  INTEGER_COMPARES(CMP, "u32", I32, U32_PAIR);
  INTEGER_COMPARES(CMP, "i32", I32, I32_PAIR);
  INTEGER_COMPARES(CMP, "u16", I16, U16_PAIR);
  INTEGER_COMPARES(CMP, "i16", I16, I16_PAIR);
  FLOAT_COMPARES(CMP64, "f64", F64_PAIR);
  INTEGER_COMPARES(CMP64, "u64", U64_PAIR);
  INTEGER_COMPARES(CMP64, "i64", I64_PAIR);
  CMP("class_f32", F32, , class32(a, b));
  CMP("class_f16", F16, , class16(a & 0xffff, b));
  define("v_cmp_class_f64", class_double<false>, nullptr, kSigns, kCompared);
  define("v_cmpx_class_f64", class_double<true>, nullptr, kSigns, kCompared);
  // always and never
  FALSE_AND_TRUE("f32");
  FALSE_AND_TRUE("f16");
  FALSE_AND_TRUE("f64");
  FALSE_AND_TRUE("i32");
  FALSE_AND_TRUE("u32");
  FALSE_AND_TRUE("i16");
  FALSE_AND_TRUE("u16");
  FALSE_AND_TRUE("i64");
  FALSE_AND_TRUE("u64");
}

}  // namespace mgx
