// Instructions as text, in LLVM's assembler syntax.
#pragma once

#include "isa/instruction.h"

namespace mgx {

// One instruction without encoding suffixes (_e32, _e64, _dpp, _sdwa) and cache hints.
std::string to_text(const Instruction& i);

// "unknown instruction" with its words and address, for errors.
std::string words_text(const u32* words, std::size_t count);

}  // namespace mgx
