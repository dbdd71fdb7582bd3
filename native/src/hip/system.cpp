// Devices, memory that they share, and what is written when the process ends.
#include "hip/system.h"

#include <cstdio>

#include "hip/calls.h"
#include "isa/print.h"

namespace mgx {
namespace {

thread_local int current_device = 0;

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) >= 32) out += c;
  }
  return out + "\"";
}

unsigned long long wide(u64 n) { return n; }

// Removes the exit handler's need for the caller to know when the process ends.
struct AtExit {
  ~AtExit() { System::get().write_statistics(); }
};

}  // namespace

System::System() : settings_(Settings::from_environment()) {
  for (const std::string& arch : settings_.archs) {
    devices_.push_back(std::make_unique<Device>(static_cast<int>(devices_.size()), arch, settings_));
  }
}

System& System::get() {
  static System* system = new System;  // lives until the process ends: callers' destructors use it
  static AtExit at_exit;
  return *system;
}

Device* System::device(int number) {
  return number >= 0 && static_cast<std::size_t>(number) < devices_.size() ? devices_[static_cast<std::size_t>(number)].get() : nullptr;
}

Device& System::current() {
  Device* found = device(current_device);
  if (found == nullptr) throw Error("there is no device");
  return *found;
}

bool System::set_current(int number) {
  if (device(number) == nullptr) return false;
  current_device = number;
  return true;
}

void* System::allocate_for_host(u64 size) {
  Device& owner = current();
  void* p = owner.allocate(size);
  if (p == nullptr) return nullptr;
  owner.memory().mark_written(p, size);  // the host writes without telling
  for (auto& d : devices_) {
    if (d.get() != &owner) d->memory().add(p, size);
  }
  return p;
}

void System::share(void* p, u64 size) {
  for (auto& d : devices_) d->memory().add(p, size);
}

void System::unshare(void* p) {
  for (auto& d : devices_) d->memory().remove(p);
}

bool System::release(void* p) {
  for (auto& owner : devices_) {
    if (!owner->owns(p)) continue;
    for (auto& d : devices_) {
      if (d != owner) d->memory().remove(p);  // first: the address may be given out again at once
    }
    return owner->release(p);
  }
  return false;
}

Device* System::owner(const void* p) {
  Device* first = nullptr;
  for (auto& d : devices_) {
    const Range found = d->memory().find(reinterpret_cast<u64>(p));
    if (found.size == 0) continue;
    if (d->owns(reinterpret_cast<void*>(found.base))) return d.get();
    if (first == nullptr) first = d.get();  // shared memory of the host
  }
  return first;
}

bool System::holds(const void* p, u64 size) {
  const u64 address = reinterpret_cast<u64>(p);
  for (auto& d : devices_) {
    const Range found = d->memory().find(address);
    if (found.size != 0) return size <= found.size - (address - found.base);
  }
  return true;
}

Module* System::load(const void* image) {
  std::unique_ptr<Module> module = current().load(image);
  std::lock_guard<std::mutex> lock(mutex_);
  modules_.push_back(std::move(module));
  return modules_.back().get();
}

void System::unload(Module* module) {
  module->device->unload(*module);
  if (!settings_.statistics.empty()) return;  // its code may be gone, its counts may not
  std::lock_guard<std::mutex> lock(mutex_);
  for (auto it = modules_.begin(); it != modules_.end(); ++it) {
    if (it->get() != module) continue;
    modules_.erase(it);
    return;
  }
}

void System::add(Record record) {
  if (settings_.statistics.empty()) return;
  std::lock_guard<std::mutex> lock(mutex_);
  records_.push_back(std::move(record));
}

void System::write_statistics() {
  if (settings_.statistics.empty()) return;
  const std::string temporary = settings_.statistics + ".part";
  std::FILE* out = std::fopen(temporary.c_str(), "w");
  if (out == nullptr) return;
  std::fprintf(out, "{\"launches\": [");
  const char* comma = "";
  for (const Record& r : records_) {
    std::fprintf(out, "%s\n  {\"device\": %d, \"kernel\": %s, \"groups\": %llu, \"threads\": %llu, \"waves\": %llu, \"instructions\": %llu, \"seconds\": %.6f}",
                 comma, r.device, quoted(r.kernel).c_str(), wide(r.groups), wide(r.threads), wide(r.waves),
                 wide(r.instructions), r.seconds);
    comma = ",";
  }
  std::fprintf(out, "],\n\"memory\": [");
  comma = "";
  for (auto& d : devices_) {
    const Usage u = d->usage();
    std::fprintf(out, "%s\n  {\"device\": %d, \"allocations\": %llu, \"allocated\": %llu, \"live\": %llu, \"peak\": %llu}",
                 comma, d->number(), wide(u.allocations), wide(u.allocated), wide(u.live), wide(u.peak));
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
                   comma, number, quoted(p.where(i.address)).c_str(), wide(i.address),
                   words_text(i.words, i.size / 4u).c_str(), quoted(to_text(i)).c_str(), wide(p.executed[n]));
      comma = ",";
    }
  }
  std::fprintf(out, "],\n\"calls\": {");
  comma = "";
  for (const auto& [name, count] : call_counts()) {
    std::fprintf(out, "%s\n  %s: %llu", comma, quoted(name).c_str(), wide(count));
    comma = ",";
  }
  std::fprintf(out, "}}\n");
  if (std::fclose(out) == 0) std::rename(temporary.c_str(), settings_.statistics.c_str());
}

}  // namespace mgx
