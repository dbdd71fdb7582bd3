// What the environment asks of the emulator.
#pragma once

#include <string>
#include <vector>

#include "exec/launch.h"

namespace mgx {

struct Settings {
  std::vector<std::string> archs;  // MGX_EMULATE_ARCH: of each device; "" takes every code object
  u64 memory = 0;          // MGX_EMULATE_MEMORY: bytes of each device, else the machine's
  int threads = 1;         // MGX_EMULATE_THREADS, else the processors
  std::string statistics;  // MGX_EMULATE_STATS: a file for launches and counts, as JSON
  Checks checks;           // MGX_EMULATE_CHECK
  int version = 60000000;  // MGX_EMULATE_HIP: HIP's version as it says it, from "7.1" or "6.4.2"
  bool queues = false;     // MGX_EMULATE_QUEUES: work of a stream runs when it is waited for
  bool log = false;        // MGX_EMULATE_LOG: launches on stderr
  u64 limit = kMostInstructions;  // MGX_EMULATE_LIMIT: instructions of a wave
  u64 launch_limit = ~u64{0};     // MGX_EMULATE_LAUNCH_LIMIT: of all waves of a launch

  // Errors: a number that is none, a check of another name.
  static Settings from_environment();
};

}  // namespace mgx
