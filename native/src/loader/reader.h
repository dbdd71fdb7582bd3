// Bounds-checked reading of little-endian data that may be damaged or hostile.
#pragma once

#include <string_view>

#include "bits.h"

namespace mgx {

class Reader {
 public:
  Reader(const u8* data, std::size_t size) : data_(data), size_(size) {}

  std::size_t size() const { return size_; }

  // The bytes [offset, offset + count). Errors: outside the data.
  Reader slice(u64 offset, u64 count, const char* what) const {
    if (offset > size_ || count > size_ - offset) {
      throw Error(std::string("the code object is damaged: ") + what + " is outside the file");
    }
    return {data_ + offset, static_cast<std::size_t>(count)};
  }

  template <class T>
  T get(u64 offset, const char* what) const {
    T value;
    std::memcpy(&value, slice(offset, sizeof(T), what).data_, sizeof(T));
    return value;
  }

  // The text that ends with a zero byte at or before the end of the data.
  std::string_view text(u64 offset, const char* what) const {
    Reader rest = slice(offset, offset <= size_ ? size_ - offset : 0, what);
    const void* end = std::memchr(rest.data_, 0, rest.size_);
    if (end == nullptr) throw Error(std::string("the code object is damaged: ") + what + " does not end");
    return {reinterpret_cast<const char*>(rest.data_),
            static_cast<std::size_t>(static_cast<const u8*>(end) - rest.data_)};
  }

  const u8* data() const { return data_; }

 private:
  const u8* data_;
  std::size_t size_;
};

}  // namespace mgx
