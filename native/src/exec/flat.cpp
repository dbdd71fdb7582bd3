// Flat, global and scratch instructions.
#include <string_view>

#include "check/checker.h"
#include "exec/define.h"
#include "exec/memory.h"
#include "exec/narrow.h"

namespace mgx {
namespace {

enum class Space { Global, Scratch, Flat };

// What the instruction adds to each lane's address.
struct Place {
  u32 vector;      // register, or ~0
  bool wide;       // a pair
  bool is_signed;  // from GFX12 on the registers of scratch addresses may be negative
  u64 fixed;
  Place(const Wave& w, const Instruction& i, Space space) {
    const Operand& a = i.of('a');
    vector = a.kind == Operand::Kind::Vector ? a.index : ~0u;
    wide = a.size == 2;
    is_signed = space == Space::Scratch && w.generation == Generation::Gfx12;
    fixed = static_cast<u64>(i64{i.offset});
    const Operand* s = i.find('s');
    if (s == nullptr || s->kind != Operand::Kind::Scalar) return;
    fixed += s->size == 2 ? read_scalar64(w, s->index) : extended(read_scalar(w, s->index));
  }

  u64 extended(u32 x) const { return is_signed ? static_cast<u64>(i64{static_cast<i32>(x)}) : u64{x}; }

  u64 address(const Wave& w, int l) const {
    if (vector == ~0u) return fixed;
    return fixed + (wide ? w.v[vector][l] | u64{w.v[vector + 1][l]} << 32 : extended(w.v[vector][l]));
  }

  template <Space S>
  u8* at(Wave& w, int l, u32 bytes) const {
    const u64 found = address(w, l);
    if (S == Space::Global) return global_address(w, found, bytes, l);
    if (S == Space::Scratch) return scratch_address(w, found, bytes, l);
    return flat_address(w, found, bytes, l);
  }
};

// Tells the checks of an access: to LDS where the flat address was one of LDS.
void note(const Wave& w, const u8* p, u32 bytes, Access access, const void* data = nullptr) {
  if (w.checker == nullptr) return;
  const u64 at = reinterpret_cast<u64>(p) - reinterpret_cast<u64>(w.lds);
  if (at < w.lds_size) w.checker->lds(w, static_cast<u32>(at), bytes, access, data);
  else w.checker->memory(w, p, bytes, access);
}

template <Space S, int Words>
void load(Wave& w, const Instruction& i) {
  const Place place(w, i, S);
  LaneArray r[Words];
  for (u64 left = w.exec; left != 0; left &= left - 1) {
    const int l = __builtin_ctzll(left);
    u32 x[Words];
    const u8* p = place.at<S>(w, l, 4 * Words);
    note(w, p, 4 * Words, Access::Read);
    std::memcpy(x, p, 4 * Words);
    for (int k = 0; k < Words; ++k) r[k].at[l] = x[k];
  }
  for (int k = 0; k < Words; ++k) store_lanes(w.v[i.of('d').index + k], r[k].at, w.exec);
}

template <Space S, int Words>
void store(Wave& w, const Instruction& i) {
  const Place place(w, i, S);
  const u32* d = w.v[i.of('x').index];
  for (u64 left = w.exec; left != 0; left &= left - 1) {
    const int l = __builtin_ctzll(left);
    u32 x[Words];
    for (int k = 0; k < Words; ++k) x[k] = d[k * kLanes + l];
    u8* p = place.at<S>(w, l, 4 * Words);
    note(w, p, 4 * Words, Access::Write, x);
    std::memcpy(p, x, 4 * Words);
  }
}

template <Space S, int Bytes, Into Form, bool Signed>
void load_narrow(Wave& w, const Instruction& i) {
  const Place place(w, i, S);
  LaneArray r;
  const u32* old = w.v[i.of('d').index];
  for (u64 left = w.exec; left != 0; left &= left - 1) {
    const int l = __builtin_ctzll(left);
    u32 raw = 0;
    const u8* p = place.at<S>(w, l, Bytes);
    note(w, p, Bytes, Access::Read);
    std::memcpy(&raw, p, Bytes);
    r.at[l] = placed<Bytes, Form, Signed>(raw, old[l]);
  }
  store_lanes(w.v[i.of('d').index], r.at, w.exec);
}

template <Space S, int Bytes, int Shift>
void store_narrow(Wave& w, const Instruction& i) {
  const Place place(w, i, S);
  const u32* d = w.v[i.of('x').index];
  for (u64 left = w.exec; left != 0; left &= left - 1) {
    const int l = __builtin_ctzll(left);
    const u32 x = d[l] >> Shift;
    u8* p = place.at<S>(w, l, Bytes);
    note(w, p, Bytes, Access::Write, &x);
    std::memcpy(p, &x, Bytes);
  }
}

// Straight to LDS at m0, a word of each lane beside that of the lane before.
template <Space S, int Bytes, bool Signed>
void load_to_lds(Wave& w, const Instruction& i) {
  const Place place(w, i, S);
  constexpr u32 held = Bytes < 4 ? 4 : Bytes;
  for (u64 left = w.exec; left != 0; left &= left - 1) {
    const int l = __builtin_ctzll(left);
    u32 x[held / 4] = {};
    const u8* p = place.at<S>(w, l, Bytes);
    note(w, p, Bytes, Access::Read);
    std::memcpy(x, p, Bytes);
    if (Bytes < 4) x[0] = placed<Bytes, Signed ? Into::Sign : Into::Zero>(x[0], 0);
    const u64 at = u64{w.s[kM0]} + static_cast<u32>(i.offset) + static_cast<u32>(l) * held;
    if (at + held > w.lds_size) continue;
    note_lds(w, static_cast<u32>(at), held, Access::Write, x);
    std::memcpy(w.lds + at, x, held);
  }
}

template <Space S>
void define_space(const std::string& p) {
  const auto load_of = [&p](const char* name, Handler run) { define(p + name, run, nullptr, kPlain, "+da"); };
  const auto store_of = [&p](const char* name, Handler run) { define(p + name, run, nullptr, kPlain, "+ax"); };
  load_of("load_dword", load<S, 1>);
  load_of("load_dwordx2", load<S, 2>);
  load_of("load_dwordx3", load<S, 3>);
  load_of("load_dwordx4", load<S, 4>);
  store_of("store_dword", store<S, 1>);
  store_of("store_dwordx2", store<S, 2>);
  store_of("store_dwordx3", store<S, 3>);
  store_of("store_dwordx4", store<S, 4>);
#define NARROW(name, lds, bytes, form, sign) load_of("load_" name, load_narrow<S, bytes, Into::form, sign>);
  MGX_NARROW_LOADS(NARROW)
#undef NARROW
  store_of("store_byte", store_narrow<S, 1, 0>);
  store_of("store_short", store_narrow<S, 2, 0>);
  store_of("store_byte_d16_hi", store_narrow<S, 1, 16>);
  store_of("store_short_d16_hi", store_narrow<S, 2, 16>);
}

template <Space S>
void define_loads_to_lds(const std::string& p) {
  define(p + "dword", load_to_lds<S, 4, false>, nullptr, kPlain, "+a");
  define(p + "dwordx3", load_to_lds<S, 12, false>, nullptr, kPlain, "+a");
  define(p + "dwordx4", load_to_lds<S, 16, false>, nullptr, kPlain, "+a");
  define(p + "ubyte", load_to_lds<S, 1, false>, nullptr, kPlain, "+a");
  define(p + "sbyte", load_to_lds<S, 1, true>, nullptr, kPlain, "+a");
  define(p + "ushort", load_to_lds<S, 2, false>, nullptr, kPlain, "+a");
  define(p + "sshort", load_to_lds<S, 2, true>, nullptr, kPlain, "+a");
}

}  // namespace

u8* lane_address(Wave& w, const Instruction& i, int lane, u32 bytes) {
  const Space space = std::string_view(i.form) == "FLAT" ? Space::Flat : Space::Global;
  const Place place(w, i, space);
  return space == Space::Flat ? place.at<Space::Flat>(w, lane, bytes) : place.at<Space::Global>(w, lane, bytes);
}

void define_flat() {
  define_space<Space::Global>("global_");
  define_space<Space::Flat>("flat_");
  define_space<Space::Scratch>("scratch_");
  define_loads_to_lds<Space::Global>("global_load_lds_");
  define_loads_to_lds<Space::Scratch>("scratch_load_lds_");
  for (const char* name : {"global_wb", "global_inv", "global_wbinv", "global_prefetch_b8", "scratch_prefetch_b8", "flat_prefetch_b8"}) {
    define(name, [](Wave&, const Instruction&) {});
  }
}

}  // namespace mgx
