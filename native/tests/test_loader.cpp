// The loader: damaged and foreign files, MessagePack; unknown instructions are named.
#include "harness.h"
#include "loader/msgpack.h"

namespace {

using namespace mgx;
using test::check;
using test::check_error;

void msgpack() {
  const u8 good[] = {0x82, 0xa1, 'a', 0x01, 0xa1, 'b', 0x92, 0xcd, 0x01, 0x00, 0xff};
  const Value v = read_msgpack(Reader(good, sizeof good));
  check(v.number("a") == 1, "a is 1");
  check(v.find("b") != nullptr && v.find("b")->list.size() == 2 && v.find("b")->list[0].integer == 256 &&
            v.find("b")->list[1].integer == -1, "b is [256, -1]");
  for (std::size_t size = 0; size < sizeof good; ++size) {
    check_error([&] { read_msgpack(Reader(good, size)); }, "damaged");
  }
  const std::vector<u8> deep(1000, 0x91);
  check_error([&] { read_msgpack(Reader(deep.data(), deep.size())); }, "nested too deeply");
  const u8 huge[] = {0xdd, 0xff, 0xff, 0xff, 0xff, 0x00};
  check_error([&] { read_msgpack(Reader(huge, sizeof huge)); }, "damaged");
}

void elf() {
  std::vector<u8> file(64, 0);
  check_error([&] { read_code_object(Reader(file.data(), file.size())); }, "not a 64-bit ELF");
  std::memcpy(file.data(), "\x7f" "ELF\x02\x01", 6);
  check_error([&] { read_code_object(Reader(file.data(), file.size())); }, "not an AMD GPU");
  file[18] = 224;
  file[48] = 0x4c;
  check(read_code_object(Reader(file.data(), file.size())).arch == "gfx942", "the flags say gfx942");
  // every table that the header can point at is out of the file
  for (int at : {32, 40}) {
    std::vector<u8> bad = file;
    bad[static_cast<std::size_t>(at) + 5] = 0x7f;
    bad[54] = bad[58] = 64;
    bad[56] = bad[60] = 3;
    check_error([&] { read_code_object(Reader(bad.data(), bad.size())); }, "outside the file");
  }
  // a segment of 2 GiB in a file of 200 bytes: the device says how much there may be
  std::vector<u8> large = file;
  large.resize(200, 0);
  large[32] = 64;  // one program header behind the header
  large[54] = 56;
  large[56] = 1;
  large[64] = 1;
  large[64 + 43] = 0x40;  // 1 GiB in memory
  check_error([&] { read_code_object(Reader(large.data(), large.size()), 1 << 20); }, "bytes of memory, the device has 1048576");
  check(read_code_object(Reader(large.data(), large.size())).image_size == u64{1} << 30, "it is there where memory is");
  u64 state = 88172645463325252ull;
  for (int round = 0; round < 20000; ++round) {  // noise: an error or a code object, never a crash
    std::vector<u8> noise(256);
    for (u8& b : noise) {
      state ^= state << 13;
      state ^= state >> 7;
      state ^= state << 17;
      b = round % 2 ? static_cast<u8>(state) : static_cast<u8>(state % 4 ? 0 : state >> 8 & 255);
    }
    std::memcpy(noise.data(), file.data(), 20);
    try {
      read_code_object(Reader(noise.data(), noise.size()));
    } catch (const Error&) {
    }
  }
}

void unknown_instructions() {
  check_error([] { load_program(test::code_of("gfx942", {0xffffffff}, false)); }, "words ffffffff");
  check_error([] { load_program(test::code_of("gfx942", {0xffffffff}, false)); }, "at 0x0 in test");
  // s_setvskip is decoded and not emulated
  check_error([] { load_program(test::code_of("gfx942", {0xbf101110}, false)); }, "'s_setvskip' is not emulated");
  check_error([] { load_program(test::code_of("gfx906", {}, false)); }, "'gfx906' is not emulated, expected one of");
  // a branch out of the function
  check_error([] { load_program(test::code_of("gfx942", {0xbf827fff}, false)); }, "a branch to no instruction");
}

}  // namespace

int main() {
  msgpack();
  elf();
  unknown_instructions();
  return test::result();
}
