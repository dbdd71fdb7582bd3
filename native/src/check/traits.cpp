// The traits of instructions, by name and form.
#include "check/traits.h"

#include <string_view>

namespace mgx {
namespace {

bool starts(std::string_view text, std::string_view with) { return text.substr(0, with.size()) == with; }

}  // namespace

u32 traits_of(const Instruction& i) {
  const std::string_view n = i.name(), form = i.form;
  const auto has = [n](std::string_view part) { return n.find(part) != n.npos; };
  const bool permutes = has("permlane");
  u32 found = kKnown;
  const auto add = [&found](Trait trait, bool is) { found |= is ? u32{trait} : 0; };
  const bool swaps = permutes && has("swap"), reads_lane = starts(n, "v_readlane") || starts(n, "v_readfirstlane");
  const bool moves_lanes = (permutes && !swaps) || has("permute") || n == "ds_swizzle_b32" || reads_lane;
  add(kReadsFreely, permutes || moves_lanes || starts(n, "v_writelane"));
  add(kMoves, moves_lanes);
  add(kMatrix, starts(n, "v_mfma") || starts(n, "v_smfmac"));
  add(kSparse, starts(n, "v_swmmac"));
  add(kWaveMatrix, starts(n, "v_wmma") || starts(n, "v_swmmac"));
  add(kAllLanes, (found & (kMatrix | kWaveMatrix)) || swaps);
  for (std::string_view stem : {"v_exp_", "v_log_", "v_rcp_", "v_rsq_", "v_sqrt_", "v_sin_", "v_cos_"}) add(kSlow, starts(n, stem));
  add(kPackedPair, starts(n, "v_pk_"));
  const bool moves = starts(n, "v_mov_b64") || starts(n, "v_mov_b32") || starts(n, "s_mov_b64") || starts(n, "s_mov_b32");
  add(kCopies, moves && i.plain && i.second == nullptr && i.count == 2);
  add(kLowAddend, has("_u64_u32"));
  add(kWaits, starts(n, "s_wait"));
  add(kWaitsForVector, n == "s_waitcnt_depctr");
  add(kMeets, n == "s_barrier" || n == "s_barrier_signal");
  add(kVector, starts(form, "VOP"));
  add(kVectorMemory, form == "MUBUF" || form == "FLAT" || form == "GLOBAL" || form == "SCRATCH");
  add(kScalarMemory, form == "SMEM");
  add(kLds, form == "DS");
  add(kDescriptor, form == "MUBUF" || starts(n, "s_buffer_load"));
  add(kLoadsToLds, i.lds || has("load_lds"));
  add(kWritesLane, starts(n, "v_writelane"));
  add(kNumbersLane, starts(n, "v_readlane") || starts(n, "v_writelane"));
  add(kDividesOn, starts(n, "v_div_fmas"));
  add(kNop, n == "s_nop");
  add(kVectorNop, n == "v_nop");
  add(kPermutes, permutes);
  add(kComparesLanes, starts(n, "v_cmpx"));
  const u32 others = kMatrix | kWaveMatrix | kReadsFreely | kCopies | kComparesLanes;
  add(kComputes, (found & kVector) && !(found & others));
  add(kTakesMask, (found & kComputes) && (has("cndmask") || has("addc") || has("subb") || has("_co_ci_") || starts(n, "v_div_fmas")));
  static const std::string_view bits[] = {"s_and_", "s_andn", "s_or_", "s_orn", "s_xor_", "s_xnor_", "s_nand_", "s_nor_", "s_not_"};
  const bool selects = starts(n, "s_cselect");
  bool by_bits = selects;
  for (std::string_view stem : bits) by_bits = by_bits || starts(n, stem);
  add(kBits, by_bits);
  add(kReadsScc, selects || starts(n, "s_cbranch_scc") || starts(n, "s_addc") || starts(n, "s_subb") || n == "s_add_co_ci_u32");
  add(kBranchesOnVcc, starts(n, "s_cbranch_vcc"));
  return found;
}

}  // namespace mgx
