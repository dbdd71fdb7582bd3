// Minima, maxima and medians, as the hardware has them: -0 below +0, NaN by the mode, denormals flushed.
#pragma once

#include "exec/numeric.h"

namespace mgx {

// A float type by its bits. `canonical`: quiet, and without the denormals that the mode flushes.
struct Single {
  using Bits = u32;
  using Value = float;
  static constexpr u32 kSign = 0x80000000, kInfinity = 0x7f800000, kQuiet = 0x400000;
  static Value value(Bits b) { return as_f32(b); }
  static Bits canonical(Bits b) { return from_f32(as_f32(b) * known_one); }
};
struct Half {
  using Bits = u32;
  using Value = float;
  static constexpr u32 kSign = 0x8000, kInfinity = 0x7c00, kQuiet = 0x200;
  static Value value(Bits b) { return f32_of_f16(b & 0xffff); }
  static Bits canonical(Bits b) { return (b & 0x7fff) > kInfinity ? b | kQuiet : b; }
};
struct Double {
  using Bits = u64;
  using Value = double;
  static constexpr u64 kSign = u64{1} << 63, kInfinity = u64{0x7ff} << 52, kQuiet = u64{1} << 51;
  static Value value(Bits b) { return as_f64(b); }
  static Bits canonical(Bits b) { return from_f64(as_f64(b) * static_cast<double>(known_one)); }
};

template <class T>
inline bool is_nan(typename T::Bits b) {
  return (b & (T::kSign - 1)) > T::kInfinity;
}
template <class T>
inline bool signals(typename T::Bits b) {
  return is_nan<T>(b) && !(b & T::kQuiet);
}

// The larger or smaller of two; of a number and a NaN the number. Under the mode's IEEE 754 (`ieee`)
// a signalling NaN is the result, quiet.
template <class T, bool Max>
inline typename T::Bits extreme(typename T::Bits a, typename T::Bits b, bool ieee) {
  const auto x = T::value(a), y = T::value(b);
  const bool negative = a & T::kSign;
  const bool first = Max ? x > y || (x == y && !negative) : x < y || (x == y && negative);
  auto r = first || y != y ? a : b;
  r = ieee && signals<T>(b) ? b : r;
  r = ieee && signals<T>(a) ? a : r;
  return T::canonical(r);
}
// IEEE 754-2019's maximum and minimum: a NaN wins.
template <class T, bool Max>
inline typename T::Bits ordered(typename T::Bits a, typename T::Bits b) {
  auto r = extreme<T, Max>(a, b, false);
  r = is_nan<T>(b) ? T::canonical(b) : r;
  return is_nan<T>(a) ? T::canonical(a) : r;
}
// What is neither the largest of three nor the smallest; the smallest where there is a NaN.
template <class T>
inline typename T::Bits median(typename T::Bits a, typename T::Bits b, typename T::Bits c, bool ieee) {
  const auto largest = extreme<T, true>(extreme<T, true>(a, b, ieee), c, ieee);
  const auto least = extreme<T, false>(extreme<T, false>(a, b, ieee), c, ieee);
  const auto top = T::value(largest);
  auto r = extreme<T, true>(a, b, ieee);
  r = top == T::value(b) ? extreme<T, true>(a, c, ieee) : r;
  r = top == T::value(a) ? extreme<T, true>(b, c, ieee) : r;
  return is_nan<T>(a) || is_nan<T>(b) || is_nan<T>(c) ? least : r;
}

// The families of v_max and its kin: DEF(name, sources, expression of a, b, c and ieee).
#define MGX_EXTREMES(DEF, T, type)                                                           \
  DEF("v_max_" type, 2, extreme<T, true>(a, b, ieee));                                       \
  DEF("v_min_" type, 2, extreme<T, false>(a, b, ieee));                                      \
  DEF("v_maximum_" type, 2, ordered<T, true>(a, b));                                         \
  DEF("v_minimum_" type, 2, ordered<T, false>(a, b))
#define MGX_EXTREMES_OF_THREE(DEF, T, type)                                                  \
  DEF("v_max3_" type, 3, extreme<T, true>(extreme<T, true>(a, b, ieee), c, ieee));           \
  DEF("v_min3_" type, 3, extreme<T, false>(extreme<T, false>(a, b, ieee), c, ieee));         \
  DEF("v_maximum3_" type, 3, ordered<T, true>(ordered<T, true>(a, b), c));                   \
  DEF("v_minimum3_" type, 3, ordered<T, false>(ordered<T, false>(a, b), c));                 \
  DEF("v_maxmin_" type, 3, extreme<T, false>(extreme<T, true>(a, b, ieee), c, ieee));        \
  DEF("v_minmax_" type, 3, extreme<T, true>(extreme<T, false>(a, b, ieee), c, ieee));        \
  DEF("v_maximumminimum_" type, 3, ordered<T, false>(ordered<T, true>(a, b), c));            \
  DEF("v_minimummaximum_" type, 3, ordered<T, true>(ordered<T, false>(a, b), c));            \
  DEF("v_med3_" type, 3, median<T>(a, b, c, ieee))

}  // namespace mgx
