// Copies and launches.
#include "hip/work.h"

#include <algorithm>
#include <cstring>

namespace mgx {
namespace {

std::vector<u8> segment_of(const KernelInfo& k, void** arguments, void** extra) {
  std::vector<u8> segment(std::max<std::size_t>(k.kernarg_size, 8));
  if (arguments != nullptr) {
    for (std::size_t n = 0; n < k.arguments.size(); ++n) {
      std::memcpy(segment.data() + k.arguments[n].offset, arguments[n], k.arguments[n].size);
    }
    return segment;
  }
  // 1 pointer, 2 size, 3 end
  const void* from = nullptr;
  std::size_t size = 0;
  for (void** e = extra; e != nullptr && *e != reinterpret_cast<void*>(3); e += 2) {
    if (*e == reinterpret_cast<void*>(1)) from = e[1];
    if (*e == reinterpret_cast<void*>(2)) size = *static_cast<std::size_t*>(e[1]);
  }
  if (from != nullptr) std::memcpy(segment.data(), from, std::min(size, segment.size()));
  return segment;
}

}  // namespace

Status copy(void* to, const void* from, std::size_t n) {
  if (!System::get().holds(to, n) || !System::get().holds(from, n)) return fail(kInvalidValue, "a copy goes beyond its allocation");
  for (auto& d : System::get().devices()) d->memory().mark_written(to, n);
  std::memmove(to, from, n);
  return kSuccess;
}

Work kernel_work(const Function* f, Grid groups, Grid threads, u32 lds, void** arguments, void** extra) {
  return [f, groups, threads, lds, segment = segment_of(*f->info, arguments, extra)] {
    try {
      Device& device = *f->module->device;
      System::get().add(device.launch(*f, groups, threads, lds, nullptr, segment.data(), segment.size()));
      return kSuccess;
    } catch (const std::exception& e) {
      return fail(kLaunchFailure, e.what());
    }
  };
}

}  // namespace mgx
