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
  return 0;
}

}  // namespace

void write_hidden(const KernelInfo& kernel, const Grid& groups, const Grid& threads, u8* segment) {
  for (const HiddenArgument& a : kernel.hidden) {
    const u64 value = value_of(a.kind, groups, threads);
    std::memset(segment + a.offset, 0, a.size);
    std::memcpy(segment + a.offset, &value, std::min<std::size_t>(a.size, sizeof value));
  }
}

}  // namespace mgx
