// The generations' format and opcode tables.
#pragma once

#include <vector>

#include "isa/instruction.h"

namespace mgx {

enum class FieldKind : u8 { Vgpr, Source, Scalar, Pair, Quad, Immediate };

struct Field {
  char letter;
  FieldKind kind;
  u8 bit, width;
};

enum class Modifier : u8 {
  clamp, omod, neg, abs, opsel, opselhi, opselhi2, neglo, neghi, offset, offset0, offset1, gds, acc, imm, soff, glc,
  slc, scc, dlc, scope, th, sve, offen, idxen, lds, tfe, count
};

struct ModifierField {
  u8 bit = 0, width = 0;  // width 0: the format has none
};

enum FormatId : u8 {
  SOP1, SOPC, SOPP, SOPK, SOP2, SMEM, VOP1, VOPC, VOP2, VOP3P, VOP3, VOPDX, VOPDY, DS, FLAT, SCRATCH, GLOBAL, MUBUF,
  kFormats
};

struct Format {
  const char* name = nullptr;
  FormatId id = kFormats;
  u32 mask = 0, match = 0;
  u8 words = 0, opcode_bit = 0, opcode_width = 0;
  std::vector<Field> fields;
  ModifierField modifiers[static_cast<int>(Modifier::count)];
  std::vector<const Opcode*> opcodes;  // by number, nullptr where there is none

  const Field* field(char letter) const;
  const ModifierField& modifier(Modifier m) const { return modifiers[static_cast<int>(m)]; }
};

struct Architecture {
  std::string name;
  Generation generation;
  u8 bit;  // in an opcode's architectures
};

// Errors: an architecture that the emulator does not know.
Architecture find_architecture(const std::string& name);

// The formats of an architecture, in the order in which they are matched, with its opcodes alone.
const std::vector<Format>& formats_of(const Architecture& arch);

}  // namespace mgx
