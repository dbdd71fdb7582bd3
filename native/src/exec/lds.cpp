// Local data share: reads, writes, exchanges between lanes.
#include "check/checker.h"
#include "exec/define.h"
#include "exec/narrow.h"

namespace mgx {
namespace {

// Reads past the end give 0, writes there are dropped, as on hardware.
inline void fetch(const Wave& w, u32 address, void* to, u32 bytes) {
  note_lds(w, address, bytes, Access::Read);
  if (u64{address} + bytes > w.lds_size) {
    std::memset(to, 0, bytes);
  } else {
    std::memcpy(to, w.lds + address, bytes);
  }
}
inline void put(Wave& w, u32 address, const void* from, u32 bytes) {
  note_lds(w, address, bytes, Access::Write, from);
  if (u64{address} + bytes <= w.lds_size) std::memcpy(w.lds + address, from, bytes);
}

template <int Words>
void read(Wave& w, const Instruction& i) {
  u32 a[kLanes];
  std::memcpy(a, w.v[i.of('a').index], sizeof a);
  u32* d = w.v[i.of('d').index];
  const u32 offset = static_cast<u32>(i.offset);
  for (u64 left = w.exec; left != 0; left &= left - 1) {
    const int l = __builtin_ctzll(left);
    u32 x[Words];
    fetch(w, a[l] + offset, x, 4 * Words);
    for (int k = 0; k < Words; ++k) d[k * kLanes + l] = x[k];
  }
}

template <int Words, int Stride>
void read2(Wave& w, const Instruction& i) {
  u32 a[kLanes];
  std::memcpy(a, w.v[i.o[1].index], sizeof a);
  u32* d = w.v[i.o[0].index];
  for (u64 left = w.exec; left != 0; left &= left - 1) {
    const int l = __builtin_ctzll(left);
    u32 x[2 * Words];
    fetch(w, a[l] + i.offset0 * Stride, x, 4 * Words);
    fetch(w, a[l] + i.offset1 * Stride, x + Words, 4 * Words);
    for (int k = 0; k < 2 * Words; ++k) d[k * kLanes + l] = x[k];
  }
}

template <int Words>
void write_at(Wave& w, const Instruction& i, const Operand& data, u32 offset) {
  const u32* a = w.v[i.o[0].index];
  const u32* d = w.v[data.index];
  for (u64 left = w.exec; left != 0; left &= left - 1) {
    const int l = __builtin_ctzll(left);
    u32 x[Words];
    for (int k = 0; k < Words; ++k) x[k] = d[k * kLanes + l];
    put(w, a[l] + offset, x, 4 * Words);
  }
}

template <int Words>
void write(Wave& w, const Instruction& i) {
  write_at<Words>(w, i, i.o[1], static_cast<u32>(i.offset));
}

template <int Words, int Stride>
void write2(Wave& w, const Instruction& i) {
  write_at<Words>(w, i, i.o[1], i.offset0 * Stride);
  write_at<Words>(w, i, i.o[2], i.offset1 * Stride);
}

template <int Bytes, Into Form, bool Signed>
void read_narrow(Wave& w, const Instruction& i) {
  u32 a[kLanes];
  std::memcpy(a, w.v[i.o[1].index], sizeof a);
  u32* d = w.v[i.o[0].index];
  for (u64 left = w.exec; left != 0; left &= left - 1) {
    const int l = __builtin_ctzll(left);
    u32 raw = 0;
    fetch(w, a[l] + static_cast<u32>(i.offset), &raw, Bytes);
    d[l] = placed<Bytes, Form, Signed>(raw, d[l]);
  }
}

template <int Bytes, int Shift>
void write_narrow(Wave& w, const Instruction& i) {
  const u32 *a = w.v[i.o[0].index], *d = w.v[i.o[1].index];
  for (u64 left = w.exec; left != 0; left &= left - 1) {
    const int l = __builtin_ctzll(left);
    const u32 x = d[l] >> Shift;
    put(w, a[l] + static_cast<u32>(i.offset), &x, Bytes);
  }
}

// Each lane takes the value of the lane that its address names; of an inactive one 0.
void permute_backward(Wave& w, const Instruction& i) {
  const u32 *a = w.v[i.o[1].index], *d = w.v[i.o[2].index];
  const int mask = w.wave32 ? 31 : 63;
  LaneArray r;
  for (int l = 0; l < kLanes; ++l) {
    const int s = static_cast<int>((a[l] + static_cast<u32>(i.offset)) >> 2) & mask;
    r.at[l] = w.exec >> s & 1 ? d[s] : 0;
  }
  store_lanes(w.v[i.o[0].index], r.at, w.exec);
}

// The same of lanes that are switched off too.
void permute_backward_all(Wave& w, const Instruction& i) {
  const u32 *a = w.v[i.o[1].index], *d = w.v[i.o[2].index];
  LaneArray r;
  for (int l = 0; l < kLanes; ++l) r.at[l] = d[(a[l] + static_cast<u32>(i.offset)) >> 2 & (w.wave32 ? 31 : 63)];
  store_lanes(w.v[i.o[0].index], r.at, w.exec);
}

// The address is m0, the offset and the lane's own word.
u32 own_word(const Wave& w, const Instruction& i, int l) {
  return (w.s[kM0] & 0xffff) + static_cast<u32>(i.offset) + 4 * static_cast<u32>(l);
}
void read_by_lane(Wave& w, const Instruction& i) {
  for (u64 left = w.exec; left != 0; left &= left - 1) {
    const int l = __builtin_ctzll(left);
    fetch(w, own_word(w, i, l), &w.v[i.o[0].index][l], 4);
  }
}
void write_by_lane(Wave& w, const Instruction& i) {
  for (u64 left = w.exec; left != 0; left &= left - 1) {
    const int l = __builtin_ctzll(left);
    put(w, own_word(w, i, l), &w.v[i.o[0].index][l], 4);
  }
}

void permute_forward(Wave& w, const Instruction& i) {
  const u32 *a = w.v[i.o[1].index], *d = w.v[i.o[2].index];
  const int mask = w.wave32 ? 31 : 63;
  LaneArray r = {};
  for (int l = 0; l < kLanes; ++l) {
    if (w.exec >> l & 1) r.at[(a[l] + static_cast<u32>(i.offset)) >> 2 & static_cast<u32>(mask)] = d[l];
  }
  store_lanes(w.v[i.o[0].index], r.at, w.exec);
}

void swizzle(Wave& w, const Instruction& i) {
  const u32* a = w.v[i.o[1].index];
  const int o = i.offset & 0xffff;
  LaneArray r;
  for (int l = 0; l < kLanes; ++l) {
    int s;
    if (o & 0x8000) {
      s = (l & ~3) | (o >> 2 * (l & 3) & 3);
    } else {
      const int at = l & 31;
      s = (l & 32) | (((at & (o & 31)) | (o >> 5 & 31)) ^ (o >> 10 & 31));
    }
    r.at[l] = w.exec >> s & 1 ? a[s] : 0;
  }
  store_lanes(w.v[i.o[0].index], r.at, w.exec);
}

// gfx950: 16 lanes read 16 blocks of 8 bytes and get them transposed, elements of Bits.
template <int Bits>
void read_transposed(Wave& w, const Instruction& i) {
  const u32* a = w.v[i.o[1].index];
  u8 data[kLanes][8];
  for (int l = 0; l < kLanes; ++l) fetch(w, a[l] + static_cast<u32>(i.offset), data[l], 8);
  LaneArray r[2];
  constexpr int kBytes = Bits / 8, kCount = 8 / kBytes;  // elements in a lane
  for (int l = 0; l < kLanes; ++l) {
    const int group = l & ~15, at = l & 15;
    u8 out[8];
    for (int k = 0; k < kCount; ++k) {
      const int from = group + at / kCount + (16 / kCount) * k;
      std::memcpy(out + k * kBytes, data[from] + (at % kCount) * kBytes, kBytes);
    }
    std::memcpy(&r[0].at[l], out, 4);
    std::memcpy(&r[1].at[l], out + 4, 4);
  }
  store_lanes(w.v[i.o[0].index], r[0].at, w.exec);
  store_lanes(w.v[i.o[0].index + 1], r[1].at, w.exec);
}

}  // namespace

void define_lds() {
  define("ds_nop", [](Wave&, const Instruction&) {});
  define("ds_read_b32", read<1>, nullptr, kPlain, "da");
  define("ds_read_b64", read<2>, nullptr, kPlain, "da");
  define("ds_read_b96", read<3>, nullptr, kPlain, "da");
  define("ds_read_b128", read<4>, nullptr, kPlain, "da");
  define("ds_read2_b32", read2<1, 4>, nullptr, kPlain, "da");
  define("ds_read2_b64", read2<2, 8>, nullptr, kPlain, "da");
  define("ds_read2st64_b32", read2<1, 256>, nullptr, kPlain, "da");
  define("ds_read2st64_b64", read2<2, 512>, nullptr, kPlain, "da");
  define("ds_write_b32", write<1>, nullptr, kPlain, "ax");
  define("ds_write_b64", write<2>, nullptr, kPlain, "ax");
  define("ds_write_b96", write<3>, nullptr, kPlain, "ax");
  define("ds_write_b128", write<4>, nullptr, kPlain, "ax");
  define("ds_write2_b32", write2<1, 4>, nullptr, kPlain, "axy");
  define("ds_write2_b64", write2<2, 8>, nullptr, kPlain, "axy");
  define("ds_write2st64_b32", write2<1, 256>, nullptr, kPlain, "axy");
  define("ds_write2st64_b64", write2<2, 512>, nullptr, kPlain, "axy");
  define("ds_write_b8", write_narrow<1, 0>, nullptr, kPlain, "ax");
  define("ds_write_b16", write_narrow<2, 0>, nullptr, kPlain, "ax");
  define("ds_write_b8_d16_hi", write_narrow<1, 16>, nullptr, kPlain, "ax");
  define("ds_write_b16_d16_hi", write_narrow<2, 16>, nullptr, kPlain, "ax");
#define NARROW(vmem, name, bytes, form, sign) define("ds_read_" name, read_narrow<bytes, Into::form, sign>, nullptr, kPlain, "da");
  MGX_NARROW_LOADS(NARROW)
#undef NARROW
  define("ds_bpermute_b32", permute_backward, nullptr, kPlain, "dax");
  define("ds_permute_b32", permute_forward, nullptr, kPlain, "dax");
  define("ds_swizzle_b32", swizzle, nullptr, kPlain, "da");
  define("ds_bpermute_fi_b32", permute_backward_all, nullptr, kPlain, "dax");
  define("ds_read_addtid_b32", read_by_lane, nullptr, kPlain, "d");
  define("ds_write_addtid_b32", write_by_lane, nullptr, kPlain, "x");
  define("ds_read_b64_tr_b16", read_transposed<16>, nullptr, kPlain, "da");
  define("ds_read_b64_tr_b8", read_transposed<8>, nullptr, kPlain, "da");
}

}  // namespace mgx
