// Reads ELF code objects: segments, symbols, kernel descriptors, the metadata note.
#include "loader/code_object.h"

#include <algorithm>
#include <cstdlib>
#include <set>
#include <sys/mman.h>

#include "loader/msgpack.h"

namespace mgx {
namespace {

constexpr u64 kLargestImage = kMostMemory;
constexpr u32 kSymbolTable = 2, kRelocations = 4, kNote = 7, kDynamicSymbols = 11, kLoad = 1, kMetadata = 32;

struct Section {
  u32 type, link;
  u64 offset, size;
};

std::string arch_of_flags(u32 flags) {
  switch (flags & 0xff) {
    case 0x03f: return "gfx90a";
    case 0x04c: return "gfx942";
    case 0x04f: return "gfx950";
    case 0x036: return "gfx1030";
    case 0x037: return "gfx1031";
    case 0x038: return "gfx1032";
    case 0x039: return "gfx1033";
    case 0x03e: return "gfx1034";
    case 0x03d: return "gfx1035";
    case 0x045: return "gfx1036";
    case 0x041: return "gfx1100";
    case 0x046: return "gfx1101";
    case 0x047: return "gfx1102";
    case 0x044: return "gfx1103";
    case 0x043: return "gfx1150";
    case 0x04a: return "gfx1151";
    case 0x055: return "gfx1152";
    case 0x058: return "gfx1153";
    case 0x048: return "gfx1200";
    case 0x04e: return "gfx1201";
    default: return "AMD machine " + std::to_string(flags & 0xff);
  }
}

std::vector<Section> sections_of(const Reader& file) {
  const u64 table = file.get<u64>(40, "the header");
  const u16 entry = file.get<u16>(58, "the header"), count = file.get<u16>(60, "the header");
  if (count != 0 && entry < 64) throw Error("the code object is damaged: its section table");
  std::vector<Section> found;
  for (u32 i = 0; i < count; ++i) {
    Reader row = file.slice(table + u64{entry} * i, 64, "the section table");
    found.push_back({row.get<u32>(4, ""), row.get<u32>(40, ""), row.get<u64>(24, ""), row.get<u64>(32, "")});
  }
  return found;
}

// What the file says of the image: its bytes, of which the rest is zero.
using Filled = std::vector<std::pair<u64, u64>>;

Filled load_image(const Reader& file, u64 most, CodeObject& out) {
  const u64 table = file.get<u64>(32, "the header");
  const u16 entry = file.get<u16>(54, "the header"), count = file.get<u16>(56, "the header");
  if (count != 0 && entry < 56) throw Error("the code object is damaged: its program headers");
  struct Segment { u64 address, offset, size; };
  std::vector<Segment> segments;
  for (u32 i = 0; i < count; ++i) {
    Reader row = file.slice(table + u64{entry} * i, 56, "the program headers");
    if (row.get<u32>(0, "") != kLoad) continue;
    const u64 offset = row.get<u64>(8, ""), address = row.get<u64>(16, "");
    const u64 size = row.get<u64>(32, ""), memory = row.get<u64>(40, "");
    if (address > kLargestImage || memory > kLargestImage || size > memory) {
      throw Error("the code object is damaged: a segment is too large");
    }
    file.slice(offset, size, "a segment");
    out.image_size = std::max(out.image_size, address + memory);
    segments.push_back({address, offset, size});
  }
  if (out.image_size > file.size() && out.image_size - file.size() > most) {
    throw Error("the code object takes " + std::to_string(out.image_size) + " bytes of memory, the device has " + std::to_string(most));
  }
  // pages that nobody touches take no memory
  const u64 bytes = (out.image_size + 4095) / 4096 * 4096 + 4096;
  void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) throw Error("out of memory for a code object");
  out.image.reset(static_cast<u8*>(p), [bytes](u8* image) { munmap(image, bytes); });
  Filled filled;
  for (const Segment& s : segments) {
    if (s.size != 0) std::memcpy(out.image.get() + s.address, file.data() + s.offset, s.size);
    filled.emplace_back(s.address, s.size);
  }
  return filled;
}

bool is_filled(const Filled& filled, u64 offset, u64 size) {
  for (const auto& [start, length] : filled) {
    if (offset >= start && offset - start <= length && size <= length - (offset - start)) return true;
  }
  return false;
}

// Puts the addresses of the loaded image where the file asks for them.
void relocate(const Reader& file, const std::vector<Section>& sections, CodeObject& out) {
  enum : u32 { kAbs32Lo = 1, kAbs32Hi = 2, kAbs64 = 3, kRel32 = 4, kRel64 = 5, kAbs32 = 6, kRel32Lo = 10, kRel32Hi = 11, kRelative64 = 13 };
  for (const Section& s : sections) {
    if (s.type != kRelocations || s.link >= sections.size() || sections[s.link].type != kDynamicSymbols) continue;
    const Section& symbols = sections[s.link];
    const Reader rows = file.slice(s.offset, s.size, "the relocations");
    const Reader table = file.slice(symbols.offset, symbols.size, "the symbol table");
    for (u64 at = 0; at + 24 <= s.size; at += 24) {
      const u64 place = rows.get<u64>(at, ""), info = rows.get<u64>(at + 8, "");
      const u32 type = static_cast<u32>(info);
      u64 value = rows.get<u64>(at + 16, "");
      const u64 number = info >> 32;
      if (number != 0) {
        const Reader symbol = table.slice(24 * number, 24, "a relocation's symbol");
        if (symbol.get<u16>(6, "") == 0) {
          if (symbols.link >= sections.size()) throw Error("the code object is damaged: its symbol table");
          const Section& names = sections[symbols.link];
          const Reader text = file.slice(names.offset, names.size, "the symbol names");
          throw Error("the code object refers to '" + std::string(text.text(symbol.get<u32>(0, ""), "a symbol's name")) + "', which it does not have");
        }
        value += symbol.get<u64>(8, "");
      }
      const u64 base = reinterpret_cast<u64>(out.image.get());
      const bool relative = type == kRel32 || type == kRel64 || type == kRel32Lo || type == kRel32Hi;
      value = relative ? value - place : value + base;
      if (type == kAbs32Hi || type == kRel32Hi) value >>= 32;
      const bool known = relative || type == kAbs32Lo || type == kAbs32Hi || type == kAbs64 || type == kAbs32 || type == kRelative64;
      if (!known) throw Error("the code object has a relocation of type " + std::to_string(type) + ", which is not emulated");
      const u64 size = type == kAbs64 || type == kRel64 || type == kRelative64 ? 8 : 4;
      Reader(out.image.get(), out.image_size).slice(place, size, "a relocation");
      std::memcpy(out.image.get() + place, &value, size);
    }
  }
}

void read_symbols(const Reader& file, const std::vector<Section>& sections, const Filled& filled, CodeObject& out) {
  std::set<u64> starts;
  std::set<std::string> names_seen;
  u64 total = 0;
  const Reader image(out.image.get(), out.image_size);
  for (const Section& s : sections) {
    if (s.type != kSymbolTable && s.type != kDynamicSymbols) continue;
    if (s.link >= sections.size()) throw Error("the code object is damaged: its symbol table");
    Reader names = file.slice(sections[s.link].offset, sections[s.link].size, "the symbol names");
    Reader table = file.slice(s.offset, s.size, "the symbol table");
    for (u64 at = 0; at + 24 <= s.size; at += 24) {
      const u8 type = table.get<u8>(at + 4, "") & 15;
      const u64 value = table.get<u64>(at + 8, ""), size = table.get<u64>(at + 16, "");
      if (table.get<u16>(at + 6, "") == 0) continue;  // defined elsewhere
      std::string name(names.text(table.get<u32>(at, ""), "a symbol's name"));
      if (type == 2 && size != 0) {
        if (!is_filled(filled, value, size)) throw Error("the code object is damaged: a function is outside the file");
        if (value % 4 != 0) throw Error("the code object is damaged: '" + name + "' is not aligned");
        if (!starts.insert(value).second) continue;
        total += size;
        if (total > 4 * file.size()) throw Error("the code object is damaged: its functions overlap");
        out.functions.push_back({name, value, size});
      } else if (type == 1 && size == 64 && name.size() > 3 && name.compare(name.size() - 3, 3, ".kd") == 0) {
        name.resize(name.size() - 3);
        bool known = false;
        for (const KernelInfo& k : out.kernels) known = known || k.name == name;
        if (known) continue;
        Reader kd = image.slice(value, 64, "a kernel descriptor");
        KernelInfo k;
        k.name = name;
        k.lds = kd.get<u32>(0, "");
        k.scratch = kd.get<u32>(4, "");
        k.kernarg_size = kd.get<u32>(8, "");
        k.entry = value + static_cast<u64>(kd.get<i64>(16, ""));
        k.rsrc3 = kd.get<u32>(44, "");
        k.rsrc1 = kd.get<u32>(48, "");
        k.rsrc2 = kd.get<u32>(52, "");
        k.properties = kd.get<u16>(56, "");
        k.preload = kd.get<u16>(58, "");
        k.wave32 = (k.properties >> 10 & 1) != 0;
        image.slice(k.entry, 4, "a kernel's code");
        if (k.lds > (1u << 20) || k.scratch > (1u << 24) || k.kernarg_size > (1u << 16)) {
          throw Error("the code object is damaged: the descriptor of '" + name + "'");
        }
        out.kernels.push_back(k);
      } else if (type == 1 && size != 0 && names_seen.insert(name).second) {
        image.slice(value, size, "a variable");
        out.variables.push_back({name, value, size});
      }
    }
  }
}

void read_metadata(const Reader& note, CodeObject& out) {
  const Value meta = read_msgpack(note);
  const Value* kernels = meta.find("amdhsa.kernels");
  if (kernels == nullptr) return;
  for (const Value& row : kernels->list) {
    for (KernelInfo& k : out.kernels) {
      if (row.word(".symbol") != k.name + ".kd") continue;
      k.vgprs = static_cast<u32>(row.number(".vgpr_count"));
      k.agprs = static_cast<u32>(row.number(".agpr_count"));
      k.max_workgroup = static_cast<u32>(row.number(".max_flat_workgroup_size"));
      const Value* args = row.find(".args");
      if (args == nullptr) continue;
      for (const Value& a : args->list) {
        const std::string kind = a.word(".value_kind");
        const i64 offset = a.number(".offset", -1), size = a.number(".size", -1);
        if (offset < 0 || size < 0 || offset + size > k.kernarg_size) {
          throw Error("the code object is damaged: an argument of '" + k.name + "'");
        }
        if (kind.compare(0, 7, "hidden_") == 0) {
          k.hidden.push_back({kind.substr(7), static_cast<u32>(offset), static_cast<u32>(size)});
        } else {
          k.arguments.push_back({static_cast<u32>(offset), static_cast<u32>(size)});
        }
      }
    }
  }
}

}  // namespace

u64 elf_size(const u8* data) {
  if (std::memcmp(data, "\x7f" "ELF\x02\x01", 6) != 0) throw Error("not a 64-bit ELF code object");
  Reader header(data, 64);
  return header.get<u64>(40, "") + u64{header.get<u16>(58, "")} * header.get<u16>(60, "");
}

CodeObject read_code_object(const Reader& file, u64 most) {
  if (file.size() < 64 || std::memcmp(file.data(), "\x7f" "ELF\x02\x01", 6) != 0) {
    throw Error("not a 64-bit ELF code object");
  }
  const u16 machine = file.get<u16>(18, "the header");
  if (machine != 224) throw Error("the ELF file is for machine " + std::to_string(machine) + ", not an AMD GPU");
  CodeObject out;
  out.arch = arch_of_flags(file.get<u32>(48, "the header"));
  const Filled filled = load_image(file, most, out);
  const std::vector<Section> sections = sections_of(file);
  read_symbols(file, sections, filled, out);
  relocate(file, sections, out);
  for (const Section& s : sections) {
    if (s.type != kNote) continue;
    Reader notes = file.slice(s.offset, s.size, "a note");
    for (u64 at = 0; at + 12 <= s.size;) {
      const u64 name = (u64{notes.get<u32>(at, "a note")} + 3) / 4 * 4;
      const u64 size = notes.get<u32>(at + 4, "a note");
      if (notes.get<u32>(at + 8, "a note") == kMetadata) {
        read_metadata(notes.slice(at + 12 + name, size, "the kernel metadata"), out);
      }
      at += 12 + name + (size + 3) / 4 * 4;
    }
  }
  return out;
}

}  // namespace mgx
