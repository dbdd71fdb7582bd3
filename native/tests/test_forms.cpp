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

// Operands that tell forms apart: floats of f32, f16 and f64 near 1, of both signs, few values, any
// bits. Drawn once for each seed.
struct Operands {
  u32 v[512][kLanes], s[102];
};

const Operands& operands(u64 seed) {
  static std::map<u64, std::unique_ptr<Operands>> made;
  std::unique_ptr<Operands>& found = made[seed];
  if (found != nullptr) return *found;
  found = std::make_unique<Operands>();
  state = seed;
  static const u32 few[] = {0, 1, 0xffffffff, 0x3f800000, 0xbf800000, 0x7fc00000, 0x7f800000, 0x3c003c00, 0x7e00fc00, 0x80000000, 0x00020003};
  for (auto& reg : found->v) {
    for (u32& lane : reg) {
      const u32 x = random_word();
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
  for (u32& s : found->s) s = random_word();
  return *found;
}

void fill(Wave& w, u64 seed) {
  const Operands& from = operands(seed);
  std::memcpy(w.v, from.v, sizeof w.v);
  std::memcpy(w.s, from.s, 100 * sizeof(u32));
  w.s[kVcc] = from.s[100];
  w.s[kVcc + 1] = from.s[101];
}

// What a run leaves: a digest of all registers. False: it cannot be loaded, or it faults.
bool run(const std::string& arch, const std::vector<u32>& words, u64 seed, u64& digest) {
  try {
    test::Runner r(test::code_of(arch, words, arch.compare(0, 4, "gfx1") == 0));
    Wave& w = *r.wave;
    fill(w, seed);
    w.mode = 0;  // denormals are flushed, of f16 and f64 too: output modifiers work
    r.run();
    digest = 14695981039346656037ull;
    const auto add = [&digest](u64 x) { digest = (digest ^ x) * 1099511628211ull; };
    const Operands& from = operands(seed);
    for (u32 r = 0; r < 512; ++r) {
      if (std::memcmp(w.v[r], from.v[r], sizeof w.v[r]) == 0) continue;  // as it was
      add(r);
      for (u32 lane : w.v[r]) add(lane);
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

bool takes(const Opcode& op, char letter) {
  for (const char* s = op.signature; *s != 0; ++s) {
    if (*s == letter && (s == op.signature || s[-1] == ' ')) return true;
  }
  return false;
}

// An instruction whose operands are vector registers far from each other.
std::vector<u32> plain(const Format& f, const Opcode& op) {
  std::vector<u32> words(f.words, 0);
  words[0] = f.match;
  set_bits(words, f.opcode_bit, f.opcode_width, op.code);
  u32 reg = 16;
  for (const Field& field : f.fields) {
    reg += 16;
    if (!takes(op, field.letter)) continue;
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
  return takes(op, 'a') + takes(op, 'b') + takes(op, 'c');
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
  const bool before_gfx11 = arch.generation <= Generation::Gfx10;
  if (f.id == VOP3 || f.id == VOP3P) {
    with("clamp", 15, 1, 1);
    if (f.id == VOP3) with("omod", 59, 2, 1);
    for (u32 k = 0; k < static_cast<u32>(sources); ++k) {
      with(f.id == VOP3 ? "neg" : "neg_lo", 61 + k, 1, 1);
      if (f.id == VOP3P) with("neg_hi", 8 + k, 1, 1);
      const bool has_mask = f.id == VOP3 && takes(op, 's');  // it stands in these bits
      if (f.id == VOP3 && !has_mask) with("abs", 8 + k, 1, 1);
      if (!has_mask) with("op_sel", 11 + k, 1, 1);
      if (f.id == VOP3P) with("op_sel_hi", k < 2 ? 59 + k : 14, 1, 0);
    }
  }
  const Field* a = f.field('a');
  const bool extra_word = a != nullptr && a->kind == FieldKind::Source && (f.id == VOP1 || f.id == VOP2 || f.id == VOPC || (!before_gfx11 && (f.id == VOP3 || f.id == VOP3P)));
  if (extra_word) {
    const u32 reg = base[a->bit / 32] >> a->bit % 32 & 255;
    std::vector<u32> dpp = base;
    set_bits(dpp, a->bit, a->width, kDppCode);
    dpp.push_back(reg | 0x150u << 8 | 0x3u << 8 | 0xffu << 24);  // row_newbcast:3, or row_share:3
    out.push_back({"dpp", dpp});
    if (before_gfx11) {
      std::vector<u32> sdwa = base;
      set_bits(sdwa, a->bit, a->width, kSdwaCode);
      // as it is with whole operands, then with a part of the result and of each source
      sdwa.push_back(reg | 6u << 8 | 6u << 16 | 6u << 24);
      for (const auto& [name, at, value] : {std::tuple<const char*, u32, u32>{"sdwa dst_sel", 8, 5}, {"sdwa src0_sel", 16, 1}, {"sdwa src1_sel", 24, 5}}) {
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

// Forms that are taken and rightly change nothing, or nothing that these operands show.
bool changes_nothing(const Opcode& op, const std::string& form) {
  const bool compares = has(op, "v_cmp"), matrix = has(op, "mfma") || has(op, "smfmac") || has(op, "wmma") || has(op, "swmmac");
  if (has(op, "v_nop") || has(op, "v_pipeflush")) return true;
  if (compares && (has(op, "_f_") || has(op, "_t_") || has(op, "_tru_"))) return true;  // constants
  if (form == "clamp") return compares || has(op, "v_cvt_f64_") || has(op, "v_trig_preop");                       // it means exceptions, or is below 1
  if (form == "neg" || form == "abs") {
    // the sign does not matter, the operand is an integer or a mask, or two floats are rarely equal
    for (const char* part : {"_o_f", "_u_f", "frexp_exp", "div_scale", "div_fixup", "_class_", "v_cndmask", "v_cvt_pk_u8", "v_ldexp",
                             "v_trig_preop", "v_cvt_scalef32", "v_cubesc", "v_cubetc", "_eq_f", "_lg_f", "_neq_f", "_nlg_f"}) {
      if (has(op, part)) return true;
    }
    return false;
  }
  if (form == "dpp") return has(op, "_eq_i64") || has(op, "_eq_u64") || has(op, "_ne_i64") || has(op, "_ne_u64");  // never equal
  // bits that are reserved for sources of 32 bits
  if (form == "op_sel" && (has(op, "v_cvt_f16_f32") || has(op, "v_cvt_pk_fp8_f32") || has(op, "v_cvt_pk_bf8_f32") || has(op, "v_bitop3") || has(op, "v_sat_pk") ||
                           has(op, "v_mad_u32_u16") || has(op, "v_mad_i32_i16"))) return true;
  if (form == "op_sel" && (has(op, "v_cvt_scalef32") || has(op, "v_cndmask"))) return true;  // it chooses among other operands
  if (form == "op_sel") return has(op, "permlane") || has(op, "smfmac") || has(op, "f8f6f4");  // of lanes without exec; no index here
  if (form == "op_sel_hi") return matrix || has(op, "v_pk_mov");
  if (form == "neg_lo" || form == "neg_hi") return has(op, "f8f6f4") || has(op, "smfmac");  // kinds of elements: some are NaN in all
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
  for (const char* name : {"gfx90a", "gfx942", "gfx950", "gfx1030", "gfx1100", "gfx1201"}) check_all(name, loaded, refused);
  test::check(loaded > 3000 && refused > 1000, std::to_string(loaded) + " forms ran, " + std::to_string(refused) + " were refused");
  return test::result();
}
