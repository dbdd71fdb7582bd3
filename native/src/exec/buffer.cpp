// Buffer instructions: raw buffers with bounds, scratch through buffers, loads straight to LDS.
#include "check/checker.h"
#include "exec/define.h"
#include "exec/memory.h"
#include "exec/narrow.h"

namespace mgx {
namespace {

// A raw buffer, as an instruction sees it.
struct Buffer {
  u64 base;
  u64 records;
  u32 scalar_offset;
  u32 vector;  // the offset register, or ~0
  i32 offset;
  bool scratch;
  Range range;  // of memory that holds the base

  Buffer(Wave& w, const Instruction& i) {
    const Operand& r = i.o[2];
    base = read_scalar(w, r.index) | u64{read_scalar(w, r.index + 1u) & 0xffff} << 32;
    records = read_scalar(w, r.index + 2u);
    const Operand& s = i.o[3];
    scalar_offset = s.kind == Operand::Kind::None ? 0 : scalar(w, s);
    vector = i.offen ? i.o[1].index : ~0u;
    offset = i.offset;
    scratch = base >> 32 == kScratchWindow >> 32;
    if (scratch) return;
    range = w.memory->find(base);
    // a stride without the swizzling of caches makes it a buffer of structures, swizzling another one
    const u32 stride = read_scalar(w, r.index + 1u) >> 16;
    if (stride >> 15 || (stride != 0 && !(stride >> 14 & 1))) throw Fault("the descriptor is not a raw buffer's");
    format(w, read_scalar(w, r.index + 3u));
  }

  // The last word says of which kind the buffer is.
  void format(const Wave& w, u32 word) {
    const bool gfx9 = w.generation == Generation::Gfx9;
    const bool adds_thread = word >> 23 & 1, other_resource = word >> 30 != 0;
    if (adds_thread || other_resource) throw Fault("the descriptor is not a raw buffer's");
    if (gfx9) {
      if ((word >> 15 & 15) == 0) records = 0;  // an invalid format: as a buffer without elements
      return;
    }
    const u32 bounds = word >> 28 & 3;
    if (bounds < 2) throw Fault("bounds of a structured buffer are not emulated");
    if (bounds == 2 && records != 0) records = ~u64{0};
  }

  // The host address of some bytes of a lane; nullptr: out of the buffer's bounds.
  u8* at(Wave& w, int lane, u32 part, u32 bytes) const {
    // the lane's offset may be negative and the immediate brings it back: the sum has 32 bits
    const u64 off = u64{(vector == ~0u ? 0 : w.v[vector][lane]) + static_cast<u32>(offset)} + part;
    if (scratch) {
      // swizzled: what all lanes share counts bytes of the wave, what a lane adds is its own
      const u64 place = (base - kScratchWindow + scalar_offset) / (w.wave32 ? 32 : 64) + off;
      if (place + bytes > w.scratch_size) throw Fault("lane " + std::to_string(lane) + ": a scratch access is outside of the lane's scratch");
      return w.scratch + u64{w.scratch_size} * static_cast<u32>(lane) + place;
    }
    if (off + scalar_offset + bytes > records) return nullptr;
    const u64 address = base + scalar_offset + off;
    if (range.size == 0 || !range.holds(address, bytes)) return global_address(w, address, bytes, lane);
    return reinterpret_cast<u8*>(address);
  }
};

template <int Words>
void load(Wave& w, const Instruction& i) {
  const Buffer b(w, i);
  LaneArray r[Words];
  for (u64 left = w.exec; left != 0; left &= left - 1) {
    const int l = __builtin_ctzll(left);
    u32 x[Words];
    u8* whole = b.at(w, l, 0, 4 * Words);
    if (whole != nullptr) {
      note_memory(w, whole, 4 * Words, Access::Read);
      std::memcpy(x, whole, 4 * Words);
    } else {  // each register has bounds of its own
      for (int k = 0; k < Words; ++k) {
        const u8* p = b.at(w, l, 4 * static_cast<u32>(k), 4);
        x[k] = 0;
        if (p == nullptr) continue;
        note_memory(w, p, 4, Access::Read);
        std::memcpy(&x[k], p, 4);
      }
    }
    for (int k = 0; k < Words; ++k) r[k].at[l] = x[k];
  }
  if (i.lds) {  // to LDS at m0, lanes side by side
    const u32 to = w.s[kM0] + static_cast<u32>(i.offset);
    for (u64 left = w.exec; left != 0; left &= left - 1) {
      const int l = __builtin_ctzll(left);
      for (int k = 0; k < Words; ++k) {
        const u64 at = u64{to} + static_cast<u32>(l * 4 * Words + 4 * k);
        if (at + 4 > w.lds_size) continue;
        note_lds(w, static_cast<u32>(at), 4, Access::Write, &r[k].at[l]);
        std::memcpy(w.lds + at, &r[k].at[l], 4);
      }
    }
    return;
  }
  for (int k = 0; k < Words; ++k) store_lanes(w.v[i.o[0].index + k], r[k].at, w.exec);
}

template <int Words>
void store(Wave& w, const Instruction& i) {
  const Buffer b(w, i);
  const u32* d = w.v[i.o[0].index];
  for (u64 left = w.exec; left != 0; left &= left - 1) {
    const int l = __builtin_ctzll(left);
    for (int k = 0; k < Words; ++k) {
      u8* p = b.at(w, l, 4 * static_cast<u32>(k), 4);
      if (p == nullptr) continue;
      note_memory(w, p, 4, Access::Write);
      std::memcpy(p, &d[k * kLanes + l], 4);
    }
  }
}

template <int Bytes, Into Form, bool Signed>
void load_narrow(Wave& w, const Instruction& i) {
  const Buffer b(w, i);
  LaneArray r;
  const u32* old = i.o[0].kind == Operand::Kind::Vector ? w.v[i.o[0].index] : r.at;
  for (u64 left = w.exec; left != 0; left &= left - 1) {
    const int l = __builtin_ctzll(left);
    u32 raw = 0;
    const u8* p = b.at(w, l, 0, Bytes);
    if (p != nullptr) {
      note_memory(w, p, Bytes, Access::Read);
      std::memcpy(&raw, p, Bytes);
    }
    r.at[l] = placed<Bytes, Form, Signed>(raw, i.lds ? 0 : old[l]);
  }
  if (i.lds) {  // a word of each lane
    const u32 to = w.s[kM0] + static_cast<u32>(i.offset);
    for (u64 left = w.exec; left != 0; left &= left - 1) {
      const int l = __builtin_ctzll(left);
      const u64 at = u64{to} + static_cast<u32>(l) * 4;
      if (at + 4 > w.lds_size) continue;
      note_lds(w, static_cast<u32>(at), 4, Access::Write, &r.at[l]);
      std::memcpy(w.lds + at, &r.at[l], 4);
    }
    return;
  }
  store_lanes(w.v[i.o[0].index], r.at, w.exec);
}

template <int Bytes, int Shift>
void store_narrow(Wave& w, const Instruction& i) {
  const Buffer b(w, i);
  const u32* d = w.v[i.o[0].index];
  for (u64 left = w.exec; left != 0; left &= left - 1) {
    const int l = __builtin_ctzll(left);
    const u32 x = d[l] >> Shift;
    u8* p = b.at(w, l, 0, Bytes);
    if (p == nullptr) continue;
    note_memory(w, p, Bytes, Access::Write);
    std::memcpy(p, &x, Bytes);
  }
}

void check(Instruction& i, Generation) {
  if (i.idxen) throw Error("'" + std::string(i.name()) + "' with an index (idxen) is not emulated");
}

}  // namespace

u8* buffer_address(Wave& w, const Instruction& i, int lane, u32 bytes) { return Buffer(w, i).at(w, lane, 0, bytes); }

void define_buffer() {
  define("buffer_load_dword", load<1>, check, kToLds, "+daro");
  define("buffer_load_dwordx2", load<2>, check, kToLds, "+daro");
  define("buffer_load_dwordx3", load<3>, check, kToLds, "+daro");
  define("buffer_load_dwordx4", load<4>, check, kToLds, "+daro");
  define("buffer_store_dword", store<1>, check, kPlain, "+daro");
  define("buffer_store_dwordx2", store<2>, check, kPlain, "+daro");
  define("buffer_store_dwordx3", store<3>, check, kPlain, "+daro");
  define("buffer_store_dwordx4", store<4>, check, kPlain, "+daro");
#define NARROW(name, lds, bytes, form, sign) define("buffer_load_" name, load_narrow<bytes, Into::form, sign>, check, kToLds, "+daro");
  MGX_NARROW_LOADS(NARROW)
#undef NARROW
  define("buffer_store_byte", store_narrow<1, 0>, check, kPlain, "+daro");
  define("buffer_store_short", store_narrow<2, 0>, check, kPlain, "+daro");
  define("buffer_store_byte_d16_hi", store_narrow<1, 16>, check, kPlain, "+daro");
  define("buffer_store_short_d16_hi", store_narrow<2, 16>, check, kPlain, "+daro");
  // caches: every access is complete when the next instruction runs
  for (const char* name : {"buffer_wbl2", "buffer_inv", "buffer_wbinvl1", "buffer_wbinvl1_vol", "buffer_gl0_inv",
                           "buffer_gl1_inv", "buffer_invl2"}) {
    define(name, [](Wave&, const Instruction&) {});
  }
}

}  // namespace mgx
