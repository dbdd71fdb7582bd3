// Machine code to instructions.
#pragma once

#include <vector>

#include "isa/tables.h"

namespace mgx {

// An instruction, or the two of a VOPD pair.
struct Decoded {
  Instruction first, second;
  bool dual = false;
};

// The instruction that `words` starts with. Errors: unknown bits, an operand that is not
// emulated, data that ends too early; the message says why, not where.
Decoded decode(const Architecture& arch, bool wave32, const u32* words, std::size_t count);

}  // namespace mgx
