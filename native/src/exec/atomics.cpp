// Atomic operations on device memory and LDS, under every generation's names.
#include <algorithm>
#include <map>
#include <mutex>
#include <string_view>

#include "check/checker.h"
#include "exec/define.h"
#include "exec/memory.h"

namespace mgx {

u8* buffer_address(Wave& w, const Instruction& i, int lane, u32 bytes);
u8* lane_address(Wave& w, const Instruction& i, int lane, u32 bytes);

namespace {

enum class Op : u8 {
  Swap, Add, Sub, RSub, SMin, UMin, SMax, UMax, And, Or, Xor, Inc, Dec, CmpSwap, AddFloat, MinFloat, MaxFloat, PkAddF16,
  PkAddBf16, CmpSwapFloat, SubClamp, CondSub, MskOr, Wrap
};
constexpr u16 kWide = 0x100, kData1First = 0x200;

template <class T, class Signed, class Float>
T combine(Op op, T old, T data, T compare) {
  Float x, y;
  std::memcpy(&x, &old, sizeof x);
  std::memcpy(&y, &data, sizeof y);
  const auto bits = [](Float f) {
    T t;
    std::memcpy(&t, &f, sizeof t);
    return t;
  };
  switch (op) {
    case Op::Swap: return data;
    case Op::Add: return old + data;
    case Op::Sub: return old - data;
    case Op::RSub: return data - old;
    case Op::SMin: return static_cast<Signed>(old) < static_cast<Signed>(data) ? old : data;
    case Op::UMin: return std::min(old, data);
    case Op::SMax: return static_cast<Signed>(old) > static_cast<Signed>(data) ? old : data;
    case Op::UMax: return std::max(old, data);
    case Op::And: return old & data;
    case Op::Or: return old | data;
    case Op::Xor: return old ^ data;
    case Op::Inc: return old >= data ? 0 : old + 1;
    case Op::Dec: return old == 0 || old > data ? data : old - 1;
    case Op::CmpSwap: return old == compare ? data : old;
    case Op::CmpSwapFloat: {
      Float z;
      std::memcpy(&z, &compare, sizeof z);
      return x == z ? data : old;
    }
    case Op::SubClamp: return old > data ? old - data : 0;
    case Op::CondSub: return old >= data ? old - data : old;
    case Op::MskOr: return (old & ~compare) | data;
    case Op::Wrap: return old >= compare ? old - compare : old + data;
    case Op::AddFloat: return bits(x + y);
    case Op::MinFloat: return bits(std::fmin(x, y));
    case Op::MaxFloat: return bits(std::fmax(x, y));
    case Op::PkAddF16:
      return f16_of_f32(f32_of_f16(old & 0xffff) + f32_of_f16(data & 0xffff)) |
             f16_of_f32(f32_of_f16(old >> 16 & 0xffff) + f32_of_f16(data >> 16 & 0xffff)) << 16;
    case Op::PkAddBf16:
      return bf16_of_f32(f32_of_bf16(old & 0xffff) + f32_of_bf16(data & 0xffff)) |
             bf16_of_f32(f32_of_bf16(old >> 16 & 0xffff) + f32_of_bf16(data >> 16 & 0xffff)) << 16;
  }
  return old;
}

// Workgroups run on several threads: one atomic at a time on a piece of memory.
template <class T, class Signed, class Float>
T apply(u8* p, Op op, T data, T compare) {
  static std::mutex mutexes[64];
  std::lock_guard<std::mutex> lock(mutexes[reinterpret_cast<u64>(p) / 8 % 64]);
  T old;
  std::memcpy(&old, p, sizeof old);
  const T made = combine<T, Signed, Float>(op, old, data, compare);
  std::memcpy(p, &made, sizeof made);
  return old;
}

u64 run_one(u8* p, u16 aux, u64 data, u64 compare) {
  const Op op = static_cast<Op>(aux & 0xff);
  if (aux & kWide) return apply<u64, i64, double>(p, op, data, compare);
  return apply<u32, i32, float>(p, op, static_cast<u32>(data), static_cast<u32>(compare));
}

u64 value(const Wave& w, u32 reg, int l, bool wide) {
  return wide ? w.v[reg][l] | u64{w.v[reg + 1][l]} << 32 : u64{w.v[reg][l]};
}

void keep(Wave& w, const Operand& d, int l, bool wide, u64 x) {
  w.v[d.index][l] = static_cast<u32>(x);
  if (wide) w.v[d.index + 1][l] = static_cast<u32>(x >> 32);
}

// The second value of a data register that holds two; of others nothing is compared.
u64 compared(const Wave& w, const Operand& data, int l, bool wide) {
  const u32 width = wide ? 2 : 1;
  return data.size == 2 * width ? value(w, data.index + width, l, wide) : 0;
}

// Buffer: the data register is the result too. cmpswap's data is the new value, then the compared.
void buffer_atomic(Wave& w, const Instruction& i) {
  const bool wide = i.aux & kWide;
  const Operand& data = i.of('d');
  const u32 d = data.index, width = wide ? 2 : 1;
  for (u64 left = w.exec; left != 0; left &= left - 1) {
    const int l = __builtin_ctzll(left);
    u8* p = buffer_address(w, i, l, 4 * width);
    u64 old = 0;
    if (p != nullptr) note_memory(w, p, 4 * width, Access::Atomic);
    if (p != nullptr) old = run_one(p, i.aux, value(w, d, l, wide), compared(w, data, l, wide));
    if (i.returns) keep(w, data, l, wide, old);
  }
}

void flat_atomic(Wave& w, const Instruction& i) {
  const bool wide = i.aux & kWide;
  const Operand& data = i.of('x');
  const u32 width = wide ? 2 : 1;
  LaneArray low, high;
  for (u64 left = w.exec; left != 0; left &= left - 1) {
    const int l = __builtin_ctzll(left);
    u8* p = lane_address(w, i, l, 4 * width);
    const u64 at = reinterpret_cast<u64>(p) - reinterpret_cast<u64>(w.lds);
    if (at < w.lds_size) note_lds(w, static_cast<u32>(at), 4 * width, Access::Atomic);
    else note_memory(w, p, 4 * width, Access::Atomic);
    const u64 old = run_one(p, i.aux, value(w, data.index, l, wide), compared(w, data, l, wide));
    low.at[l] = static_cast<u32>(old);
    high.at[l] = static_cast<u32>(old >> 32);
  }
  if (!i.returns) return;  // the result may lie over the address
  store_lanes(w.v[i.of('d').index], low.at, w.exec);
  if (wide) store_lanes(w.v[i.of('d').index + 1], high.at, w.exec);
}

void lds_atomic(Wave& w, const Instruction& i) {
  const bool wide = i.aux & kWide;
  const u32 bytes = wide ? 8 : 4;
  const Operand *x = i.find('x'), *y = i.find('y'), *d = i.find('d');
  // compare-and-store: GFX9 has the compared value first, later generations the new one
  const u32 first = x->index, second = y != nullptr ? y->index : first;
  const u32 fresh = y != nullptr && !(i.aux & kData1First) ? second : first, other = fresh == first ? second : first;
  LaneArray low, high;
  for (u64 left = w.exec; left != 0; left &= left - 1) {
    const int l = __builtin_ctzll(left);
    const u64 address = u64{w.v[i.of('a').index][l]} + static_cast<u32>(i.offset);
    low.at[l] = high.at[l] = 0;
    if (address + bytes > w.lds_size) continue;
    note_lds(w, static_cast<u32>(address), bytes, Access::Atomic);
    const u64 old = run_one(w.lds + address, i.aux, value(w, fresh, l, wide), value(w, other, l, wide));
    low.at[l] = static_cast<u32>(old);
    high.at[l] = static_cast<u32>(old >> 32);
  }
  if (d == nullptr) return;
  store_lanes(w.v[d->index], low.at, w.exec);
  if (wide) store_lanes(w.v[d->index + 1], high.at, w.exec);
}

// Two exchanges of one address register.
template <int Words, u32 Stride>
void exchange_two(Wave& w, const Instruction& i) {
  const u32 a = i.of('a').index, d = i.of('d').index;
  const u32 data[2] = {i.of('x').index, i.of('y').index}, offsets[2] = {i.offset0 * Stride, i.offset1 * Stride};
  LaneArray old[2 * Words];
  for (u64 left = w.exec; left != 0; left &= left - 1) {
    const int l = __builtin_ctzll(left);
    for (u32 part = 0; part < 2; ++part) {
      const u64 address = u64{w.v[a][l]} + offsets[part];
      for (u32 k = 0; k < Words; ++k) old[part * Words + k].at[l] = 0;
      if (address + 4 * Words > w.lds_size) continue;
      note_lds(w, static_cast<u32>(address), 4 * Words, Access::Atomic);
      const u64 held = run_one(w.lds + address, static_cast<u16>(static_cast<u16>(Op::Swap) | (Words == 2 ? kWide : 0)),
                               value(w, data[part], l, Words == 2), 0);
      for (u32 k = 0; k < Words; ++k) old[part * Words + k].at[l] = static_cast<u32>(held >> 32 * k);
    }
  }
  for (u32 k = 0; k < 2 * Words; ++k) store_lanes(w.v[d + k], old[k].at, w.exec);
}

std::map<std::string, u16>& forms() {
  static std::map<std::string, u16> f;
  return f;
}

void prepare(Instruction& i, Generation) {
  i.aux = forms().at(i.name());
  const std::string_view form = i.form;
  const bool returns = form == "DS" ? std::string_view(i.name()).find("_rtn_") != std::string_view::npos : i.returns && form != "MUBUF";
  if (returns && i.find('d') == nullptr) throw Error("'" + std::string(i.name()) + "' without a result is not emulated");
  if (i.idxen) throw Error("'" + std::string(i.name()) + "' with an index (idxen) is not emulated");
}

void add(const std::string& name, Op op, bool wide, Handler run, u16 more = 0) {
  forms()[name] = static_cast<u16>(static_cast<u16>(op) | (wide ? kWide : 0) | more);
  define(name, run, prepare, kPlain, run == buffer_atomic ? "+daro" : "+ax");
}

struct Name {
  const char* text;
  Op op;
  bool wide;
};

}  // namespace

void define_atomics() {
  static const Name vector[] = {
      {"swap", Op::Swap, false}, {"cmpswap", Op::CmpSwap, false}, {"add", Op::Add, false}, {"sub", Op::Sub, false},
      {"smin", Op::SMin, false}, {"umin", Op::UMin, false}, {"smax", Op::SMax, false}, {"umax", Op::UMax, false},
      {"and", Op::And, false}, {"or", Op::Or, false}, {"xor", Op::Xor, false}, {"inc", Op::Inc, false},
      {"dec", Op::Dec, false}, {"add_f32", Op::AddFloat, false}, {"pk_add_f16", Op::PkAddF16, false},
      {"pk_add_bf16", Op::PkAddBf16, false}, {"add_f64", Op::AddFloat, true}, {"min_f64", Op::MinFloat, true},
      {"max_f64", Op::MaxFloat, true}, {"min_f32", Op::MinFloat, false}, {"max_f32", Op::MaxFloat, false},
      {"min_num_f32", Op::MinFloat, false}, {"max_num_f32", Op::MaxFloat, false}, {"fmin", Op::MinFloat, false},
      {"fmax", Op::MaxFloat, false}, {"cmpswap_f32", Op::CmpSwapFloat, false},
  };
  static const Name later[] = {
      {"swap_b", Op::Swap, false}, {"cmpswap_b", Op::CmpSwap, false}, {"add_u", Op::Add, false},
      {"sub_u", Op::Sub, false}, {"min_i", Op::SMin, false}, {"min_u", Op::UMin, false}, {"max_i", Op::SMax, false},
      {"max_u", Op::UMax, false}, {"and_b", Op::And, false}, {"or_b", Op::Or, false}, {"xor_b", Op::Xor, false},
      {"inc_u", Op::Inc, false}, {"dec_u", Op::Dec, false}, {"sub_clamp_u", Op::SubClamp, false},
      {"csub_u", Op::SubClamp, false}, {"cond_sub_u", Op::CondSub, false},
  };
  for (const std::string space : {"buffer_", "global_", "flat_"}) {
    const Handler run = space == "buffer_" ? buffer_atomic : flat_atomic;
    for (const Name& n : vector) {
      add(space + "atomic_" + n.text, n.op, n.wide, run);
      if (!n.wide && std::string_view(n.text).find('_') == std::string_view::npos) {
        add(space + "atomic_" + n.text + "_x2", n.op, true, run);
      }
    }
    for (const Name& n : later) {
      add(space + "atomic_" + n.text + "32", n.op, false, run);
      add(space + "atomic_" + n.text + "64", n.op, true, run);
    }
  }
  static const Name local[] = {
      {"add_|u", Op::Add, false}, {"sub_|u", Op::Sub, false}, {"rsub_|u", Op::RSub, false}, {"inc_|u", Op::Inc, false},
      {"dec_|u", Op::Dec, false}, {"min_|i", Op::SMin, false}, {"max_|i", Op::SMax, false}, {"min_|u", Op::UMin, false},
      {"max_|u", Op::UMax, false}, {"and_|b", Op::And, false}, {"or_|b", Op::Or, false}, {"xor_|b", Op::Xor, false},
      {"add_|f", Op::AddFloat, false}, {"min_|f", Op::MinFloat, false}, {"max_|f", Op::MaxFloat, false},
      {"min_num_|f", Op::MinFloat, false}, {"max_num_|f", Op::MaxFloat, false},
      {"wrxchg_|b", Op::Swap, false}, {"storexchg_|b", Op::Swap, false}, {"cmpst_|b", Op::CmpSwap, false},
      {"cmpstore_|b", Op::CmpSwap, false}, {"cmpst_|f", Op::CmpSwapFloat, false}, {"cmpstore_|f", Op::CmpSwapFloat, false},
      {"mskor_|b", Op::MskOr, false}, {"wrap_|b", Op::Wrap, false}, {"sub_clamp_|u", Op::SubClamp, false}, {"cond_sub_|u", Op::CondSub, false},
  };
  for (const Name& n : local) {
    const std::string text = n.text;
    const std::string stem = text.substr(0, text.find('|')), type = text.substr(text.find('|') + 1);
    const u16 order = stem == "cmpstore_" ? kData1First : 0;
    for (const bool wide : {false, true}) {
      const std::string width = wide ? "64" : "32";
      add("ds_" + stem + type + width, n.op, wide, lds_atomic, order);
      add("ds_" + stem + "rtn_" + type + width, n.op, wide, lds_atomic, order);
    }
  }
  for (const char* name : {"ds_wrxchg2", "ds_storexchg_2addr"}) {
    const std::string stem = name, far = stem == "ds_wrxchg2" ? "st64_rtn_b" : "_stride64_rtn_b";
    define(stem + "_rtn_b32", exchange_two<1, 4>, nullptr, kPlain, "daxy");
    define(stem + "_rtn_b64", exchange_two<2, 8>, nullptr, kPlain, "daxy");
    define(stem + far + "32", exchange_two<1, 256>, nullptr, kPlain, "daxy");
    define(stem + far + "64", exchange_two<2, 512>, nullptr, kPlain, "daxy");
  }
  add("ds_pk_add_f16", Op::PkAddF16, false, lds_atomic);
  add("ds_pk_add_bf16", Op::PkAddBf16, false, lds_atomic);
  add("ds_pk_add_rtn_f16", Op::PkAddF16, false, lds_atomic);
  add("ds_pk_add_rtn_bf16", Op::PkAddBf16, false, lds_atomic);
}

}  // namespace mgx
