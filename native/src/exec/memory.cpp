// The allocations and the look-up of addresses.
#include "exec/memory.h"

#include <cstdlib>
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <mutex>
#include <sys/mman.h>

#if !defined(MAP_FIXED_NOREPLACE)
#define MAP_FIXED_NOREPLACE 0x100000
#endif

namespace mgx {
namespace {

constexpr u64 kNear = 1 << 20;  // an address may be told by its distance to an allocation
constexpr int kPoison = 0xcb;  // a large negative number in every float format
constexpr u64 kPage = 4096, kAligned = 256;
constexpr u64 kWindow = u64{1} << 32, kFirst = u64{0x2000} << 32, kWindows = 0x4000;
constexpr int kTries = 64;

u64 up(u64 n, u64 to) { return (n + to - 1) / to * to; }

// Pages round a place of `size` bytes whose middle is a border of 4 GiB; size 0: there are none.
Range map_across(u64 size, u64& base) {
  static std::atomic<u64> next{0};
  const u64 before = up(size / 2, kAligned), steps = 2 + size / kWindow;
  for (int n = 0; n < kTries; ++n) {
    const u64 border = kFirst + next.fetch_add(steps) % kWindows * kWindow + up(before, kWindow);
    base = border - before;
    const u64 start = base / kPage * kPage, bytes = up(base + size, kPage) - start + kPage;
    void* p = mmap(reinterpret_cast<void*>(start), bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (p == reinterpret_cast<void*>(start)) return {start, bytes};
    if (p != MAP_FAILED) munmap(p, bytes);  // a kernel that takes the address for a wish
    else if (errno == ENOMEM) return {};
  }
  return {};
}

}  // namespace

Memory::~Memory() {
  for (const auto& [base, pages] : mapped_) munmap(reinterpret_cast<void*>(pages.base), pages.size);
  for (const auto& [base, writers] : writers_) std::free(writers.of);
}

void* Memory::allocate(u64 size) {
  u64 base = 0;
  const Range pages = size < kWindow * kWindows / 4 ? map_across(size, base) : Range{};
  if (pages.size == 0) return nullptr;
  void* p = reinterpret_cast<void*>(base);
  std::memset(p, kPoison, size);
  add(p, size);
  std::unique_lock<std::shared_mutex> lock(mutex_);
  mapped_[base] = pages;
  if (tracking_) written_[base].assign(size, 0);
  if (tracks_writers_) writers_[base] = {static_cast<u64*>(std::calloc(size + 1, sizeof(u64))), size};
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

u64 Memory::claim(const void* p, u64 size, u64 writer) {
  const u64 address = reinterpret_cast<u64>(p);
  std::shared_lock<std::shared_mutex> lock(mutex_);
  auto it = writers_.upper_bound(address);
  if (it == writers_.begin()) return 0;
  --it;
  const u64 at = address - it->first;
  u64 found = 0;
  for (u64 n = at; n < std::min(at + size, it->second.size) && it->second.of != nullptr; ++n) {
    u64& last = it->second.of[n];
    if (last != writer && last >> 32 == writer >> 32) found = last;
    last = writer;
  }
  return found;
}

bool Memory::is_written(const void* p, u64 size) const {
  const u64 address = reinterpret_cast<u64>(p);
  std::shared_lock<std::shared_mutex> lock(mutex_);
  auto it = written_.upper_bound(address);
  if (it == written_.begin()) return true;
  --it;
  const u64 at = address - it->first;
  if (at >= it->second.size()) return true;
  return std::memchr(it->second.data() + at, 0, std::min<u64>(size, it->second.size() - at)) == nullptr;
}

void Memory::release(void* p) {
  remove(p);
  std::unique_lock<std::shared_mutex> lock(mutex_);
  const auto it = mapped_.find(reinterpret_cast<u64>(p));
  if (it == mapped_.end()) return;
  munmap(reinterpret_cast<void*>(it->second.base), it->second.size);
  mapped_.erase(it);
  const auto writers = writers_.find(reinterpret_cast<u64>(p));
  if (writers == writers_.end()) return;
  std::free(writers->second.of);
  writers_.erase(writers);
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

std::string Memory::place(u64 address) const {
  std::shared_lock<std::shared_mutex> lock(mutex_);
  const auto after = ranges_.upper_bound(address);
  const auto in_bytes = [](u64 n) { return std::to_string(n) + " bytes"; };
  if (after != ranges_.begin()) {
    const auto& [base, size] = *std::prev(after);
    if (address - base < size) return in_bytes(base + size - address) + " from the end of one of " + in_bytes(size);
    if (address - base - size < kNear) return in_bytes(address - base - size) + " behind one of " + in_bytes(size);
  }
  if (after != ranges_.end() && after->first - address < kNear) {
    return in_bytes(after->first - address) + " ahead of one of " + in_bytes(after->second);
  }
  return "far from all";
}

namespace {

[[noreturn]] void outside(const Wave& w, u64 address, u32 size, int lane) {
  char text[128];
  std::snprintf(text, sizeof text, "an access of %u bytes at 0x%llx is outside of every allocation, ", size,
                static_cast<unsigned long long>(address));
  throw Fault((lane == kNoLane ? "" : "lane " + std::to_string(lane) + ": ") + (text + w.memory->place(address)));
}

}  // namespace

const Range& range_of(Wave& w, u64 address, u32 size, int lane) {
  for (const Range& r : w.ranges) {
    if (r.size != 0 && r.holds(address, size)) return r;
  }
  Range found = w.memory->find(address);
  if (!found.holds(address, size) || found.size == 0) outside(w, address, size, lane);
  Range& slot = w.ranges[w.next_range++ % 4];
  slot = found;
  return slot;
}

u8* global_address(Wave& w, u64 address, u32 size, int lane) {
  range_of(w, address, size, lane);
  return reinterpret_cast<u8*>(address);
}

u8* scratch_address(Wave& w, u64 offset, u32 size, int lane) {
  if (offset + size > w.scratch_size || offset + size < size) {
    throw Fault("lane " + std::to_string(lane) + ": a scratch access is outside of the lane's scratch");
  }
  return w.scratch + u64{w.scratch_size} * static_cast<u32>(lane) + offset;
}

u8* flat_address(Wave& w, u64 address, u32 size, int lane) {
  const u64 high = address >> 32 << 32, low = address & 0xffffffff;
  if (high == kPrivateAperture) return scratch_address(w, low, size, lane);
  if (high != kSharedAperture) return global_address(w, address, size, lane);
  if (low + size > w.lds_size) throw Fault("lane " + std::to_string(lane) + ": a flat address is outside of LDS");
  return w.lds + low;
}

}  // namespace mgx
