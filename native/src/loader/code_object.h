// An AMD code object: an ELF file with machine code, kernel descriptors and metadata.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "loader/reader.h"

namespace mgx {

struct Argument {
  u32 offset, size;
};

// What the runtime says of the launch itself, behind the explicit arguments: `kind` as in the
// metadata without "hidden_", such as block_count_x.
struct HiddenArgument {
  std::string kind;
  u32 offset, size;
};

// What the hardware is told about a kernel (its descriptor), and its explicit arguments.
struct KernelInfo {
  std::string name;
  u64 entry = 0;  // offset of its code in the image
  u32 lds = 0, scratch = 0, kernarg_size = 0;
  u32 rsrc1 = 0, rsrc2 = 0, rsrc3 = 0;
  u16 properties = 0, preload = 0;
  bool wave32 = false;
  u32 vgprs = 0, agprs = 0;  // from the metadata
  u32 max_workgroup = 0;
  std::vector<Argument> arguments;
  std::vector<HiddenArgument> hidden;
};

// A function's code: a range of the image.
struct CodeRange {
  std::string name;
  u64 offset, size;
};

// A variable of the code object: a range of the image.
struct Variable {
  std::string name;
  u64 offset, size;
};

struct CodeObject {
  std::string arch;  // gfx942
  std::vector<KernelInfo> kernels;
  std::vector<CodeRange> functions;
  std::vector<Variable> variables;
  std::shared_ptr<u8> image;  // the loaded segments, at their virtual addresses
  u64 image_size = 0;
};

// The size in bytes of an ELF file that starts at `data`, from its header; the header alone is
// read, as whoever has the data may not know its size. Errors: not an ELF file.
u64 elf_size(const u8* data);

// Most memory that a code object may have besides what its file holds.
constexpr u64 kMostMemory = u64{1} << 31;

// Errors: damaged or foreign data, by name; more memory than `most` beyond the file's own bytes.
CodeObject read_code_object(const Reader& file, u64 most = kMostMemory);

}  // namespace mgx
