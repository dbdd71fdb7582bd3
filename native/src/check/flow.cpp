// How what was never written spreads through arithmetic, up to where it is used.
//
// A compiler may compute with lanes that hold nothing and drop the result: by a choice, by a mask, or
// because no lane that is on reads it. So a result is nothing where a source is, and it is an error
// where it is used: as an address, as what is stored, by a matrix instruction, or by a branch.
#include <cstdio>
#include <cstring>
#include <string_view>

#include "check/checker.h"
#include "exec/lanes.h"
#include "exec/program.h"
#include "isa/print.h"

namespace mgx {
namespace {

// Of a pair of packed operands both halves may be the same register.
bool reads_word(const Instruction& i, u32 traits, const Operand& o, u32 word) {
  if (!(traits & kPackedPair) || o.size != 2 || o.letter < 'a' || o.letter > 'c') return true;
  const int place = o.letter - 'a';
  return (i.opsel >> place & 1u) == word || (i.opselhi >> place & 1u) == word;
}

// The lanes that use a source: v_cndmask takes one of two in each.
u64 chosen(const Wave& w, const Instruction& i, u8 source) {
  const std::string_view n = i.name();
  if (n.find("cndmask") == n.npos || source < 1 || source > 2) return ~u64{0};
  const u64 mask = i.count > 3 ? read_mask(w, i.o[3]) : read_vcc(w);
  return source == 2 ? mask : ~mask;
}

// Whether a source is a bit for each lane.
bool is_mask(const Operand& o, u32 traits) {
  return (traits & kTakesMask) && o.kind == Operand::Kind::Scalar && (o.letter == 'C' || o.letter == 'c');
}

// Whether a scalar register keeps what is written to it.
bool keeps(u32 index) { return index < kScalars && index != kNull && index != kNull + 1; }

u64 all_lanes(const Wave& w) { return w.wave32 ? 0xffffffff : ~u64{0}; }

// What a lane reads by DPP of the lanes that hold nothing; `lanes`: those that get a result.
u64 moved(const Wave& w, const Instruction& i, u64 unwritten, u64& lanes) {
  LaneArray from, space;
  for (int l = 0; l < kLanes; ++l) from.at[l] = static_cast<u32>(unwritten >> l & 1);
  lanes &= dpp_source(w, i, from.at, space);
  u64 found = 0;
  for (int l = 0; l < kLanes; ++l) found |= u64{space.at[l]} << l;
  return found;
}

// How many registers a bitwise scalar operation takes of each source, and its name's parts.
bool is_wide(std::string_view n) { return n.size() > 4 && n.substr(n.size() - 4) == "_b64"; }
bool has(std::string_view n, std::string_view part) { return n.find(part) != n.npos; }

}  // namespace

Checker::Origin Checker::first_read(const Origin& known, const Instruction& i, u32 index, bool is_scalar) const {
  return known.at != nullptr ? known : Origin{&i, static_cast<u16>(index), is_scalar};
}

void Checker::read_unwritten(const Wave& w, const Origin& o) {
  const bool acc = !o.is_scalar && o.index >= kAccBase;
  std::string name = (o.is_scalar ? "s" : acc ? "a" : "v") + std::to_string(o.index - (acc ? kAccBase : 0));
  if (o.is_scalar && (o.index == kVcc || o.index == kVcc + 1)) name = "vcc";
  std::string what = name + " is read before it is written";
  const Instruction* use = current_;
  if (o.at != use) {
    char place[32];
    std::snprintf(place, sizeof place, " at 0x%llx", static_cast<unsigned long long>(use->address));
    what += ", and its result used by " + to_text(*use) + place;
  }
  current_ = o.at;
  report(w, "uninitialized register", what);
  current_ = use;
}

void Checker::check_scalars(const Wave& w, const Registers& r, const Instruction& i, u32 traits) {
  if (traits & kCopies) return;
  if ((traits & kReadsScc) && !r.scc_known) read_unwritten(w, r.scc_origin);
  if (traits & kBranchesOnVcc) {
    u64 unknown = ~r.known[kVcc];
    if (!w.wave32) unknown |= u64{~r.known[kVcc + 1]} << 32;
    const bool high = (unknown & 0xffffffff) == 0;
    if (unknown != 0 && (read_vcc(w) & ~unknown) == 0) {
      const u32 index = kVcc + u32{high};
      read_unwritten(w, first_read(r.scalar_origins[index], i, index, true));
    }
  }
  if (traits & kBits) return;
  for (const Instruction* part = &i; part != nullptr; part = part->second) {
    for (u8 k = 0; k < part->count; ++k) {
      const Operand& o = part->o[k];
      if (o.kind != Operand::Kind::Scalar || !(part->sources >> k & 1) || is_mask(o, traits)) continue;
      for (u32 n = o.index; n < o.index + u32{o.size} && n < kScalars; ++n) {
        if (r.known[n] == ~0u || !reads_word(*part, traits, o, n - o.index)) continue;
        read_unwritten(w, first_read(r.scalar_origins[n], i, n, true));
      }
    }
  }
}

// The sources of what is no arithmetic: they are used.
void Checker::check_vectors(const Wave& w, const Registers& r, const Instruction& i, u32 traits) {
  if (traits & (kReadsFreely | kCopies)) return;
  const u64 lanes = traits & kAllLanes ? all_lanes(w) : w.exec;
  for (u8 k = 0; k < i.count; ++k) {
    const Operand& o = i.o[k];
    if (o.kind != Operand::Kind::Vector || !(i.sources >> k & 1)) continue;
    for (u32 n = o.index; n < o.index + u32{o.size}; ++n) {
      if ((lanes & ~r.written[n]) != 0) read_unwritten(w, first_read(r.vector_origins[n], i, n, false));
    }
  }
}

void Checker::flow_in(const Wave& w, Registers& r, const Instruction& i, u32 traits) {
  Flow* flow = r.flows;
  for (const Instruction* part = &i; part != nullptr; part = part->second, ++flow) {
    *flow = {};
    flow->lanes = w.exec;
    const bool pair = (traits & kPackedPair) && part->o[0].size == 2, moves = std::string_view(part->name()) == "v_pk_mov_b32";
    const auto add = [&](u64 lanes, bool low, bool high, const Origin& origin) {
      if (lanes == 0) return;
      if (low) flow->low |= lanes;
      if (high) flow->high |= lanes;
      if (low || high) flow->origin = origin;
    };
    for (u8 k = 0; k < part->count; ++k) {
      const Operand& o = part->o[k];
      if (!(part->sources >> k & 1)) continue;
      if (is_mask(o, traits)) {
        u64 known = o.index < kScalars ? r.known[o.index] : ~u64{0};
        if (!w.wave32) known = (known & 0xffffffff) | (o.index + 1u < kScalars ? u64{r.known[o.index + 1]} << 32 : 0);
        const u64 lanes = w.exec & ~known & all_lanes(w);
        const u32 index = o.index + ((lanes & 0xffffffff) == 0);
        if (lanes != 0 && o.index < kScalars) add(lanes, true, true, first_read(r.scalar_origins[index], i, index, true));
      }
      if (o.kind != Operand::Kind::Vector) continue;
      const bool crosses = (part->dpp || part->dpp8) && o.letter == 'a';
      for (u32 n = 0; n < o.size; ++n) {
        u64 lanes = ~r.written[o.index + n];
        if (crosses) lanes = moved(w, *part, lanes, flow->lanes);
        bool low = true, high = true;
        if (pair && o.size == 2 && o.letter >= 'a' && o.letter <= 'c') {
          const int place = o.letter - 'a';
          low = (part->opsel >> place & 1u) == n && (!moves || place == 0);
          high = ((moves ? part->opsel : part->opselhi) >> place & 1u) == n && (!moves || place == 1);
        }
        if ((traits & kLowAddend) && o.size == 2) low = n == 0;
        add(lanes & w.exec & chosen(w, *part, k), low, high, first_read(r.vector_origins[o.index + n], i, o.index + n, false));
      }
    }
  }
}

void Checker::flow_out(const Wave& w, Registers& r, const Instruction& i, u64 exec) {
  const Flow* flow = r.flows;
  for (const Instruction* part = &i; part != nullptr; part = part->second, ++flow) {
    const u64 lanes = flow->lanes & exec;
    for (u8 k = 0; k < part->count; ++k) {
      const Operand& o = part->o[k];
      if (!(part->results >> k & 1)) continue;
      for (u32 n = 0; n < o.size && o.kind == Operand::Kind::Vector; ++n) {
        const u64 nothing = lanes & (o.size == 1 ? flow->low | flow->high : n == 0 ? flow->low : flow->high);
        u64& written = r.written[o.index + n];
        written = (written & ~lanes) | (lanes & ~nothing);
        if (nothing != 0) r.vector_origins[o.index + n] = flow->origin;
        else if (written == ~u64{0}) r.vector_origins[o.index + n] = {};
      }
      if (o.kind != Operand::Kind::Scalar) continue;
      const u64 nothing = exec & (flow->low | flow->high);
      for (u32 n = 0; n < (w.wave32 ? 1u : 2u) && keeps(o.index + n); ++n) {
        r.known[o.index + n] = ~static_cast<u32>(nothing >> 32 * n);
        r.scalar_origins[o.index + n] = r.known[o.index + n] == ~0u ? Origin{} : flow->origin;
      }
    }
  }
}

void Checker::bits_in(const Wave& w, Registers& r, const Instruction& i) {
  const std::string_view n = i.name();
  const u32 words = is_wide(n) ? 2 : 1;
  u64 unknown[2] = {}, value[2] = {};
  u32 given = 0;
  r.bits_origin = {};
  for (u8 k = 0; k < i.count && given < 2; ++k) {
    const Operand& o = i.o[k];
    if (!(i.sources >> k & 1)) continue;
    value[given] = words == 2 ? scalar64(w, o) : scalar(w, o);
    for (u32 m = 0; m < words && o.kind == Operand::Kind::Scalar && o.index + m < kScalars; ++m) {
      const u32 index = o.index + m;
      if (r.known[index] == ~0u || index == kExec || index == kExec + 1) continue;
      unknown[given] |= u64{~r.known[index]} << 32 * m;
      if (r.bits_origin.at == nullptr) r.bits_origin = first_read(r.scalar_origins[index], i, index, true);
    }
    ++given;
  }
  if (has(n, "cselect")) {
    r.unknown_bits = unknown[w.scc ? 0 : 1];
    return;
  }
  if (has(n, "exec")) {  // s_and_saveexec and its kin: lanes by what was not written
    const bool within = (has(n, "s_and_") && !has(n, "not1")) || has(n, "s_nand") || has(n, "andn1") || has(n, "and_not0");
    const bool beyond = has(n, "s_or_") || has(n, "s_nor") || has(n, "andn2") || has(n, "and_not1");
    if ((unknown[0] & (within ? w.exec : beyond ? ~w.exec : ~u64{0})) != 0) read_unwritten(w, r.bits_origin);
    r.unknown_bits = 0;
    return;
  }
  if (has(n, "n2_") || has(n, "not1")) value[1] = ~value[1];
  const u64 zeros = (~unknown[0] & ~value[0]) | (~unknown[1] & ~value[1]), ones = (~unknown[0] & value[0]) | (~unknown[1] & value[1]);
  r.unknown_bits = unknown[0] | unknown[1];
  if (has(n, "s_and") || has(n, "s_nand")) r.unknown_bits &= ~zeros;
  if (has(n, "s_or") || has(n, "s_nor")) r.unknown_bits &= ~ones;
}

void Checker::bits_out(const Wave& w, Registers& r, const Instruction& i) {
  const Operand& to = i.o[0];
  const u32 words = is_wide(i.name()) ? 2 : 1;
  if (r.unknown_bits != 0 && (to.index == kExec || to.index == kExec + 1)) {
    read_unwritten(w, r.bits_origin);
    r.unknown_bits = 0;
  }
  for (u32 n = 0; n < words && keeps(to.index + n); ++n) {
    r.known[to.index + n] = ~static_cast<u32>(r.unknown_bits >> 32 * n);
    r.scalar_origins[to.index + n] = r.known[to.index + n] == ~0u ? Origin{} : r.bits_origin;
  }
  if (has(i.name(), "cselect")) return;
  const u64 value = words == 2 ? read_scalar64(w, to.index) : read_scalar(w, to.index);
  r.scc_known = r.unknown_bits == 0 || (value & ~r.unknown_bits) != 0;
  r.scc_origin = r.bits_origin;
}

// What moves values between lanes moves marks of those that were not written in the same way.
void Checker::move_lanes(Wave& w, Registers& r, const Instruction& i, u64 exec) {
  const Operand &to = i.o[0], *from = i.find('x') != nullptr ? i.find('x') : &i.o[1];
  const bool vector = to.kind == Operand::Kind::Vector;
  const auto mark = [&](u32 index) {
    for (int l = 0; l < kLanes; ++l) w.v[index][l] = r.written[index] >> l & 1 ? 0 : ~0u;
  };
  u64 nothing = 0;
  if (from->kind == Operand::Kind::Vector && r.written[from->index] != ~u64{0}) {
    LaneArray result, source;
    const u32 scalar = vector ? 0 : read_scalar(w, to.index);
    std::memcpy(source.at, w.v[from->index], sizeof source.at);
    if (vector) {
      std::memcpy(result.at, w.v[to.index], sizeof result.at);
      mark(to.index);
    }
    mark(from->index);
    i.run(w, i);
    if (vector) {
      for (int l = 0; l < kLanes; ++l) nothing |= u64{w.v[to.index][l] != 0} << l;
    } else {
      nothing = read_scalar(w, to.index) != 0;
      write_scalar(w, to.index, scalar);
    }
    std::memcpy(w.v[from->index], source.at, sizeof source.at);
    if (vector) std::memcpy(w.v[to.index], result.at, sizeof result.at);
  }
  const Origin origin = from->kind == Operand::Kind::Vector ? first_read(r.vector_origins[from->index], i, from->index, false) : Origin{};
  if (vector) {
    r.written[to.index] = (r.written[to.index] & ~exec) | (exec & ~nothing);
    if (nothing & exec) r.vector_origins[to.index] = origin;
  } else if (keeps(to.index)) {
    r.known[to.index] = nothing ? 0 : ~0u;
    r.scalar_origins[to.index] = nothing ? origin : Origin{};
  }
}

void Checker::copy_registers(const Wave& w, Registers& r, const Instruction& i, u64 exec) {
  const Operand &to = i.o[0], &from = i.o[1];
  for (u32 n = 0; n < to.size && n < 2; ++n) {
    u64 written = ~u64{0};
    u32 known = ~0u;
    Origin origin;
    const u32 index = from.index + n;
    if (n < from.size && from.kind == Operand::Kind::Vector) {
      written = r.written[index];
      origin = r.vector_origins[index];
    }
    if (n < from.size && from.kind == Operand::Kind::Scalar && index < kScalars) {
      known = r.known[index];
      written = known == ~0u ? ~u64{0} : 0;
      origin = r.scalar_origins[index];
    }
    if (to.kind == Operand::Kind::Vector) {
      r.written[to.index + n] = (r.written[to.index + n] & ~exec) | (written & exec);
      r.vector_origins[to.index + n] = origin;
    } else if (keeps(to.index + n)) {
      if (known != ~0u && (to.index == kExec || to.index == kExec + 1)) {
        read_unwritten(w, first_read(origin, i, index, true));
        known = ~0u;
      }
      r.known[to.index + n] = known;
      r.scalar_origins[to.index + n] = origin;
    }
  }
}

}  // namespace mgx
