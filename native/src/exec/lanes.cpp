// Instructions that move values between lanes, and DPP's part of all others.
#include "exec/define.h"

#include <algorithm>
#include <string_view>
#include <vector>

namespace mgx {

namespace {

constexpr int kControls = 0x170;

// Which lane each lane reads, and the lanes for which there is one.
struct Moves {
  u8 from[kLanes] = {};
  u64 there = 0;

  void set(int lane, int source) {
    if (source < 0) return;
    from[lane] = static_cast<u8>(source);
    there |= u64{1} << lane;
  }
};

// The lane that lane l reads by a control; -1: none.
int moved(int c, int l, int lanes) {
  const int row = l >> 4, at = l & 15;
  if (c < 0x100) return (l & ~3) | (c >> 2 * (l & 3) & 3);
  if (c < 0x110) return at + (c & 15) < 16 ? l + (c & 15) : -1;
  if (c < 0x120) return at - (c & 15) >= 0 ? l - (c & 15) : -1;
  if (c < 0x130) return (l & ~15) | ((at - (c & 15)) & 15);
  if (c == 0x130) return l + 1 < lanes ? l + 1 : -1;
  if (c == 0x134) return (l + 1) % lanes;
  if (c == 0x138) return l - 1;
  if (c == 0x13c) return (l + lanes - 1) % lanes;
  if (c == 0x140) return (l & ~15) | (15 - at);
  if (c == 0x141) return (l & ~7) | (7 - (l & 7));
  if (c == 0x142) return row ? row * 16 - 1 : -1;
  if (c == 0x143) return l >= 32 ? 31 : -1;
  if (c < 0x160) return (l & ~15) | (c & 15);
  return (l & ~15) | (at ^ (c & 15));
}

const Moves& moves_of(int control, bool wave32) {
  static const auto all = [] {
    std::vector<Moves> made(2 * kControls);
    for (int n = 0; n < 2 * kControls; ++n) {
      for (int l = 0; l < kLanes; ++l) made[static_cast<std::size_t>(n)].set(l, moved(n / 2, l, n % 2 ? 32 : 64));
    }
    return made;
  }();
  return all[static_cast<std::size_t>(2 * std::min(control, kControls - 1) + wave32)];
}

}  // namespace

u64 dpp_source(const Wave& w, const Instruction& i, const u32* from, LaneArray& space) {
  Moves own;
  if (i.dpp8) {
    for (int l = 0; l < kLanes; ++l) own.set(l, (l & ~7) | static_cast<int>(i.dpp8_lanes >> 3 * (l & 7) & 7));
  }
  const Moves& moves = i.dpp8 ? own : moves_of(i.dpp_ctrl, w.wave32);
  u64 readable = moves.there, enabled = ~u64{0};
  if (!i.fetch_inactive && w.exec != (w.wave32 ? 0xffffffff : ~u64{0})) {
    for (int l = 0; l < kLanes; ++l) readable &= ~((~w.exec >> moves.from[l] & 1) << l);
  }
  if (!i.dpp8 && (i.row_mask & i.bank_mask) != 15) {
    enabled = 0;
    for (int l = 0; l < kLanes; ++l) enabled |= u64{i.row_mask >> (l >> 4) & i.bank_mask >> (l >> 2 & 3) & 1u} << l;
  }
  LaneArray out;  // the source may stand in `space`
  for (int l = 0; l < kLanes; ++l) out.at[l] = from[moves.from[l]] & (0 - static_cast<u32>(readable >> l & 1));
  std::memcpy(space.at, out.at, sizeof out.at);
  // without bound_ctrl a lane with nothing to read keeps its result
  return enabled & (i.bound_ctrl || i.dpp8 ? ~u64{0} : readable);
}

bool keeps_high_half(const Instruction& i, Generation g) {
  if (g != Generation::Gfx9) return true;
  if (std::string_view(i.form) != "VOP3") return false;
  const std::string_view n = i.name();
  for (std::string_view stem : {"v_fma_f16", "v_mad_u16", "v_mad_i16", "v_mad_f16", "v_div_fixup_f16", "v_min3_", "v_max3_",
                                "v_med3_", "v_bitop3_b16"}) {
    if (n.substr(0, stem.size()) == stem) return true;
  }
  return false;
}

namespace {

// v_cndmask: where the mask has a bit the second source, else the first.
template <Type T>
void choose(Wave& w, const Instruction& i) {
  LaneArray space[2], r;
  u64 valid = ~u64{0};
  const u32* a = source<T>(w, i, i.o[1], 0, space[0], valid);
  const u32* b = source<T>(w, i, i.o[2], 1, space[1], valid);
  const u64 mask = i.count > 3 ? read_mask(w, i.o[3]) : read_vcc(w);
  for (int l = 0; l < kLanes; ++l) r.at[l] = mask >> l & 1 ? b[l] : a[l];
  finish<T>(w, i, r, w.exec & valid);
}

void read_first_lane(Wave& w, const Instruction& i) {
  LaneArray space;
  const u32* a = raw_source(w, i.o[1], 0, space);
  write_scalar(w, i.o[0].index, a[w.exec ? __builtin_ctzll(w.exec) : 0]);
}

void read_lane(Wave& w, const Instruction& i) {
  LaneArray space;
  const u32* a = raw_source(w, i.o[1], 0, space);
  write_scalar(w, i.o[0].index, a[scalar(w, i.o[2]) & (w.wave32 ? 31 : 63)]);
}

void write_lane(Wave& w, const Instruction& i) {
  w.v[i.o[0].index][scalar(w, i.o[2]) & (w.wave32 ? 31 : 63)] = scalar(w, i.o[1]);
}

// Counts the mask's bits below each lane, in one half of the wave.
template <bool High>
void count_below(Wave& w, const Instruction& i) {
  LaneArray space[2], r;
  const u32* a = raw_source(w, i.o[1], 0, space[0]);
  const u32* b = raw_source(w, i.o[2], 0, space[1]);
  for (int l = 0; l < kLanes; ++l) {
    const int below = High ? l - 32 : l;
    const u32 mask = below <= 0 ? 0 : below >= 32 ? ~0u : (1u << below) - 1;
    r.at[l] = b[l] + static_cast<u32>(__builtin_popcount(a[l] & mask));
  }
  store_lanes(w.v[i.o[0].index], r.at, w.exec);
}

// Each lane reads the lane of its row (Cross: of the neighbour row) that the selectors name.
template <bool Cross>
void permute_lanes16(Wave& w, const Instruction& i) {
  const u32* a = w.v[i.o[1].index];
  const u64 select = scalar(w, i.o[2]) | u64{scalar(w, i.o[3])} << 32;
  const bool fetch_inactive = i.opsel & 1, bound_ctrl = i.opsel >> 1 & 1;
  LaneArray r;
  const u32* old = w.v[i.o[0].index];
  for (int l = 0; l < kLanes; ++l) {
    const int row = (l & ~15) ^ (Cross ? 16 : 0), s = row | static_cast<int>(select >> 4 * (l & 15) & 15);
    const bool readable = fetch_inactive || (w.exec >> s & 1);
    r.at[l] = readable ? a[s] : bound_ctrl ? 0 : old[l];
  }
  store_lanes(w.v[i.o[0].index], r.at, w.exec);
}

// The same with a selector in each lane.
template <bool Cross>
void permute_by_lane(Wave& w, const Instruction& i) {
  const u32 *a = w.v[i.o[1].index], *select = w.v[i.o[2].index], *old = w.v[i.o[0].index];
  const bool fetch_inactive = i.opsel & 1, bound_ctrl = i.opsel >> 1 & 1;
  LaneArray r;
  for (int l = 0; l < kLanes; ++l) {
    const int s = ((l & ~15) ^ (Cross ? 16 : 0)) | static_cast<int>(select[l] & 15);
    r.at[l] = fetch_inactive || (w.exec >> s & 1) ? a[s] : bound_ctrl ? 0 : old[l];
  }
  store_lanes(w.v[i.o[0].index], r.at, w.exec);
}

// Exchanges odd blocks of `Block` lanes of the first with even ones of the second.
template <int Block>
void swap_blocks(Wave& w, const Instruction& i) {
  u32 *a = w.v[i.o[0].index], *b = w.v[i.o[1].index];
  for (int base = 0; base < kLanes; base += 2 * Block) {
    for (int l = 0; l < Block; ++l) std::swap(a[base + Block + l], b[base + l]);
  }
}

void swap_registers(Wave& w, const Instruction& i) {
  u32 *a = w.v[i.o[0].index], *b = w.v[i.o[1].index];
  for (int l = 0; l < kLanes; ++l) {
    if (w.exec >> l & 1) std::swap(a[l], b[l]);
  }
}

// Halves that the operands name, or op_sel in the long form.
void swap_halves(Wave& w, const Instruction& i) {
  u32 *a = w.v[i.o[0].index], *b = w.v[i.o[1].index];
  const int x = i.opsel & 8 ? 16 : 0, y = i.opsel & 1 ? 16 : 0;
  for (int l = 0; l < kLanes; ++l) {
    if (!(w.exec >> l & 1)) continue;
    const u32 first = a[l] >> x & 0xffff, second = b[l] >> y & 0xffff;
    a[l] = (a[l] & ~(0xffffu << x)) | second << x;
    b[l] = (b[l] & ~(0xffffu << y)) | first << y;
  }
}

// With permlane64 the halves of a wave64 change places; in wave32 it does nothing.
void permute_halves(Wave& w, const Instruction& i) {
  if (w.wave32) return;
  const u32* a = w.v[i.o[1].index];
  LaneArray r;
  for (int l = 0; l < kLanes; ++l) r.at[l] = a[l ^ 32];
  store_lanes(w.v[i.o[0].index], r.at, w.exec);
}

}  // namespace

void define_lanes() {
  define("v_cndmask_b32", choose<Type::F32>, nullptr, kDpp | kSdwa | kSigns, "d..|d...");
  define("v_cndmask_b16", choose<Type::F16>, nullptr, kDpp | kHalves | kSigns, "d..|d...");
  define("v_readfirstlane_b32", read_first_lane, nullptr, kPlain, "d.");
  define("v_readlane_b32", read_lane, nullptr, kPlain, "d..");
  define("v_writelane_b32", write_lane, nullptr, kPlain, "d..");
  define("v_mbcnt_lo_u32_b32", count_below<false>, nullptr, kPlain, "d..");
  define("v_mbcnt_hi_u32_b32", count_below<true>, nullptr, kPlain, "d..");
  // op_sel says what lanes that are switched off give
  define("v_permlane16_b32", permute_lanes16<false>, nullptr, kHalves, "d...");
  define("v_permlanex16_b32", permute_lanes16<true>, nullptr, kHalves, "d...");
  define("v_permlane16_var_b32", permute_by_lane<false>, nullptr, kHalves, "d..");
  define("v_permlanex16_var_b32", permute_by_lane<true>, nullptr, kHalves, "d..");
  define("v_permlane64_b32", permute_halves, nullptr, kPlain, "d.");
  define("v_permlane16_swap_b32", swap_blocks<16>, nullptr, kPlain, "d.");
  define("v_permlane32_swap_b32", swap_blocks<32>, nullptr, kPlain, "d.");
  define("v_swap_b32", swap_registers, nullptr, kPlain, "d.");
  define("v_swap_b16", swap_halves, nullptr, kHalves, "d.");
}

}  // namespace mgx
