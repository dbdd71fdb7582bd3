// Which function executes which opcode, by mnemonic.
#pragma once

#include <string>

#include "isa/instruction.h"

namespace mgx {

// Finds what an instruction needs besides its operands, once, when it is loaded.
// Errors: a form that is not emulated.
using Prepare = void (*)(Instruction&, Generation);

// The forms of an instruction that change its result. A handler says which of them it heeds; one
// that an instruction has and its handler does not heed is refused when the code is loaded.
enum Form : u16 {
  kPlain = 0,
  kDpp = 1,          // the first source comes from other lanes
  kSdwaSources = 2,  // parts of the sources
  kSdwaResult = 4,   // a part of the result
  kClamp = 8,
  kOmod = 16,
  kHalves = 32,   // op_sel: halves of 16-bit operands
  kSigns = 64,    // neg and abs of the sources
  kPacked = 128,  // op_sel, op_sel_hi, neg_lo and neg_hi of packed operands
  kMask = 256,    // a second result: a mask of lanes
  kToLds = 512,   // a load straight to LDS
  kSdwa = kSdwaSources | kSdwaResult
};

// What a mnemonic means. `operands` are the letters of its operands as the instruction must have
// them, a dot for any source and `!` for a mask that is a result, alternatives between bars;
// "+da" asks for these letters among others; "": the handler's prepare looks.
struct Semantics {
  Handler run = nullptr;
  Prepare prepare = nullptr;
  u16 forms = kPlain;
  const char* operands = "";
};

// Errors: the instruction has a form, or operands, that its semantics do not heed.
void check_forms(const Instruction& i, const Semantics& s);

// The semantics of a mnemonic, with the other generations' spellings; run is nullptr if unknown.
Semantics find_semantics(const std::string& mnemonic);

// The semantics of an integer instruction whose result saturates (clamp); run is nullptr if unknown.
Semantics find_clamped(const std::string& mnemonic);

// For the files that define semantics.
void define(const std::string& mnemonic, Handler run, Prepare prepare = nullptr, u16 forms = kPlain,
            const char* operands = "");

// For every mnemonic that starts so.
void define_prefix(const std::string& start, Handler run, Prepare prepare, u16 forms = kPlain);

void define_scalar();
void define_scalar_floats();
void define_scalar_memory();
void define_vector_integers();
void define_vector_floats();
void define_vector_halves();
void define_vector_doubles();
void define_packed();
void define_conversions();
void define_scaled_conversions();
void define_compares();
void define_lanes();
void define_relative();
void define_sums();
void define_lds();
void define_atomics();
void define_buffer();
void define_flat();
void define_matrix();
void define_wmma();

}  // namespace mgx
