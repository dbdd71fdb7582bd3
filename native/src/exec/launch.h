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
  const u8* packet = nullptr;     // the dispatch packet, and
  const u8* queue = nullptr;      // the queue, there too
  u64 most_scratch = u64{1} << 32;  // bytes of a workgroup
  int host_threads = 1;
  Checks checks;
  bool count = false;  // executed instructions, in Program::executed
  u64 limit = kMostInstructions;  // of one wave: a loop without an end is a fault
  u64 launch_limit = ~u64{0};     // of all waves together
};

struct LaunchResult {
  u64 waves = 0, instructions = 0;
};

// How many workgroups can have begun before one has ended: more must not wait for each other.
u64 most_groups(const KernelInfo& kernel, const Grid& threads);

// Errors: Fault with the kernel, instruction and workgroup; Error for a launch that cannot be.
LaunchResult run_launch(Program& program, Memory& memory, const Launch& launch);

}  // namespace mgx
