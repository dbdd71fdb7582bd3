// Runs a kernel over a grid of workgroups.
#pragma once

#include "check/checker.h"
#include "exec/memory.h"
#include "exec/program.h"

namespace mgx {

struct Grid {
  u32 x = 1, y = 1, z = 1;
};

// A wave that runs more is taken for one that never ends.
constexpr u64 kMostInstructions = 1000000000;

struct Launch {
  const KernelInfo* kernel = nullptr;
  Grid groups, threads;
  u32 dynamic_lds = 0;
  const u8* arguments = nullptr;  // the kernarg segment, in device memory
  int host_threads = 1;
  Checks checks;
  bool count = false;  // executed instructions, in Program::executed
  u64 limit = kMostInstructions;  // of one wave: a loop without an end is a fault
};

struct LaunchResult {
  u64 waves = 0, instructions = 0;
};

// Errors: Fault with the kernel, instruction and workgroup; Error for a launch that cannot be.
LaunchResult run_launch(Program& program, Memory& memory, const Launch& launch);

}  // namespace mgx
