// The decoder on any words: an instruction within bounds, or an error; never a crash.
#include "harness.h"
#include "isa/decode.h"
#include "isa/print.h"

int main() {
  using namespace mgx;
  u64 state = 1234567891011121314ull;
  const auto random = [&state] {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return static_cast<u32>(state);
  };
  for (const char* name : {"gfx90a", "gfx942", "gfx950", "gfx1030", "gfx1100", "gfx1151", "gfx1201"}) {
    const Architecture arch = find_architecture(name);
    int known = 0;
    for (int round = 0; round < 200000; ++round) {
      const u32 words[4] = {random(), random(), random(), random()};
      const std::size_t count = 1 + random() % 4;
      try {
        Decoded d = decode(arch, arch.generation != Generation::Gfx9, words, count);
        if (d.dual) d.first.second = &d.second;
        test::check(d.first.size / 4u <= count, "an instruction reaches past its words");
        for (u8 k = 0; k < d.first.count; ++k) {
          const Operand& o = d.first.o[k];
          const u32 limit = o.kind == Operand::Kind::Vector ? (o.index < 256 ? 256u : 512u) : 256u;
          test::check(o.kind == Operand::Kind::Constant || o.index + (o.kind == Operand::Kind::Vector ? o.size : 0u) <= limit,
                      "a register out of range: " + to_text(d.first));
        }
        test::check(!to_text(d.first).empty(), "an instruction has text");
        ++known;
      } catch (const Error&) {
      }
    }
    test::check(known > 20000, std::string(name) + ": most words of a format decode");
  }
  return test::result();
}
