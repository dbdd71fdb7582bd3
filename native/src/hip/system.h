// The machine as HIP shows it: the emulated devices, the one that is current, and statistics.
#pragma once

#include <vector>

#include "hip/device.h"

namespace mgx {

class System {
 public:
  // Made when HIP is first called. Errors: those of Settings.
  static System& get();

  std::vector<std::unique_ptr<Device>>& devices() { return devices_; }
  const Settings& settings() const { return settings_; }
  // nullptr: there is no such device.
  Device* device(int number);
  // The calling thread's device.
  Device& current();
  bool set_current(int number);

  // Memory of the host that every device may touch.
  void* allocate_for_host(u64 size);
  void share(void* p, u64 size);
  void unshare(void* p);
  // False: not allocated here.
  bool release(void* p);
  // The device that a pointer's memory is of; nullptr: it is not a device's.
  Device* owner(const void* p);
  // Whether bytes lie in one allocation, or in none: then they are the host's.
  bool holds(const void* p, u64 size);

  Module* load(const void* image);
  void unload(Module* module);
  void add(Record record);
  void write_statistics();

 private:
  System();

  const Settings settings_;
  std::vector<std::unique_ptr<Device>> devices_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Module>> modules_;  // kept for the statistics when they are unloaded
  std::vector<Record> records_;
};

}  // namespace mgx
