// The allocations and the look-up of addresses.
#include "exec/memory.h"

#include <algorithm>
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
  if (tracking_) {
    std::unique_lock<std::shared_mutex> lock(mutex_);
    written_[reinterpret_cast<u64>(p)].assign(size, 0);
  }
  return p;
}

void Memory::mark_written(const void* p, u64 size) {
  if (!tracking_) return;
  const u64 address = reinterpret_cast<u64>(p);
  std::shared_lock<std::shared_mutex> lock(mutex_);  // the map stays; bytes are set alike by all
  auto it = written_.upper_bound(address);
  if (it == written_.begin()) return;
  --it;
  const u64 at = address - it->first;
  if (at < it->second.size()) std::memset(it->second.data() + at, 1, std::min<u64>(size, it->second.size() - at));
}

bool Memory::is_written(const void* p, u64 size) const {
  const u64 address = reinterpret_cast<u64>(p);
  std::shared_lock<std::shared_mutex> lock(mutex_);
  auto it = written_.upper_bound(address);
  if (it == written_.begin()) return true;
  --it;
  const u64 at = address - it->first;
  for (u64 k = at; k < at + size && k < it->second.size(); ++k) {
    if (!it->second[k]) return false;
  }
  return true;
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
  written_.erase(reinterpret_cast<u64>(p));
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
