// The arguments that the runtime adds behind a kernel's own: the sizes of the launch.
#pragma once

#include "exec/launch.h"

namespace mgx {

// Writes them into the kernarg segment, at the places that the metadata names. Kinds that say
// something else than the launch's sizes (a heap, a queue, a place for printf) are null: nothing
// of that is there, and an access through them is a fault.
void write_hidden(const KernelInfo& kernel, const Grid& groups, const Grid& threads, u32 dynamic_lds, u8* segment);

// The packet that a launch is to the hardware, 64 bytes, and the head of the queue that it came from.
constexpr std::size_t kPacketSize = 64, kQueueSize = 256;
void write_packet(const KernelInfo& kernel, const Grid& groups, const Grid& threads, u32 dynamic_lds, const u8* segment, u8* packet);
void write_queue(u8* queue);

}  // namespace mgx
