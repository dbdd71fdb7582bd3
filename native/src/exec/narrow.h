// Loads and stores of less than a register: sign, zero and half-register forms, for every memory.
#pragma once

#include "bits.h"

namespace mgx {

// How a small value becomes a register that held `old`.
enum class Into { Zero, Sign, Low, High };

template <int Bytes, Into Form, bool Signed = false>
inline u32 placed(u32 raw, u32 old) {
  u32 x = raw;
  if (Form == Into::Sign || Signed) {
    x = Bytes == 1 ? static_cast<u32>(static_cast<i32>(static_cast<i8>(raw))) : static_cast<u32>(static_cast<i32>(static_cast<i16>(raw)));
  }
  if (Form == Into::Low) return (old & 0xffff0000) | (x & 0xffff);
  if (Form == Into::High) return (old & 0xffff) | x << 16;
  return x;
}

// Calls define for every narrow load of a memory: DEF(suffix, bytes, form, signed).
#define MGX_NARROW_LOADS(DEF)               \
  DEF("ubyte", "u8", 1, Zero, false)        \
  DEF("sbyte", "i8", 1, Sign, false)        \
  DEF("ushort", "u16", 2, Zero, false)      \
  DEF("sshort", "i16", 2, Sign, false)      \
  DEF("ubyte_d16", "u8_d16", 1, Low, false) \
  DEF("ubyte_d16_hi", "u8_d16_hi", 1, High, false) \
  DEF("sbyte_d16", "i8_d16", 1, Low, true)  \
  DEF("sbyte_d16_hi", "i8_d16_hi", 1, High, true) \
  DEF("short_d16", "u16_d16", 2, Low, false) \
  DEF("short_d16_hi", "u16_d16_hi", 2, High, false)

}  // namespace mgx
