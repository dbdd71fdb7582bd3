// Checks for the tests, and a wave that runs a few instructions.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "exec/launch.h"

namespace mgx::test {

inline int failures = 0;

inline void check(bool holds, const std::string& what) {
  if (holds) return;
  ++failures;
  std::fprintf(stderr, "FAILED: %s\n", what.c_str());
}

// Whether a call throws an Error whose message has a text.
template <class F>
void check_error(F f, const std::string& text) {
  try {
    f();
  } catch (const Error& e) {
    check(std::string(e.what()).find(text) != std::string::npos, "expected '" + text + "' in '" + e.what() + "'");
    return;
  }
  check(false, "expected the error '" + text + "', nothing was thrown");
}

inline int result() {
  if (failures != 0) std::fprintf(stderr, "%d checks failed\n", failures);
  return failures == 0 ? 0 : 1;
}

// A code object of one function that holds these words and an s_endpgm.
inline CodeObject code_of(const std::string& arch, std::vector<u32> words, bool wave32) {
  const bool moved = arch.compare(0, 5, "gfx11") == 0 || arch.compare(0, 5, "gfx12") == 0;
  words.push_back(moved ? 0xbfb00000 : 0xbf810000);
  CodeObject object;
  object.arch = arch;
  object.image_size = 4 * words.size();
  object.image.reset(static_cast<u8*>(std::malloc(object.image_size)), std::free);
  std::memcpy(object.image.get(), words.data(), object.image_size);
  object.functions.push_back({"test", 0, object.image_size});
  KernelInfo k;
  k.name = "test";
  k.wave32 = wave32;
  k.rsrc1 = 0xf0 << 12;  // denormals
  object.kernels.push_back(k);
  return object;
}

// A wave at the start of a program, with 64 KiB of LDS and every lane active.
class Runner {
 public:
  explicit Runner(CodeObject object) : program(load_program(std::move(object))), lds(65536, 0xcd) {
    void* space = std::aligned_alloc(64, (sizeof(Wave) + 63) / 64 * 64);
    wave.reset(new (space) Wave);
    Wave& w = *wave;
    w.generation = program->arch.generation;
    w.wave32 = program->object.kernels[0].wave32;
    w.fnuz = program->arch.name == "gfx942";
    w.program = program.get();
    w.memory = &memory;
    w.lds = lds.data();
    w.lds_size = static_cast<u32>(lds.size());
    w.exec = w.wave32 ? 0xffffffff : ~u64{0};
    std::memset(w.s, 0, sizeof w.s);
    std::memset(w.v, 0, sizeof w.v);
  }

  void run() {
    const HostMode restore;
    apply_mode(*wave);
    while (wave->state != Wave::State::Done) {
      wave->state = Wave::State::Running;
      const Instruction& i = program->code[wave->pc++];
      i.run(*wave, i);
    }
  }

  struct Free {
    void operator()(Wave* w) const { std::free(w); }
  };
  std::unique_ptr<Program> program;
  Memory memory;
  std::vector<u8> lds;
  std::unique_ptr<Wave, Free> wave;
};

}  // namespace mgx::test
