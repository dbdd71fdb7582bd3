// Decodes a code object and links its instructions to their semantics.
#include "exec/program.h"

#include <algorithm>
#include <cstdio>
#include <set>
#include <string_view>

#include "exec/registry.h"
#include "isa/decode.h"
#include "isa/print.h"

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace mgx {
namespace {

constexpr std::size_t kShownProblems = 8;

bool starts(std::string_view text, std::string_view with) { return text.substr(0, with.size()) == with; }

// Integer results saturate under clamp, by semantics of their own; a float's is kept in 0 to 1.
bool is_float_name(std::string_view n) {
  if (starts(n, "v_cmp")) return true;  // there it means exceptions
  return n.find("_f16") != n.npos || n.find("_f32") != n.npos || n.find("_f64") != n.npos || n.find("bf16") != n.npos;
}

// v_mov under s_set_gpr_idx: registers move by m0.
void move_indexed(Wave& w, const Instruction& i) {
  Operand from = i.o[1];
  u32 to = i.o[0].index;
  const u32 by = w.s[kM0] & 0xff;
  if ((i.index_mode & 1) && from.kind == Operand::Kind::Vector) from.index = static_cast<u16>(from.index + by);
  if (i.index_mode & 8) to += by;
  if (to > 255 || from.index > 511) throw Fault("an indexed register is past v255");
  for (int l = 0; l < kLanes; ++l) {
    if (!(w.exec >> l & 1)) continue;
    w.v[to][l] = from.kind == Operand::Kind::Vector ? w.v[from.index][l] : scalar(w, from);
  }
}

void run_pair(Wave& w, const Instruction& i) {
  // both halves read before either writes: results are put back after the second ran
  const Instruction& y = *i.second;
  const u32 d = i.o[0].index;
  u32 before[kLanes], made[kLanes];
  std::memcpy(before, w.v[d], sizeof before);
  i.half(w, i);
  std::memcpy(made, w.v[d], sizeof made);
  std::memcpy(w.v[d], before, sizeof before);
  y.run(w, y);
  std::memcpy(w.v[d], made, sizeof made);
}

// Stands where no instruction does: behind a function and in gaps.
void run_past(Wave&, const Instruction&) { throw Fault("it ran past its code"); }

Instruction no_instruction(u64 address) {
  static const Opcode none = {0, 0, "(no instruction)", "", 0};
  Instruction i;
  i.run = run_past;
  i.opcode = &none;
  i.address = address;
  return i;
}

class Loader {
 public:
  explicit Loader(Program& p) : p_(p) {}

  void run() {
    u64 end = 0;
    p_.first = p_.object.image_size / 4 * 4;
    for (const CodeRange& f : p_.object.functions) {
      p_.first = std::min(p_.first, f.offset);
      end = std::max(end, f.offset + f.size);
    }
    p_.index.assign(end > p_.first ? (end - p_.first) / 4 + 1 : 0, -1);
    for (const CodeRange& f : p_.object.functions) function(f);
    for (Instruction& i : p_.code) resolve(i);
    if (!problems_.empty()) {
      std::string text = "the code object for " + p_.object.arch + " has instructions that are not emulated:";
      std::size_t shown = 0;
      for (const std::string& problem : problems_) {
        if (shown++ == kShownProblems) {
          text += "\n  and " + std::to_string(problems_.size() - kShownProblems) + " more";
          break;
        }
        text += "\n  " + problem;
      }
      throw Error(text);
    }
  }

 private:
  void problem(const CodeRange& f, u64 at, const u32* words, std::size_t count, const std::string& why) {
    char address[32];
    std::snprintf(address, sizeof address, "0x%llx", static_cast<unsigned long long>(at));
    const std::string key = why;
    if (!seen_.insert(key).second) return;
    problems_.push_back(why + ": words " + words_text(words, std::min<std::size_t>(count, 3)) + " at " + address + " in " +
                        f.name);
  }

  bool wave32_at(u64 offset) const {
    bool found = p_.arch.generation != Generation::Gfx9;
    for (const KernelInfo& k : p_.object.kernels) {
      if (k.entry == offset) found = k.wave32;
    }
    return found;
  }

  void function(const CodeRange& f) {
    const bool wave32 = wave32_at(f.offset);
    const u32* words = reinterpret_cast<const u32*>(p_.image() + f.offset);
    const std::size_t count = f.size / 4;
    u8 index_mode = 0;
    for (std::size_t at = 0; at < count;) {
      const u64 address = f.offset + 4 * at;
      if (words[at] == 0) {  // padding between a preamble and its body
        if (at != 0 && words[at - 1] != 0) p_.code.push_back(no_instruction(address));
        ++at;
        continue;
      }
      Decoded d;
      std::size_t size = 1;
      try {
        d = decode(p_.arch, wave32, words + at, count - at);
        size = d.first.size / 4;
        if (!wave32 && (starts(d.first.name(), "v_wmma_") || starts(d.first.name(), "v_swmmac_"))) {
          throw Error("'" + std::string(d.first.name()) + "' in wave64 is not emulated");
        }
        link(d.first, index_mode);
        if (d.dual) link(d.second, index_mode);
      } catch (const Error& e) {
        problem(f, address, words + at, count - at, e.what());
        at += size;
        continue;
      }
      d.first.address = address;
      if (d.dual) {
        d.second.address = address;
        p_.seconds.push_back(d.second);
        d.first.second = &p_.seconds.back();
        d.first.half = d.first.run;
        d.first.run = run_pair;
      }
      p_.index[(address - p_.first) / 4] = static_cast<i32>(p_.code.size());
      p_.code.push_back(d.first);
      at += d.first.size / 4;
    }
    p_.code.push_back(no_instruction(f.offset + f.size));
  }

  void link(Instruction& i, u8& index_mode) {
    const std::string name = i.name();
    const bool saturates = i.clamp && !is_float_name(name);
    Semantics s = saturates ? find_clamped(name) : find_semantics(name);
    if (s.run == nullptr) throw Error("'" + name + "'" + (saturates ? " with clamp" : "") + " is not emulated");
    if (saturates) s.forms |= kClamp;
    check_forms(i, s);
    i.run = s.run;
    if (s.prepare != nullptr) s.prepare(i, p_.arch.generation);
    if (name == "s_set_gpr_idx_on" || name == "s_set_gpr_idx_mode") index_mode = i.o[i.count - 1].bits & 15;
    if (name == "s_set_gpr_idx_off") index_mode = 0;
    if (index_mode != 0 && starts(name, "v_")) {
      if (name != "v_mov_b32" || !i.plain) throw Error("'" + name + "' with indexed registers is not emulated");
      i.index_mode = index_mode;
      i.run = move_indexed;
    }
  }

  void resolve(Instruction& i) {
    const std::string_view name = i.name();
    if (!starts(name, "s_cbranch") && name != "s_branch") return;
    const u64 to = i.address + 4 + static_cast<u64>(i64{static_cast<i16>(i.o[0].bits)} * 4);
    i.target = p_.index_of(to);
    if (i.target < 0) throw Error("the code object is damaged: a branch to no instruction in " + p_.where(i.address));
  }

  Program& p_;
  std::vector<std::string> problems_;
  std::set<std::string> seen_;
};

}  // namespace

std::string Program::where(u64 offset) const {
  for (const CodeRange& f : object.functions) {
    if (offset >= f.offset && offset < f.offset + f.size) return f.name;
  }
  return "?";
}

std::unique_ptr<Program> load_program(CodeObject object) {
  auto p = std::make_unique<Program>();
  p->arch = find_architecture(object.arch);
  p->object = std::move(object);
  Loader(*p).run();
  for (const KernelInfo& k : p->object.kernels) {
    if (p->index_of(k.entry) < 0) throw Error("the code object is damaged: kernel '" + k.name + "' has no code");
  }
  p->executed.assign(p->code.size(), 0);
  return p;
}

#if defined(__SSE__)
HostMode::HostMode() : saved_(_mm_getcsr()) {}
HostMode::~HostMode() { _mm_setcsr(saved_); }
#else
HostMode::HostMode() = default;
HostMode::~HostMode() { (void)saved_; }
#endif

namespace {

#if defined(__SSE__)
// Bits 1:0 are the rounding, bits 5:4 the denormals (bit 4 inputs, bit 5 results).
void set_host(u32 mode) {
  static const unsigned rounding[4] = {0x0000, 0x4000, 0x2000, 0x6000};
  unsigned control = 0x1f80 | rounding[mode & 3];
  if (!(mode & 0x10)) control |= 0x0040;
  if (!(mode & 0x20)) control |= 0x8000;
  _mm_setcsr(control);
}
#else
void set_host(u32 mode) {
  if ((mode & 0x33) != 0x30) throw Fault("rounding and denormal modes other than the default are not emulated here");
}
#endif

}  // namespace

void apply_mode(const Wave& w) { set_host(w.mode); }
void apply_wide_mode(const Wave& w) { set_host(w.mode >> 2); }

void check_mode(u32 mode) {
  if ((mode & 0xcc) != 0xc0) throw Fault("16- and 64-bit floats of another rounding, or without denormals, are not emulated");
}

}  // namespace mgx
