// Checks on request: what a kernel may not do and hardware would not tell.
//
// uninitialized: a register, LDS or memory that is used and was never written. Arithmetic uses
// nothing: its result is as unwritten as its sources, in each lane (flow.cpp). races: two waves of a
// workgroup touch a byte of LDS with no barrier between, one of them changing it; two workgroups of a
// launch write different values to a byte of memory. waits: a register is
// used while a load into it may still be under way. hazards: code that does not wait between a
// result and its use where hardware does not. bounds: a buffer descriptor that promises more than its
// memory holds. Accesses outside of memory are always errors.
#pragma once

#include <deque>
#include <set>
#include <string>
#include <vector>

#include "check/traits.h"
#include "exec/wave.h"

namespace mgx {

struct Checks {
  bool uninitialized = false, races = false, waits = false, hazards = false, bounds = false;
  bool any() const { return uninitialized || races || waits || hazards || bounds; }

  // "all", or names with commas between. Errors: an unknown name.
  static Checks parse(const std::string& text);
};

enum class Access : u8 { Read, Write, Atomic };

// Checks the waves of one workgroup at a time.
class Checker {
 public:
  Checker(const Checks& checks, u32 lds_size, std::size_t waves);

  // writer: the number of the launch, and below it that of the group
  void start_group(u64 writer);
  void start_wave(Wave& w);
  void barrier() { ++epoch_; }
  void before(Wave& w, const Instruction& i);
  void after(Wave& w, const Instruction& i, u64 exec);
  // data: what is written, where it is known.
  void lds(const Wave& w, u32 address, u32 bytes, Access access, const void* data = nullptr);
  void memory(const Wave& w, const u8* p, u32 bytes, Access access);

  const std::vector<std::string>& problems() const { return problems_; }

 private:
  enum class Counter : u8 { Load, Store, Lds, Scalar };
  // An access under way: the registers that it will write.
  struct Pending {
    Counter counter;
    Operand result;
    bool is_scalar_memory;
  };
  // Where a register was read that was not written.
  struct Origin {
    const Instruction* at = nullptr;
    u16 index = 0;
    bool is_scalar = false;
  };
  // What one instruction, or a half of a pair, makes of sources that were not written.
  struct Flow {
    u64 low = 0, high = 0;  // lanes whose first, and whose other registers are nothing
    u64 lanes = 0;          // lanes that are written
    Origin origin;
  };
  struct Registers {
    u64 written[512];     // lanes
    u32 known[kScalars];  // bits
    bool scc_known = true;
    Origin vector_origins[512], scalar_origins[kScalars], scc_origin;
    Flow flows[2];        // of the instruction that runs
    u64 unknown_bits = 0;
    Origin bits_origin;
    u64 states = 0;                // wait states so far
    u64 made_scalar[kScalars];     // when a vector instruction wrote it; 0: none did
    u64 made_slowly[512];          // when an exponential, root or reciprocal wrote it
    u64 made_vector[512];          // when any vector instruction did
    // of RDNA, whose wait states are vector instructions
    u64 vectors = 0, slows = 0;    // so far: all, and those of slow results
    u64 slow_at[256][2];           // of both, when a slow operation wrote a register; 0: none did
    const Instruction* last_vector = nullptr;
    u32 last_traits = 0;
    std::deque<Pending> pending;
  };
  struct Byte {
    u32 write_epoch = 0, read_epoch = 0;
    u32 writers = 0, readers = 0;  // a bit for each wave
    u32 written_by = 0;            // the last group that did
    bool by_atomic = false;
    bool operator==(const Byte& o) const {
      return write_epoch == o.write_epoch && read_epoch == o.read_epoch && writers == o.writers && readers == o.readers &&
             written_by == o.written_by && by_atomic == o.by_atomic;
    }
  };

  bool is_whole(u64 word);
  void touch(const Wave& w, Byte& b, u64 at, Access access, bool same);
  u32 traits(const Wave& w, const Instruction& i);
  void report(const Wave& w, const char* kind, const std::string& what);
  void wait(Wave& w, const Instruction& i);
  void retire(Registers& r, bool (*counts)(Generation, Counter), Generation g, u32 left);
  void check_hazards(const Wave& w, Registers& r, const Instruction& i, u32 traits);
  void check_hazards_of_rdna(const Wave& w, Registers& r, const Instruction& i, u32 traits);
  void check_overwrites(const Wave& w);
  void check_bounds(const Wave& w, const Instruction& i);
  void copy_registers(const Wave& w, Registers& r, const Instruction& i, u64 exec);
  void check_scalars(const Wave& w, const Registers& r, const Instruction& i, u32 traits);
  void check_vectors(const Wave& w, const Registers& r, const Instruction& i, u32 traits);
  void read_unwritten(const Wave& w, const Origin& origin);
  void flow_in(const Wave& w, Registers& r, const Instruction& i, u32 traits);
  void flow_out(const Wave& w, Registers& r, const Instruction& i, u64 exec);
  void bits_in(const Wave& w, Registers& r, const Instruction& i);
  void bits_out(const Wave& w, Registers& r, const Instruction& i);
  void move_lanes(Wave& w, Registers& r, const Instruction& i, u64 exec);
  Origin first_read(const Origin& known, const Instruction& i, u32 index, bool is_scalar) const;
  void check_pending(const Wave& w, const Registers& r, const Operand& o);

  Checks checks_;
  std::vector<Registers> waves_;
  u32 lds_size_;
  std::vector<Byte> lds_, words_;  // what is so of all four bytes of a word is held once
  std::vector<u8> whole_;          // whether it is
  std::vector<u32> traits_;  // of the program's instructions; 0: not asked yet
  // Bytes that another group of the launch wrote, as they were ahead of the instruction.
  struct Overwrite {
    const u8* at;
    u32 bytes;
    u64 by;
    u8 old[16];
  };
  std::vector<Overwrite> overwrites_;
  u64 writer_ = 0;
  u32 epoch_ = 0, group_ = 0;  // barriers, and groups, so far
  const Instruction* current_ = nullptr;
  std::set<std::pair<u64, std::string>> seen_;
  std::vector<std::string> problems_;
};

inline void note_lds(const Wave& w, u32 address, u32 bytes, Access access, const void* data = nullptr);
inline void note_memory(const Wave& w, const u8* p, u32 bytes, Access access);

}  // namespace mgx

// The hooks in the executor: one test where nothing is checked.
inline void mgx::note_lds(const Wave& w, u32 address, u32 bytes, Access access, const void* data) {
  if (w.checker != nullptr) w.checker->lds(w, address, bytes, access, data);
}
inline void mgx::note_memory(const Wave& w, const u8* p, u32 bytes, Access access) {
  if (w.checker != nullptr) w.checker->memory(w, p, bytes, access);
}
