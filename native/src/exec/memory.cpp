// The allocations and the look-up of addresses.
#include "exec/memory.h"

#include <cstdio>
#include <cstdlib>
#include <mutex>

namespace mgx {
namespace {

constexpr int kPoison = 0xcb;  // a large negative number in every float format

}  // namespace

void* Memory::allocate(u64 size) {
  const u64 bytes = (size + 4095) / 4096 * 4096 + 4096;
  if (bytes < size) return nullptr;
  void* p = std::aligned_alloc(4096, bytes);
  if (p == nullptr) return nullptr;
  std::memset(p, kPoison, size);
  add(p, size);
  return p;
}

void Memory::release(void* p) {
  remove(p);
  std::free(p);
}

void Memory::add(const void* p, u64 size) {
  std::unique_lock<std::shared_mutex> lock(mutex_);
  ranges_[reinterpret_cast<u64>(p)] = size;
}

void Memory::remove(const void* p) {
  std::unique_lock<std::shared_mutex> lock(mutex_);
  ranges_.erase(reinterpret_cast<u64>(p));
}

Range Memory::find(u64 address) const {
  std::shared_lock<std::shared_mutex> lock(mutex_);
  auto it = ranges_.upper_bound(address);
  if (it == ranges_.begin()) return {};
  --it;
  return address - it->first < it->second ? Range{it->first, it->second} : Range{};
}

void outside(u64 address, u32 size) {
  char text[96];
  std::snprintf(text, sizeof text, "an access of %u bytes at 0x%llx is outside of every allocation", size,
                static_cast<unsigned long long>(address));
  throw Fault(text);
}

const Range& range_of(Wave& w, u64 address, u32 size) {
  for (const Range& r : w.ranges) {
    if (r.size != 0 && r.holds(address, size)) return r;
  }
  Range found = w.memory->find(address);
  if (!found.holds(address, size) || found.size == 0) outside(address, size);
  Range& slot = w.ranges[w.next_range++ % 4];
  slot = found;
  return slot;
}

u8* global_address(Wave& w, u64 address, u32 size) {
  range_of(w, address, size);
  return reinterpret_cast<u8*>(address);
}

}  // namespace mgx
