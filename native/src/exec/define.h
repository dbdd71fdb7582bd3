// Short forms for defining families of vector instructions; for files that define semantics only.
#pragma once

#include "exec/lanes.h"
#include "exec/registry.h"

namespace mgx {

// What a vector_op of these types heeds.
constexpr u16 forms_of(Type s, Type d) {
  const auto is_float = [](Type t) { return t == Type::F32 || t == Type::F16 || t == Type::BF16; };
  const auto is_half = [](Type t) { return t == Type::F16 || t == Type::I16 || t == Type::BF16; };
  const int scales = d == Type::F32 || d == Type::F16 ? kClamp | kOmod : 0;
  return static_cast<u16>(kDpp | kSdwa | scales | (is_float(s) ? kSigns : 0) | (is_half(s) || is_half(d) ? kHalves : 0));
}
// Its operands: the result, and as many sources.
constexpr const char* sources_of(int n) { return n == 1 ? "d." : n == 2 ? "d.." : "d..."; }

// MGX_OP(name, sources, source type, result type, expression of the 32-bit a, b, c)
#define MGX_OP(name, n, s, d, ...)                                                         \
  define(name, [](Wave& w, const Instruction& i) {                                         \
    vector_op<n, Type::s, Type::d>(                                                        \
        w, i, []([[maybe_unused]] u32 a, [[maybe_unused]] u32 b, [[maybe_unused]] u32 c) -> u32 { return __VA_ARGS__; }); \
  }, nullptr, forms_of(Type::s, Type::d), sources_of(n))
#define INT1(name, ...) MGX_OP(name, 1, I32, I32, __VA_ARGS__)
#define INT2(name, ...) MGX_OP(name, 2, I32, I32, __VA_ARGS__)
#define INT3(name, ...) MGX_OP(name, 3, I32, I32, __VA_ARGS__)
#define SHORT1(name, ...) MGX_OP(name, 1, I16, I16, __VA_ARGS__)
#define SHORT2(name, ...) MGX_OP(name, 2, I16, I16, __VA_ARGS__)
#define SHORT3(name, ...) MGX_OP(name, 3, I16, I16, __VA_ARGS__)

// The same with floats x, y, z of the operands and a float result.
#define MGX_FLOAT(name, n, acc, ...)                                                       \
  define(name, [](Wave& w, const Instruction& i) {                                         \
    vector_op<n, Type::F32, Type::F32, acc>(                                               \
        w, i, []([[maybe_unused]] u32 a, [[maybe_unused]] u32 b, [[maybe_unused]] u32 c) -> u32 { \
          [[maybe_unused]] const float x = as_f32(a), y = as_f32(b), z = as_f32(c);        \
          return from_f32(__VA_ARGS__);                                                    \
        });                                                                                \
  }, nullptr, forms_of(Type::F32, Type::F32), sources_of(n))
#define FLOAT1(name, ...) MGX_FLOAT(name, 1, false, __VA_ARGS__)
#define FLOAT2(name, ...) MGX_FLOAT(name, 2, false, __VA_ARGS__)
#define FLOAT3(name, ...) MGX_FLOAT(name, 3, false, __VA_ARGS__)
#define FLOAT2_ACC(name, ...) MGX_FLOAT(name, 2, true, __VA_ARGS__)

// f16 operands as floats x, y, z; the result is rounded to f16.
#define MGX_HALF(name, n, acc, ...)                                                        \
  define(name, [](Wave& w, const Instruction& i) {                                         \
    vector_op<n, Type::F16, Type::F16, acc>(                                               \
        w, i, []([[maybe_unused]] u32 a, [[maybe_unused]] u32 b, [[maybe_unused]] u32 c) -> u32 { \
          [[maybe_unused]] const float x = f32_of_f16(a & 0xffff), y = f32_of_f16(b & 0xffff), \
                                       z = f32_of_f16(c & 0xffff);                         \
          return __VA_ARGS__;                                                              \
        });                                                                                \
  }, nullptr, forms_of(Type::F16, Type::F16), sources_of(n))
#define HALF1(name, ...) MGX_HALF(name, 1, false, f16_of_f32(__VA_ARGS__))
#define HALF2(name, ...) MGX_HALF(name, 2, false, f16_of_f32(__VA_ARGS__))
#define HALF3(name, ...) MGX_HALF(name, 3, false, f16_of_f32(__VA_ARGS__))

// A result of two registers: DPP, scales and signs.
constexpr u16 kDoubleForms = kDpp | kClamp | kOmod | kSigns;
#define MGX_DOUBLE(name, n, ...)                                                           \
  define(name, [](Wave& w, const Instruction& i) {                                         \
    vector_op64<n, 2, 2, 2, true>(                                                         \
        w, i, []([[maybe_unused]] u64 a, [[maybe_unused]] u64 b, [[maybe_unused]] u64 c) -> u64 { \
          [[maybe_unused]] const double x = as_f64(a), y = as_f64(b), z = as_f64(c);       \
          return from_f64(__VA_ARGS__);                                                    \
        });                                                                                \
  }, nullptr, kDoubleForms, sources_of(n))

// Code with w and i.
#define MGX_DO(name, ...) define(name, []([[maybe_unused]] Wave& w, [[maybe_unused]] const Instruction& i) { __VA_ARGS__; })
// The same of a vector instruction that heeds `forms` and has `operands`.
#define MGX_LANEWISE(name, forms, operands, ...) \
  define(name, []([[maybe_unused]] Wave& w, [[maybe_unused]] const Instruction& i) { __VA_ARGS__; }, nullptr, forms, operands)

inline i32 s32(u32 x) { return static_cast<i32>(x); }
inline i32 s16(u32 x) { return static_cast<i16>(x); }
inline u32 u16_of(u32 x) { return x & 0xffff; }

}  // namespace mgx
