// A loaded code object: its instructions, ready to run.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "exec/wave.h"
#include "isa/tables.h"
#include "loader/code_object.h"

namespace mgx {

struct Program {
  CodeObject object;
  Architecture arch;
  std::vector<Instruction> code;
  std::deque<Instruction> seconds;  // of VOPD pairs
  u64 first = 0;                    // where the functions start in the image
  std::vector<i32> index;           // by (offset - first) / 4, -1 where no instruction starts
  std::vector<u64> executed;        // by instruction, where counting is asked for

  const u8* image() const { return object.image.get(); }
  i32 index_of(u64 offset) const {
    const u64 at = (offset - first) / 4;
    return offset % 4 == 0 && offset >= first && at < index.size() ? index[at] : -1;
  }
  // The function that holds an address, for messages.
  std::string where(u64 offset) const;
};

// Decodes every function and finds the semantics of every instruction.
// Errors: an unknown instruction, with its words, address and function; all that are unknown at once.
std::unique_ptr<Program> load_program(CodeObject object);

// Makes the host's rounding and denormals those of the wave's mode.
void apply_mode(const Wave& w);
// Errors: Fault for a mode that is not emulated.
void check_mode(u32 mode);

// Puts the host's floating-point mode back when it goes.
class HostMode {
 public:
  HostMode();
  ~HostMode();
  HostMode(const HostMode&) = delete;
  HostMode& operator=(const HostMode&) = delete;

 private:
  unsigned saved_ = 0;
};

}  // namespace mgx
