// mgx-disassemble FILE.hsaco: the code of every function, one instruction to a line, with its address.
#include <cstdio>
#include <fstream>
#include <iterator>
#include <vector>

#include "isa/decode.h"
#include "isa/print.h"
#include "loader/code_object.h"

int main(int argc, char** argv) {
  using namespace mgx;
  if (argc != 2) {
    std::fprintf(stderr, "usage: mgx-disassemble FILE.hsaco\n");
    return 2;
  }
  std::ifstream file(argv[1], std::ios::binary);
  const std::vector<char> data((std::istreambuf_iterator<char>(file)), {});
  int status = 0;
  try {
    const CodeObject object = read_code_object(Reader(reinterpret_cast<const u8*>(data.data()), data.size()));
    const Architecture arch = find_architecture(object.arch);
    for (const CodeRange& f : object.functions) {
      bool wave32 = arch.generation != Generation::Gfx9;
      for (const KernelInfo& k : object.kernels) {
        if (k.entry == f.offset) wave32 = k.wave32;
      }
      std::printf("%s:\n", f.name.c_str());
      for (u64 at = f.offset; at < f.offset + f.size;) {
        const u32* words = reinterpret_cast<const u32*>(object.image.get() + at);
        try {
          Decoded d = decode(arch, wave32, words, (f.offset + f.size - at) / 4);
          if (d.dual) d.first.second = &d.second;
          std::printf("%llx\t%s\n", static_cast<unsigned long long>(at), to_text(d.first).c_str());
          at += d.first.size;
        } catch (const Error& e) {
          if (*words != 0) {
            std::printf("%llx\terror: %s: %s\n", static_cast<unsigned long long>(at), e.what(), words_text(words, 1).c_str());
            status = 1;
          }
          at += 4;
        }
      }
    }
  } catch (const Error& e) {
    std::fprintf(stderr, "%s: %s\n", argv[1], e.what());
    return 2;
  }
  return status;
}
