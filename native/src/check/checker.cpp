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
  return starts(n, "v_mfma") || starts(n, "v_wmma") || (n.find("permlane") != n.npos && n.find("swap") != n.npos);
}

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
    if (name == "all") c.uninitialized = c.races = c.waits = true;
    else if (name == "uninitialized") c.uninitialized = true;
    else if (name == "races") c.races = true;
    else if (name == "waits") c.waits = true;
    else throw Error("unknown check '" + name + "', expected all, uninitialized, races or waits");
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

void Checker::check_scalars(const Wave& w, const Registers& r, const Instruction& i) {
  for (const Instruction* part = &i; part != nullptr; part = part->second) {
    for (u8 k = 0; k < part->count; ++k) {
      const Operand& o = part->o[k];
      if (o.kind != Operand::Kind::Scalar || !(part->sources >> k & 1)) continue;
      for (u32 n = o.index; n < o.index + u32{o.size} && n < kScalars; ++n) {
        if (r.scalars[n]) continue;
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
    for (const Instruction* part = &i; part != nullptr; part = part->second) {
      for (u8 k = 0; k < part->count; ++k) check_pending(w, r, part->o[k]);
    }
  }
  if (!checks_.uninitialized) return;
  check_scalars(w, r, i);
  if (reads_freely(i)) return;
  const u64 lanes = runs_on_all_lanes(i) ? (w.wave32 ? 0xffffffff : ~u64{0}) : w.exec;
  for (const Instruction* part = &i; part != nullptr; part = part->second) {
    for (u8 k = 0; k < part->count; ++k) {
      const Operand& o = part->o[k];
      if (o.kind != Operand::Kind::Vector || !(part->sources >> k & 1)) continue;
      // only the low half of a product may be wanted, and then the addend's high half is nothing
      const u32 size = std::string_view(part->name()).find("_u64_u32") != std::string_view::npos ? 1 : o.size;
      for (u32 n = 0; n < size; ++n) {
        if ((lanes & ~r.written[o.index + n]) == 0) continue;
        const bool acc = o.index >= kAccBase;
        report(w, "uninitialized register",
               std::string(acc ? "a" : "v") + std::to_string(o.index + n - (acc ? kAccBase : 0)) + " is read before it is written");
      }
    }
  }
}

void Checker::after(Wave& w, const Instruction& i, u64 exec) {
  Registers& r = waves_[w.number];
  const u64 lanes = runs_on_all_lanes(i) ? ~u64{0} : exec;
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
  p.counter = scalar_memory ? Counter::Scalar : lds ? Counter::Lds : i.results ? Counter::Load : Counter::Store;
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

void Checker::lds(const Wave& w, u32 address, u32 bytes, Access access) {
  const u16 me = static_cast<u16>(w.number);
  for (u64 at = address; at < u64{address} + bytes && at < lds_.size(); ++at) {
    Byte& b = lds_[at];
    const bool atomics = access == Access::Atomic && b.by_atomic;
    if (checks_.races && !atomics) {
      if (b.write_epoch == epoch_ && b.writer != me) {
        report(w, "LDS race", "byte " + std::to_string(at) + " was written by wave " + std::to_string(b.writer) + " since the last barrier");
      }
      if (access != Access::Read && b.read_epoch == epoch_ && b.reader != me) {
        report(w, "LDS race", "byte " + std::to_string(at) + " was read by another wave since the last barrier");
      }
    }
    if (access != Access::Write && !b.written && checks_.uninitialized) {
      report(w, "uninitialized LDS", "byte " + std::to_string(at) + " is read before it is written");
    }
    if (access == Access::Read) {
      b.reader = b.read_epoch == epoch_ && b.reader != me ? kMany : me;
      b.read_epoch = epoch_;
    } else {
      b.written = true;
      b.writer = me;
      b.write_epoch = epoch_;
      b.by_atomic = access == Access::Atomic;
    }
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
