// The checks.
#include "check/checker.h"

#include <algorithm>
#include <cstdio>
#include <string_view>

#include "exec/memory.h"
#include "exec/program.h"
#include "isa/print.h"

namespace mgx {
namespace {

constexpr std::size_t kMostProblems = 32;

bool starts(std::string_view text, std::string_view with) { return text.substr(0, with.size()) == with; }

// Reads lanes that are switched off, or a value that nobody uses: not wrong in themselves.
bool reads_freely(const Instruction& i) {
  const std::string_view n = i.name();
  return i.dpp || i.dpp8 || i.sdwa || n.find("permlane") != n.npos || n.find("permute") != n.npos ||
         n == "ds_swizzle_b32" || starts(n, "v_readlane") || starts(n, "v_readfirstlane") || starts(n, "v_writelane");
}

bool runs_on_all_lanes(const Instruction& i) {
  const std::string_view n = i.name();
  return starts(n, "v_mfma") || starts(n, "v_smfmac") || starts(n, "v_wmma") || starts(n, "v_swmmac") || (n.find("permlane") != n.npos && n.find("swap") != n.npos);
}

// Exponentials, logarithms, roots, reciprocals, sines: their results come one cycle later.
bool slow(std::string_view n) {
  for (std::string_view stem : {"v_exp_", "v_log_", "v_rcp_", "v_rsq_", "v_sqrt_", "v_sin_", "v_cos_"}) {
    if (starts(n, stem)) return true;
  }
  return false;
}

// Of a pair of packed operands both halves may be the same register.
bool reads_word(const Instruction& i, const Operand& o, u32 word) {
  if (o.size != 2 || !starts(i.name(), "v_pk_") || o.letter < 'a' || o.letter > 'c') return true;
  const int place = o.letter - 'a';
  return (i.opsel >> place & 1u) == word || (i.opselhi >> place & 1u) == word;
}

// A pair is copied half by half: one that holds nothing is nothing in the copy too.
bool moves_pair(const Instruction& i) { return starts(i.name(), "v_mov_b64") || starts(i.name(), "s_mov_b64"); }

bool same_registers(const Operand& a, const Operand& b) {
  if (a.kind != b.kind || a.kind == Operand::Kind::None || a.kind == Operand::Kind::Constant) return false;
  return a.index < b.index + b.size && b.index < a.index + a.size;
}

}  // namespace

Checks Checks::parse(const std::string& text) {
  Checks c;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string name = text.substr(at, end - at);
    if (name == "all") c.uninitialized = c.races = c.waits = c.hazards = c.bounds = true;
    else if (name == "uninitialized") c.uninitialized = true;
    else if (name == "races") c.races = true;
    else if (name == "waits") c.waits = true;
    else if (name == "hazards") c.hazards = true;
    else if (name == "bounds") c.bounds = true;
    else throw Error("unknown check '" + name + "', expected all, uninitialized, races, waits, hazards or bounds");
    at = end + 1;
  }
  return c;
}

Checker::Checker(const Checks& checks, u32 lds_size, std::size_t waves) : checks_(checks), waves_(waves), lds_(lds_size) {}

void Checker::start_group() {
  std::fill(lds_.begin(), lds_.end(), Byte{});
  epoch_ = 1;
}

void Checker::start_wave(Wave& w) {
  Registers& r = waves_[w.number];
  std::fill(std::begin(r.written), std::end(r.written), 0);
  r.written[0] = ~u64{0};
  for (u32 s = 0; s < kScalars; ++s) r.scalars[s] = s < w.initial_scalars || (s >= kTtmp && s != kM0 && s != kM0 + 1);
  r.pending.clear();
  r.states = 16;  // nothing was written just before
  std::fill(std::begin(r.made_scalar), std::end(r.made_scalar), 0);
  std::fill(std::begin(r.made_slowly), std::end(r.made_slowly), 0);
  std::fill(std::begin(r.made_vector), std::end(r.made_vector), 0);
}

void Checker::report(const Wave& w, const char* kind, const std::string& what) {
  if (problems_.size() >= kMostProblems || !seen_.insert({current_->address, kind}).second) return;
  char place[64];
  std::snprintf(place, sizeof place, " at 0x%llx, wave %u", static_cast<unsigned long long>(current_->address), w.number);
  problems_.push_back(std::string(kind) + ": " + what + ": " + to_text(*current_) + " in " +
                      w.program->where(current_->address) + place);
}

void Checker::check_pending(const Wave& w, const Registers& r, const Operand& o) {
  for (const Pending& p : r.pending) {
    if (same_registers(p.result, o)) {
      report(w, "missing wait", "a register is used while a load into it may be under way");
      return;
    }
  }
}

// The wait states that software owes (CDNA3 ISA, section 4.5), of those that need no matrix instruction:
// s_nop n is n + 1 of them, any other instruction one.
void Checker::check_hazards(const Wave& w, Registers& r, const Instruction& i) {
  const std::string_view form = i.form, n = i.name();
  const bool vector = starts(form, "VOP"), memory = form == "MUBUF" || form == "FLAT" || form == "GLOBAL" || form == "SCRATCH";
  const bool matrix = starts(n, "v_mfma") || starts(n, "v_smfmac");
  const bool newer = w.program->arch.name != "gfx90a";  // gfx942 and gfx950 owe more
  const auto owes = [&](u64 made, u32 states, const char* what) {
    if (made != 0 && r.states - made - 1 < states) report(w, "hazard", what);
  };
  for (u8 k = 0; k < i.count; ++k) {
    const Operand& o = i.o[k];
    if (!(i.sources >> k & 1)) continue;
    if (o.kind == Operand::Kind::Scalar) {
      for (u32 s = o.index; s < o.index + u32{o.size} && s < kScalars; ++s) {
        if (memory) owes(r.made_scalar[s], 5, "a vector instruction wrote the scalar register that an access to memory reads, 5 wait states are needed");
        if (vector && newer) owes(r.made_scalar[s], 2, "a vector instruction wrote the scalar register that another reads, 2 wait states are needed");
        if (o.letter == 'b' && (starts(n, "v_readlane") || starts(n, "v_writelane"))) {
          owes(r.made_scalar[s], 4, "a vector instruction wrote the number of a lane, 4 wait states are needed");
        }
      }
    }
    if (o.kind == Operand::Kind::Vector && i.dpp && o.letter == 'a') {
      owes(r.made_vector[o.index], 2, "a vector instruction wrote the register that DPP reads, 2 wait states are needed");
    }
    if (o.kind == Operand::Kind::Vector && newer && vector && !matrix && !slow(n)) {
      for (u32 v = o.index; v < o.index + u32{o.size}; ++v) owes(r.made_slowly[v], 1, "the result of a slow operation is read by the next instruction");
    }
  }
  if (starts(n, "v_div_fmas")) owes(std::max(r.made_scalar[kVcc], r.made_scalar[kVcc + 1]), 4, "v_div_fmas reads vcc, 4 wait states are needed");
  for (u8 k = 0; k < i.count && vector; ++k) {
    const Operand& o = i.o[k];
    if (!(i.results >> k & 1)) continue;
    if (o.kind == Operand::Kind::Scalar) {
      for (u32 s = o.index; s < o.index + u32{o.size} && s < kScalars; ++s) r.made_scalar[s] = r.states;
    }
    if (o.kind != Operand::Kind::Vector) continue;
    for (u32 v = o.index; v < o.index + u32{o.size}; ++v) {
      r.made_slowly[v] = slow(n) ? r.states : 0;
      r.made_vector[v] = r.states;
    }
  }
  if (!vector) {  // written by others since
    for (u8 k = 0; k < i.count; ++k) {
      if (!(i.results >> k & 1) || i.o[k].kind != Operand::Kind::Scalar) continue;
      for (u32 s = i.o[k].index; s < i.o[k].index + u32{i.o[k].size} && s < kScalars; ++s) r.made_scalar[s] = 0;
    }
  }
  r.states += n == "s_nop" ? (i.o[0].bits & 15) + 1 : 1;
}

void Checker::check_bounds(const Wave& w, const Instruction& i) {
  for (u8 k = 0; k < i.count; ++k) {
    const Operand& o = i.o[k];
    if (o.letter != 'r' || o.kind != Operand::Kind::Scalar) continue;
    const u64 base = read_scalar(w, o.index) | u64{read_scalar(w, o.index + 1u) & 0xffff} << 32;
    const u32 records = read_scalar(w, o.index + 2u);
    if (base >> 32 == kScratchWindow >> 32 || records == 0xffffffff || records == 0) continue;
    const Range found = w.memory->find(base);
    if (found.size == 0 || !found.holds(base, records)) {
      report(w, "bounds", "the descriptor promises " + std::to_string(records) + " bytes, there are " +
                              std::to_string(found.size == 0 ? 0 : found.size - (base - found.base)));
    }
  }
}

void Checker::check_scalars(const Wave& w, const Registers& r, const Instruction& i) {
  for (const Instruction* part = &i; part != nullptr; part = part->second) {
    for (u8 k = 0; k < part->count; ++k) {
      const Operand& o = part->o[k];
      if (o.kind != Operand::Kind::Scalar || !(part->sources >> k & 1) || moves_pair(*part)) continue;
      for (u32 n = o.index; n < o.index + u32{o.size} && n < kScalars; ++n) {
        if (r.scalars[n] || !reads_word(*part, o, n - o.index)) continue;
        const std::string name = n == kVcc || n == kVcc + 1 ? "vcc" : "s" + std::to_string(n);
        report(w, "uninitialized register", name + " is read before it is written");
      }
    }
  }
}

void Checker::before(Wave& w, const Instruction& i) {
  current_ = &i;
  Registers& r = waves_[w.number];
  if (checks_.waits) {
    wait(w, i);
    if (std::string_view(i.name()) == "s_barrier" || std::string_view(i.name()) == "s_barrier_signal") {
      for (const Pending& p : r.pending) {
        if (p.counter != Counter::Lds || p.result.kind != Operand::Kind::None) continue;
        report(w, "missing wait", "a write to LDS may be under way where others are told that it is done");
        break;
      }
    }
    for (const Instruction* part = &i; part != nullptr; part = part->second) {
      for (u8 k = 0; k < part->count; ++k) check_pending(w, r, part->o[k]);
    }
  }
  if (checks_.hazards && w.generation == Generation::Gfx9) check_hazards(w, r, i);
  if (checks_.bounds && std::string_view(i.form) == "MUBUF") check_bounds(w, i);
  if (!checks_.uninitialized) return;
  check_scalars(w, r, i);
  if (reads_freely(i) || moves_pair(i)) return;
  const u64 lanes = runs_on_all_lanes(i) ? (w.wave32 ? 0xffffffff : ~u64{0}) : w.exec;
  for (const Instruction* part = &i; part != nullptr; part = part->second) {
    for (u8 k = 0; k < part->count; ++k) {
      const Operand& o = part->o[k];
      if (o.kind != Operand::Kind::Vector || !(part->sources >> k & 1)) continue;
      // only the low half of a product may be wanted, and then the addend's high half is nothing
      const u32 size = std::string_view(part->name()).find("_u64_u32") != std::string_view::npos ? 1 : o.size;
      for (u32 n = 0; n < size; ++n) {
        if ((lanes & ~r.written[o.index + n]) == 0 || !reads_word(*part, o, n)) continue;
        const bool acc = o.index >= kAccBase;
        report(w, "uninitialized register",
               std::string(acc ? "a" : "v") + std::to_string(o.index + n - (acc ? kAccBase : 0)) + " is read before it is written");
      }
    }
  }
}

void Checker::move_pair(Registers& r, const Instruction& i, u64 exec) {
  const Operand &to = i.o[0], &from = i.o[1];
  u64 written[2];
  for (u32 n = 0; n < 2; ++n) {
    const bool scalar = from.kind == Operand::Kind::Scalar && from.index + n < kScalars;
    written[n] = from.kind == Operand::Kind::Vector ? r.written[from.index + n] : !scalar || r.scalars[from.index + n] ? ~u64{0} : 0;
  }
  for (u32 n = 0; n < 2; ++n) {
    if (to.kind == Operand::Kind::Vector) r.written[to.index + n] = (r.written[to.index + n] & ~exec) | (written[n] & exec);
    else if (to.index + n < kScalars) r.scalars[to.index + n] = written[n] != 0;
  }
}

void Checker::after(Wave& w, const Instruction& i, u64 exec) {
  Registers& r = waves_[w.number];
  const u64 lanes = runs_on_all_lanes(i) ? ~u64{0} : exec;
  if (moves_pair(i)) {
    move_pair(r, i, exec);
    return;
  }
  for (const Instruction* part = &i; part != nullptr; part = part->second) {
    for (u8 k = 0; k < part->count; ++k) {
      const Operand& o = part->o[k];
      if (!(part->results >> k & 1)) continue;
      if (o.kind == Operand::Kind::Scalar) {
        for (u32 n = o.index; n < o.index + u32{o.size} && n < kScalars; ++n) r.scalars[n] = true;
      }
      if (o.kind != Operand::Kind::Vector) continue;
      for (u32 n = 0; n < o.size; ++n) r.written[o.index + n] |= starts(i.name(), "v_writelane") ? ~u64{0} : lanes;
    }
  }
  if (i.index_mode & 8) {  // a register that only m0 knows
    for (u64& written : r.written) written |= lanes;
  }
  if (!checks_.waits) return;
  const std::string_view form = i.form;
  const bool scalar_memory = form == "SMEM", lds = form == "DS";
  const bool vector_memory = form == "MUBUF" || form == "FLAT" || form == "GLOBAL" || form == "SCRATCH";
  if (!scalar_memory && !lds && !vector_memory) return;
  Pending p;
  p.is_scalar_memory = scalar_memory;
  // loads straight to LDS write no register and are counted as loads
  const bool loads = i.results || i.lds || std::string_view(i.name()).find("load_lds") != std::string_view::npos;
  p.counter = scalar_memory ? Counter::Scalar : lds ? Counter::Lds : loads ? Counter::Load : Counter::Store;
  for (u8 k = 0; k < i.count; ++k) {
    if (i.results >> k & 1) p.result = i.o[k];
  }
  r.pending.push_back(p);
}

// Takes away the oldest accesses that a counter counts until `left` remain. Scalar loads come back
// in any order: only 0 says anything about them.
void Checker::retire(Registers& r, bool (*counts)(Generation, Counter), Generation g, u32 left) {
  u32 outstanding = 0;
  bool scalar = false;
  for (const Pending& p : r.pending) {
    if (!counts(g, p.counter)) continue;
    ++outstanding;
    scalar = scalar || p.is_scalar_memory;
  }
  if (scalar && left != 0) return;
  for (auto it = r.pending.begin(); it != r.pending.end() && outstanding > left;) {
    if (counts(g, it->counter)) {
      it = r.pending.erase(it);
      --outstanding;
    } else {
      ++it;
    }
  }
}

void Checker::wait(Wave& w, const Instruction& i) {
  const std::string_view n = i.name();
  if (!starts(n, "s_wait")) return;
  Registers& r = waves_[w.number];
  if (i.count == 0) {  // s_wait_idle: for everything
    r.pending.clear();
    return;
  }
  const Generation g = w.generation;
  const u32 k = i.o[i.count - 1].bits;
  // before RDNA stores count as loads do
  const auto loads = [](Generation gen, Counter c) {
    return c == Counter::Load || (c == Counter::Store && gen == Generation::Gfx9);
  };
  const auto stores = [](Generation, Counter c) { return c == Counter::Store; };
  const auto shared = [](Generation gen, Counter c) {
    return c == Counter::Lds || (c == Counter::Scalar && gen != Generation::Gfx12);
  };
  const auto scalars = [](Generation, Counter c) { return c == Counter::Scalar; };
  if (n == "s_waitcnt") {
    const bool gfx9 = g == Generation::Gfx9;
    retire(r, loads, g, gfx9 ? (k & 15) | (k >> 14 & 3) << 4 : k >> 10 & 63);
    retire(r, shared, g, gfx9 ? k >> 8 & 15 : k >> 4 & 63);
  } else if (n == "s_waitcnt_vscnt" || n == "s_wait_storecnt") {
    retire(r, stores, g, k & 63);
  } else if (n == "s_waitcnt_vmcnt" || n == "s_wait_loadcnt") {
    retire(r, loads, g, k & 63);
  } else if (n == "s_waitcnt_lgkmcnt" || n == "s_wait_dscnt") {
    retire(r, shared, g, k & 63);
  } else if (n == "s_wait_kmcnt") {
    retire(r, scalars, g, k & 63);
  } else if (n == "s_wait_loadcnt_dscnt") {
    retire(r, loads, g, k >> 8 & 63);
    retire(r, shared, g, k & 63);
  } else if (n == "s_wait_storecnt_dscnt") {
    retire(r, stores, g, k >> 8 & 63);
    retire(r, shared, g, k & 63);
  }
}

// Who writes what is there already changes nothing for others; who writes what another wrote, and
// reads it, reads his own.
void Checker::lds(const Wave& w, u32 address, u32 bytes, Access access, const void* data) {
  const u32 me = u32{1} << (w.number & 31);
  for (u64 at = address; at < u64{address} + bytes && at < lds_.size(); ++at) {
    Byte& b = lds_[at];
    const u32 writers = b.write_epoch == epoch_ ? b.writers : 0, readers = b.read_epoch == epoch_ ? b.readers : 0;
    const bool atomics = access == Access::Atomic && b.by_atomic;
    const bool same = access == Access::Write && data != nullptr && static_cast<const u8*>(data)[at - address] == w.lds[at] && b.written;
    const bool harmless = atomics || same || (access == Access::Read && (writers & me) != 0 && !b.by_atomic);
    if (checks_.races && !harmless) {
      if ((writers & ~me) != 0) {
        report(w, "LDS race", "byte " + std::to_string(at) + " was written by wave " + std::to_string(__builtin_ctz(writers & ~me)) +
                                  " since the last barrier");
      }
      if (access != Access::Read && (readers & ~me) != 0) {
        report(w, "LDS race", "byte " + std::to_string(at) + " was read by another wave since the last barrier");
      }
    }
    if (access != Access::Write && !b.written && checks_.uninitialized) {
      report(w, "uninitialized LDS", "byte " + std::to_string(at) + " is read before it is written");
    }
    if (access == Access::Read) {
      b.readers = readers | me;
      b.read_epoch = epoch_;
      continue;
    }
    if (same && writers == 0) continue;  // nobody can tell
    b.written = true;
    b.writers = same || atomics ? writers | me : me;
    b.write_epoch = epoch_;
    b.by_atomic = access == Access::Atomic;
  }
}

void Checker::memory(const Wave& w, const u8* p, u32 bytes, Access access) {
  if (!checks_.uninitialized) return;
  if (access == Access::Write) {
    w.memory->mark_written(p, bytes);
    return;
  }
  if (!w.memory->is_written(p, bytes)) {
    char text[64];
    std::snprintf(text, sizeof text, "%u bytes at %p are read before they are written", bytes, static_cast<const void*>(p));
    report(w, "uninitialized memory", text);
  }
}

}  // namespace mgx
