// What the checks ask of an instruction's name and form: found once, since they ask at each step.
#pragma once

#include "isa/instruction.h"

namespace mgx {

enum Trait : u32 {
  kKnown = 1u << 0,          // always set
  kReadsFreely = 1u << 1,    // lanes that are switched off, or the number of a lane
  kAllLanes = 1u << 2,       // runs on those that are switched off, too
  kSlow = 1u << 3,           // exponentials, logarithms, roots, reciprocals, sines
  kPackedPair = 1u << 4,     // halves of a pair of registers by op_sel
  kCopies = 1u << 5,         // registers are copied: what holds nothing is nothing in the copy too
  kLowAddend = 1u << 6,      // of a 64-bit addend the high half may be unwanted
  kWaits = 1u << 7,          // s_wait...
  kWaitsForVector = 1u << 8,  // s_waitcnt_depctr
  kMeets = 1u << 9,          // tells others that it is at a barrier
  kVector = 1u << 10,        // VOP...
  kVectorMemory = 1u << 11,  // MUBUF, FLAT, GLOBAL, SCRATCH
  kScalarMemory = 1u << 12,
  kLds = 1u << 13,
  kDescriptor = 1u << 14,    // MUBUF
  kLoadsToLds = 1u << 15,    // writes no register and counts as a load
  kWritesLane = 1u << 16,    // v_writelane
  kNumbersLane = 1u << 17,   // v_readlane, v_writelane
  kDividesOn = 1u << 18,     // v_div_fmas
  kNop = 1u << 19,           // s_nop
  kVectorNop = 1u << 20,     // v_nop
  kMatrix = 1u << 21,        // of CDNA
  kWaveMatrix = 1u << 22,    // of RDNA
  kSparse = 1u << 23,        // of these
  kPermutes = 1u << 24,      // v_permlane
  kComparesLanes = 1u << 25,  // v_cmpx
  kComputes = 1u << 26,      // a vector result: nothing, in a lane whose sources are nothing
  kTakesMask = 1u << 27,     // of these, a bit of a scalar register for each lane
  kMoves = 1u << 28,         // a lane's value to another lane, or to a scalar register
  kBits = 1u << 29,          // a scalar result, each bit by the same bits of its sources; s_cselect
  kReadsScc = 1u << 30,
  kBranchesOnVcc = 1u << 31,
};

u32 traits_of(const Instruction& i);

}  // namespace mgx
