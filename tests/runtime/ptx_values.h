// Numbers of PTX: types of 16 bits, conversions, rounding, and an operation's types by their names.
#pragma once
#include <algorithm>
#include <cfenv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>

namespace ptx {

template <class To, class From>
To bits(From from) {
  To to{};
  std::memcpy(&to, &from, std::min(sizeof to, sizeof from));
  return to;
}

// Numbers of 16 bits that compute as f32.
struct Half {
  std::uint16_t raw = 0;
  Half() = default;
  Half(float x) : raw(bits<std::uint16_t>(static_cast<_Float16>(x))) {}
  operator float() const { return static_cast<float>(bits<_Float16>(raw)); }
};
struct Brain {
  std::uint16_t raw = 0;
  Brain() = default;
  Brain(float x) {
    const auto u = bits<std::uint32_t>(x);
    raw = std::isnan(x) ? 0x7fff : static_cast<std::uint16_t>((u + 0x7fff + ((u >> 16) & 1)) >> 16);
  }
  operator float() const { return bits<float>(static_cast<std::uint32_t>(raw) << 16); }
};
template <class T>
struct Pair {  // f16x2, bf16x2: the first element lies in the low bits
  T low, high;
};

// 8-bit floats: e4m3 (no infinity) and e5m2.
inline float of_e4m3(std::uint8_t x) {
  const int e = (x >> 3) & 15, m = x & 7;
  const float size = e == 15 && m == 7 ? NAN : e == 0 ? std::ldexp(m, -9) : std::ldexp(8 + m, e - 10);
  return x & 0x80 ? -size : size;
}
inline float of_e5m2(std::uint8_t x) { return Half(static_cast<float>(bits<_Float16>(static_cast<std::uint16_t>(x << 8)))); }

template <class T>
constexpr bool is_float = std::is_same_v<T, float> || std::is_same_v<T, double> || std::is_same_v<T, Half> || std::is_same_v<T, Brain>;

// A number as a float or an integer; out of range the nearest one, NaN is 0.
template <class To, class From>
To converted(From from, const std::string& rounding) {
  if constexpr (!is_float<From>) {
    if constexpr (std::is_same_v<To, Half> || std::is_same_v<To, Brain>) return To(static_cast<float>(from));
    else return static_cast<To>(from);
  } else {
    double x = std::is_same_v<From, double> ? bits<double>(from) : static_cast<double>(static_cast<float>(from));
    if (rounding == "rni") x = std::nearbyint(x);
    else if (rounding == "rzi") x = std::trunc(x);
    else if (rounding == "rmi") x = std::floor(x);
    else if (rounding == "rpi") x = std::ceil(x);
    if constexpr (is_float<To>) {
      if constexpr (std::is_same_v<To, double>) return x;
      else return To(static_cast<float>(x));
    } else {
      if (std::isnan(x)) return 0;
      constexpr double low = static_cast<double>(std::numeric_limits<To>::min());
      constexpr double high = static_cast<double>(std::numeric_limits<To>::max());
      if (x <= low) return std::numeric_limits<To>::min();
      if (x >= high) return std::numeric_limits<To>::max();
      return static_cast<To>(x);
    }
  }
}

// Calls `f(T{})` with the type of a name; whether there is one.
template <class F>
bool with_type(const std::string& name, F f) {
  if (name == "f32") f(float{});
  else if (name == "f64") f(double{});
  else if (name == "f16") f(Half{});
  else if (name == "bf16") f(Brain{});
  else if (name == "f16x2") f(Pair<Half>{});
  else if (name == "bf16x2") f(Pair<Brain>{});
  else if (name == "s8") f(std::int8_t{});
  else if (name == "u8" || name == "b8") f(std::uint8_t{});
  else if (name == "s16") f(std::int16_t{});
  else if (name == "u16" || name == "b16") f(std::uint16_t{});
  else if (name == "s32") f(std::int32_t{});
  else if (name == "u32" || name == "b32") f(std::uint32_t{});
  else if (name == "s64") f(std::int64_t{});
  else if (name == "u64" || name == "b64") f(std::uint64_t{});
  else if (name == "pred") f(bool{});
  else return false;
  return true;
}

template <class T>
T larger(T a, T b, bool with_nan) {
  if constexpr (is_float<T>) {
    const auto x = static_cast<std::conditional_t<std::is_same_v<T, double>, double, float>>(a);
    const auto y = static_cast<decltype(x)>(b);
    if (std::isnan(x) || std::isnan(y)) return with_nan ? T(NAN) : T(std::isnan(x) ? y : x);
    if (x == 0 && y == 0) return std::signbit(x) ? b : a;
    return x < y ? b : a;
  } else return a < b ? b : a;
}
template <class T>
T smaller(T a, T b, bool with_nan) {
  if constexpr (is_float<T>) {
    const auto x = static_cast<std::conditional_t<std::is_same_v<T, double>, double, float>>(a);
    const auto y = static_cast<decltype(x)>(b);
    if (std::isnan(x) || std::isnan(y)) return with_nan ? T(NAN) : T(std::isnan(x) ? y : x);
    if (x == 0 && y == 0) return std::signbit(x) ? a : b;
    return y < x ? b : a;
  } else return b < a ? b : a;
}

// Sums of f32 that end with another rounding than to nearest: add.rz and the like.
template <class F>
float rounded(int mode, F f) {
  const int before = std::fegetround();
  std::fesetround(mode);
  volatile float x = f();
  std::fesetround(before);
  return x;
}

}  // namespace ptx
