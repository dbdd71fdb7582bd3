// The state of a wave, and access to its scalar registers.
#pragma once

#include <vector>

#include "isa/instruction.h"

namespace mgx {

constexpr u32 kScalars = 160;  // with room for the longest load into the last one
constexpr int kLanes = 64;  // a wave32 has the upper half switched off for ever

class Checker;
class Memory;
struct Program;

struct Range {
  u64 base = 0, size = 0;
  bool holds(u64 address, u64 bytes) const {
    return address - base <= size && bytes <= size - (address - base);
  }
};

// A fault of a running kernel: it stops the launch. The executor adds where.
struct Fault : Error {
  using Error::Error;
};

// Bits of the MODE register.
constexpr u32 kIeeeMode = 1 << 9, kOverflowMode = 1 << 23;

// LDS and scratch in the flat address space: the high halves of their addresses, where no memory is.
constexpr u64 kSharedAperture = u64{0x10000} << 32, kPrivateAperture = u64{0x20000} << 32;
inline bool is_aperture(u32 index) { return index >= kSharedBase && index <= kPrivateLimit; }
inline u64 aperture(u32 index) {
  const u64 base = index <= kSharedLimit ? kSharedAperture : kPrivateAperture;
  return index == kSharedLimit || index == kPrivateLimit ? base | 0xffffffff : base;
}

struct Wave {
  enum class State : u8 { Running, Resting, Barrier, Done };  // Resting: others may run first

  alignas(64) u32 v[512][kLanes];
  u32 s[kScalars];
  u64 exec = 0;
  bool scc = false;
  State state = State::Running;
  Generation generation = Generation::Gfx9;
  bool wave32 = false;
  bool fnuz = false;       // 8-bit floats of gfx942
  u32 pc = 0;              // index of the next instruction
  u32 mode = 0xf0;         // as the MODE register has it: rounding, denormals, IEEE 754, overflow of f16
  u8 index_mode = 0;       // s_set_gpr_idx_on
  u8* lds = nullptr;
  u32 lds_size = 0;
  u8* scratch = nullptr;   // scratch_size bytes for each lane
  u32 scratch_size = 0;
  // The registers that hold something from the start are those below `given_scalars`, and from
  // `user_scalars` to `initial_scalars`: between them lies what is counted and not asked for.
  u32 given_scalars = 0, user_scalars = 0, initial_scalars = 0;
  u32 given_vectors = 1;  // vector registers with a lane's place in its workgroup
  u32 number = 0;          // in its workgroup
  u32 group[3] = {};       // the workgroup's place in the grid
  u64 executed = 0;
  const Program* program = nullptr;
  Memory* memory = nullptr;
  Checker* checker = nullptr;  // where checks are asked for
  Range ranges[4];         // of device memory, found lately
  u32 next_range = 0;
};

// Code that names a vector register where only scalar ones are taken.
[[noreturn]] inline u32 no_scalar(u32 index) { throw Fault("no scalar register has the number " + std::to_string(index)); }

inline u32 read_scalar(const Wave& w, u32 index) {
  switch (index) {
    case kExec: return static_cast<u32>(w.exec);
    case kExec + 1: return static_cast<u32>(w.exec >> 32);
    case kNull: case kNull + 1: case kScc + 1: case kScc + 2: case kScc + 3: return 0;
    case kScc: return w.scc;
    default: return index < kScalars ? w.s[index] : no_scalar(index);
  }
}

inline void write_scalar(Wave& w, u32 index, u32 value) {
  if (index == kExec) {
    w.exec = (w.exec & ~u64{0xffffffff}) | value;
  } else if (index == kExec + 1) {
    if (!w.wave32) w.exec = (w.exec & 0xffffffff) | u64{value} << 32;
  } else {
    if (index >= kScalars) no_scalar(index);
    w.s[index] = value;
  }
}

inline u64 read_scalar64(const Wave& w, u32 index) {
  if (index == kNull) return 0;
  if (is_aperture(index)) return aperture(index);
  return read_scalar(w, index) | u64{read_scalar(w, index + 1)} << 32;
}

inline void write_scalar64(Wave& w, u32 index, u64 value) {
  write_scalar(w, index, static_cast<u32>(value));
  write_scalar(w, index + 1, static_cast<u32>(value >> 32));
}

inline u32 scalar(const Wave& w, const Operand& o) {
  return o.kind == Operand::Kind::Constant ? o.bits : read_scalar(w, o.index);
}

inline u64 scalar64(const Wave& w, const Operand& o) {
  return o.kind == Operand::Kind::Constant ? o.bits64 : read_scalar64(w, o.index);
}

// A scalar or constant that stands for all lanes; 0 for a vector register.
inline u32 scalar_or_zero(const Wave& w, const Operand& o) {
  return o.kind == Operand::Kind::Vector ? 0 : scalar(w, o);
}

// A lane mask: one register in wave32, two in wave64.
inline u64 read_mask(const Wave& w, const Operand& o) {
  if (o.kind == Operand::Kind::Constant) return w.wave32 ? o.bits : o.bits64;
  return w.wave32 ? read_scalar(w, o.index) : read_scalar64(w, o.index);
}

inline void write_mask(Wave& w, const Operand& o, u64 mask) {
  if (w.wave32) {
    write_scalar(w, o.index, static_cast<u32>(mask));
  } else {
    write_scalar64(w, o.index, mask);
  }
}

inline u64 read_vcc(const Wave& w) { return w.wave32 ? w.s[kVcc] : w.s[kVcc] | u64{w.s[kVcc + 1]} << 32; }

}  // namespace mgx
