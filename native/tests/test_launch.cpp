// Launches and the checks: grids, barriers, faults, and each kind of problem found and not found.
#include "harness.h"

#include "exec/hidden.h"

namespace {

using namespace mgx;
using test::check;
using test::check_error;

// A kernel over `words`; scalar registers 0 and 1 hold the address of the arguments.
struct Kernel {
  std::unique_ptr<Program> program;
  Memory memory;
  u8* arguments;

  Kernel(std::vector<u32> words, u32 lds, const std::string& arch = "gfx942") {
    CodeObject object = test::code_of(arch, std::move(words), arch.compare(0, 4, "gfx1") == 0);
    KernelInfo& k = object.kernels[0];
    k.properties = 1 << 3;             // the kernarg pointer
    k.rsrc2 = 2 << 1 | 1 << 7;         // two user registers, then the group's x
    k.rsrc1 = 0xc0 << 12;              // 16- and 64-bit denormals
    k.lds = lds;
    k.scratch = 64;
    program = load_program(std::move(object));
    arguments = static_cast<u8*>(memory.allocate(64));
  }

  LaunchResult launch(u32 groups, u32 threads, const char* checks = "", u64 limit = kMostInstructions,
                      u64 launch_limit = ~u64{0}) {
    Launch l;
    l.kernel = &program->object.kernels[0];
    l.groups.x = groups;
    l.threads.x = threads;
    l.arguments = arguments;
    l.host_threads = 2;
    l.checks = Checks::parse(checks);
    l.limit = limit;
    l.launch_limit = launch_limit;
    return run_launch(*program, memory, l);
  }
};


void grids() {
  // s_mov_b32 s4, s2; s_load_dwordx2 s[6:7], s[0:1], 0; s_waitcnt lgkmcnt(0);
  // v_add_u32 v1, s4, v0; s_lshl_b32 s4, s4, 8; s_add_u32 s6, s6, s4; s_addc_u32 s7, s7, 0;
  // v_lshlrev_b32 v2, 2, v0; global_store_dword v2, v1, s[6:7]
  const std::vector<u32> words = {0xbe840002, 0xc0060180, 0x00000000, 0xbf8cc07f, 0x68020004, 0x8e048804,
                                  0x80060406, 0x82078007, 0x24040082, 0xdc708000, 0x00060102};
  Kernel k(words, 0);
  u32* out = static_cast<u32*>(k.memory.allocate(100 * 64 * 4));
  std::memcpy(k.arguments, &out, 8);
  const LaunchResult r = k.launch(100, 64);
  check(r.waves == 100 && r.instructions == 100 * 10, "100 waves of 10 instructions");
  bool right = true;
  for (u32 n = 0; n < 6400; ++n) right = right && out[n] == n / 64 + n % 64;
  check(right, "every lane of every group stored its sum");
  check_error([&] { k.launch(101, 64); }, "behind one of 25600 bytes: kernel 'test', global_store_dword");
  check_error([&] { k.launch(1, 2000); }, "expected 1 to 1024 threads");
  k.launch(100, 64, "uninitialized,waits");
  std::vector<u32> no_wait = words;
  no_wait[3] = 0xbf800000;  // s_nop instead of the wait
  Kernel bad(no_wait, 0);
  std::memcpy(bad.arguments, &out, 8);
  bad.memory.add(out, 100 * 64 * 4);
  check_error([&] { bad.launch(1, 64, "waits"); }, "missing wait");
  bad.launch(1, 64);
}

// v_mov_b32 v1, s2 (the group, or 0 for all); s_load_dwordx2 s[6:7], s[0:1], 0; s_waitcnt lgkmcnt(0);
// v_lshlrev_b32 v2, 2, v0; global_store_dword v2, v1, s[6:7]: all groups write the same words
void groups_that_meet() {
  for (u32 value : {0x7e020202u, 0x7e020280u}) {
    Kernel k({value, 0xc0060180, 0x00000000, 0xbf8cc07f, 0x24040082, 0xdc708000, 0x00060102}, 0);
    k.memory.track_writers();
    u32* out = static_cast<u32*>(k.memory.allocate(64 * 4));
    std::memcpy(k.arguments, &out, 8);
    k.launch(1, 64, "races");
    k.launch(1, 64, "races");  // another launch
    if (value == 0x7e020280u) k.launch(3, 64, "races");
    else check_error([&] { k.launch(3, 64, "races"); }, "which group 0 of the launch wrote, are written anew by group 1");
  }
}

void lds() {
  // v_lshlrev_b32 v1, 2, v0; ds_write_b32 v1, v0; s_waitcnt lgkmcnt(0); s_barrier;
  // v_xor_b32 v2, 0x100, v1; ds_read_b32 v3, v2; s_waitcnt lgkmcnt(0); v_mov_b32 v4, v3
  const std::vector<u32> words = {0x24020082, 0xd81a0000, 0x00000001, 0xbf8cc07f, 0xbf8a0000, 0x2a0402ff,
                                  0x00000100, 0xd86c0000, 0x03000002, 0xbf8cc07f, 0x7e080303};
  Kernel good(words, 512);
  good.launch(3, 128, "all");
  std::vector<u32> racy = words;
  racy[4] = 0xbf800000;  // no barrier
  Kernel race(racy, 512);
  check_error([&] { race.launch(1, 128, "races"); }, "LDS race");
  race.launch(1, 128, "waits");
  std::vector<u32> early = words;
  early[3] = 0xbf800000;  // no wait for the write
  Kernel hasty(early, 512);
  check_error([&] { hasty.launch(1, 128, "waits"); }, "a write to LDS may be under way");
  hasty.launch(1, 128, "races");
  std::vector<u32> unwritten = words;
  unwritten[1] = 0xbf800000;
  unwritten[2] = 0xbf800000;
  Kernel empty(unwritten, 512);
  check_error([&] { empty.launch(1, 128, "uninitialized"); }, "uninitialized LDS");
  // v_readfirstlane_b32 s2, vN; s_add_u32 s2, s2, s2
  const auto used = [](std::vector<u32> code, u32 n) {
    code.insert(code.end(), {0x7e040500 | n, 0x80020202});
    return code;
  };
  std::vector<u32> registers = words;
  registers[10] = 0x68080109;  // v_add_u32 v4, v9, v0
  std::vector<u32> scalars = words;
  scalars[10] = 0x68080009;  // v_add_u32 v4, s9, v0
  Kernel unset(scalars, 512);
  check_error([&] { unset.launch(1, 128, "uninitialized"); }, "s9 is read before it is written");
  unset.launch(1, 128, "races,waits");
  Kernel unread(registers, 512);
  unread.launch(1, 128, "uninitialized");
  Kernel undefined(used(registers, 4), 512);
  check_error([&] { undefined.launch(1, 128, "uninitialized"); }, "v9 is read before it is written");
  // s_mov_b32 s8, 1; v_mov_b64 v[4:5], s[8:9]; s_mov_b64 s[10:11], s[8:9]; v_add_u32 v1, v4, v0:
  // half of a pair may be nothing, where nothing reads it
  Kernel half({0xbe880081, 0x7e087008, 0xbe8a0108, 0x68020104}, 0);
  half.launch(1, 64, "uninitialized");
  Kernel other(used({0xbe880081, 0x7e087008, 0xbe8a0108, 0x68020105}, 1), 0);  // v5
  check_error([&] { other.launch(1, 64, "uninitialized"); }, "v5 is read before it is written");
  Kernel third({0xbe880081, 0x7e087008, 0xbe8a0108, 0x6802000b}, 0);  // s11
  check_error([&] { third.launch(1, 64, "uninitialized"); }, "s11 is read before it is written");
  // v_cmp_lt_u32 vcc, 64, v0; v_cndmask_b32 v1, 0, v9, vcc: no lane takes v9; with 3 for 64 and
  // v_cndmask_b32 v1, v9, v0, vcc the first four do
  Kernel never({0x7d9200c0, 0x00021280}, 0);
  never.launch(1, 64, "uninitialized");
  Kernel some(used({0x7d920083, 0x00020109}, 1), 0);
  check_error([&] { some.launch(1, 64, "uninitialized"); }, "v9 is read before it is written, and its result used by s_add_u32 s2, s2, s2");
  // v_cmp_lt_u32 vcc, v9, v0; s_and_b64 vcc, vcc, N; s_cbranch_vccnz: bits that 0 takes away are no matter
  for (u32 n : {0u, 1u}) {
    Kernel k({0x7d920109, 0x86ea806a | n << 8, 0xbf870000}, 0);
    if (n == 0) k.launch(1, 64, "uninitialized");
    else check_error([&] { k.launch(1, 64, "uninitialized"); }, "v9 is read before it is written, and its result used by s_cbranch_vccnz");
  }
  // v_mov_b32 v9, v0 in lane 0 alone; v_mov_b32 v1, v9 of another lane by DPP; the first lane is used
  for (u32 from : {0u, 1u}) {
    std::vector<u32> code = {0xbefe0181, 0x7e120300, 0xbefe01c1, 0x7e0202fa, 0xff000009 | from << 8};
    Kernel k(used(code, 1), 0);
    if (from == 0) k.launch(1, 64, "uninitialized");
    else check_error([&] { k.launch(1, 64, "uninitialized"); }, "v9 is read before it is written");
  }
  check_error([] { Checks::parse("all,everything"); }, "unknown check 'everything'");
}

// What GFX9 hardware does not wait for: each kernel with its wait states, and without.
void hazards() {
  // v_cmp_lt_u32 vcc, 3, v0; s_nop 1; v_cndmask_b32 v1, v0, v0, vcc
  const std::vector<u32> mask = {0x7d920083, 0xbf800001, 0x00020100};
  // v_exp_f32 v1, v0; s_nop 0; v_add_f32 v2, v1, v1
  const std::vector<u32> slow = {0x7e024100, 0xbf800000, 0x02040301};
  for (std::vector<u32> words : {mask, slow}) {
    Kernel right(words, 0);
    right.launch(1, 64, "hazards");
    words.erase(words.begin() + 1);
    Kernel wrong(words, 0);
    check_error([&] { wrong.launch(1, 64, "hazards"); }, "hazard: ");
    wrong.launch(1, 64, "races,waits");
  }
  // v_readfirstlane_b32 s2, v0; s_nop 1; v_writelane_b32 v1, s2, 1: what is written, not to which lane
  Kernel number({0x7e040500, 0xbf800001, 0xd28a0001, 0x00010202}, 0);
  number.launch(1, 64, "hazards");
  Kernel lane({0x7e040500, 0xbf800001, 0xd28a0001, 0x00000481}, 0);  // v_writelane_b32 v1, 1, s2
  check_error([&] { lane.launch(1, 64, "hazards"); }, "the number of a lane, 4 wait states are needed");
  // s_mov_b32 s4, s0; s_mov_b32 s5, s1; s_mov_b32 s6, n; s_mov_b32 s7, 0x27000; buffer_load_dword v1, off, s[4:7], 0
  for (u32 bytes : {64u, 65u}) {
    Kernel k({0xbe840000, 0xbe850001, 0xbe8600ff, bytes, 0xbe8700ff, 0x27000, 0xe0500000, 0x80010100}, 0);
    if (bytes == 64) k.launch(1, 64, "bounds");
    else check_error([&] { k.launch(1, 64, "bounds"); }, "the descriptor promises 65 bytes, there are 64");
    // the same with s_buffer_load_dword s8, s[4:7], 0
    Kernel s({0xbe840000, 0xbe850001, 0xbe8600ff, bytes, 0xbe8700ff, 0x27000, 0xc0220202, 0}, 0);
    if (bytes == 64) s.launch(1, 64, "bounds");
    else check_error([&] { s.launch(1, 64, "bounds"); }, "the descriptor promises 65 bytes, there are 64");
  }
}

// Of 15 user registers two hold the address of the arguments, the 16th the group: v_add_u32 v1, sN, v0.
void counted() {
  for (u32 n = 0; n < 17; ++n) {
    Kernel k({0x68020000 | n}, 0);
    k.program->object.kernels[0].rsrc2 = 15 << 1 | 1 << 7;
    if (n < 2 || n == 15) k.launch(1, 64, "uninitialized");
    else check_error([&] { k.launch(1, 64, "uninitialized"); }, "s" + std::to_string(n) + " is read before it is written");
  }
}

// What RDNA hardware does not wait for.
void hazards_of_rdna() {
  const auto clean = [](std::vector<u32> words, const char* arch) { Kernel(std::move(words), 0, arch).launch(1, 32, "hazards"); };
  const auto caught = [](std::vector<u32> words, const char* arch, const char* what) {
    Kernel k(std::move(words), 0, arch);
    check_error([&] { k.launch(1, 32, "hazards"); }, what);
    k.launch(1, 32, "races,waits");
  };
  // v_exp_f32 v1, v0; v_add_f32 v2, v1, v1, and what may stand between
  const u32 slow = 0x7e024b00, use = 0x06040301, move = 0x7e060300, root = 0x7e084f00;
  const char* early = "the result of a slow operation is read too early";
  caught({slow, use}, "gfx1100", early);
  caught({slow, 0xbf885fff, use}, "gfx1100", early);  // s_waitcnt_depctr va_vdst(5)
  clean({slow, 0xbf880fff, use}, "gfx1100");          // va_vdst(0)
  clean({slow, use}, "gfx1151");
  caught({slow, move, move, move, move, move, use}, "gfx1100", early);
  clean({slow, move, move, move, move, move, 0xbf885fff, use}, "gfx1100");
  clean({slow, move, move, move, move, move, move, use}, "gfx1100");
  caught({slow, root, use}, "gfx1100", early);
  clean({slow, root, root, use}, "gfx1100");
  clean({slow, 0x7e020300, use}, "gfx1100");  // v_mov_b32 v1, v0
  // v_wmma_f32_16x16x16_f16 of v[8:15], and one that has them for a factor
  for (const char* arch : {"gfx1100", "gfx1201"}) {
    const char* factor = "a factor is the result of the matrix instruction before";
    caught({0xcc404008, 0x1c223110, 0xcc404010, 0x1c423108}, arch, factor);
    clean({0xcc404008, 0x1c223110, 0x7e000000, 0xcc404010, 0x1c423108}, arch);  // v_nop
    clean({0xcc404008, 0x1c223110, 0xcc404008, 0x1c223110}, arch);              // the addend
    // v_cmpx_lt_u32 3, v0; v_permlanex16_b32 v1, v0, s0, s0
    const char* lanes = "a comparison wrote the lanes of a permutation";
    caught({0x7d920083, 0xd65c0001, 0x00000100}, arch, lanes);
    caught({0x7d920083, 0x7e000000, 0xd65c0001, 0x00000100}, arch, lanes);
    clean({0x7d920083, move, 0xd65c0001, 0x00000100}, arch);
    check_error([&] { Kernel({0xcc400008, 0x1c223110}, 0, arch); }, "with op_sel_hi is not emulated");
    Kernel end({0xbf9f0000}, 0, arch);
    check_error([&] { end.launch(1, 32); }, "the end of code");
  }
}

// Code without an end, and memory whose addresses differ in their high halves.
void places() {
  std::vector<u32> words = {0xbf800000};
  CodeObject object = test::code_of("gfx942", words, false);
  reinterpret_cast<u32*>(object.image.get())[1] = 0xbf800000;  // s_nop where s_endpgm was
  const std::unique_ptr<Program> program = load_program(std::move(object));
  Memory memory;
  Launch l;
  l.kernel = &program->object.kernels[0];
  l.threads.x = 64;
  check_error([&] { run_launch(*program, memory, l); }, "it ran past its code");
  program->object.kernels[0].rsrc1 = 0x30 << 12;  // f16 and f64 without denormals
  check_error([&] { run_launch(*program, memory, l); }, "16- and 64-bit floats of another rounding, or without denormals");
  const u64 first = reinterpret_cast<u64>(memory.allocate(1000)), second = reinterpret_cast<u64>(memory.allocate(100000));
  for (const auto& [base, size] : {std::pair<u64, u64>{first, 1000}, {second, 100000}}) {
    check(base % 256 == 0 && base >> 32 != (base + size - 1) >> 32, "an allocation lies across 4 GiB");
    check(memory.find(base).size == size && memory.find(base + size).size == 0, "it is exact");
  }
  check(first >> 32 != second >> 32, "allocations differ in the high half");
  memory.release(reinterpret_cast<void*>(first));
  check(memory.find(first).size == 0, "released memory is gone");
  check(memory.allocate(~u64{0}) == nullptr && memory.allocate(u64{1} << 62) == nullptr, "no such memory");
}

// A loop without an end is a fault, also one that a barrier interrupts.
void loops() {
  Kernel forever({0xbf82ffff}, 0);  // s_branch to itself
  check_error([&] { forever.launch(1, 64, "", 1000); }, "it ran 1000 instructions (MGX_EMULATE_LIMIT) and did not end");
  Kernel meeting({0xbf8a0000, 0xbf82fffe}, 0);  // s_barrier; s_branch to it
  check_error([&] { meeting.launch(1, 128, "", 1000); }, "it ran 1000 instructions");
  Kernel short_one({0xbf800000, 0xbf800000}, 0);
  check(short_one.launch(1, 64, "", 3).instructions == 3, "a wave may run as many as the limit says");
  check(short_one.launch(9, 128, "", 3, 54).instructions == 54, "and all waves as many as theirs");
  const char* more = "its waves ran more than 53 instructions together (MGX_EMULATE_LAUNCH_LIMIT): kernel 'test'";
  check_error([&] { short_one.launch(9, 128, "", 3, 53); }, more);
  check_error([&] { meeting.launch(9, 128, "", kMostInstructions, 53); }, more);
}

// Atomics that give back what was there: each lane of each group gets a number of its own.
void tickets() {
  // s_load s[6:7]; wait; v1 = 0; v2 = 1; global_atomic_add v3, v1, v2, s[6:7], returning; wait;
  // v4 = 4 * v3; global_store v4, v3, s[6:7] offset:64
  const std::vector<u32> gfx9 = {0xc0060180, 0x00000000, 0xbf8cc07f, 0x7e020280, 0x7e040281, 0xdd098000,
                                 0x03060201, 0xbf8c0f70, 0x24080682, 0xdc708040, 0x00060304};
  const std::vector<u32> gfx11 = {0xf4040180, 0xf8000000, 0xbf89fc07, 0x7e020280, 0x7e040281, 0xdcd64000,
                                  0x03060201, 0xbf8903f7, 0x30080682, 0xdc6a0040, 0x00060304};
  const std::vector<u32> gfx12 = {0xf4002180, 0xf8000000, 0xbfc70000, 0x7e020280, 0x7e040281, 0xee0d4006, 0x01100003,
                                  0x00000001, 0xbfc00000, 0x30080682, 0xee068006, 0x01800000, 0x00004004};
  // the same by flat_atomic_add_x2 v[8:9], v[8:9], v[2:3]: the result lies over the address
  const std::vector<u32> wide = {0xc0060180, 0x00000000, 0xbf8cc07f, 0x7e100206, 0x7e120207, 0x7e040281, 0x7e060280, 0xdd890000,
                                 0x08000208, 0xbf8c0070, 0x24081082, 0xdc708040, 0x00060804};
  for (const auto& [arch, words] : {std::pair<std::string, std::vector<u32>>{"gfx942", gfx9}, {"gfx1100", gfx11}, {"gfx1201", gfx12}, {"gfx950", wide}}) {
    Kernel k(words, 0, arch);
    u32* out = static_cast<u32*>(k.memory.allocate(4 * (16 + 640)));
    std::memset(out, 0, 64);
    std::memcpy(k.arguments, &out, 8);
    k.launch(10, 64, "waits");
    bool right = out[0] == 640;
    for (u32 n = 0; n < 640; ++n) right = right && out[16 + n] == n;
    check(right, arch + ": 640 lanes took the numbers 0 to 639");
  }
}

// Waves of a group, and groups, that wait for one that comes later.
void meetings() {
  // wave 1 writes 7 to LDS, wave 0 reads until it is there
  const std::vector<u32> waves = {0x20020086, 0x7e080501, 0x7e040280, 0x7e060287, 0xbf068104, 0xbf850007, 0xd86c0000, 0x04000002,
                                  0xbf8cc07f, 0x7e0a0504, 0xbf078705, 0xbf85fffa, 0xbf810000, 0xd81a0000, 0x00000302};
  Kernel two(waves, 512);
  check(two.launch(1, 128).waves == 2, "a wave waits for the next one");
  // group 3 writes 7 to memory, the others read until it is there
  const std::vector<u32> groups = {0xc0060180, 0x00000000, 0xbf8cc07f, 0x7e040280, 0x7e060287, 0xbf068302, 0xbf850007, 0xdc508000,
                                   0x04060002, 0xbf8c0f70, 0x7e0a0504, 0xbf078705, 0xbf85fffa, 0xbf810000, 0xdc708000, 0x00060302};
  Kernel many(groups, 0);
  u32* flag = static_cast<u32*>(many.memory.allocate(4));
  *flag = 0;
  std::memcpy(many.arguments, &flag, 8);
  check(many.launch(4, 64).waves == 4, "groups wait for the last one");
}

// Waves that write the same bytes, and read their own: not a race. Other bytes are one.
void same_bytes() {
  // v2 = 0; v1 = wave; v3 = 7; ds_write_b32 v2, v3; wait; ds_read_b32 v4, v2; wait; v5 = v4
  std::vector<u32> words = {0x7e040280, 0x20020086, 0x7e060287, 0xd81a0000, 0x00000302,
                            0xbf8cc07f, 0xd86c0000, 0x04000002, 0xbf8cc07f, 0x7e0a0304};
  Kernel same(words, 512);
  same.launch(1, 256, "races");
  words[4] = 0x00000102;  // v1
  Kernel other(words, 512);
  check_error([&] { other.launch(1, 256, "races"); }, "LDS race");
}

// GFX12: the wave's number in ttmp8, and registers of scratch addresses that are negative.
void later_generation() {
  // s8 = -32; v1 = -16; scratch_store v0 at s8 + 36; s4 = ttmp8[29:25]; scratch_load v2 from v1 + 20;
  // out[v0] = s4 << 16 | v2
  Kernel k({0xf4002180, 0xf8000000, 0xbe8800ff, 0xffffffe0, 0x7e0202d0, 0xed068008, 0x00000000, 0x00002400, 0x9304ff74, 0x00050019, 0xbfc10000,
            0xed05007c, 0x00020002, 0x00001401, 0xbfc00000, 0xbfc70000, 0xd6560003, 0x04092004, 0x30080082, 0xee068006, 0x01800000, 0x00000004},
           0, "gfx1201");
  u32* out = static_cast<u32*>(k.memory.allocate(96 * 4));
  std::memcpy(k.arguments, &out, 8);
  k.launch(1, 96);
  bool right = true;
  for (u32 n = 0; n < 96; ++n) right = right && out[n] == (n / 32 << 16 | n);
  check(right, "each wave knows its number, and finds what it put into scratch");
}

// What the runtime adds to the arguments: sizes where the metadata wants them, nothing elsewhere.
void hidden() {
  KernelInfo k;
  k.hidden = {{"block_count_x", 8, 4}, {"block_count_y", 12, 4}, {"group_size_x", 16, 2},
              {"group_size_z", 18, 2}, {"remainder_x", 20, 2},   {"grid_dims", 22, 2},
              {"heap_v1", 24, 8}};
  std::vector<u8> segment(40, 0xcd);
  write_hidden(k, Grid{0x12345, 7, 1}, Grid{256, 2, 3}, 0, segment.data());
  std::vector<u8> want(40, 0xcd);
  const u32 words[] = {0x12345, 7, 256 | 3 << 16, 3 << 16, 0, 0};
  std::memcpy(want.data() + 8, words, sizeof words);
  check(segment == want, "the hidden arguments say the sizes of the launch");
}

}  // namespace

int main() {
  hidden();
  grids();
  groups_that_meet();
  lds();
  loops();
  places();
  hazards();
  counted();
  hazards_of_rdna();
  tickets();
  meetings();
  same_bytes();
  later_generation();
  return test::result();
}
