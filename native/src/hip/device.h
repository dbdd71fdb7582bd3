// The emulated device: its settings, memory, modules and statistics.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "exec/launch.h"

namespace mgx {

// What the environment asks for.
struct Settings {
  std::string arch;        // MGX_EMULATE_ARCH; "" accepts every code object
  int threads = 1;         // MGX_EMULATE_THREADS, else the processors
  std::string statistics;  // MGX_EMULATE_STATS: a file for launches and counts, as JSON
  Checks checks;           // MGX_EMULATE_CHECK: all, or uninitialized, races, waits
  bool log = false;        // MGX_EMULATE_LOG: launches on stderr
  u64 limit = kMostInstructions;  // MGX_EMULATE_LIMIT: instructions of a wave

  static Settings from_environment();
};

struct Module;

struct Function {
  Module* module = nullptr;
  const KernelInfo* info = nullptr;
};

struct Module {
  std::unique_ptr<Program> program;
  std::map<std::string, Function> functions;
};

// One launch, for statistics.
struct Record {
  std::string kernel;
  u64 groups, threads, waves, instructions;
  double seconds;
};

class Device {
 public:
  static Device& get();

  const Settings& settings() const { return settings_; }
  Memory& memory() { return memory_; }

  // Errors: a damaged code object, another architecture's, an unknown instruction.
  Module* load(const void* image);
  void unload(Module* module);
  // arguments: either one pointer for each explicit argument, or a whole segment.
  void launch(const Function& f, Grid groups, Grid threads, u32 dynamic_lds, void** arguments, const void* segment,
              std::size_t segment_size);
  void write_statistics();

 private:
  Device() : settings_(Settings::from_environment()) {
    if (settings_.checks.uninitialized) memory_.track_writes();
  }

  Settings settings_;
  Memory memory_;
  std::mutex mutex_;  // one launch at a time
  std::vector<std::unique_ptr<Module>> modules_;
  std::vector<Record> records_;
};

}  // namespace mgx
