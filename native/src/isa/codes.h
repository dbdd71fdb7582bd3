// Numbers in the encodings that stand for something: inline floats, and DPP's ways to move lanes.
#pragma once

#include "isa/instruction.h"

namespace mgx {

// Inline constants 240 to 248, in the three widths.
struct FloatConstant {
  u16 f16;
  u32 f32;
  u64 f64;
};
constexpr FloatConstant kFloats[] = {
    {0x3800, 0x3f000000, 0x3fe0000000000000}, {0xb800, 0xbf000000, 0xbfe0000000000000},
    {0x3c00, 0x3f800000, 0x3ff0000000000000}, {0xbc00, 0xbf800000, 0xbff0000000000000},
    {0x4000, 0x40000000, 0x4000000000000000}, {0xc000, 0xc0000000, 0xc000000000000000},
    {0x4400, 0x40800000, 0x4010000000000000}, {0xc400, 0xc0800000, 0xc010000000000000},
    {0x3118, 0x3e22f983, 0x3fc45f306dc9c882},
};

// Which of DPP's controls a generation has.
inline bool is_dpp_control(Generation g, u32 c) {
  if (c < 0x100) return true;
  if (c < 0x130) return (c & 15) != 0;
  if (c == 0x140 || c == 0x141) return true;
  const bool gfx9 = g == Generation::Gfx9;
  if (c == 0x142 || c == 0x143 || c == 0x130 || c == 0x134 || c == 0x138 || c == 0x13c) return gfx9;
  return c >= 0x150 && c < (gfx9 ? 0x160u : 0x170u);
}

}  // namespace mgx
