// The arguments that the runtime adds behind a kernel's own: the sizes of the launch.
#include "exec/hidden.h"

#include <algorithm>
#include <cstring>

namespace mgx {
namespace {

// Of the runtime's launches every one has three dimensions and whole workgroups: no remainders.
u64 value_of(const std::string& kind, const Grid& groups, const Grid& threads) {
  if (kind == "block_count_x") return groups.x;
  if (kind == "block_count_y") return groups.y;
  if (kind == "block_count_z") return groups.z;
  if (kind == "group_size_x") return threads.x;
  if (kind == "group_size_y") return threads.y;
  if (kind == "group_size_z") return threads.z;
  if (kind == "grid_dims") return 3;
  if (kind == "shared_base") return kSharedAperture >> 32;
  if (kind == "private_base") return kPrivateAperture >> 32;
  return 0;
}

template <class T>
void put(u8* to, std::size_t offset, T value) {
  std::memcpy(to + offset, &value, sizeof value);
}

}  // namespace

void write_packet(const KernelInfo& kernel, const Grid& groups, const Grid& threads, u32 dynamic_lds, const u8* segment, u8* packet) {
  std::memset(packet, 0, kPacketSize);
  put<u16>(packet, 0, 2);  // a kernel's
  put<u16>(packet, 2, 3);  // dimensions
  put<u16>(packet, 4, static_cast<u16>(threads.x));
  put<u16>(packet, 6, static_cast<u16>(threads.y));
  put<u16>(packet, 8, static_cast<u16>(threads.z));
  put<u32>(packet, 12, groups.x * threads.x);
  put<u32>(packet, 16, groups.y * threads.y);
  put<u32>(packet, 20, groups.z * threads.z);
  put<u32>(packet, 24, kernel.scratch);
  put<u32>(packet, 28, kernel.lds + dynamic_lds);
  put<u64>(packet, 40, reinterpret_cast<u64>(segment));
}

void write_queue(u8* queue) {
  std::memset(queue, 0, kQueueSize);
  put<u32>(queue, 64, static_cast<u32>(kSharedAperture >> 32));
  put<u32>(queue, 68, static_cast<u32>(kPrivateAperture >> 32));
}

void write_hidden(const KernelInfo& kernel, const Grid& groups, const Grid& threads, u32 dynamic_lds, u8* segment) {
  for (const HiddenArgument& a : kernel.hidden) {
    const u64 value = a.kind == "dynamic_lds_size" ? dynamic_lds : value_of(a.kind, groups, threads);
    std::memset(segment + a.offset, 0, a.size);
    std::memcpy(segment + a.offset, &value, std::min<std::size_t>(a.size, sizeof value));
  }
}

}  // namespace mgx
