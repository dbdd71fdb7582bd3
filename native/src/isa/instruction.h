// The internal form of an instruction: what the decoder makes and the executor runs.
#pragma once

#include "bits.h"

namespace mgx {

struct Wave;
struct Instruction;
using Handler = void (*)(Wave&, const Instruction&);

// Scalar registers that every generation has, at these numbers in a wave's register file.
constexpr u16 kVcc = 106, kTtmp = 108, kM0 = 124, kExec = 126, kNull = 130, kScc = 253;
// Sources alone: where LDS and scratch lie in the flat address space.
constexpr u16 kSharedBase = 235, kSharedLimit = 236, kPrivateBase = 237, kPrivateLimit = 238;
constexpr u16 kAccBase = 256;  // the number of AGPR 0 among the vector registers

enum class Generation : u8 { Gfx9, Gfx10, Gfx11, Gfx12 };

struct Operand {
  enum class Kind : u8 { None, Vector, Scalar, Constant };
  Kind kind = Kind::None;  // None: printed as `off`, or absent
  u8 size = 1;             // registers
  u8 half = 0;             // 16-bit operands by name: 1 low, 2 high
  bool neg = false, abs = false, sext = false;
  bool literal = false;    // a constant that follows the instruction
  char letter = 0;         // the field it came from
  u16 index = 0;           // register number
  u16 bits16 = 0;          // a constant as 16-,
  u32 bits = 0;            // 32- and
  u64 bits64 = 0;          // 64-bit value
};

// A row of a generation's opcode table.
struct Opcode {
  u8 format;
  u16 code;
  const char* name;
  const char* signature;
  u8 archs;
};

constexpr int kMaxOperands = 6;

struct Instruction {
  Handler run = nullptr;
  Operand o[kMaxOperands];  // in printed order: results first, except in stores
  u8 count = 0;
  u8 size = 0;       // bytes
  u8 sources = 0;    // bit k: operand k is read
  u8 results = 0;    // bit k: operand k is written
  bool plain = true;  // no operand modifiers, dpp, sdwa, clamp or omod: the fast path
  bool dpp = false, dpp8 = false, sdwa = false, fetch_inactive = false, bound_ctrl = false;
  bool clamp = false;
  u8 omod = 0, opsel = 0, opselhi = 7, neglo = 0, neghi = 0;
  u8 cbsz = 0, abid = 0, blgp = 0;  // of matrix instructions
  u8 row_mask = 15, bank_mask = 15;
  u8 dst_sel = 6, dst_unused = 0, src0_sel = 6, src1_sel = 6;
  bool offen = false, idxen = false, lds = false, returns = false;  // returns: an atomic's old value
  u8 offset0 = 0, offset1 = 0;
  u8 index_mode = 0;   // s_set_gpr_idx_on's mode where it is in force
  u16 cache = 0;       // glc, slc, scc, dlc, scope and th: they change no result
  u16 dpp_ctrl = 0;
  u16 aux = 0;         // for the handler: a matrix form, a truth table
  u32 dpp8_lanes = 0;
  i32 offset = 0;
  i32 target = -1;     // of a branch: an index into the program
  const Opcode* opcode = nullptr;
  const char* form = "";  // the format's name
  u64 address = 0;     // offset in the code object's image
  u32 words[5] = {};
  Handler half = nullptr;         // of a VOPD pair: what its first half does
  Instruction* second = nullptr;  // and its other half
  u8 scale_opsel = 0;             // of a scaled matrix instruction: which byte of each scale, low bits
  u8 scale_opselhi = 0;           // and high bits

  const char* name() const { return opcode->name; }

  // The operand of a field, by its letter; nullptr: the instruction has none.
  const Operand* find(char letter) const {
    for (u8 k = 0; k < count; ++k) {
      if (o[k].letter == letter) return &o[k];
    }
    return nullptr;
  }
  // The same where the semantics said when they were defined that it is there.
  const Operand& of(char letter) const {
    const Operand* found = find(letter);
    return found != nullptr ? *found : o[0];
  }
};

}  // namespace mgx
