// Modules of PTX that are run on the CPU.
#pragma once
#include <map>
#include <memory>
#include <string>

#include "ptx_run.h"

namespace ptx {

struct Loaded {
  Module text;
  std::map<std::string, std::unique_ptr<Code>> kernels;
};

// Errors: Fault for what is no PTX, or an instruction that is not known here.
std::unique_ptr<Loaded> load(const char* text, const Check& check);

// Runs a launch. parameters: one behind the other, as the kernel names them.
void launch(const Code& code, Dims grid, Dims block, std::size_t dynamic, const char* parameters);

}  // namespace ptx
