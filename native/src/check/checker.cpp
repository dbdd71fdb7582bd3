// The checks.
#include "check/checker.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "exec/memory.h"
#include "exec/program.h"
#include "isa/print.h"

namespace mgx {
namespace {

constexpr std::size_t kMostProblems = 32;

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

Checker::Checker(const Checks& checks, u32 lds_size, std::size_t waves)
    : checks_(checks), waves_(waves), lds_size_(lds_size), lds_((u64{lds_size} + 3) / 4 * 4), words_(lds_.size() / 4), whole_(words_.size(), 1) {}

void Checker::start_group(u64 writer) {
  writer_ = writer;
  ++epoch_;
  ++group_;
}

void Checker::start_wave(Wave& w) {
  Registers& r = waves_[w.number];
  std::fill(std::begin(r.written), std::end(r.written), 0);
  for (u32 v = 0; v < w.given_vectors; ++v) r.written[v] = ~u64{0};
  for (u32 s = 0; s < kScalars; ++s) {
    const bool given = s < w.given_scalars || (s >= w.user_scalars && s < w.initial_scalars);
    r.known[s] = given || (s >= kTtmp && s != kM0 && s != kM0 + 1) ? ~0u : 0;
  }
  std::fill(std::begin(r.vector_origins), std::end(r.vector_origins), Origin{});
  std::fill(std::begin(r.scalar_origins), std::end(r.scalar_origins), Origin{});
  r.scc_known = true;
  r.pending.clear();
  r.states = 16;  // nothing was written just before
  std::fill(std::begin(r.made_scalar), std::end(r.made_scalar), 0);
  std::fill(std::begin(r.made_slowly), std::end(r.made_slowly), 0);
  std::fill(std::begin(r.made_vector), std::end(r.made_vector), 0);
  r.vectors = r.slows = 0;
  std::memset(r.slow_at, 0, sizeof r.slow_at);
  r.last_vector = nullptr;
  r.last_traits = 0;
}

u32 Checker::traits(const Wave& w, const Instruction& i) {
  const std::vector<Instruction>& code = w.program->code;
  if (traits_.empty()) traits_.resize(code.size());
  u32& found = traits_[static_cast<std::size_t>(&i - code.data())];
  if (found == 0) found = traits_of(i);
  return found;
}

void Checker::report(const Wave& w, const char* kind, const std::string& what) {
  if (problems_.size() >= kMostProblems || !seen_.insert({current_->address, kind}).second) return;
  char place[64];
  std::snprintf(place, sizeof place, " at 0x%llx, wave %u", static_cast<unsigned long long>(current_->address), w.number);
  problems_.push_back(std::string(kind) + ": " + what + ": " + to_text(*current_) + " in " +
                      w.program->where(current_->address) + place);
}

// Loads from memory, which come back in the order in which they were asked for.
static bool loads_in_order(const Instruction& i) {
  const std::string_view n = i.name(), form = i.form;
  return (form == "MUBUF" || form == "GLOBAL" || form == "SCRATCH") && n.find("load") != n.npos;
}

void Checker::check_pending(const Wave& w, const Registers& r, const Operand& o) {
  for (const Pending& p : r.pending) {
    // loads come back in order: one may fill what another one, or the other half of it, fills before
    const bool later = p.counter == Counter::Load && o.letter == 'd' && loads_in_order(*current_);
    if (same_registers(p.result, o) && !later) {
      report(w, "missing wait", "a register is used while a load into it may be under way");
      return;
    }
  }
}

// The wait states that software owes (CDNA3 ISA, section 4.5), of those that need no matrix instruction:
// s_nop n is n + 1 of them, any other instruction one.
void Checker::check_hazards(const Wave& w, Registers& r, const Instruction& i, u32 traits) {
  const bool vector = traits & kVector, memory = traits & kVectorMemory, matrix = traits & kMatrix, slow = traits & kSlow;
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
        if (o.letter == 'b' && (traits & kNumbersLane)) {
          owes(r.made_scalar[s], 4, "a vector instruction wrote the number of a lane, 4 wait states are needed");
        }
      }
    }
    if (o.kind == Operand::Kind::Vector && i.dpp && o.letter == 'a') {
      owes(r.made_vector[o.index], 2, "a vector instruction wrote the register that DPP reads, 2 wait states are needed");
    }
    if (o.kind == Operand::Kind::Vector && newer && vector && !matrix && !slow) {
      for (u32 v = o.index; v < o.index + u32{o.size}; ++v) owes(r.made_slowly[v], 1, "the result of a slow operation is read by the next instruction");
    }
  }
  if (traits & kDividesOn) owes(std::max(r.made_scalar[kVcc], r.made_scalar[kVcc + 1]), 4, "v_div_fmas reads vcc, 4 wait states are needed");
  for (u8 k = 0; k < i.count && vector; ++k) {
    const Operand& o = i.o[k];
    if (!(i.results >> k & 1)) continue;
    if (o.kind == Operand::Kind::Scalar) {
      for (u32 s = o.index; s < o.index + u32{o.size} && s < kScalars; ++s) r.made_scalar[s] = r.states;
    }
    if (o.kind != Operand::Kind::Vector) continue;
    for (u32 v = o.index; v < o.index + u32{o.size}; ++v) {
      r.made_slowly[v] = slow ? r.states : 0;
      r.made_vector[v] = r.states;
    }
  }
  if (!vector) {  // written by others since
    for (u8 k = 0; k < i.count; ++k) {
      if (!(i.results >> k & 1) || i.o[k].kind != Operand::Kind::Scalar) continue;
      for (u32 s = i.o[k].index; s < i.o[k].index + u32{i.o[k].size} && s < kScalars; ++s) r.made_scalar[s] = 0;
    }
  }
  r.states += traits & kNop ? (i.o[0].bits & 15) + 1 : 1;
}

// What RDNA's hardware does not wait for in wave32, by the hazards that LLVM keeps code from:
// gfx1100 to gfx1103 need six vector instructions, or two slow ones, between a slow operation and
// who reads its result, or an s_waitcnt_depctr, an access to memory or to LDS; a matrix instruction whose
// factor is the result of the one before needs a vector instruction between; and a permutation
// behind a comparison into exec one that does something.
void Checker::check_hazards_of_rdna(const Wave& w, Registers& r, const Instruction& i, u32 traits) {
  const std::string_view arch = w.program->arch.name;
  const bool slow = traits & kSlow;
  if (traits & (kLds | kVectorMemory)) {
    std::memset(r.slow_at, 0, sizeof r.slow_at);
    return;
  }
  if (traits & kWaitsForVector) {
    const u64 left = i.o[0].bits >> 12 & 15;  // va_vdst: so many vector instructions may be under way
    for (auto& [vectors, slows] : r.slow_at) {
      if (vectors != 0 && r.vectors - vectors >= left) vectors = slows = 0;
    }
    return;
  }
  if (!(traits & kVector)) return;
  if (r.last_traits & traits & kWaveMatrix) {
    for (u8 k = 0; k < i.count; ++k) {
      const Operand& o = i.o[k];
      const bool index = (traits & kSparse) && o.letter == 'c';
      if ((o.letter == 'a' || o.letter == 'b' || index) && same_registers(o, r.last_vector->o[0])) {
        report(w, "hazard", "a factor is the result of the matrix instruction before, a vector instruction between is needed");
      }
    }
  }
  if ((traits & kPermutes) && (r.last_traits & kComparesLanes)) {
    report(w, "hazard", "a comparison wrote the lanes of a permutation, a vector instruction between is needed");
  }
  const bool forwards = arch == "gfx1100" || arch == "gfx1101" || arch == "gfx1102" || arch == "gfx1103";
  for (const Instruction* part = &i; part != nullptr && forwards; part = part->second) {
    for (u8 k = 0; k < part->count; ++k) {
      const Operand& o = part->o[k];
      if (o.kind != Operand::Kind::Vector || !(part->sources >> k & 1)) continue;
      for (u32 v = o.index; v < std::min(256u, o.index + u32{o.size}); ++v) {
        const auto& [vectors, slows] = r.slow_at[v];
        if (vectors != 0 && r.vectors - vectors <= 5 && r.slows - slows <= 1) {
          report(w, "hazard", "the result of a slow operation is read too early, s_waitcnt_depctr or six vector instructions between are needed");
        }
      }
    }
  }
  r.vectors += 1;
  r.slows += slow;
  for (const Instruction* part = &i; part != nullptr; part = part->second) {
    for (u8 k = 0; k < part->count; ++k) {
      const Operand& o = part->o[k];
      if (o.kind != Operand::Kind::Vector || !(part->results >> k & 1)) continue;
      for (u32 v = o.index; v < std::min(256u, o.index + u32{o.size}); ++v) {
        r.slow_at[v][0] = slow ? r.vectors : 0;
        r.slow_at[v][1] = slow ? r.slows : 0;
      }
    }
  }
  if ((traits & kVectorNop) && (r.last_traits & kComparesLanes)) return;  // it does nothing for these
  r.last_vector = &i;
  r.last_traits = traits;
}

void Checker::check_bounds(const Wave& w, const Instruction& i) {
  for (u8 k = 0; k < i.count; ++k) {
    const Operand& o = i.o[k];
    // of scalar loads it stands where others have an address
    if (!(o.letter == 'r' || (o.letter == 'b' && o.size == 4)) || o.kind != Operand::Kind::Scalar) continue;
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

void Checker::before(Wave& w, const Instruction& i) {
  current_ = &i;
  Registers& r = waves_[w.number];
  const u32 t = traits(w, i);
  if (checks_.waits) {
    if (t & kWaits) wait(w, i);
    if (t & kMeets) {
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
  if (checks_.hazards && w.generation == Generation::Gfx9) check_hazards(w, r, i, t);
  if (checks_.hazards && w.generation != Generation::Gfx9 && w.wave32) check_hazards_of_rdna(w, r, i, t);
  if (checks_.bounds && (t & kDescriptor)) check_bounds(w, i);
  if (!checks_.uninitialized) return;
  check_scalars(w, r, i, t);
  if (t & kComputes) flow_in(w, r, i, t);
  else if (t & kBits) bits_in(w, r, i);
  else check_vectors(w, r, i, t);
}

void Checker::check_overwrites(const Wave& w) {
  for (const Overwrite& o : overwrites_) {
    if (std::memcmp(o.at, o.old, o.bytes) == 0) continue;
    char text[128];
    std::snprintf(text, sizeof text, "%u bytes at %p, which group %u of the launch wrote, are written anew by group %u", o.bytes,
                  static_cast<const void*>(o.at), static_cast<u32>(o.by), static_cast<u32>(writer_));
    report(w, "memory race", text);
  }
  overwrites_.clear();
}

void Checker::after(Wave& w, const Instruction& i, u64 exec) {
  if (!overwrites_.empty()) check_overwrites(w);
  Registers& r = waves_[w.number];
  const u32 t = traits(w, i);
  const u64 lanes = t & kAllLanes ? ~u64{0} : exec;
  if (t & kCopies) {
    copy_registers(w, r, i, exec);
    return;
  }
  if (checks_.uninitialized && (t & (kComputes | kBits | kMoves))) {
    if (t & kComputes) flow_out(w, r, i, exec);
    else if (t & kBits) bits_out(w, r, i);
    else move_lanes(w, r, i, exec);
  } else {
    for (u8 k = 0; k < i.count; ++k) {
      const Operand& o = i.o[k];
      if (!(i.results >> k & 1)) continue;
      for (u32 n = o.index; n < o.index + u32{o.size}; ++n) {
        if (o.kind == Operand::Kind::Scalar && n < kScalars) r.known[n] = ~0u;
        if (o.kind == Operand::Kind::Vector) r.written[n] |= t & kWritesLane ? ~u64{0} : lanes;
      }
    }
    if (std::string_view(i.form) == "SOPC" || std::string_view(i.form) == "SOP2") r.scc_known = true;
  }
  if (i.index_mode & 8) {  // a register that only m0 knows
    for (u64& written : r.written) written |= lanes;
  }
  if (!checks_.waits) return;
  const bool scalar_memory = t & kScalarMemory, lds = t & kLds;
  if (!(t & (kScalarMemory | kLds | kVectorMemory))) return;
  Pending p;
  p.is_scalar_memory = scalar_memory;
  const bool loads = i.results || (t & kLoadsToLds);
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
    const bool split = g <= Generation::Gfx10;
    retire(r, loads, g, split ? (k & 15) | (k >> 14 & 3) << 4 : k >> 10 & 63);
    retire(r, shared, g, split ? k >> 8 & (g == Generation::Gfx9 ? 15 : 63) : k >> 4 & 63);
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

// Whether a word's bytes are all alike, and held once.
bool Checker::is_whole(u64 word) {
  if (whole_[word]) return true;
  const Byte* b = &lds_[4 * word];
  if (!(b[1] == b[0] && b[2] == b[0] && b[3] == b[0])) return false;
  words_[word] = b[0];
  whole_[word] = 1;
  return true;
}

void Checker::lds(const Wave& w, u32 address, u32 bytes, Access access, const void* data) {
  const u8* news = access == Access::Write ? static_cast<const u8*>(data) : nullptr;
  const u64 end = std::min<u64>(u64{address} + bytes, lds_size_);
  const u32 me = u32{1} << (w.number & 31);
  const auto same = [&](u64 at) { return news != nullptr && news[at - address] == w.lds[at]; };
  for (u64 at = address; at < end;) {
    const u64 word = at / 4;
    if (at % 4 == 0 && at + 4 <= end && is_whole(word)) {
      Byte& b = words_[word];
      // read again, and not written since: as most are
      if (access == Access::Read && b.read_epoch == epoch_ && (b.readers & me) && b.write_epoch != epoch_ && b.written_by == group_) {
        at += 4;
        continue;
      }
      const int alike = same(at) + same(at + 1) + same(at + 2) + same(at + 3);
      if (alike == 0 || alike == 4) {
        touch(w, b, at, access, alike == 4);
        at += 4;
        continue;
      }
    }
    if (whole_[word]) std::fill_n(&lds_[4 * word], 4, words_[word]);
    whole_[word] = 0;
    touch(w, lds_[at], at, access, same(at));
    ++at;
  }
}

// Who writes what is there already changes nothing for others; who writes what another wrote, and
// reads it, reads his own.
void Checker::touch(const Wave& w, Byte& b, u64 at, Access access, bool same) {
  const u32 me = u32{1} << (w.number & 31);
  const u32 writers = b.write_epoch == epoch_ ? b.writers : 0, readers = b.read_epoch == epoch_ ? b.readers : 0;
  const bool written = b.written_by == group_, atomics = access == Access::Atomic && b.by_atomic;
  same = same && written;
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
  if (access != Access::Write && !written && checks_.uninitialized) {
    report(w, "uninitialized LDS", "byte " + std::to_string(at) + " is read before it is written");
  }
  if (access == Access::Read) {
    b.readers = readers | me;
    b.read_epoch = epoch_;
    return;
  }
  if (same && writers == 0) return;  // nobody can tell
  b.written_by = group_;
  b.writers = same || atomics ? writers | me : me;
  b.write_epoch = epoch_;
  b.by_atomic = access == Access::Atomic;
}

void Checker::memory(const Wave& w, const u8* p, u32 bytes, Access access) {
  if (checks_.races && access == Access::Write) {
    const u64 by = w.memory->claim(p, bytes, writer_);
    if (by != 0 && bytes <= sizeof(Overwrite::old)) {
      overwrites_.push_back({p, bytes, by, {}});
      std::memcpy(overwrites_.back().old, p, bytes);
    }
  }
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
