// Builds the formats of an architecture from the generated tables.
#include "isa/tables.h"

#include <map>
#include <mutex>

namespace mgx {
namespace {

struct RawFormat {
  Format format;
  std::vector<Opcode> rows;
};

// Collects what a table says, in its order.
struct Collector {
  std::vector<RawFormat> formats;

  void format(const char* name, FormatId id, u32 mask, u32 match, u8 words, u8 bit, u8 width) {
    RawFormat raw;
    raw.format.name = name;
    raw.format.id = id;
    raw.format.mask = mask;
    raw.format.match = match;
    raw.format.words = words;
    raw.format.opcode_bit = bit;
    raw.format.opcode_width = width;
    formats.push_back(raw);
  }
  void field(char letter, FieldKind kind, u8 bit, u8 width) {
    formats.back().format.fields.push_back({letter, kind, bit, width});
  }
  void modifier(Modifier m, u8 bit, u8 width) { formats.back().format.modifiers[static_cast<int>(m)] = {bit, width}; }
  void opcode(FormatId id, u16 code, const char* name, const char* signature, u8 archs) {
    for (RawFormat& f : formats) {
      if (f.format.id == id) f.rows.push_back({static_cast<u8>(id), code, name, signature, archs});
    }
  }
};

#define FORMAT(name, mask, match, words, bit, width) c.format(#name, name, mask, match, words, bit, width);
#define FIELD(letter, kind, bit, width) c.field(letter, FieldKind::kind, bit, width);
#define MODIFIER(name, bit, width) c.modifier(Modifier::name, bit, width);
#define OP(form, code, name, signature, archs) c.opcode(form, code, name, signature, archs);

void gfx9(Collector& c) {
#include "../isa/gfx9.inc"
}
void gfx10(Collector& c) {
#include "../isa/gfx10.inc"
}
void gfx11(Collector& c) {
#include "../isa/gfx11.inc"
}
void gfx12(Collector& c) {
#include "../isa/gfx12.inc"
}

#undef FORMAT
#undef FIELD
#undef MODIFIER
#undef OP

const Collector& table(Generation generation) {
  // never destroyed: statistics name opcodes while the process ends
  static const std::map<Generation, Collector>& all = *[] {
    auto* m = new std::map<Generation, Collector>;
    gfx9((*m)[Generation::Gfx9]);
    gfx10((*m)[Generation::Gfx10]);
    gfx11((*m)[Generation::Gfx11]);
    gfx12((*m)[Generation::Gfx12]);
    return m;
  }();
  return all.at(generation);
}

}  // namespace

const Field* Format::field(char letter) const {
  for (const Field& f : fields) {
    if (f.letter == letter) return &f;
  }
  return nullptr;
}

Architecture find_architecture(const std::string& name) {
  static const Architecture known[] = {
      {"gfx90a", Generation::Gfx9, 1},  {"gfx942", Generation::Gfx9, 2},  {"gfx950", Generation::Gfx9, 4},
      {"gfx1030", Generation::Gfx10, 1}, {"gfx1031", Generation::Gfx10, 1}, {"gfx1032", Generation::Gfx10, 1},
      {"gfx1033", Generation::Gfx10, 1}, {"gfx1034", Generation::Gfx10, 1}, {"gfx1035", Generation::Gfx10, 1},
      {"gfx1036", Generation::Gfx10, 1},
      {"gfx1100", Generation::Gfx11, 1}, {"gfx1101", Generation::Gfx11, 1}, {"gfx1102", Generation::Gfx11, 1},
      {"gfx1103", Generation::Gfx11, 1}, {"gfx1150", Generation::Gfx11, 2}, {"gfx1151", Generation::Gfx11, 2},
      {"gfx1152", Generation::Gfx11, 2}, {"gfx1153", Generation::Gfx11, 2}, {"gfx1200", Generation::Gfx12, 1}, {"gfx1201", Generation::Gfx12, 1},
  };
  for (const Architecture& a : known) {
    if (a.name == name) return a;
  }
  std::string all;
  for (const Architecture& a : known) all += (all.empty() ? "" : ", ") + a.name;
  throw Error("'" + name + "' is not emulated, expected one of " + all);
}

const std::vector<Format>& formats_of(const Architecture& arch) {
  static std::mutex mutex;
  static auto& made = *new std::map<std::pair<Generation, u8>, std::vector<Format>>;
  std::lock_guard<std::mutex> lock(mutex);
  std::vector<Format>& formats = made[{arch.generation, arch.bit}];
  if (!formats.empty()) return formats;
  for (const RawFormat& raw : table(arch.generation).formats) {
    formats.push_back(raw.format);
    Format& f = formats.back();
    f.opcodes.assign(std::size_t{1} << f.opcode_width, nullptr);
    for (const Opcode& row : raw.rows) {
      if (row.archs & arch.bit) f.opcodes[row.code] = &row;
    }
  }
  return formats;
}

}  // namespace mgx
