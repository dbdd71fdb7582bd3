// The emulated device.
#include "hip/device.h"

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "exec/hidden.h"

namespace mgx {

Device::Device(int number, std::string arch, const Settings& settings)
    : number_(number), arch_(std::move(arch)), settings_(settings) {
  if (settings_.checks.uninitialized) memory_.track_writes();
  if (settings_.checks.races) memory_.track_writers();
}

Usage Device::usage() {
  std::lock_guard<std::mutex> lock(mutex_);
  return usage_;
}

void* Device::allocate(u64 size) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (size > settings_.memory - std::min(usage_.live, settings_.memory)) return nullptr;
  void* p = memory_.allocate(size);
  if (p == nullptr) return nullptr;
  sizes_[p] = size;
  ++usage_.allocations;
  usage_.allocated += size;
  usage_.live += size;
  usage_.peak = std::max(usage_.peak, usage_.live);
  if (settings_.log) std::fprintf(stderr, "emulator: device %d: %llu bytes allocated\n", number_, static_cast<unsigned long long>(size));
  return p;
}

bool Device::owns(void* p) {
  std::lock_guard<std::mutex> lock(mutex_);
  return sizes_.count(p) != 0;
}

bool Device::release(void* p) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto it = sizes_.find(p);
  if (it == sizes_.end()) return false;
  usage_.live -= it->second;
  if (settings_.log) std::fprintf(stderr, "emulator: device %d: %llu bytes released\n", number_, static_cast<unsigned long long>(it->second));
  sizes_.erase(it);
  memory_.release(p);
  return true;
}

std::unique_ptr<Module> Device::load(const void* image) {
  const u8* bytes = static_cast<const u8*>(image);
  CodeObject object = read_code_object(Reader(bytes, elf_size(bytes)), std::min(kMostMemory, settings_.memory));
  if (!arch_.empty() && object.arch != arch_) {
    throw Error("the code object is for " + object.arch + ", the emulated device " + std::to_string(number_) + " is " + arch_);
  }
  auto module = std::make_unique<Module>();
  module->device = this;
  module->program = load_program(std::move(object));
  const CodeObject& loaded = module->program->object;
  for (const KernelInfo& k : loaded.kernels) module->functions[k.name] = {module.get(), &k};
  memory_.add(loaded.image.get(), loaded.image_size);
  return module;
}

void Device::unload(Module& module) { memory_.remove(module.program->object.image.get()); }

Record Device::launch(const Function& f, Grid groups, Grid threads, u32 dynamic_lds, void** arguments,
                      const void* segment, std::size_t segment_size) {
  const KernelInfo& k = *f.info;
  std::lock_guard<std::mutex> lock(launches_);
  const std::size_t size = std::max<std::size_t>(k.kernarg_size, 8);
  const auto release = [this](u8* p) { memory_.release(p); };
  const std::unique_ptr<u8, decltype(release)> kernarg(static_cast<u8*>(memory_.allocate(size + 64)), release);
  if (kernarg == nullptr) throw Error("out of memory for arguments");
  if (arguments != nullptr) {
    for (std::size_t n = 0; n < k.arguments.size(); ++n) {
      std::memcpy(kernarg.get() + k.arguments[n].offset, arguments[n], k.arguments[n].size);
    }
  } else if (segment != nullptr) {
    std::memcpy(kernarg.get(), segment, std::min(segment_size, size));
  }
  write_hidden(k, groups, threads, dynamic_lds, kernarg.get());
  const std::unique_ptr<u8, decltype(release)> packet(static_cast<u8*>(memory_.allocate(kPacketSize + kQueueSize)), release);
  if (packet == nullptr) throw Error("out of memory for a launch");
  write_packet(k, groups, threads, dynamic_lds, kernarg.get(), packet.get());
  write_queue(packet.get() + kPacketSize);
  memory_.mark_written(packet.get(), kPacketSize + kQueueSize);
  Launch l;
  l.kernel = &k;
  l.groups = groups;
  l.threads = threads;
  l.dynamic_lds = dynamic_lds;
  l.arguments = kernarg.get();
  l.packet = packet.get();
  l.queue = packet.get() + kPacketSize;
  l.most_scratch = std::max<u64>(settings_.memory, u64{1} << 24);
  l.host_threads = settings_.threads;
  l.checks = settings_.checks;
  memory_.mark_written(kernarg.get(), size);
  l.count = !settings_.statistics.empty();
  l.limit = settings_.limit;
  l.launch_limit = settings_.launch_limit;
  const auto start = std::chrono::steady_clock::now();
  const LaunchResult result = run_launch(*f.module->program, memory_, l);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const u64 group_count = u64{groups.x} * groups.y * groups.z, thread_count = u64{threads.x} * threads.y * threads.z;
  if (settings_.log) {
    std::fprintf(stderr, "emulator: %s: %llu groups of %llu, %llu instructions, %.1f ms\n", k.name.c_str(),
                 static_cast<unsigned long long>(group_count), static_cast<unsigned long long>(thread_count),
                 static_cast<unsigned long long>(result.instructions), seconds * 1e3);
  }
  return {number_, k.name, group_count, thread_count, result.waves, result.instructions, seconds};
}

}  // namespace mgx
