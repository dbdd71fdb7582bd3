// Reads ELF code objects: segments, symbols, kernel descriptors, the metadata note.
#include "loader/code_object.h"

#include <cstdlib>

#include "loader/msgpack.h"

namespace mgx {
namespace {

constexpr u64 kLargestImage = u64{1} << 31;
constexpr u32 kSymbolTable = 2, kNote = 7, kLoad = 1, kMetadata = 32;

struct Section {
  u32 type, link;
  u64 offset, size;
};

std::string arch_of_flags(u32 flags) {
  switch (flags & 0xff) {
    case 0x03f: return "gfx90a";
    case 0x04c: return "gfx942";
    case 0x04f: return "gfx950";
    case 0x041: return "gfx1100";
    case 0x046: return "gfx1101";
    case 0x047: return "gfx1102";
    case 0x044: return "gfx1103";
    case 0x043: return "gfx1150";
    case 0x04a: return "gfx1151";
    case 0x055: return "gfx1152";
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

void load_image(const Reader& file, CodeObject& out) {
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
  const u64 bytes = (out.image_size + 4095) / 4096 * 4096 + 4096;
  out.image.reset(static_cast<u8*>(std::aligned_alloc(4096, bytes)), std::free);
  if (out.image == nullptr) throw Error("out of memory for a code object");
  std::memset(out.image.get(), 0, bytes);
  for (const Segment& s : segments) std::memcpy(out.image.get() + s.address, file.data() + s.offset, s.size);
}

void read_symbols(const Reader& file, const std::vector<Section>& sections, CodeObject& out) {
  const Reader image(out.image.get(), out.image_size);
  for (const Section& s : sections) {
    if (s.type != kSymbolTable && s.type != 11) continue;
    if (s.link >= sections.size()) throw Error("the code object is damaged: its symbol table");
    Reader names = file.slice(sections[s.link].offset, sections[s.link].size, "the symbol names");
    Reader table = file.slice(s.offset, s.size, "the symbol table");
    for (u64 at = 0; at + 24 <= s.size; at += 24) {
      const u8 type = table.get<u8>(at + 4, "") & 15;
      const u64 value = table.get<u64>(at + 8, ""), size = table.get<u64>(at + 16, "");
      if (table.get<u16>(at + 6, "") == 0) continue;  // defined elsewhere
      std::string name(names.text(table.get<u32>(at, ""), "a symbol's name"));
      if (type == 2 && size != 0) {
        bool known = false;
        for (const CodeRange& f : out.functions) known = known || f.offset == value;
        image.slice(value, size, "a function");
        if (value % 4 != 0) throw Error("the code object is damaged: '" + name + "' is not aligned");
        if (!known) out.functions.push_back({name, value, size});
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

CodeObject read_code_object(const Reader& file) {
  if (file.size() < 64 || std::memcmp(file.data(), "\x7f" "ELF\x02\x01", 6) != 0) {
    throw Error("not a 64-bit ELF code object");
  }
  const u16 machine = file.get<u16>(18, "the header");
  if (machine != 224) throw Error("the ELF file is for machine " + std::to_string(machine) + ", not an AMD GPU");
  CodeObject out;
  out.arch = arch_of_flags(file.get<u32>(48, "the header"));
  load_image(file, out);
  const std::vector<Section> sections = sections_of(file);
  read_symbols(file, sections, out);
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
