// Kernels of PTX, run on the CPU: 32 lanes of a warp at once, warps of a workgroup by turns.
//
// Lanes that diverge meet at barriers and at instructions of all lanes. Faults: memory outside of
// allocations, an address that is no multiple of its access, such an instruction that some lanes of a
// warp do not reach, and shared memory
// that two warps use without a barrier between. Copies of cp.async arrive when they are waited for,
// and shared memory begins as NaN: what is read too early is wrong.
#pragma once
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "ptx_text.h"
#include "ptx_values.h"

namespace ptx {

constexpr int kIllegalAddress = 700, kMisaligned = 716, kFailed = 719, kLanes = 32;
constexpr std::uint32_t kAll = ~0u;
using Address = std::uint64_t;

// Throws where an access of device memory lies outside of the allocations.
using Check = std::function<void(Address, std::size_t)>;

struct Warp;
struct Instruction {
  std::function<void(Warp&, std::uint32_t)> run;  // for the lanes of a mask
  int guard = -1;                                 // register of the predicate
  bool is_negated = false, is_branch = false, is_exit = false, is_barrier = false, of_all = false;
  int target = 0;
};

struct Code {
  const Kernel* kernel = nullptr;
  std::vector<Instruction> all;
  std::vector<std::pair<int, std::uint64_t>> numbers;  // registers that hold them
  int registers = 0;
};

struct Dims {
  unsigned x, y, z;
};
// Who used four bytes of shared memory since the last barrier: the writing warp, and readers as bits.
struct Use {
  std::uint32_t turn = 0, readers = 0;
  int writer = -1;
};

struct Group {  // a workgroup
  Dims block, grid, at;
  std::vector<char> shared;
  const char* parameters = nullptr;
  std::uint32_t turn = 1;  // the number of the time between two barriers
  std::vector<Use> uses;

  // Throws where two warps use the same bytes between two barriers, and one of them changes them.
  void use(int warp, Address from, std::size_t size, bool writes) {
    for (Address word = from / 4; word * 4 < from + size; ++word) {
      Use& u = uses.at(word);
      if (u.turn != turn) u = {turn, 0, -1};
      const std::uint32_t others = u.readers & ~(1u << warp);
      if ((u.writer >= 0 && u.writer != warp) || (writes && others != 0))
        throw Fault(kFailed, "warps " + std::to_string(warp) + " and " + std::to_string(u.writer >= 0 && u.writer != warp ? u.writer : __builtin_ctz(others)) +
                                 " use shared memory at " + std::to_string(word * 4) + " without a barrier between");
      if (writes) u.writer = warp;
      else u.readers |= 1u << warp;
    }
  }
};

struct Copy {
  Address to, from;
  std::uint32_t size, given;
};

struct Warp {
  Group* group = nullptr;
  int number = 0;
  std::vector<std::uint64_t> r;  // 32 lanes a register
  std::vector<char> local;
  std::vector<Copy> begun;              // copies that belong to no group yet
  std::deque<std::vector<Copy>> copies;  // groups of them
  int pc[kLanes] = {};
  std::uint32_t live = 0;

  std::uint64_t* lanes(int reg) { return &r[std::size_t(reg) * kLanes]; }
  template <class T>
  T get(int reg, int lane) {
    return bits<T>(r[std::size_t(reg) * kLanes + lane]);
  }
  template <class T>
  void set(int reg, int lane, T value) {
    r[std::size_t(reg) * kLanes + lane] = bits<std::uint64_t>(value);
  }
};

template <class F>
void each(std::uint32_t mask, F f) {
  if (mask == kAll)
    for (int lane = 0; lane < kLanes; ++lane) f(lane);
  else
    for (; mask != 0; mask &= mask - 1) f(__builtin_ctz(mask));
}

inline void arrive(Warp& w, const std::vector<Copy>& copies) {
  for (const Copy& c : copies) {
    w.group->use(w.number, c.to, c.size, true);
    char* to = w.group->shared.data() + c.to;
    std::memset(to, 0, c.size);
    std::memcpy(to, reinterpret_cast<const char*>(c.from), c.given);
  }
}

// The special registers of a warp's lanes, in the order of `kSpecial`.
const char* const kSpecial[] = {"%tid.x",  "%tid.y",  "%tid.z",  "%ntid.x",   "%ntid.y",   "%ntid.z",  "%ctaid.x",
                                "%ctaid.y", "%ctaid.z", "%nctaid.x", "%nctaid.y", "%nctaid.z", "%laneid", "%warpid"};
constexpr int kSpecials = sizeof kSpecial / sizeof *kSpecial;

}  // namespace ptx
