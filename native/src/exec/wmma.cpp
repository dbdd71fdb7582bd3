// Matrix instructions of RDNA3 and RDNA4 in wave32: v_wmma, D[16x16] = A[16xK] B[Kx16] + C, and
// v_swmmac, D += A B where of each four elements of A two are held.
//
// RDNA3: lane l % 16 holds a whole row of A (column of B); both halves of the wave hold the same.
// A result register has rows 2r (lanes 0-15) and 2r + 1 (lanes 16-31).
// RDNA4: the lanes' halves hold different halves of K; register r has rows r and r + 8.
#include <algorithm>
#include <string_view>

#include "exec/define.h"
#include "exec/simd.h"

namespace mgx {
namespace {

enum class Element : u8 { F16, Bf16, Iu8, Iu4, Fp8, Bf8 };
enum class Result : u8 { F32, F16, Bf16, I32 };

constexpr int kSize = 16;
constexpr int kDeepest = 64;

struct Form {
  Element a, b;
  Result d;
  int k;
};
u16 pack(const Form& f) {
  return static_cast<u16>(static_cast<int>(f.a) | static_cast<int>(f.b) << 3 | static_cast<int>(f.d) << 6 | f.k << 8);
}
Form unpack(u16 aux) {
  return {static_cast<Element>(aux & 7), static_cast<Element>(aux >> 3 & 7), static_cast<Result>(aux >> 6 & 3), aux >> 8};
}

int bits_of(Element e) { return e == Element::F16 || e == Element::Bf16 ? 16 : e == Element::Iu4 ? 4 : 8; }

// Element k of row `row` as the raw bits of its register.
u32 raw_element(const Wave& w, u32 reg, Element e, int k_total, int row, int k) {
  const int bits = bits_of(e), per = 32 / bits;
  int lane = row;
  if (w.generation == Generation::Gfx12) {
    const int half = k_total / 2;
    lane += k / half * 16;
    k %= half;
  }
  return w.v[reg + static_cast<u32>(k / per)][lane] >> bits * (k % per) & ((1u << bits) - 1);
}

float float_element(u32 raw, Element e) {
  switch (e) {
    case Element::F16: return f32_of_f16(raw);
    case Element::Bf16: return f32_of_bf16(raw);
    case Element::Fp8: return f32_of_fp8(raw, false);
    default: return f32_of_bf8(raw, false);
  }
}

i32 integer_element(u32 raw, Element e, bool is_signed) {
  if (!is_signed) return static_cast<i32>(raw);
  return e == Element::Iu8 ? static_cast<i8>(raw) : static_cast<i32>(raw << 28) >> 28;
}

struct Place {
  int reg, lane, shift;
};
// Where D[row][column] stands; 16-bit results share registers.
Place place(const Wave& w, Result d, int row, int column, bool high) {
  const bool narrow = d == Result::F16 || d == Result::Bf16;
  if (w.generation == Generation::Gfx12) {
    const int r = row % 8, lane = column + row / 8 * 16;
    return narrow ? Place{r / 2, lane, 16 * (r % 2)} : Place{r, lane, 0};
  }
  return {row / 2, column + row % 2 * 16, narrow && high ? 16 : 0};
}

// 32 elements of 16 bits along K (of v_swmmac): a half of the wave holds two runs of 8, which are
// 16 apart (AMD's matrix instruction calculator). This exchanges the middle runs, both ways.
bool is_interleaved(Element e, int k_total) { return k_total == 32 && bits_of(e) == 16; }
int interleaved(int k) { return (k & ~24) | (k & 8) << 1 | (k & 16) >> 1; }

// A factor as [k][row]; of a sparse instruction's A two of each four elements are held, and which
// two in a register of indices of 2 bits, half of it where a key says so.
template <class T, class F>
void unpack_dense(const Wave& w, u32 reg, Element e, int k_total, F convert, T (*to)[kSize]) {
  for (int k = 0; k < k_total; ++k) {
    const int place = is_interleaved(e, k_total) ? interleaved(k) : k;
    for (int row = 0; row < kSize; ++row) to[k][row] = convert(raw_element(w, reg, e, k_total, row, place));
  }
}
template <class T, class F>
void unpack_sparse(const Wave& w, const Instruction& i, Element e, int k_total, F convert, T (*to)[kSize]) {
  const int packed = k_total / 2, held = packed / 2;
  const int first = held == 8 && (i.opsel & 1) ? 16 : 0;
  for (int k = 0; k < k_total; ++k) std::fill(to[k], to[k] + kSize, T{});
  for (int k = 0; k < packed; ++k) {
    for (int row = 0; row < kSize; ++row) {
      const u32 index = w.v[i.o[3].index][row + k / held * 16] >> (first + 2 * (k % held)) & 3;
      const int dense = is_interleaved(e, k_total) ? interleaved(k / 2 * 4) : k / 2 * 4;
      to[dense + static_cast<int>(index)][row] = convert(raw_element(w, i.o[1].index, e, packed, row, k));
    }
  }
}

template <bool Sparse>
void run_floats(Wave& w, const Instruction& i) {
  const Form f = unpack(i.aux);
  float a[kDeepest][kSize], b[kDeepest][kSize], sum[kSize][kSize];
  const auto left = [&f](u32 raw) { return float_element(raw, f.a); };
  if (Sparse) unpack_sparse(w, i, f.a, f.k, left, a);
  else unpack_dense(w, i.o[1].index, f.a, f.k, left, a);
  unpack_dense(w, i.o[2].index, f.b, f.k, [&f](u32 raw) { return float_element(raw, f.b); }, b);
  const Operand& c = Sparse ? i.o[0] : i.o[3];
  const bool high = !Sparse && (i.opsel >> 2 & 1);
  const bool negate = !Sparse && (i.neglo >> 2 & 1), magnitude = !Sparse && (i.neghi >> 2 & 1);
  for (int row = 0; row < kSize; ++row) {
    for (int n = 0; n < kSize; ++n) {
      const Place p = place(w, f.d, row, n, high);
      float x;
      if (c.kind != Operand::Kind::Vector) {
        x = f.d == Result::F32 ? as_f32(c.bits) : f.d == Result::F16 ? f32_of_f16(c.bits16) : f32_of_bf16(c.bits >> 16);
      } else {
        const u32 raw = w.v[c.index + p.reg][p.lane] >> p.shift;
        x = f.d == Result::F32 ? as_f32(raw) : f.d == Result::F16 ? f32_of_f16(raw & 0xffff) : f32_of_bf16(raw & 0xffff);
      }
      if (magnitude) x = std::fabs(x);
      sum[row][n] = negate ? -x : x;
    }
  }
  for (int row = 0; row < kSize; ++row) {
    Floats s = Floats::load(sum[row]);
    for (int k = 0; k < f.k; ++k) s.add_product(Floats::all(a[k][row]), Floats::load(b[k]));
    s.store(sum[row]);
  }
  for (int row = 0; row < kSize; ++row) {
    for (int n = 0; n < kSize; ++n) {
      const Place p = place(w, f.d, row, n, high);
      u32& d = w.v[i.o[0].index + p.reg][p.lane];
      if (f.d == Result::F32) {
        d = from_f32(sum[row][n]);
      } else {
        const u32 x = f.d == Result::F16 ? f16_of_f32(sum[row][n]) : bf16_of_f32(sum[row][n]);
        d = (d & ~(0xffffu << p.shift)) | x << p.shift;
      }
    }
  }
}

template <bool Sparse>
void run_integers(Wave& w, const Instruction& i) {
  const Form f = unpack(i.aux);
  i32 a[kDeepest][kSize], b[kDeepest][kSize], sum[kSize][kSize];
  const auto left = [&](u32 raw) { return integer_element(raw, f.a, i.neglo & 1); };
  if (Sparse) unpack_sparse(w, i, f.a, f.k, left, a);
  else unpack_dense(w, i.o[1].index, f.a, f.k, left, a);
  unpack_dense(w, i.o[2].index, f.b, f.k, [&](u32 raw) { return integer_element(raw, f.b, i.neglo >> 1 & 1); }, b);
  const Operand& c = Sparse ? i.o[0] : i.o[3];
  for (int row = 0; row < kSize; ++row) {
    for (int n = 0; n < kSize; ++n) {
      const Place p = place(w, f.d, row, n, false);
      sum[row][n] = static_cast<i32>(c.kind == Operand::Kind::Vector ? w.v[c.index + p.reg][p.lane] : c.bits);
    }
  }
  for (int row = 0; row < kSize; ++row) {
    for (int k = 0; k < f.k; ++k) {
      for (int n = 0; n < kSize; ++n) sum[row][n] = static_cast<i32>(static_cast<u32>(sum[row][n]) + static_cast<u32>(a[k][row] * b[k][n]));
    }
  }
  for (int row = 0; row < kSize; ++row) {
    for (int n = 0; n < kSize; ++n) {
      const Place p = place(w, f.d, row, n, false);
      w.v[i.o[0].index + p.reg][p.lane] = static_cast<u32>(sum[row][n]);
    }
  }
}

Element element_of(std::string_view text, const std::string& name) {
  if (text == "f16") return Element::F16;
  if (text == "bf16") return Element::Bf16;
  if (text == "iu8") return Element::Iu8;
  if (text == "iu4") return Element::Iu4;
  if (text == "fp8") return Element::Fp8;
  if (text == "bf8") return Element::Bf8;
  throw Error("'" + name + "' is not emulated");
}

// v_wmma_f32_16x16x16_f16, v_wmma_i32_16x16x16_iu8, v_wmma_f32_16x16x16_fp8_bf8
void prepare(Instruction& i, Generation g) {
  const std::string name = i.name();
  const std::size_t at = name.find("_16x16x");
  if (at == std::string::npos) throw Error("'" + name + "' is not emulated");
  if (i.o[1].kind != Operand::Kind::Vector || i.o[2].kind != Operand::Kind::Vector) {
    throw Error("'" + name + "' takes its factors from vector registers alone");
  }
  const bool sparse = name.compare(0, 9, "v_swmmac_") == 0;
  const std::size_t start = sparse ? 9 : 7;
  const std::string result = name.substr(start, at - start);
  Form f;
  f.d = result == "f32" ? Result::F32 : result == "f16" ? Result::F16 : result == "bf16" ? Result::Bf16 : Result::I32;
  f.k = std::atoi(name.c_str() + at + 7);
  const std::string rest = name.substr(name.find('_', at + 7) + 1);
  const std::size_t split = rest.find('_');
  f.a = element_of(rest.substr(0, split), name);
  f.b = split == std::string::npos ? f.a : element_of(rest.substr(split + 1), name);
  if (f.k != 16 && f.k != 32 && !(sparse && f.k == 64)) throw Error("'" + name + "' is not emulated");
  const bool floats = f.d != Result::I32;
  const bool halves = f.d == Result::F16 || f.d == Result::Bf16;
  if (!sparse && i.opsel != 0 && !(g == Generation::Gfx11 && halves && i.opsel == 4)) throw Error("'" + name + "' with op_sel is not emulated");
  if (i.opselhi != 7) throw Error("'" + name + "' with op_sel_hi is not emulated");  // no assembler writes it
  if (!floats && (i.neghi != 0 || i.neglo > 3)) throw Error("'" + name + "' with neg_hi is not emulated");
  if (floats && ((i.neglo & 3) || (i.neghi & 3))) throw Error("'" + name + "' with negated factors is not emulated");
  if (i.clamp) throw Error("'" + name + "' with clamp is not emulated");
  if (sparse && i.opsel > (f.k == 64 ? 0 : 1)) throw Error("'" + name + "' with op_sel is not emulated");
  if (sparse && floats && (i.neglo || i.neghi)) throw Error("'" + name + "' with negated factors is not emulated");
  i.aux = pack(f);
  if (sparse) i.run = floats ? run_floats<true> : run_integers<true>;
  else i.run = floats ? run_floats<false> : run_integers<false>;
}

}  // namespace

// The prepare looks at every form.
void define_wmma() {
  define_prefix("v_wmma_", run_floats<false>, prepare, kPacked | kClamp);
  define_prefix("v_swmmac_", run_floats<true>, prepare, kPacked | kClamp);
}

}  // namespace mgx
