// Damaged code: every opcode with random bits elsewhere runs, is refused or faults; never a crash.
#include "harness.h"

namespace {

using namespace mgx;

constexpr u64 kSteps = 64;

u64 state = 88172645463325252ull;
u32 random_word() {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return static_cast<u32>(state);
}

// A random instruction of a format with this opcode.
std::vector<u32> draw(const Format& f, const Opcode& op) {
  std::vector<u32> words(4);
  for (u32& w : words) w = random_word();
  words[0] = (words[0] & ~f.mask) | f.match;
  const u32 at = f.opcode_bit, mask = ((u32{1} << f.opcode_width) - 1) << at;
  words[0] = (words[0] & ~mask) | (u32{op.code} << at & mask);
  return words;
}

// Whether it could be loaded.
bool run(const std::string& arch, const std::vector<u32>& words, const char* checks) {
  std::unique_ptr<Program> program;
  try {
    program = load_program(test::code_of(arch, words, arch.compare(0, 4, "gfx1") == 0));
  } catch (const Error&) {
    return false;
  }
  Memory memory;
  KernelInfo& k = program->object.kernels[0];
  k.properties = 1 << 3;  // registers 0 and 1 hold the address of memory
  k.rsrc2 = 2 << 1 | 1 << 7;
  k.rsrc1 = 0xf0 << 12;
  k.lds = 1024;
  k.scratch = 64;
  Launch l;
  l.kernel = &k;
  l.threads.x = 96;
  l.arguments = static_cast<u8*>(memory.allocate(4096));
  l.checks = Checks::parse(checks);
  l.limit = kSteps;
  try {
    run_launch(*program, memory, l);
  } catch (const Fault&) {
  }
  memory.release(const_cast<u8*>(l.arguments));
  return true;
}

}  // namespace

// Rounds of each opcode may be given; 8 are run without.
int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 8;
  for (const char* name : {"gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"}) {
    int opcodes = 0, loaded = 0;
    for (const Format& f : formats_of(find_architecture(name))) {
      for (const Opcode* op : f.opcodes) {
        if (op == nullptr) continue;
        ++opcodes;
        int known = 0;
        for (int round = 0; round < rounds; ++round) known += run(name, draw(f, *op), round % 2 ? "all" : "");
        loaded += known != 0;
      }
    }
    test::check(opcodes > 500 && loaded > opcodes / 4,
                std::string(name) + ": of " + std::to_string(opcodes) + " opcodes " + std::to_string(loaded) + " ran");
  }
  return test::result();
}
