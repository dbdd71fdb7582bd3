// Registers whose numbers m0 moves: v_movrel, v_swaprel and s_movrel.
#include <utility>

#include "exec/define.h"

namespace mgx {
namespace {

u32 vector_register(const Operand& o, u32 by) {
  const u32 at = o.index + by;
  if (at > 0xff) throw Fault("a register that m0 chooses is past v255");
  return at;
}
u32 scalar_register(const Operand& o, u32 by, u32 count) {
  const u32 at = o.index + by;
  if (at >= kVcc || at + count > kVcc) throw Fault("a register that m0 chooses is past the scalar ones");
  return at;
}

// What m0 adds to the source and to the result where it says both.
u32 of_source(const Wave& w) { return w.s[kM0] & 0x3ff; }
u32 of_result(const Wave& w) { return w.s[kM0] >> 16 & 0x3ff; }

void move(Wave& w, const Operand& from, u32 source_by, u32 result, u64 exec) {
  LaneArray space;
  const bool vector = from.kind == Operand::Kind::Vector;
  const u32* a = vector ? w.v[vector_register(from, source_by)] : raw_source(w, from, 0, space);
  LaneArray r;
  std::memcpy(r.at, a, sizeof r.at);
  store_lanes(w.v[result], r.at, exec);
}

void vector_source(Instruction& i, Generation) {
  if (i.o[1].kind != Operand::Kind::Vector) throw Error("'" + std::string(i.name()) + "' of a scalar is not emulated");
}

// The checks do not know which register is written.
void any_result(Instruction& i, Generation) { i.index_mode = 8; }
void vector_both(Instruction& i, Generation g) {
  vector_source(i, g);
  any_result(i, g);
}

void swap(Wave& w, const Instruction& i) {
  u32 *a = w.v[vector_register(i.o[0], of_result(w))], *b = w.v[vector_register(i.o[1], of_source(w))];
  for (int l = 0; l < kLanes; ++l) {
    if (w.exec >> l & 1) std::swap(a[l], b[l]);
  }
}

void move_scalars(Wave& w, u32 to, u32 from, u32 count) {
  u32 words[2] = {};
  for (u32 k = 0; k < count; ++k) words[k] = read_scalar(w, from + k);
  for (u32 k = 0; k < count; ++k) write_scalar(w, to + k, words[k]);
}

// A source that m0 chooses is a register among the numbered ones.
void scalar_source(Instruction& i, Generation) {
  if (i.o[1].kind != Operand::Kind::Scalar || i.o[1].index >= kVcc) {
    throw Error("'" + std::string(i.name()) + "' of this source is not emulated");
  }
}
void scalar_result(Instruction& i, Generation) {
  if (i.o[0].index >= kVcc) throw Error("'" + std::string(i.name()) + "' with this result is not emulated");
}
void scalar_registers(Instruction& i, Generation g) {
  scalar_source(i, g);
  scalar_result(i, g);
}

template <u32 Count>
void scalars_from(Wave& w, const Instruction& i) {
  move_scalars(w, i.o[0].index, scalar_register(i.o[1], w.s[kM0], Count), Count);
}
template <u32 Count>
void scalars_to(Wave& w, const Instruction& i) {
  const u32 to = scalar_register(i.o[0], w.s[kM0], Count);
  if (Count == 2) {
    write_scalar64(w, to, scalar64(w, i.o[1]));
  } else {
    write_scalar(w, to, scalar(w, i.o[1]));
  }
}

}  // namespace

void define_relative() {
  define("v_movrels_b32", [](Wave& w, const Instruction& i) { move(w, i.o[1], w.s[kM0], i.o[0].index, w.exec); }, vector_source, kPlain, "d.");
  define("v_movreld_b32", [](Wave& w, const Instruction& i) { move(w, i.o[1], 0, vector_register(i.o[0], w.s[kM0]), w.exec); },
         any_result, kPlain, "d.");
  define("v_movrelsd_b32",
         [](Wave& w, const Instruction& i) { move(w, i.o[1], w.s[kM0], vector_register(i.o[0], w.s[kM0]), w.exec); },
         vector_both, kPlain, "d.");
  define("v_movrelsd_2_b32",
         [](Wave& w, const Instruction& i) { move(w, i.o[1], of_source(w), vector_register(i.o[0], of_result(w)), w.exec); },
         vector_both, kPlain, "d.");
  define("v_swaprel_b32", swap, vector_both, kPlain, "d.");
  define("s_movrels_b32", scalars_from<1>, scalar_source, kPlain, "d.");
  define("s_movrels_b64", scalars_from<2>, scalar_source, kPlain, "d.");
  define("s_movreld_b32", scalars_to<1>, scalar_result, kPlain, "d.");
  define("s_movreld_b64", scalars_to<2>, scalar_result, kPlain, "d.");
  define("s_movrelsd_2_b32",
         [](Wave& w, const Instruction& i) {
           move_scalars(w, scalar_register(i.o[0], of_result(w), 1), scalar_register(i.o[1], of_source(w), 1), 1);
         },
         scalar_registers, kPlain, "d.");
}

}  // namespace mgx
