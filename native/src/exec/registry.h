// Which function executes which opcode, by mnemonic.
#pragma once

#include <string>

#include "isa/instruction.h"

namespace mgx {

// Finds what an instruction needs besides its operands, once, when it is loaded.
// Errors: a form that is not emulated.
using Prepare = void (*)(Instruction&, Generation);

struct Semantics {
  Handler run = nullptr;
  Prepare prepare = nullptr;
};

// The semantics of a mnemonic, with the other generations' spellings; run is nullptr if unknown.
Semantics find_semantics(const std::string& mnemonic);

// The semantics of an integer instruction whose result saturates (clamp); run is nullptr if unknown.
Semantics find_clamped(const std::string& mnemonic);

// For the files that define semantics.
void define(const std::string& mnemonic, Handler run, Prepare prepare = nullptr);

// For every mnemonic that starts so.
void define_prefix(const std::string& start, Handler run, Prepare prepare);

void define_scalar();
void define_scalar_memory();
void define_vector_integers();
void define_vector_floats();
void define_vector_halves();
void define_vector_doubles();
void define_packed();
void define_conversions();
void define_compares();
void define_lanes();
void define_lds();
void define_atomics();
void define_buffer();
void define_flat();
void define_matrix();
void define_wmma();

}  // namespace mgx
