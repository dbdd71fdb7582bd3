// An emulated device: its memory, modules and launches.
#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "hip/settings.h"

namespace mgx {

class Device;
struct Module;

struct Function {
  Module* module = nullptr;
  const KernelInfo* info = nullptr;
};

struct Module {
  Device* device = nullptr;
  std::unique_ptr<Program> program;
  std::map<std::string, Function> functions;
};

// One launch, for statistics.
struct Record {
  int device;
  std::string kernel;
  u64 groups, threads, waves, instructions;
  double seconds;
};

// What was allocated for the caller, in bytes.
struct Usage {
  u64 allocations = 0, allocated = 0, live = 0, peak = 0;
};

class Device {
 public:
  Device(int number, std::string arch, const Settings& settings);

  int number() const { return number_; }
  const std::string& arch() const { return arch_; }  // "" takes every code object
  Memory& memory() { return memory_; }
  Usage usage();

  // nullptr: more than the device has.
  void* allocate(u64 size);
  bool owns(void* p);
  // False: not allocated here.
  bool release(void* p);
  // Errors: a damaged code object, another architecture's, an unknown instruction.
  std::unique_ptr<Module> load(const void* image);
  void unload(Module& module);
  // arguments: either one pointer for each explicit argument, or a whole segment.
  Record launch(const Function& f, Grid groups, Grid threads, u32 dynamic_lds, void** arguments, const void* segment,
                std::size_t segment_size);

 private:
  const int number_;
  const std::string arch_;
  const Settings& settings_;
  Memory memory_;
  std::mutex launches_;  // one at a time
  std::mutex mutex_;     // of the sizes
  std::map<void*, u64> sizes_;
  Usage usage_;
};

}  // namespace mgx
