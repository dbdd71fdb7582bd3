// Scalar instructions: arithmetic, bits, comparisons, control flow, exec masks.
#include <algorithm>
#include <chrono>
#include <string_view>

#include "exec/define.h"
#include "exec/program.h"

namespace mgx {
namespace {

// result = f(a, b) and scc = g(a, b, result)
#define S2(name, expr, flag)                                                       \
  MGX_DO(name, {                                                                   \
    const u32 a = scalar(w, i.o[1]);                                               \
    const u32 b = scalar(w, i.o[2]);                                               \
    const u32 r = expr;                                                            \
    const bool f = flag;                                                           \
    (void)a; (void)b;                                                              \
    write_scalar(w, i.o[0].index, r);                                              \
    w.scc = f;                                                                     \
  })
#define S2_QUIET(name, expr)                                                       \
  MGX_DO(name, {                                                                   \
    const u32 a = scalar(w, i.o[1]);                                               \
    const u32 b = scalar(w, i.o[2]);                                               \
    write_scalar(w, i.o[0].index, expr);                                           \
  })
#define S1(name, expr)                                                             \
  MGX_DO(name, {                                                                   \
    const u32 a = scalar(w, i.o[1]);                                               \
    const u32 r = expr;                                                            \
    write_scalar(w, i.o[0].index, r);                                              \
    w.scc = r != 0;                                                                \
  })
#define S1_QUIET(name, expr)                                                       \
  MGX_DO(name, { const u32 a = scalar(w, i.o[1]); write_scalar(w, i.o[0].index, expr); })
#define L2(name, expr)                                                             \
  MGX_DO(name, {                                                                   \
    const u64 a = scalar64(w, i.o[1]);                                             \
    const u64 b = scalar64(w, i.o[2]);                                             \
    const u64 r = expr;                                                            \
    write_scalar64(w, i.o[0].index, r);                                            \
    w.scc = r != 0;                                                                \
  })
#define SC(name, expr)                                                             \
  MGX_DO(name, { const u32 a = scalar(w, i.o[0]); const u32 b = scalar(w, i.o[1]); w.scc = expr; })

// Which quads of lanes have one that is set, and the same for all lanes of the quad.
template <class T>
T quads(T a) {
  T r = 0;
  for (unsigned k = 0; k < sizeof(T) * 2; ++k) r |= static_cast<T>((a >> 4 * k & 15) != 0) << k;
  return r;
}
template <class T>
T quads_of_lanes(T a) {
  T r = 0;
  for (unsigned k = 0; k < sizeof(T) * 2; ++k) r |= (a >> 4 * k & 15) != 0 ? T{15} << 4 * k : 0;
  return r;
}

u32 reverse32(u32 a) {
  u32 r = 0;
  for (int k = 0; k < 32; ++k) r |= (a >> k & 1) << (31 - k);
  return r;
}

u32 field_u(u32 a, u32 b) {
  const u32 offset = b & 31, width = b >> 16 & 127;
  if (width == 0) return 0;
  return width >= 32 ? a >> offset : a >> offset & ((1u << width) - 1);
}

u32 field_i(u32 a, u32 b) {
  const u32 offset = b & 31;
  u32 width = b >> 16 & 127;
  if (width == 0) return 0;
  width = std::min(width, 32 - offset);
  return static_cast<u32>(s32(a << (32 - offset - width)) >> (32 - width));
}

u64 field_u64(u64 a, u32 b) {
  const u32 offset = b & 63, width = b >> 16 & 127;
  if (width == 0) return 0;
  return width >= 64 ? a >> offset : a >> offset & ((u64{1} << width) - 1);
}

u64 field_i64(u64 a, u32 b) {
  const u32 offset = b & 63;
  u32 width = b >> 16 & 127;
  if (width == 0) return 0;
  width = std::min(width, 64 - offset);
  return static_cast<u64>(static_cast<i64>(a << (64 - offset - width)) >> (64 - width));
}

bool add_overflows(u32 a, u32 b) { return ((a ^ ~b) & (a ^ (a + b))) >> 31; }
bool sub_overflows(u32 a, u32 b) { return ((a ^ b) & (a ^ (a - b))) >> 31; }

void jump(Wave& w, const Instruction& i) { w.pc = static_cast<u32>(i.target); }

u64 here(const Wave& w, const Instruction& i) {
  return reinterpret_cast<u64>(w.program->image()) + i.address + i.size;
}

void go_to(Wave& w, u64 address) {
  const u64 offset = address - reinterpret_cast<u64>(w.program->image());
  const i32 index = w.program->index_of(offset);
  if (index < 0) throw Fault("a jump to an address that holds no code");
  w.pc = static_cast<u32>(index);
}

// exec = f(source, exec); the old exec is the result.
template <int Words, bool Save, class F>
void exec_op(Wave& w, const Instruction& i, F f) {
  const u64 old = w.exec;
  const u64 s = Words == 1 ? scalar(w, i.o[1]) : scalar64(w, i.o[1]);
  u64 made = f(s, old);
  if (Words == 1) made &= 0xffffffff;
  w.exec = w.wave32 ? made & 0xffffffff : made;
  const u64 result = Save ? old : made;
  if (Words == 1) {
    write_scalar(w, i.o[0].index, static_cast<u32>(result));
  } else {
    write_scalar64(w, i.o[0].index, result);
  }
  w.scc = made != 0;
}
#define EXEC_OP(stem, expr)                                                                                     \
  MGX_DO("s_" stem "_saveexec_b64", exec_op<2, true>(w, i, []([[maybe_unused]] u64 s, [[maybe_unused]] u64 x) { return expr; })); \
  MGX_DO("s_" stem "_saveexec_b32", exec_op<1, true>(w, i, []([[maybe_unused]] u64 s, [[maybe_unused]] u64 x) { return expr; })); \
  MGX_DO("s_" stem "_wrexec_b64", exec_op<2, false>(w, i, []([[maybe_unused]] u64 s, [[maybe_unused]] u64 x) { return expr; }));  \
  MGX_DO("s_" stem "_wrexec_b32", exec_op<1, false>(w, i, []([[maybe_unused]] u64 s, [[maybe_unused]] u64 x) { return expr; }))

// The hardware registers that a kernel may read; it may write the mode alone.
constexpr u32 kModeRegister = 1, kMemoryBases = 15, kXccNumber = 20, kHardwareNumber = 23, kHardwareNumberGfx9 = 4, kCycles = 29, kCyclesHigh = 30;

bool is_readable(u32 number, Generation g) {
  if (number == kModeRegister || number == kMemoryBases) return true;
  if (g == Generation::Gfx9) return number == kXccNumber || number == kHardwareNumberGfx9;
  return number == kCycles || number == kHardwareNumber || (g == Generation::Gfx12 && number == kCyclesHigh);
}
void check_register(Instruction& i, Generation g) {
  const bool reads = std::string_view(i.name()) == "s_getreg_b32";
  for (const Operand& o : i.o) {
    if (o.letter != 'k') continue;
    const u32 number = o.bits & 63;
    if (reads ? !is_readable(number, g) : number != kModeRegister) {
      throw Error("hardware register " + std::to_string(number) + " is not emulated");
    }
  }
}

// Time, where kernels ask for it: a clock of the host.
u64 nanoseconds() {
  return static_cast<u64>(std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count());
}
u64 ticks() { return nanoseconds() / 10; }  // of 100 MHz

u32 hardware_register(const Wave& w, u32 number) {
  switch (number) {
    case kMemoryBases: return static_cast<u32>(kSharedAperture >> 48 << 16 | kPrivateAperture >> 48);
    case kCycles: return static_cast<u32>(w.generation == Generation::Gfx12 ? nanoseconds() : nanoseconds() & 0xfffff);
    case kCyclesHigh: return static_cast<u32>(nanoseconds() >> 32);
    case kModeRegister: return w.mode;
    default: return 0;  // everything runs on the first of all units
  }
}
u32 register_mask(u32 k, u32& shift) {
  shift = k >> 6 & 31;
  const u32 size = (k >> 11 & 31) + 1;
  return size == 32 ? ~0u : (1u << size) - 1;
}
void set_mode(Wave& w, u32 k, u32 value) {
  u32 shift;
  const u32 mask = register_mask(k, shift);
  w.mode = (w.mode & ~(mask << shift)) | (value & mask) << shift;
  check_mode(w.mode);
  apply_mode(w);
}

// Kernels tell an interrupt, or that they need no more registers.
void check_message(Instruction& i, Generation g) {
  const u32 message = i.o[0].bits & 0xff;
  if (message != 1 && (message != 3 || g == Generation::Gfx9)) {
    throw Error("'s_sendmsg' of message " + std::to_string(message) + " is not emulated");
  }
}

// A message with an answer: the time of day alone.
void only_time(Instruction& i, Generation) {
  const u32 message = i.o[1].bits | 0x80;  // it stands where an inline constant would
  if (message != 0x83) throw Error("'" + std::string(i.name()) + "' of message " + std::to_string(message) + " is not emulated");
}

void only_own_barrier(Instruction& i, Generation) {
  if ((i.o[0].bits & 0xffff) != 0xffff) throw Error("'" + std::string(i.name()) + "' of another barrier than the group's is not emulated");
}

void define_control() {
  for (const char* name :
       {"s_nop", "s_waitcnt", "s_setprio", "s_setprio_inc_wg", "s_icache_inv", "s_dcache_inv", "s_dcache_wb",
        "s_clause", "s_delay_alu", "s_set_inst_prefetch_distance", "s_inst_prefetch",
        "s_waitcnt_depctr", "s_wait_alu", "s_wait_idle", "s_wait_loadcnt", "s_wait_storecnt", "s_wait_samplecnt",
        "s_wait_bvhcnt", "s_wait_expcnt", "s_wait_dscnt", "s_wait_kmcnt", "s_wait_loadcnt_dscnt",
        "s_wait_storecnt_dscnt", "s_waitcnt_vscnt", "s_waitcnt_vmcnt", "s_waitcnt_expcnt", "s_waitcnt_lgkmcnt",
        "s_wait_event", "s_ttracedata", "s_version", "s_singleuse_vdst", "s_prefetch_inst_pc_rel"}) {
    MGX_DO(name, {});
  }
  for (const char* name : {"s_sleep", "s_sleep_var"}) MGX_DO(name, w.state = Wave::State::Resting);
  for (const char* name : {"s_memtime", "s_get_shader_cycles_u64"}) MGX_DO(name, write_scalar64(w, i.o[0].index, nanoseconds()));
  MGX_DO("s_memrealtime", write_scalar64(w, i.o[0].index, ticks()));
  define("s_sendmsg_rtn_b32", [](Wave& w, const Instruction& i) { write_scalar(w, i.o[0].index, static_cast<u32>(ticks())); }, only_time);
  define("s_sendmsg_rtn_b64", [](Wave& w, const Instruction& i) { write_scalar64(w, i.o[0].index, ticks()); }, only_time);
  MGX_DO("s_endpgm", w.state = Wave::State::Done);
  MGX_DO("s_endpgm_saved", w.state = Wave::State::Done);
  MGX_DO("s_barrier", w.state = Wave::State::Barrier);
  // the group's barrier alone: others have names
  define("s_barrier_signal", [](Wave&, const Instruction&) {}, only_own_barrier);
  define("s_barrier_wait", [](Wave& w, const Instruction&) { w.state = Wave::State::Barrier; }, only_own_barrier);
  define("s_sendmsg", [](Wave&, const Instruction&) {}, check_message);
  MGX_DO("s_sethalt", if (i.o[0].bits & 1) throw Fault("the kernel halted"));
  MGX_DO("s_code_end", throw Fault("the kernel ran into what marks the end of code"));
  MGX_DO("s_trap", throw Fault("the kernel executed a trap"));
  MGX_DO("s_branch", jump(w, i));
  MGX_DO("s_cbranch_scc0", if (!w.scc) jump(w, i));
  MGX_DO("s_cbranch_scc1", if (w.scc) jump(w, i));
  MGX_DO("s_cbranch_execz", if (!w.exec) jump(w, i));
  MGX_DO("s_cbranch_execnz", if (w.exec) jump(w, i));
  MGX_DO("s_cbranch_vccz", if (!read_vcc(w)) jump(w, i));
  MGX_DO("s_cbranch_vccnz", if (read_vcc(w)) jump(w, i));
  MGX_DO("s_getpc_b64", write_scalar64(w, i.o[0].index, here(w, i)));
  MGX_DO("s_setpc_b64", go_to(w, scalar64(w, i.o[0])));
  MGX_DO("s_swappc_b64", {
    const u64 to = scalar64(w, i.o[1]);
    write_scalar64(w, i.o[0].index, here(w, i));
    go_to(w, to);
  });
  MGX_DO("s_call_b64", {
    write_scalar64(w, i.o[0].index, here(w, i));
    go_to(w, here(w, i) + static_cast<u64>(i64{s16(i.o[1].bits)} * 4));
  });
  define("s_getreg_b32", [](Wave& w, const Instruction& i) {
    u32 shift;
    const u32 mask = register_mask(i.o[1].bits, shift);
    write_scalar(w, i.o[0].index, hardware_register(w, i.o[1].bits & 63) >> shift & mask);
  }, check_register);
  define("s_setreg_b32", [](Wave& w, const Instruction& i) { set_mode(w, i.o[0].bits, scalar(w, i.o[1])); }, check_register);
  define("s_setreg_imm32_b32", [](Wave& w, const Instruction& i) { set_mode(w, i.o[0].bits, i.o[1].bits); },
         check_register);
  MGX_DO("s_round_mode", set_mode(w, kModeRegister | 3 << 11, i.o[0].bits));
  MGX_DO("s_denorm_mode", set_mode(w, kModeRegister | 4 << 6 | 3 << 11, i.o[0].bits));
  MGX_DO("s_set_gpr_idx_on", {
    w.s[kM0] = (w.s[kM0] & ~0xffu) | (scalar(w, i.o[0]) & 0xff);
    w.index_mode = i.o[1].bits & 15;
  });
  MGX_DO("s_set_gpr_idx_off", w.index_mode = 0);
  MGX_DO("s_set_gpr_idx_idx", w.s[kM0] = (w.s[kM0] & ~0xffu) | (scalar(w, i.o[0]) & 0xff));
  MGX_DO("s_set_gpr_idx_mode", w.index_mode = i.o[0].bits & 15);
}

void define_compare() {
  SC("s_cmp_eq_u32", a == b);
  SC("s_cmp_lg_u32", a != b);
  SC("s_cmp_gt_u32", a > b);
  SC("s_cmp_ge_u32", a >= b);
  SC("s_cmp_lt_u32", a < b);
  SC("s_cmp_le_u32", a <= b);
  SC("s_cmp_eq_i32", a == b);
  SC("s_cmp_lg_i32", a != b);
  SC("s_cmp_gt_i32", s32(a) > s32(b));
  SC("s_cmp_ge_i32", s32(a) >= s32(b));
  SC("s_cmp_lt_i32", s32(a) < s32(b));
  SC("s_cmp_le_i32", s32(a) <= s32(b));
  SC("s_cmpk_eq_u32", a == u16_of(b));
  SC("s_cmpk_lg_u32", a != u16_of(b));
  SC("s_cmpk_gt_u32", a > u16_of(b));
  SC("s_cmpk_ge_u32", a >= u16_of(b));
  SC("s_cmpk_lt_u32", a < u16_of(b));
  SC("s_cmpk_le_u32", a <= u16_of(b));
  SC("s_cmpk_eq_i32", s32(a) == s16(b));
  SC("s_cmpk_lg_i32", s32(a) != s16(b));
  SC("s_cmpk_gt_i32", s32(a) > s16(b));
  SC("s_cmpk_ge_i32", s32(a) >= s16(b));
  SC("s_cmpk_lt_i32", s32(a) < s16(b));
  SC("s_cmpk_le_i32", s32(a) <= s16(b));
  SC("s_bitcmp0_b32", !(a >> (b & 31) & 1));
  SC("s_bitcmp1_b32", a >> (b & 31) & 1);
  MGX_DO("s_bitcmp0_b64", w.scc = !(scalar64(w, i.o[0]) >> (scalar(w, i.o[1]) & 63) & 1));
  MGX_DO("s_bitcmp1_b64", w.scc = scalar64(w, i.o[0]) >> (scalar(w, i.o[1]) & 63) & 1);
  MGX_DO("s_cmp_eq_u64", w.scc = scalar64(w, i.o[0]) == scalar64(w, i.o[1]));
  MGX_DO("s_cmp_lg_u64", w.scc = scalar64(w, i.o[0]) != scalar64(w, i.o[1]));
}

void define_wide() {
  L2("s_and_b64", a & b);
  L2("s_or_b64", a | b);
  L2("s_xor_b64", a ^ b);
  L2("s_andn2_b64", a & ~b);
  L2("s_orn2_b64", a | ~b);
  L2("s_nand_b64", ~(a & b));
  L2("s_nor_b64", ~(a | b));
  L2("s_xnor_b64", ~(a ^ b));
#define SHIFT64(name, expr)                                        \
  MGX_DO(name, {                                                   \
    const u64 a = scalar64(w, i.o[1]);                             \
    const u32 b = scalar(w, i.o[2]);                               \
    const u64 r = expr;                                            \
    write_scalar64(w, i.o[0].index, r);                            \
    w.scc = r != 0;                                                \
  })
  SHIFT64("s_lshl_b64", a << (b & 63));
  SHIFT64("s_lshr_b64", a >> (b & 63));
  SHIFT64("s_ashr_i64", static_cast<u64>(static_cast<i64>(a) >> (b & 63)));
  SHIFT64("s_bfe_u64", field_u64(a, b));
  SHIFT64("s_bfe_i64", field_i64(a, b));
  MGX_DO("s_not_b64", {
    const u64 r = ~scalar64(w, i.o[1]);
    write_scalar64(w, i.o[0].index, r);
    w.scc = r != 0;
  });
  MGX_DO("s_mov_b64", write_scalar64(w, i.o[0].index, scalar64(w, i.o[1])));
  MGX_DO("s_cmov_b64", if (w.scc) write_scalar64(w, i.o[0].index, scalar64(w, i.o[1])));
  MGX_DO("s_cselect_b64", write_scalar64(w, i.o[0].index, w.scc ? scalar64(w, i.o[1]) : scalar64(w, i.o[2])));
  MGX_DO("s_bfm_b64", write_scalar64(w, i.o[0].index, ((u64{1} << (scalar(w, i.o[1]) & 63)) - 1) << (scalar(w, i.o[2]) & 63)));
  MGX_DO("s_mul_u64", write_scalar64(w, i.o[0].index, scalar64(w, i.o[1]) * scalar64(w, i.o[2])));
  MGX_DO("s_add_u64", write_scalar64(w, i.o[0].index, scalar64(w, i.o[1]) + scalar64(w, i.o[2])));
  MGX_DO("s_sub_u64", write_scalar64(w, i.o[0].index, scalar64(w, i.o[1]) - scalar64(w, i.o[2])));
  MGX_DO("s_bcnt1_i32_b64", {
    const u32 r = static_cast<u32>(__builtin_popcountll(scalar64(w, i.o[1])));
    write_scalar(w, i.o[0].index, r);
    w.scc = r != 0;
  });
  MGX_DO("s_bcnt0_i32_b64", {
    const u32 r = static_cast<u32>(__builtin_popcountll(~scalar64(w, i.o[1])));
    write_scalar(w, i.o[0].index, r);
    w.scc = r != 0;
  });
  MGX_DO("s_quadmask_b64", {
    const u64 r = quads(scalar64(w, i.o[1]));
    write_scalar64(w, i.o[0].index, r);
    w.scc = r != 0;
  });
  MGX_DO("s_wqm_b64", {
    const u64 r = quads_of_lanes(scalar64(w, i.o[1]));
    write_scalar64(w, i.o[0].index, r);
    w.scc = r != 0;
  });
  MGX_DO("s_brev_b64", {
    const u64 a = scalar64(w, i.o[1]);
    write_scalar64(w, i.o[0].index, u64{reverse32(static_cast<u32>(a))} << 32 | reverse32(static_cast<u32>(a >> 32)));
  });
  MGX_DO("s_ff0_i32_b64", {
    const u64 a = ~scalar64(w, i.o[1]);
    write_scalar(w, i.o[0].index, a ? static_cast<u32>(__builtin_ctzll(a)) : ~0u);
  });
  MGX_DO("s_flbit_i32_i64", {
    const u64 a = scalar64(w, i.o[1]);
    const u64 other = static_cast<i64>(a) < 0 ? ~a : a;
    write_scalar(w, i.o[0].index, other ? static_cast<u32>(__builtin_clzll(other)) : ~0u);
  });
  MGX_DO("s_bitreplicate_b64_b32", {
    const u32 a = scalar(w, i.o[1]);
    u64 r = 0;
    for (int k = 0; k < 32; ++k) r |= (a >> k & 1 ? u64{3} : 0) << 2 * k;
    write_scalar64(w, i.o[0].index, r);
  });
  MGX_DO("s_ff1_i32_b64", {
    const u64 a = scalar64(w, i.o[1]);
    write_scalar(w, i.o[0].index, a ? static_cast<u32>(__builtin_ctzll(a)) : ~0u);
  });
  MGX_DO("s_flbit_i32_b64", {
    const u64 a = scalar64(w, i.o[1]);
    write_scalar(w, i.o[0].index, a ? static_cast<u32>(__builtin_clzll(a)) : ~0u);
  });
  MGX_DO("s_bitset0_b64", write_scalar64(w, i.o[0].index, read_scalar64(w, i.o[0].index) & ~(u64{1} << (scalar(w, i.o[1]) & 63))));
  MGX_DO("s_bitset1_b64", write_scalar64(w, i.o[0].index, read_scalar64(w, i.o[0].index) | u64{1} << (scalar(w, i.o[1]) & 63)));
  EXEC_OP("and", s & x);
  EXEC_OP("or", s | x);
  EXEC_OP("xor", s ^ x);
  EXEC_OP("andn2", s & ~x);
  EXEC_OP("orn2", s | ~x);
  EXEC_OP("andn1", ~s & x);
  EXEC_OP("orn1", ~s | x);
  EXEC_OP("nand", ~(s & x));
  EXEC_OP("nor", ~(s | x));
  EXEC_OP("xnor", ~(s ^ x));
}

}  // namespace

void define_scalar() {
  define_control();
  define_compare();
  define_wide();
  define_scalar_floats();
  MGX_DO("s_mov_b32", write_scalar(w, i.o[0].index, scalar(w, i.o[1])));
  MGX_DO("s_movk_i32", write_scalar(w, i.o[0].index, static_cast<u32>(s16(i.o[1].bits))));
  MGX_DO("s_cmov_b32", if (w.scc) write_scalar(w, i.o[0].index, scalar(w, i.o[1])));
  MGX_DO("s_cmovk_i32", if (w.scc) write_scalar(w, i.o[0].index, static_cast<u32>(s16(i.o[1].bits))));
  MGX_DO("s_addk_i32", {
    const u32 a = read_scalar(w, i.o[0].index);
    const u32 b = static_cast<u32>(s16(i.o[1].bits));
    write_scalar(w, i.o[0].index, a + b);
    w.scc = add_overflows(a, b);
  });
  MGX_DO("s_mulk_i32", write_scalar(w, i.o[0].index, read_scalar(w, i.o[0].index) * static_cast<u32>(s16(i.o[1].bits))));
  S2("s_add_u32", a + b, r < a);
  S2("s_sub_u32", a - b, b > a);
  S2("s_add_i32", a + b, add_overflows(a, b));
  S2("s_sub_i32", a - b, sub_overflows(a, b));
  S2("s_addc_u32", a + b + w.scc, (u64{a} + b + w.scc) >> 32);
  S2("s_subb_u32", a - b - w.scc, u64{b} + w.scc > a);
  S2("s_absdiff_i32", s32(a - b) < 0 ? b - a : a - b, r != 0);  // of the difference in 32 bits
  S2_QUIET("s_mul_i32", a * b);
  S2_QUIET("s_mul_hi_u32", static_cast<u32>(u64{a} * b >> 32));
  S2_QUIET("s_mul_hi_i32", static_cast<u32>(static_cast<u64>(i64{s32(a)} * s32(b)) >> 32));
  S2("s_lshl_b32", a << (b & 31), r != 0);
  S2("s_lshr_b32", a >> (b & 31), r != 0);
  S2("s_ashr_i32", static_cast<u32>(s32(a) >> (b & 31)), r != 0);
  S2("s_and_b32", a & b, r != 0);
  S2("s_or_b32", a | b, r != 0);
  S2("s_xor_b32", a ^ b, r != 0);
  S2("s_andn2_b32", a & ~b, r != 0);
  S2("s_orn2_b32", a | ~b, r != 0);
  S2("s_nand_b32", ~(a & b), r != 0);
  S2("s_nor_b32", ~(a | b), r != 0);
  S2("s_xnor_b32", ~(a ^ b), r != 0);
  S2("s_min_u32", std::min(a, b), a < b);
  S2("s_max_u32", std::max(a, b), a > b);
  S2("s_min_i32", static_cast<u32>(std::min(s32(a), s32(b))), s32(a) < s32(b));
  S2("s_max_i32", static_cast<u32>(std::max(s32(a), s32(b))), s32(a) > s32(b));
  S2("s_bfe_u32", field_u(a, b), r != 0);
  S2("s_bfe_i32", field_i(a, b), r != 0);
  S2_QUIET("s_bfm_b32", ((1u << (a & 31)) - 1) << (b & 31));
  S2_QUIET("s_pack_ll_b32_b16", u16_of(a) | b << 16);
  S2_QUIET("s_pack_lh_b32_b16", u16_of(a) | (b & 0xffff0000));
  S2_QUIET("s_pack_hh_b32_b16", a >> 16 | (b & 0xffff0000));
  S2_QUIET("s_pack_hl_b32_b16", a >> 16 | b << 16);
  S2("s_lshl1_add_u32", (a << 1) + b, (u64{a} * 2 + b) >> 32);
  S2("s_lshl2_add_u32", (a << 2) + b, (u64{a} * 4 + b) >> 32);
  S2("s_lshl3_add_u32", (a << 3) + b, (u64{a} * 8 + b) >> 32);
  S2("s_lshl4_add_u32", (a << 4) + b, (u64{a} * 16 + b) >> 32);
  S2_QUIET("s_cselect_b32", w.scc ? a : b);
  S1("s_not_b32", ~a);
  S1("s_abs_i32", s32(a) < 0 ? 0 - a : a);
  S1("s_bcnt1_i32_b32", static_cast<u32>(__builtin_popcount(a)));
  S1("s_bcnt0_i32_b32", static_cast<u32>(__builtin_popcount(~a)));
  S1_QUIET("s_brev_b32", reverse32(a));
  S1_QUIET("s_sext_i32_i8", static_cast<u32>(static_cast<i32>(static_cast<i8>(a))));
  S1_QUIET("s_sext_i32_i16", static_cast<u32>(s16(a)));
  S1_QUIET("s_ff1_i32_b32", a ? static_cast<u32>(__builtin_ctz(a)) : ~0u);
  S1_QUIET("s_flbit_i32_b32", a ? static_cast<u32>(__builtin_clz(a)) : ~0u);
  S1_QUIET("s_flbit_i32", (a == 0 || a == ~0u) ? ~0u : static_cast<u32>(__builtin_clz(s32(a) < 0 ? ~a : a)));
  S1("s_quadmask_b32", quads(a));
  S1("s_wqm_b32", quads_of_lanes(a));
  S1_QUIET("s_ff0_i32_b32", ~a ? static_cast<u32>(__builtin_ctz(~a)) : ~0u);
  for (const char* name : {"s_prefetch_data", "s_prefetch_data_pc_rel", "s_prefetch_inst", "s_buffer_prefetch_data", "s_gl1_inv",
                           "s_wakeup", "s_incperflevel", "s_decperflevel", "s_ttracedata_imm", "s_dcache_discard", "s_dcache_discard_x2"}) {
    MGX_DO(name, {});
  }
  S1_QUIET("s_bitset0_b32", read_scalar(w, i.o[0].index) & ~(1u << (a & 31)));
  S1_QUIET("s_bitset1_b32", read_scalar(w, i.o[0].index) | 1u << (a & 31));
}

}  // namespace mgx
