// Device memory: host allocations that kernels may touch, and nothing else.
#pragma once

#include <map>
#include <shared_mutex>
#include <string>

#include "exec/wave.h"

namespace mgx {

class Memory {
 public:
  Memory() = default;
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  // New memory, filled with a pattern that is no number anyone wants. It lies across a border of
  // 4 GiB of its own, so that the high half of an address, and the carry into it, matter.
  // nullptr: out of memory.
  void* allocate(u64 size);
  // Errors: not allocated here.
  void release(void* p);
  // From now on new memory remembers which of its bytes were written.
  void track_writes() { tracking_ = true; }
  void mark_written(const void* p, u64 size);
  // True also of memory that does not remember.
  bool is_written(const void* p, u64 size) const;
  // From now on new memory remembers which writer wrote each byte last.
  void track_writers() { tracks_writers_ = true; }
  // Makes bytes a writer's; the last one of its launch who wrote one of them before, else 0. A
  // writer's high half is the number of its launch.
  u64 claim(const void* p, u64 size, u64 writer);
  // Makes host memory reachable for kernels.
  void add(const void* p, u64 size);
  void remove(const void* p);
  // The range that holds an address; size 0 if none does.
  Range find(u64 address) const;
  // Where an address outside of every range is: "16 bytes behind one of 64 bytes".
  std::string place(u64 address) const;

 private:
  mutable std::shared_mutex mutex_;
  std::map<u64, u64> ranges_;
  bool tracking_ = false, tracks_writers_ = false;
  std::map<u64, std::vector<u8>> written_;  // by base, one byte for each
  // By base, a writer for each byte: zeros that take no room until they are written.
  struct Writers {
    u64* of = nullptr;
    u64 size = 0;
  };
  std::map<u64, Writers> writers_;
  std::map<u64, Range> mapped_;             // by base, the pages that hold it
};

// Where scratch buffers of gfx90a and GFX10 point: no memory, the wave's own scratch.
constexpr u64 kScratchWindow = u64{0x7a50} << 32;

// The memory at an address, for a lane; kNoLane: for all of a wave. Fault: outside of every
// allocation.
constexpr int kNoLane = -1;
u8* global_address(Wave& w, u64 address, u32 size, int lane = kNoLane);

// The range that holds an address, remembered by the wave. Fault: outside of every allocation.
const Range& range_of(Wave& w, u64 address, u32 size, int lane = kNoLane);

// The scratch of a lane at an offset. Fault: outside of it.
u8* scratch_address(Wave& w, u64 offset, u32 size, int lane);

// A flat address: LDS and scratch have ranges of their own, everything else is global.
u8* flat_address(Wave& w, u64 address, u32 size, int lane);

}  // namespace mgx
