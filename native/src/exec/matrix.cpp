// Matrix instructions of CDNA (v_mfma): D[M x N] = A[M x K] B[K x N] + C, blocks of them at a time.
//
// A lane holds a row of A (a column of B): lane l of a block has row l % M and, of the K elements,
// the group l / M. Results: four rows of a column in four registers. Products are summed in order
// of k with fused multiply-adds in f32.
//
// Sparse ones (v_smfmac) hold two of each four elements of A, and which two in a register of
// indices, 2 bits to an element; D is the sum too.
#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "exec/define.h"
#include "exec/simd.h"

namespace mgx {
namespace {

enum class Element : u8 { F32, F16, Bf16, I8, Fp8, Bf8, Xf32, Fp6, Bf6, Fp4 };

constexpr int kLargest = 32;     // M and N
constexpr int kDeepest = 128;    // K

struct Form {
  int m, k;
  Element a, b;
};

u16 pack(const Form& f) {
  return static_cast<u16>(static_cast<int>(f.a) | static_cast<int>(f.b) << 4 | (f.m == 4 ? 0 : f.m == 16 ? 1 : 2) << 8 |
                          __builtin_ctz(static_cast<u32>(f.k)) << 10);
}
Form unpack(u16 aux) {
  const int m = aux >> 8 & 3;
  return {m == 0 ? 4 : m == 1 ? 16 : 32, 1 << (aux >> 10), static_cast<Element>(aux & 15), static_cast<Element>(aux >> 4 & 15)};
}

int bits_of(Element e) {
  switch (e) {
    case Element::F32: case Element::Xf32: return 32;
    case Element::F16: case Element::Bf16: return 16;
    case Element::Fp6: case Element::Bf6: return 6;
    case Element::Fp4: return 4;
    default: return 8;
  }
}
int per_register(Element e) { return 32 / bits_of(e); }

// f32 with 10 bits of fraction, to nearest even.
float to_xf32(u32 x) {
  if ((x & 0x7f800000) == 0x7f800000) return as_f32(x);
  return as_f32((x + 0xfff + (x >> 13 & 1)) & ~0x1fffu);
}

// Floats of 4 and 6 bits: all are numbers.
float small_float(u32 x, int exponent_bits, int mantissa_bits) {
  const u32 fraction = x & ((1u << mantissa_bits) - 1), exponent = x >> mantissa_bits & ((1u << exponent_bits) - 1);
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const float unit = 1.0f / static_cast<float>(1 << mantissa_bits);
  const float value = exponent == 0 ? std::ldexp(static_cast<float>(fraction) * unit, 1 - bias)
                                    : std::ldexp(1.0f + static_cast<float>(fraction) * unit, static_cast<int>(exponent) - bias);
  return x >> (exponent_bits + mantissa_bits) & 1 ? -value : value;
}
float small_element(u32 x, Element e) {
  return e == Element::Fp4 ? small_float(x, 2, 1) : e == Element::Fp6 ? small_float(x, 2, 3) : small_float(x, 3, 2);
}

// `count` lanes' element `part` of a register.
void unpack_floats(const u32* from, Element e, int part, float* to, int count, bool fnuz) {
  switch (e) {
    case Element::F32: std::memcpy(to, from, sizeof(float) * static_cast<unsigned>(count)); break;
    case Element::F16: unpack_f16(from, 16 * part, to, count); break;
    case Element::Bf16:
      for (int l = 0; l < count; ++l) to[l] = as_f32(part ? from[l] & 0xffff0000 : from[l] << 16);
      break;
    case Element::Fp8:
      for (int l = 0; l < count; ++l) to[l] = f32_of_fp8(from[l] >> 8 * part & 255, fnuz);
      break;
    case Element::Bf8:
      for (int l = 0; l < count; ++l) to[l] = f32_of_bf8(from[l] >> 8 * part & 255, fnuz);
      break;
    case Element::Xf32:
      for (int l = 0; l < count; ++l) to[l] = to_xf32(from[l]);
      break;
    case Element::Fp4: case Element::Fp6: case Element::Bf6: case Element::I8: break;
  }
}

// A (or B) of one block, as [k][row].
template <class T>
void unpack_block(const Wave& w, u32 reg, const Form& f, Element e, int blocks, int block, T* to) {
  const int lanes = kLanes / blocks, groups = lanes / f.m, per = per_register(e), held = f.k / groups;
  for (int g = 0; g < groups; ++g) {
    for (int j = 0; j < held; ++j) {
      const u32* from = w.v[reg + static_cast<u32>(j / per)] + block * lanes + g * f.m;
      T* row = to + (g * held + j) * f.m;
      if constexpr (std::is_same_v<T, float>) {
        unpack_floats(from, e, j % per, row, f.m, w.fnuz);
      } else {
        for (int l = 0; l < f.m; ++l) row[l] = static_cast<i8>(from[l] >> 8 * (j % per));
      }
    }
  }
}

// Where a row of C or D of a block stands: register and first lane.
struct RowPlace {
  int reg, lane;
};
RowPlace row_place(int m, int block, int row) {
  if (m == 4) return {row, block * 4};
  if (m == 16) return {block * 4 + row % 4, 16 * (row / 4)};
  return {block * 16 + row / 8 * 4 + row % 4, 32 * (row / 4 & 1)};
}

// C, row by row. D may lie over a part of its registers: they are read before any is written.
class SumsBefore {
 public:
  SumsBefore(const Wave& w, const Instruction& i) : SumsBefore(w, i, i.o[3]) {}
  SumsBefore(const Wave& w, const Instruction& i, const Operand& c) : is_vector_(c.kind == Operand::Kind::Vector) {
    if (is_vector_) {
      std::memcpy(held_, w.v[c.index], sizeof(u32) * kLanes * static_cast<unsigned>(i.o[0].size));
    } else {
      for (u32& x : constant_) x = scalar_or_zero(w, c);
    }
  }
  const u32* at(RowPlace p) const { return is_vector_ ? held_[p.reg] + p.lane : constant_; }

 private:
  bool is_vector_;
  u32 held_[32][kLanes];
  u32 constant_[kLargest];
};

template <int M, int Rows>
void multiply_rows(Wave& w, const Instruction& i, const Form& f, int block, int first, const float* a, const float* b,
                   const SumsBefore& rows) {
  constexpr int kParts = M / 16;
  Floats sum[Rows][kParts];
  for (int r = 0; r < Rows; ++r) {
    const RowPlace p = row_place(M, block, first + r);
    const u32* c = rows.at(p);
    for (int n = 0; n < kParts; ++n) sum[r][n] = Floats::load(reinterpret_cast<const float*>(c) + 16 * n);
  }
  for (int k = 0; k < f.k; ++k) {
    Floats right[kParts];
    for (int n = 0; n < kParts; ++n) right[n] = Floats::load(b + k * M + 16 * n);
    for (int r = 0; r < Rows; ++r) {
      const Floats left = Floats::all(a[k * M + first + r]);
      for (int n = 0; n < kParts; ++n) sum[r][n].add_product(left, right[n]);
    }
  }
  for (int r = 0; r < Rows; ++r) {
    const RowPlace p = row_place(M, block, first + r);
    float* d = reinterpret_cast<float*>(w.v[i.o[0].index + p.reg] + p.lane);
    for (int n = 0; n < kParts; ++n) sum[r][n].store(d + 16 * n);
  }
}

// A (or B) of an instruction with elements of 8, 6 or 4 bits, blocks of 32 along K scaled by powers
// of 2. A lane holds 32 elements: side by side, or 8-bit ones in two runs of 16 that lie half of K
// apart. Lane g of a row holds the scale of block g.
void unpack_scaled(const Wave& w, const Instruction& i, const Form& f, Element e, int operand, float* to) {
  constexpr int held = 32, run = 16;
  const u32 reg = i.o[operand].index;
  const int bits = bits_of(e), groups = kLanes / f.m;
  const Operand* scales = i.find(operand == 1 ? 'x' : 'y');
  const int place = operand - 1, byte = (i.scale_opsel >> place & 1) | (i.scale_opselhi >> place & 1) << 1;
  for (int row = 0; row < f.m; ++row) {
    float scale[4] = {1, 1, 1, 1};
    for (int g = 0; g < groups && scales != nullptr; ++g) {
      const u32 x = scales->kind == Operand::Kind::Vector ? w.v[scales->index][g * f.m + row] : scalar(w, *scales);
      const u32 power = x >> 8 * byte & 255;
      scale[g] = power == 255 ? NAN : std::ldexp(1.0f, static_cast<int>(power) - 127);
    }
    for (int g = 0; g < groups; ++g) {
      for (int j = 0; j < held; ++j) {
        const int at = bits * j, lane = g * f.m + row;
        u64 raw = w.v[reg + static_cast<u32>(at / 32)][lane];
        if (at % 32 + bits > 32) raw |= u64{w.v[reg + static_cast<u32>(at / 32) + 1][lane]} << 32;
        const u32 x = static_cast<u32>(raw >> at % 32) & ((1u << bits) - 1);
        const float value = e == Element::Fp8 ? f32_of_fp8(x, false) : e == Element::Bf8 ? f32_of_bf8(x, false) : small_element(x, e);
        const int k = bits == 8 ? j / run * f.k / 2 + g * run + j % run : g * held + j;
        to[k * f.m + row] = value * scale[k / held];
      }
    }
  }
}

void run_scaled(Wave& w, const Instruction& i) {
  const Form f = unpack(i.aux);
  static thread_local float a[kLargest * kDeepest], b[kLargest * kDeepest];
  const SumsBefore rows(w, i);
  unpack_scaled(w, i, f, f.a, 1, a);
  unpack_scaled(w, i, f, f.b, 2, b);
  if (f.m == 32) {
    for (int r = 0; r < 32; r += 4) multiply_rows<32, 4>(w, i, f, 0, r, a, b, rows);
  } else {
    for (int r = 0; r < 16; r += 8) multiply_rows<16, 8>(w, i, f, 0, r, a, b, rows);
  }
}

int blocks_of(const Instruction& i, const Form& f) { return i.o[0].size * kLanes / (f.m * f.m); }

void run_floats(Wave& w, const Instruction& i) {
  const Form f = unpack(i.aux);
  const int blocks = blocks_of(i, f);
  static thread_local float a[16 * kLargest * kDeepest], b[16 * kLargest * kDeepest];
  const SumsBefore rows(w, i);
  const int size = f.m * f.k;
  for (int block = 0; block < blocks; ++block) {  // all are read before any result is written
    unpack_block(w, i.o[1].index, f, f.a, blocks, block, a + block * size);
    unpack_block(w, i.o[2].index, f, f.b, blocks, block, b + block * size);
  }
  for (int block = 0; block < blocks; ++block) {
    const float *x = a + block * size, *y = b + block * size;
    if (f.m == 32) {
      for (int r = 0; r < 32; r += 4) multiply_rows<32, 4>(w, i, f, block, r, x, y, rows);
    } else if (f.m == 16) {
      for (int r = 0; r < 16; r += 8) multiply_rows<16, 8>(w, i, f, block, r, x, y, rows);
    } else {
      for (int row = 0; row < 4; ++row) {
        const RowPlace p = row_place(4, block, row);
        const u32* c = rows.at(p);
        u32* d = w.v[i.o[0].index + p.reg] + p.lane;
        for (int n = 0; n < 4; ++n) {
          float sum = as_f32(c[n]);
          for (int k = 0; k < f.k; ++k) sum = std::fma(x[k * 4 + row], y[k * 4 + n], sum);
          d[n] = from_f32(sum);
        }
      }
    }
  }
}

void run_integers(Wave& w, const Instruction& i) {
  const Form f = unpack(i.aux);
  const int blocks = blocks_of(i, f), size = f.m * f.k;
  static thread_local i32 a[16 * kLargest * kDeepest], b[16 * kLargest * kDeepest];
  const SumsBefore rows(w, i);
  for (int block = 0; block < blocks; ++block) {
    unpack_block(w, i.o[1].index, f, f.a, blocks, block, a + block * size);
    unpack_block(w, i.o[2].index, f, f.b, blocks, block, b + block * size);
  }
  for (int block = 0; block < blocks; ++block) {
    for (int row = 0; row < f.m; ++row) {
      const RowPlace p = row_place(f.m, block, row);
      i32 sum[kLargest];
      std::memcpy(sum, rows.at(p), sizeof(i32) * static_cast<unsigned>(f.m));
      for (int k = 0; k < f.k; ++k) {
        const i32 left = a[block * size + k * f.m + row];
        const i32* right = b + block * size + k * f.m;
        for (int n = 0; n < f.m; ++n) sum[n] = static_cast<i32>(static_cast<u32>(sum[n]) + static_cast<u32>(left * right[n]));
      }
      std::memcpy(w.v[i.o[0].index + p.reg] + p.lane, sum, sizeof(i32) * static_cast<unsigned>(f.m));
    }
  }
}

// A of a sparse instruction with its zeros, as [k][row].
template <class T>
void unpack_sparse(const Wave& w, const Instruction& i, const Form& f, T* to) {
  static thread_local T packed[kLargest * kDeepest];
  const Form half = {f.m, f.k / 2, f.a, f.b};
  unpack_block(w, i.o[1].index, half, f.a, 1, 0, packed);
  std::fill(to, to + f.m * f.k, T{});
  const int held = half.k * f.m / kLanes, bits = 2 * held;
  const int first = i.cbsz || bits >= 32 ? 0 : bits * (i.abid & (32 / bits - 1));
  for (int k = 0; k < half.k; ++k) {
    for (int row = 0; row < f.m; ++row) {
      const u32 index = w.v[i.o[3].index][k / held * f.m + row] >> (first + 2 * (k % held)) & 3;
      to[(k / 2 * 4 + static_cast<int>(index)) * f.m + row] = packed[k * f.m + row];
    }
  }
}

void run_sparse_floats(Wave& w, const Instruction& i) {
  const Form f = unpack(i.aux);
  static thread_local float a[kLargest * kDeepest], b[kLargest * kDeepest];
  const SumsBefore rows(w, i, i.o[0]);
  unpack_sparse(w, i, f, a);
  unpack_block(w, i.o[2].index, f, f.b, 1, 0, b);
  if (f.m == 32) {
    for (int r = 0; r < 32; r += 4) multiply_rows<32, 4>(w, i, f, 0, r, a, b, rows);
  } else {
    for (int r = 0; r < 16; r += 8) multiply_rows<16, 8>(w, i, f, 0, r, a, b, rows);
  }
}

// f64, 16x16x4: a lane holds one element of A and B; row 4r + l / 16 of D is in register pair r.
void run_doubles(Wave& w, const Instruction& i) {
  const WideMode doubles(w);
  const auto pair = [&w](u32 reg, int lane) { return as_f64(w.v[reg][lane] | u64{w.v[reg + 1][lane]} << 32); };
  double sum[16][16];
  const Operand& c = i.o[3];
  for (int row = 0; row < 16; ++row) {
    for (int n = 0; n < 16; ++n) {
      const int lane = row % 4 * 16 + n;
      const u32 reg = 2 * static_cast<u32>(row / 4);
      double x = c.kind == Operand::Kind::Vector ? pair(c.index + reg, lane) : as_f64(scalar64(w, c));
      for (int k = 0; k < 4; ++k) x = std::fma(pair(i.o[1].index, 16 * k + row), pair(i.o[2].index, 16 * k + n), x);
      sum[row][n] = x;
    }
  }
  for (int row = 0; row < 16; ++row) {
    for (int n = 0; n < 16; ++n) {
      const int lane = row % 4 * 16 + n;
      const u32 reg = i.o[0].index + 2 * static_cast<u32>(row / 4);
      const u64 bits = from_f64(sum[row][n]);
      w.v[reg][lane] = static_cast<u32>(bits);
      w.v[reg + 1][lane] = static_cast<u32>(bits >> 32);
    }
  }
}

// f64, 4x4x4, four blocks: a lane holds one element of A and B, row or column l % 4 of block
// l / 4 % 4, k = l / 16; D's row is l / 16.
void run_small_doubles(Wave& w, const Instruction& i) {
  const WideMode doubles(w);
  const auto pair = [&w](u32 reg, int lane) { return as_f64(w.v[reg][lane] | u64{w.v[reg + 1][lane]} << 32); };
  LaneArray low, high;
  const Operand& c = i.o[3];
  for (int l = 0; l < kLanes; ++l) {
    const int block = l / 4 % 4 * 4, row = l / 16, column = l % 4;
    double x = c.kind == Operand::Kind::Vector ? pair(c.index, l) : as_f64(scalar64(w, c));
    for (int k = 0; k < 4; ++k) x = std::fma(pair(i.o[1].index, 16 * k + block + row), pair(i.o[2].index, 16 * k + block + column), x);
    low.at[l] = static_cast<u32>(from_f64(x));
    high.at[l] = static_cast<u32>(from_f64(x) >> 32);
  }
  store_lanes(w.v[i.o[0].index], low.at, ~u64{0});
  store_lanes(w.v[i.o[0].index + 1], high.at, ~u64{0});
}

Element element_of(std::string_view text, const std::string& name) {
  if (text == "f32") return Element::F32;
  if (text == "xf32") return Element::Xf32;
  if (text == "f16") return Element::F16;
  if (text == "bf16") return Element::Bf16;
  if (text == "i8") return Element::I8;
  if (text == "fp8") return Element::Fp8;
  if (text == "bf8") return Element::Bf8;
  throw Error("'" + name + "' is not emulated");
}

// Reads the form off a name: v_mfma_f32_32x32x8_f16, v_mfma_f32_16x16x16bf16_1k,
// v_mfma_f32_16x16x32_fp8_bf8, v_mfma_f32_4x4x4_16b_f16.
void prepare(Instruction& i, Generation) {
  const std::string name = i.name();
  const bool sparse = name.compare(0, 9, "v_smfmac_") == 0;
  if (i.o[1].kind != Operand::Kind::Vector || i.o[2].kind != Operand::Kind::Vector) {
    throw Error("'" + name + "' takes its factors from vector registers alone");
  }
  if (name.compare(0, 22, "v_mfma_f64_16x16x4_f64") == 0 || name == "v_mfma_f64_16x16x4f64") {
    if (i.blgp || i.cbsz || i.abid) throw Error("'" + name + "' with cbsz, abid or negated operands is not emulated");
    i.run = run_doubles;
    return;
  }
  if (name.find("_4x4x4_4b_f64") != std::string::npos || name == "v_mfma_f64_4x4x4f64") {
    if (i.blgp || i.cbsz || i.abid) throw Error("'" + name + "' with cbsz, abid or blgp is not emulated");
    i.run = run_small_doubles;
    return;
  }
  const std::size_t x = name.find('x');
  if (x == std::string::npos) throw Error("'" + name + "' is not emulated");
  std::size_t begin = name.rfind('_', x) + 1;
  Form f;
  f.m = std::atoi(name.c_str() + begin);
  const std::size_t second = name.find('x', x + 1);
  char* end = nullptr;
  f.k = static_cast<int>(std::strtol(name.c_str() + second + 1, &end, 10));
  std::string rest = end;
  if (!rest.empty() && rest[0] == '_') rest = rest.substr(1);
  const std::size_t blocks = rest.find("b_");
  if (blocks != std::string::npos && blocks <= 2 && rest[0] >= '0' && rest[0] <= '9') rest = rest.substr(blocks + 2);
  if (rest.size() > 3 && rest.compare(rest.size() - 3, 3, "_1k") == 0) rest.resize(rest.size() - 3);
  if (rest == "f8f6f4") {
    static const Element kinds[] = {Element::Fp8, Element::Bf8, Element::Fp6, Element::Bf6, Element::Fp4};
    if (i.cbsz > 4 || i.blgp > 4) throw Error("'" + name + "' with elements of a reserved kind");
    f.a = kinds[i.cbsz];
    f.b = kinds[i.blgp];
    i.aux = pack(f);
    i.run = run_scaled;
    return;
  } else {
    const bool set = i.cbsz || i.abid;  // of indices, where there are some
    if ((set && !sparse) || i.blgp) throw Error("'" + name + "' with cbsz, abid or blgp is not emulated");
    const std::size_t split = rest.find('_');
    f.a = element_of(rest.substr(0, split), name);
    f.b = split == std::string::npos ? f.a : element_of(rest.substr(split + 1), name);
  }
  const bool known = (f.m == 4 || f.m == 16 || f.m == 32) && f.k >= 1 && f.k <= kDeepest && (f.k & (f.k - 1)) == 0;
  if (sparse) {
    if (!known || f.m == 4 || name.compare(0, 13, "v_smfmac_f32_") != 0) throw Error("'" + name + "' is not emulated");
    i.aux = pack(f);
    i.run = run_sparse_floats;
    return;
  }
  const bool floats = name.compare(0, 11, "v_mfma_f32_") == 0, integers = name.compare(0, 11, "v_mfma_i32_") == 0;
  if (!known || (!floats && !integers)) throw Error("'" + name + "' is not emulated");
  i.aux = pack(f);
  i.run = floats ? run_floats : run_integers;
}

}  // namespace

void define_matrix() {
  define_prefix("v_mfma_", run_floats, prepare, kPacked);
  define_prefix("v_smfmac_", run_sparse_floats, prepare, kPacked);
}

}  // namespace mgx
