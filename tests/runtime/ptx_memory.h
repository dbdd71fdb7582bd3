// Instructions of PTX that read and write memory, and those that lanes of a warp do together.
#pragma once
#include <string>
#include <vector>

#include "ptx_run.h"

namespace ptx {

enum class Access { kNone, kRead, kWrite };

// What of memory an instruction names: lanes' addresses become pointers of the host.
struct Place {
  std::string space;  // global, shared, local, param, const; "" where the address says
  int reg = -1;
  std::int64_t offset = 0;
  Check check;

  char* at(Warp& w, int lane, std::size_t size, Access access) const {
    const Address a = (reg >= 0 ? w.lanes(reg)[lane] : 0) + offset;
    if (a % size != 0) throw Fault(kMisaligned, "address " + std::to_string(a) + " is no multiple of " + std::to_string(size));
    if (space == "shared") {
      char* found = inside(w.group->shared, a, size);
      if (access != Access::kNone) w.group->use(w.number, a, size, access == Access::kWrite);
      return found;
    }
    if (space == "local") return inside(w.local, a, size, std::size_t(lane) * (w.local.size() / kLanes));
    if (space == "param") return const_cast<char*>(w.group->parameters) + a;
    if (space != "const") check(a, size);
    return reinterpret_cast<char*>(a);
  }

 private:
  static char* inside(std::vector<char>& memory, Address a, std::size_t size, std::size_t base = 0) {
    if (base + a + size > memory.size())
      throw Fault(kIllegalAddress, std::to_string(a + size) + " bytes of shared or local memory, it has " + std::to_string(memory.size()));
    return memory.data() + base + a;
  }
};

using Run = std::function<void(Warp&, std::uint32_t)>;

template <class T>
Run load(const Place& place, const std::vector<int>& to) {
  return [=](Warp& w, std::uint32_t mask) {
    each(mask, [&](int lane) {
      const char* from = place.at(w, lane, sizeof(T) * to.size(), Access::kRead);
      for (std::size_t i = 0; i < to.size(); ++i) {
        T value;
        std::memcpy(&value, from + i * sizeof(T), sizeof(T));
        if constexpr (std::is_integral_v<T> && std::is_signed_v<T>) w.set(to[i], lane, static_cast<std::int64_t>(value));
        else w.set(to[i], lane, value);
      }
    });
  };
}

template <class T>
Run store(const Place& place, const std::vector<int>& from) {
  return [=](Warp& w, std::uint32_t mask) {
    each(mask, [&](int lane) {
      T values[8];
      for (std::size_t i = 0; i < from.size(); ++i) values[i] = w.get<T>(from[i], lane);
      const std::size_t size = sizeof(T) * from.size();
      char* to = place.at(w, lane, size, Access::kNone);
      if (std::memcmp(to, values, size) == 0) return;  // several warps may write the same
      place.at(w, lane, size, Access::kWrite);
      std::memcpy(to, values, size);
    });
  };
}

// Atomic operations; the lanes take turns.
template <class T>
Run atomic(const Place& place, const std::string& kind, int to, std::vector<int> from) {
  return [=](Warp& w, std::uint32_t mask) {
    each(mask, [&](int lane) {
      char* at = place.at(w, lane, sizeof(T), Access::kWrite);
      T old;
      std::memcpy(&old, at, sizeof old);
      const T b = w.get<T>(from[0], lane);
      T now = b;
      if constexpr (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) {
        if (kind == "add") now = old + b;
        else if (kind == "max") now = larger(old, b, false);
        else if (kind == "min") now = smaller(old, b, false);
        else if (kind == "cas") now = old == b ? w.get<T>(from[1], lane) : old;
        if constexpr (std::is_integral_v<T>) {
          if (kind == "and") now = old & b;
          else if (kind == "or") now = old | b;
          else if (kind == "xor") now = old ^ b;
        }
      }
      std::memcpy(at, &now, sizeof now);
      if (to >= 0) w.set(to, lane, old);
    });
  };
}

// cp.async: 4 to 16 bytes to shared memory, of which `given` are read and the others are 0.
inline Run copy_async(const Place& to, const Place& from, std::uint32_t size, int given) {
  return [=](Warp& w, std::uint32_t mask) {
    each(mask, [&](int lane) {
      const std::uint32_t some = given >= 0 ? std::min(w.get<std::uint32_t>(given, lane), size) : size;
      const Address at = static_cast<Address>(to.at(w, lane, size, Access::kWrite) - w.group->shared.data());
      const Address source = w.lanes(from.reg)[lane] + from.offset;
      if (source % size != 0) throw Fault(kMisaligned, "a copy from " + std::to_string(source));
      if (some != 0) from.check(source, some);
      w.begun.push_back({at, source, size, some});
    });
  };
}

// Values of other lanes.
inline Run shuffle(const std::string& kind, int to, int valid, int value, int by, int clamp) {
  return [=](Warp& w, std::uint32_t mask) {
    std::uint32_t old[kLanes];
    for (int lane = 0; lane < kLanes; ++lane) old[lane] = w.get<std::uint32_t>(value, lane);
    each(mask, [&](int lane) {
      const int b = w.get<std::uint32_t>(by, lane) & 31, c = w.get<std::uint32_t>(clamp, lane);
      const int segment = (c >> 8) & 31, most = (lane & segment) | ((c & 31) & ~segment), least = lane & segment;
      int j = lane;
      bool good = true;
      if (kind == "up") good = (j = lane - b) >= most;
      else if (kind == "down") good = (j = lane + b) <= most;
      else if (kind == "bfly") good = (j = lane ^ b) <= most;
      else good = (j = least | (b & ~segment)) <= most;
      if (!good) j = lane;
      if ((mask >> j & 1) == 0) throw Fault(kFailed, "a shuffle reads a lane that takes no part");
      w.set(to, lane, old[j]);
      if (valid >= 0) w.set(valid, lane, std::uint64_t{good});
    });
  };
}

// Four (or one, two) matrices of 8 x 8 elements of 16 bits, whose rows lanes name.
inline Run load_matrix(const Place& from, const std::vector<int>& to, bool is_turned) {
  return [=](Warp& w, std::uint32_t) {
    std::vector<std::uint16_t> all(to.size() * 64);
    for (std::size_t i = 0; i < to.size() * 8; ++i) std::memcpy(&all[i * 8], from.at(w, static_cast<int>(i), 16, Access::kRead), 16);
    for (std::size_t m = 0; m < to.size(); ++m)
      for (int lane = 0; lane < kLanes; ++lane) {
        const int row = lane / 4, column = lane % 4 * 2;
        const std::uint16_t* at = &all[m * 64];
        const std::uint32_t a = is_turned ? at[column * 8 + row] : at[row * 8 + column];
        const std::uint32_t b = is_turned ? at[(column + 1) * 8 + row] : at[row * 8 + column + 1];
        w.set(to[m], lane, a | b << 16);
      }
  };
}

// mma.sync of 16 x 8 x depth: d = a b + c, in registers of 32 bits that hold `4 / size` elements.
struct Multiply {
  std::vector<int> d, a, b, c;
  std::string kind;  // of a and b
  bool is_half = false, is_integer = false;

  static float value(const std::string& kind, std::uint32_t raw, int i) {
    if (kind == "f16") return static_cast<float>(bits<_Float16>(static_cast<std::uint16_t>(raw >> 16 * i)));
    if (kind == "bf16") return bits<float>(raw >> 16 * i << 16);
    const auto byte = static_cast<std::uint8_t>(raw >> 8 * i);
    if (kind == "e4m3") return of_e4m3(byte);
    if (kind == "e5m2") return of_e5m2(byte);
    if (kind == "s8") return static_cast<std::int8_t>(byte);
    if (kind == "u8") return byte;
    return bits<float>(raw);  // tf32
  }

  void operator()(Warp& w, std::uint32_t) const {
    const int each = kind == "f16" || kind == "bf16" ? 2 : kind == "tf32" ? 1 : 4;
    const int depth = static_cast<int>(b.size()) * 4 * each;
    float x[16][64], y[8][64];
    for (int lane = 0; lane < kLanes; ++lane)
      for (int i = 0; i < each; ++i) {
        const int row = lane / 4, k = lane % 4 * each + i;
        for (std::size_t n = 0; n < a.size(); ++n)
          x[row + n % 2 * 8][k + n / 2 * 4 * each] = value(kind, w.get<std::uint32_t>(a[n], lane), i);
        for (std::size_t n = 0; n < b.size(); ++n) y[row][k + n * 4 * each] = value(kind, w.get<std::uint32_t>(b[n], lane), i);
      }
    for (int lane = 0; lane < kLanes; ++lane)
      for (int n = 0; n < 4; ++n) {
        const int row = lane / 4 + n / 2 * 8, column = lane % 4 * 2 + n % 2;
        double sum = 0;
        for (int k = 0; k < depth; ++k) sum += static_cast<double>(x[row][k]) * y[column][k];
        if (is_integer) {
          w.set(d[n], lane, static_cast<std::int32_t>(sum) + w.get<std::int32_t>(c[n], lane));
        } else if (is_half) {
          const auto before = w.get<std::uint32_t>(c[n / 2], lane);
          sum += value("f16", before, n % 2);
          const std::uint32_t mine = Half(static_cast<float>(sum)).raw, other = w.get<std::uint32_t>(d[n / 2], lane);
          w.set(d[n / 2], lane, n % 2 == 0 ? mine : (other & 0xffff) | mine << 16);
        } else w.set(d[n], lane, static_cast<float>(sum + w.get<float>(c[n], lane)));
      }
  }
};

}  // namespace ptx
