// Flat, global and scratch instructions.
#include <string_view>

#include "check/checker.h"
#include "exec/define.h"
#include "exec/memory.h"
#include "exec/narrow.h"

namespace mgx {
namespace {

enum class Space { Global, Scratch };

// Where the address operand stands: first in stores, after the result in loads.
struct Place {
  u32 vector;   // register, or ~0
  bool wide;    // a pair
  u64 fixed;    // added to each lane's
  Place(const Wave& w, const Instruction& i, int at) {
    const Operand& a = i.o[at];
    vector = a.kind == Operand::Kind::Vector ? a.index : ~0u;
    wide = a.size == 2;
    fixed = static_cast<u64>(i64{i.offset});
    for (int k = at + 1; k < i.count; ++k) {
      const Operand& s = i.o[k];
      if (s.letter != 's' || s.kind != Operand::Kind::Scalar) continue;
      fixed += s.size == 2 ? read_scalar64(w, s.index) : read_scalar(w, s.index);
    }
  }

  template <Space S>
  u8* at(Wave& w, int l, u32 bytes) const {
    u64 address = fixed;
    if (vector != ~0u) address += wide ? w.v[vector][l] | u64{w.v[vector + 1][l]} << 32 : u64{w.v[vector][l]};
    if (S == Space::Global) return global_address(w, address, bytes, l);
    if (address + bytes > w.scratch_size || address + bytes < bytes) {
      throw Fault("lane " + std::to_string(l) + ": a scratch access is outside of the lane's scratch");
    }
    return w.scratch + u64{w.scratch_size} * static_cast<u32>(l) + address;
  }
};

template <Space S, int Words>
void load(Wave& w, const Instruction& i) {
  const Place place(w, i, 1);
  LaneArray r[Words];
  for (u64 left = w.exec; left != 0; left &= left - 1) {
    const int l = __builtin_ctzll(left);
    u32 x[Words];
    const u8* p = place.at<S>(w, l, 4 * Words);
    note_memory(w, p, 4 * Words, Access::Read);
    std::memcpy(x, p, 4 * Words);
    for (int k = 0; k < Words; ++k) r[k].at[l] = x[k];
  }
  for (int k = 0; k < Words; ++k) store_lanes(w.v[i.o[0].index + k], r[k].at, w.exec);
}

template <Space S, int Words>
void store(Wave& w, const Instruction& i) {
  const Place place(w, i, 0);
  const u32* d = w.v[i.o[1].index];
  for (u64 left = w.exec; left != 0; left &= left - 1) {
    const int l = __builtin_ctzll(left);
    u32 x[Words];
    for (int k = 0; k < Words; ++k) x[k] = d[k * kLanes + l];
    u8* p = place.at<S>(w, l, 4 * Words);
    note_memory(w, p, 4 * Words, Access::Write);
    std::memcpy(p, x, 4 * Words);
  }
}

template <Space S, int Bytes, Into Form, bool Signed>
void load_narrow(Wave& w, const Instruction& i) {
  const Place place(w, i, 1);
  LaneArray r;
  const u32* old = w.v[i.o[0].index];
  for (u64 left = w.exec; left != 0; left &= left - 1) {
    const int l = __builtin_ctzll(left);
    u32 raw = 0;
    const u8* p = place.at<S>(w, l, Bytes);
    note_memory(w, p, Bytes, Access::Read);
    std::memcpy(&raw, p, Bytes);
    r.at[l] = placed<Bytes, Form, Signed>(raw, old[l]);
  }
  store_lanes(w.v[i.o[0].index], r.at, w.exec);
}

template <Space S, int Bytes, int Shift>
void store_narrow(Wave& w, const Instruction& i) {
  const Place place(w, i, 0);
  const u32* d = w.v[i.o[1].index];
  for (u64 left = w.exec; left != 0; left &= left - 1) {
    const int l = __builtin_ctzll(left);
    const u32 x = d[l] >> Shift;
    u8* p = place.at<S>(w, l, Bytes);
    note_memory(w, p, Bytes, Access::Write);
    std::memcpy(p, &x, Bytes);
  }
}

template <Space S>
void define_space(const std::string& p) {
  define(p + "load_dword", load<S, 1>);
  define(p + "load_dwordx2", load<S, 2>);
  define(p + "load_dwordx3", load<S, 3>);
  define(p + "load_dwordx4", load<S, 4>);
  define(p + "store_dword", store<S, 1>);
  define(p + "store_dwordx2", store<S, 2>);
  define(p + "store_dwordx3", store<S, 3>);
  define(p + "store_dwordx4", store<S, 4>);
#define NARROW(name, lds, bytes, form, sign) define(p + "load_" name, load_narrow<S, bytes, Into::form, sign>);
  MGX_NARROW_LOADS(NARROW)
#undef NARROW
  define(p + "store_byte", store_narrow<S, 1, 0>);
  define(p + "store_short", store_narrow<S, 2, 0>);
  define(p + "store_byte_d16_hi", store_narrow<S, 1, 16>);
  define(p + "store_short_d16_hi", store_narrow<S, 2, 16>);
}

}  // namespace

u8* flat_address(Wave& w, const Instruction& i, int operand, int lane, u32 bytes) {
  return Place(w, i, operand).at<Space::Global>(w, lane, bytes);
}

void define_flat() {
  define_space<Space::Global>("global_");
  define_space<Space::Global>("flat_");
  define_space<Space::Scratch>("scratch_");
  for (const char* name : {"global_wb", "global_inv", "global_wbinv"}) {
    define(name, [](Wave&, const Instruction&) {});
  }
}

}  // namespace mgx
