// The emulated device.
#include "hip/device.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <sched.h>

#include "isa/print.h"

namespace mgx {
namespace {

constexpr int kMostThreads = 256;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

int processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) >= 32) out += c;
  }
  return out + "\"";
}

// Removes the exit handler's need for the caller to know when the process ends.
struct AtExit {
  ~AtExit() { Device::get().write_statistics(); }
};

}  // namespace

Settings Settings::from_environment() {
  Settings s;
  s.arch = variable("MGX_EMULATE_ARCH");
  s.threads = std::atoi(variable("MGX_EMULATE_THREADS").c_str());
  if (s.threads <= 0) s.threads = processors();
  s.threads = std::min(s.threads, kMostThreads);
  s.statistics = variable("MGX_EMULATE_STATS");
  s.checks = Checks::parse(variable("MGX_EMULATE_CHECK"));
  s.log = !variable("MGX_EMULATE_LOG").empty();
  const u64 limit = std::strtoull(variable("MGX_EMULATE_LIMIT").c_str(), nullptr, 10);
  if (limit != 0) s.limit = limit;
  return s;
}

Device& Device::get() {
  static Device* device = new Device;  // lives until the process ends: callers' destructors use it
  static AtExit at_exit;
  return *device;
}

Module* Device::load(const void* image) {
  const u8* bytes = static_cast<const u8*>(image);
  CodeObject object = read_code_object(Reader(bytes, elf_size(bytes)));
  if (!settings_.arch.empty() && object.arch != settings_.arch) {
    throw Error("the code object is for " + object.arch + ", the emulated device is " + settings_.arch);
  }
  auto module = std::make_unique<Module>();
  module->program = load_program(std::move(object));
  const CodeObject& loaded = module->program->object;
  for (const KernelInfo& k : loaded.kernels) module->functions[k.name] = {module.get(), &k};
  memory_.add(loaded.image.get(), loaded.image_size);
  std::lock_guard<std::mutex> lock(mutex_);
  modules_.push_back(std::move(module));
  return modules_.back().get();
}

void Device::unload(Module* module) {
  // kept for the statistics: its code may be gone, its counts may not
  memory_.remove(module->program->object.image.get());
}

void Device::launch(const Function& f, Grid groups, Grid threads, u32 dynamic_lds, void** arguments,
                    const void* segment, std::size_t segment_size) {
  const KernelInfo& k = *f.info;
  std::lock_guard<std::mutex> lock(mutex_);
  const std::size_t size = std::max<std::size_t>(k.kernarg_size, 8);
  u8* kernarg = static_cast<u8*>(memory_.allocate(size + 64));
  if (kernarg == nullptr) throw Error("out of memory for arguments");
  std::unique_ptr<u8, void (*)(u8*)> held(kernarg, [](u8* p) { Device::get().memory().release(p); });
  if (arguments != nullptr) {
    for (std::size_t n = 0; n < k.arguments.size(); ++n) {
      std::memcpy(kernarg + k.arguments[n].offset, arguments[n], k.arguments[n].size);
    }
  } else if (segment != nullptr) {
    std::memcpy(kernarg, segment, std::min(segment_size, size));
  }
  Launch l;
  l.kernel = &k;
  l.groups = groups;
  l.threads = threads;
  l.dynamic_lds = dynamic_lds;
  l.arguments = kernarg;
  l.host_threads = settings_.threads;
  l.checks = settings_.checks;
  memory_.mark_written(kernarg, size);
  l.count = !settings_.statistics.empty();
  l.limit = settings_.limit;
  const auto start = std::chrono::steady_clock::now();
  const LaunchResult result = run_launch(*f.module->program, memory_, l);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const u64 group_count = u64{groups.x} * groups.y * groups.z;
  if (l.count) {
    records_.push_back({k.name, group_count, u64{threads.x} * threads.y * threads.z, result.waves, result.instructions, seconds});
  }
  if (settings_.log) {
    std::fprintf(stderr, "emulator: %s: %llu groups of %u, %llu instructions, %.1f ms\n", k.name.c_str(),
                 static_cast<unsigned long long>(group_count), threads.x * threads.y * threads.z,
                 static_cast<unsigned long long>(result.instructions), seconds * 1e3);
  }
}

void Device::write_statistics() {
  if (settings_.statistics.empty()) return;
  const std::string temporary = settings_.statistics + ".part";
  std::FILE* out = std::fopen(temporary.c_str(), "w");
  if (out == nullptr) return;
  std::fprintf(out, "{\"launches\": [");
  const char* comma = "";
  for (const Record& r : records_) {
    std::fprintf(out, "%s\n  {\"kernel\": %s, \"groups\": %llu, \"threads\": %llu, \"waves\": %llu, \"instructions\": %llu, \"seconds\": %.6f}",
                 comma, quoted(r.kernel).c_str(), static_cast<unsigned long long>(r.groups),
                 static_cast<unsigned long long>(r.threads), static_cast<unsigned long long>(r.waves),
                 static_cast<unsigned long long>(r.instructions), r.seconds);
    comma = ",";
  }
  std::fprintf(out, "],\n\"executed\": [");
  comma = "";
  for (std::size_t number = 0; number < modules_.size(); ++number) {
    const Program& p = *modules_[number]->program;
    for (std::size_t n = 0; n < p.code.size(); ++n) {
      if (p.executed[n] == 0) continue;
      const Instruction& i = p.code[n];
      std::fprintf(out, "%s\n  {\"module\": %zu, \"function\": %s, \"address\": %llu, \"words\": \"%s\", \"text\": %s, \"count\": %llu}",
                   comma, number, quoted(p.where(i.address)).c_str(), static_cast<unsigned long long>(i.address),
                   words_text(i.words, i.size / 4u).c_str(), quoted(to_text(i)).c_str(),
                   static_cast<unsigned long long>(p.executed[n]));
      comma = ",";
    }
  }
  std::fprintf(out, "]}\n");
  if (std::fclose(out) == 0) std::rename(temporary.c_str(), settings_.statistics.c_str());
}

}  // namespace mgx
