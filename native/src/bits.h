// Integer types and bit casts shared by every part.
#pragma once

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>

namespace mgx {

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using i8 = std::int8_t;
using i16 = std::int16_t;
using i32 = std::int32_t;
using i64 = std::int64_t;

template <class To, class From>
inline To bit_cast(const From& from) {
  static_assert(sizeof(To) == sizeof(From), "sizes differ");
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}

inline float as_f32(u32 x) { return bit_cast<float>(x); }
inline u32 from_f32(float x) { return bit_cast<u32>(x); }
inline double as_f64(u64 x) { return bit_cast<double>(x); }
inline u64 from_f64(double x) { return bit_cast<u64>(x); }

// A code object, instruction or launch that cannot be used; the message says which and why.
struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace mgx
