// Every vector instruction in every form: one that is loaded with a modifier gives another result
// than without it, for some operands, or it is refused.
#include <map>
#include <set>

#include "harness.h"

namespace {

using namespace mgx;

constexpr int kDraws = 12;
constexpr u32 kSdwaCode = 249, kDppCode = 250;

u64 state = 88172645463325252ull;
u32 random_word() {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return static_cast<u32>(state);
}

// Operands that tell forms apart: floats of f32, f16 and f64 near 1, of both signs, and any bits.
void fill(Wave& w, u64 seed) {
  state = seed;
  for (u32 r = 0; r < 256; ++r) {
    for (u32& lane : w.v[r]) {
      const u32 x = random_word();
      static const u32 few[] = {0, 1, 0xffffffff, 0x3f800000, 0xbf800000, 0x7fc00000, 0x7f800000, 0x3c003c00, 0x7e00fc00, 0x80000000, 0x00020003};
      switch (seed % 6) {
        case 0: lane = (x & 0x807fffff) | 0x3f000000 | (x & 0x01000000); break;
        case 1: lane = (x & 0x83ff83ff) | 0x38003800 | (x & 0x04000400); break;
        case 2: lane = (x & 0x800fffff) | 0x3fe00000; break;
        case 3: lane = few[x % 11]; break;
        case 4: lane = x & 0x000f000f; break;
        default: lane = x;
      }
    }
  }
  for (u32 r = 0; r < 100; ++r) w.s[r] = random_word();
  w.s[kVcc] = random_word();
  w.s[kVcc + 1] = random_word();
}

// What a run leaves: a digest of all registers. False: it cannot be loaded, or it faults.
bool run(const std::string& arch, const std::vector<u32>& words, u64 seed, u64& digest) {
  try {
    test::Runner r(test::code_of(arch, words, arch.compare(0, 4, "gfx1") == 0));
    Wave& w = *r.wave;
    fill(w, seed);
    w.mode = 0xc0;  // f32 denormals are flushed: output modifiers work
    r.run();
    digest = 14695981039346656037ull;
    const auto add = [&digest](u64 x) { digest = (digest ^ x) * 1099511628211ull; };
    for (auto& reg : w.v) {
      for (u32 lane : reg) add(lane);
    }
    for (u32 s : w.s) add(s);
    add(w.exec);
    add(w.scc);
    return true;
  } catch (const Error&) {
    return false;
  }
}

void set_bits(std::vector<u32>& words, u32 at, u32 width, u32 value) {
  for (u32 k = 0; k < width; ++k) {
    u32& w = words[(at + k) / 32];
    w = (w & ~(1u << (at + k) % 32)) | (value >> k & 1) << (at + k) % 32;
  }
}

// An instruction whose operands are vector registers far from each other.
std::vector<u32> plain(const Format& f, const Opcode& op) {
  std::vector<u32> words(f.words, 0);
  words[0] = f.match;
  set_bits(words, f.opcode_bit, f.opcode_width, op.code);
  u32 reg = 16;
  for (const Field& field : f.fields) {
    reg += 16;
    if (field.kind == FieldKind::Vgpr) set_bits(words, field.bit, field.width, reg);
    if (field.kind == FieldKind::Source) set_bits(words, field.bit, field.width, 256 + reg);
    if (field.kind == FieldKind::Scalar) set_bits(words, field.bit, field.width, field.letter == 's' ? 20 : 30);
  }
  if (f.id == VOP3P) {
    set_bits(words, f.modifier(Modifier::opselhi).bit, 2, 3);
    set_bits(words, f.modifier(Modifier::opselhi2).bit, 1, 1);
  }
  return words;
}

int sources_of(const Opcode& op) {
  int n = 0;
  for (const char* s = op.signature; *s != 0; ++s) {
    if ((s == op.signature || s[-1] == ' ') && *s >= 'a' && *s <= 'c') ++n;
  }
  return n;
}

bool has(const Opcode& op, const char* part) { return std::string(op.name).find(part) != std::string::npos; }

struct Variant {
  std::string name;
  std::vector<u32> words;
};

std::vector<Variant> variants(const Architecture& arch, const Format& f, const Opcode& op, const std::vector<u32>& base) {
  std::vector<Variant> out;
  const auto with = [&](const char* name, u32 at, u32 width, u32 value) {
    std::vector<u32> words = base;
    set_bits(words, at, width, value);
    out.push_back({name, words});
  };
  const int sources = sources_of(op);
  const bool gfx9 = arch.generation == Generation::Gfx9;
  if (f.id == VOP3 || f.id == VOP3P) {
    with("clamp", 15, 1, 1);
    if (f.id == VOP3) with("omod", 59, 2, 1);
    for (u32 k = 0; k < static_cast<u32>(sources); ++k) {
      with(f.id == VOP3 ? "neg" : "neg_lo", 61 + k, 1, 1);
      if (f.id == VOP3P) with("neg_hi", 8 + k, 1, 1);
      const bool has_scalar = std::string(op.signature).find(" s") != std::string::npos || std::string(op.signature).find(" C") != std::string::npos;
      if (f.id == VOP3 && !has_scalar) with("abs", 8 + k, 1, 1);
      with("op_sel", 11 + k, 1, 1);
      if (f.id == VOP3P) with("op_sel_hi", k < 2 ? 59 + k : 14, 1, 0);
    }
  }
  const Field* a = f.field('a');
  const bool extra_word = a != nullptr && a->kind == FieldKind::Source && (f.id == VOP1 || f.id == VOP2 || f.id == VOPC || (!gfx9 && (f.id == VOP3 || f.id == VOP3P)));
  if (extra_word) {
    const u32 reg = base[a->bit / 32] >> a->bit % 32 & 255;
    std::vector<u32> dpp = base;
    set_bits(dpp, a->bit, a->width, kDppCode);
    dpp.push_back(reg | 0x150u << 8 | 0x3u << 8 | 0xffu << 24);  // row_newbcast:3, or row_share:3
    out.push_back({"dpp", dpp});
    if (gfx9) {
      std::vector<u32> sdwa = base;
      set_bits(sdwa, a->bit, a->width, kSdwaCode);
      // as it is with whole operands, then with a part of the result and of each source
      sdwa.push_back(reg | 6u << 8 | 6u << 16 | 6u << 24);
      for (const auto& [name, at, value] : {std::tuple<const char*, u32, u32>{"sdwa dst_sel", 8, 5}, {"sdwa src0_sel", 16, 1}, {"sdwa src1_sel", 24, 4}}) {
        if (f.id == VOPC && at == 8) continue;
        if (sources < 2 && at == 24) continue;
        std::vector<u32> words = sdwa;
        words.back() = (words.back() & ~(7u << at)) | value << at;
        out.push_back({name, words});
      }
    }
  }
  return out;
}

// Forms that are taken and rightly change nothing.
bool changes_nothing(const Opcode& op, const std::string& form) {
  if (form == "clamp") return has(op, "v_cmp") || has(op, "_class_") || has(op, "v_cvt_f64_");  // exceptions
  if (has(op, "v_cmp") && (has(op, "_f_") || has(op, "_t_") || has(op, "_tru_"))) return true;  // constants
  if (has(op, "v_nop") || has(op, "v_pipeflush")) return true;
  if (has(op, "permlane") || has(op, "permlane64")) return true;  // op_sel says what lanes without exec do: all have it
  return false;
}

void check_all(const char* name, int& loaded, int& refused) {
  const Architecture arch = find_architecture(name);
  std::set<std::string> silent;
  for (const Format& f : formats_of(arch)) {
    if (f.id != VOP1 && f.id != VOP2 && f.id != VOPC && f.id != VOP3 && f.id != VOP3P) continue;
    for (const Opcode* op : f.opcodes) {
      if (op == nullptr) continue;
      const std::vector<u32> base = plain(f, *op);
      u64 before[kDraws];
      bool runs = true;
      for (int k = 0; k < kDraws && runs; ++k) runs = run(name, base, 1000 + static_cast<u64>(k), before[k]);
      if (!runs) continue;
      for (const Variant& v : variants(arch, f, *op, base)) {
        bool differs = false, runs_too = true;
        for (int k = 0; k < kDraws && runs_too && !differs; ++k) {
          u64 after;
          runs_too = run(name, v.words, 1000 + static_cast<u64>(k), after);
          differs = runs_too && after != before[k];
        }
        ++(runs_too ? loaded : refused);
        if (runs_too && !differs && !changes_nothing(*op, v.name)) silent.insert(std::string(f.name) + " " + op->name + ": " + v.name);
      }
    }
  }
  for (const std::string& s : silent) test::check(false, std::string(name) + " " + s + " changes nothing");
}

}  // namespace

int main() {
  int loaded = 0, refused = 0;
  for (const char* name : {"gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"}) check_all(name, loaded, refused);
  test::check(loaded > 3000 && refused > 1000, std::to_string(loaded) + " forms ran, " + std::to_string(refused) + " were refused");
  return test::result();
}
