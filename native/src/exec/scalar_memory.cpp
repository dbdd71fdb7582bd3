// Scalar loads.
#include "exec/define.h"
#include "exec/memory.h"

namespace mgx {
namespace {

// Operands: result, base pair, offset register or none; the immediate offset is added.
template <int Words>
void load(Wave& w, const Instruction& i) {
  const Operand& d = i.o[0];
  u64 address = read_scalar64(w, i.o[1].index) + static_cast<u64>(i64{i.offset});
  if (i.o[2].kind != Operand::Kind::None) address += scalar(w, i.o[2]);
  address &= ~u64{3};
  u32 values[Words];
  std::memcpy(values, global_address(w, address, 4 * Words), 4 * Words);
  for (int k = 0; k < Words; ++k) write_scalar(w, static_cast<u32>(d.index + k), values[k]);
}

// The same through a buffer descriptor: words past its end are 0.
template <int Words>
void buffer_load(Wave& w, const Instruction& i) {
  const u32 s = i.o[1].index;
  const u64 base = read_scalar(w, s) | u64{read_scalar(w, s + 1) & 0xffff} << 32;
  const u64 records = read_scalar(w, s + 2);
  u64 offset = static_cast<u64>(i64{i.offset});
  if (i.o[2].kind != Operand::Kind::None) offset += scalar(w, i.o[2]);
  offset &= ~u64{3};
  u32 values[Words] = {};
  for (int k = 0; k < Words; ++k) {
    const u64 at = offset + 4 * static_cast<u64>(k);
    if (at + 4 <= records) std::memcpy(&values[k], global_address(w, base + at, 4), 4);
  }
  for (int k = 0; k < Words; ++k) write_scalar(w, static_cast<u32>(i.o[0].index + k), values[k]);
}

template <class T>
void load_small(Wave& w, const Instruction& i) {
  u64 address = read_scalar64(w, i.o[1].index) + static_cast<u64>(i64{i.offset});
  if (i.o[2].kind != Operand::Kind::None) address += scalar(w, i.o[2]);
  T value;
  std::memcpy(&value, global_address(w, address, sizeof(T)), sizeof(T));
  write_scalar(w, i.o[0].index, static_cast<u32>(static_cast<i32>(value)));
}

}  // namespace

void define_scalar_memory() {
  define("s_load_dword", load<1>);
  define("s_load_dwordx2", load<2>);
  define("s_load_b96", load<3>);
  define("s_load_dwordx4", load<4>);
  define("s_load_dwordx8", load<8>);
  define("s_load_dwordx16", load<16>);
  define("s_load_u8", load_small<u8>);
  define("s_load_i8", load_small<i8>);
  define("s_load_u16", load_small<u16>);
  define("s_load_i16", load_small<i16>);
  define("s_buffer_load_dword", buffer_load<1>);
  define("s_buffer_load_dwordx2", buffer_load<2>);
  define("s_buffer_load_b96", buffer_load<3>);
  define("s_buffer_load_dwordx4", buffer_load<4>);
  define("s_buffer_load_dwordx8", buffer_load<8>);
  define("s_buffer_load_dwordx16", buffer_load<16>);
}

}  // namespace mgx
