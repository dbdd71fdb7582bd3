// The MessagePack reader.
#include "loader/msgpack.h"

namespace mgx {
namespace {

constexpr int kDepth = 64;
constexpr u32 kValues = 1u << 20;

class Parser {
 public:
  explicit Parser(const Reader& data) : data_(data) {}

  Value value(int depth) {
    if (depth > kDepth || ++count_ > kValues) fail("it is nested too deeply or too large");
    const u8 tag = take<u8>();
    if (tag < 0x80) return integer(tag);
    if (tag >= 0xe0) return integer(static_cast<i8>(tag));
    if (tag < 0x90) return map(tag & 15, depth);
    if (tag < 0xa0) return list(tag & 15, depth);
    if (tag < 0xc0) return text(tag & 31);
    switch (tag) {
      case 0xc0: return {};
      case 0xc2: case 0xc3: { Value v = integer(tag & 1); v.kind = Value::Kind::Bool; return v; }
      case 0xc4: case 0xd9: return text(take<u8>());
      case 0xc5: case 0xda: return text(big<u16>());
      case 0xc6: case 0xdb: return text(big<u32>());
      case 0xca: return real(as_f32(big<u32>()));
      case 0xcb: return real(as_f64(big<u64>()));
      case 0xcc: return integer(take<u8>());
      case 0xcd: return integer(big<u16>());
      case 0xce: return integer(big<u32>());
      case 0xcf: return integer(static_cast<i64>(big<u64>()));
      case 0xd0: return integer(static_cast<i8>(take<u8>()));
      case 0xd1: return integer(static_cast<i16>(big<u16>()));
      case 0xd2: return integer(static_cast<i32>(big<u32>()));
      case 0xd3: return integer(static_cast<i64>(big<u64>()));
      case 0xdc: return list(big<u16>(), depth);
      case 0xdd: return list(big<u32>(), depth);
      case 0xde: return map(big<u16>(), depth);
      case 0xdf: return map(big<u32>(), depth);
      default: fail("it has a value of an unknown type");
    }
  }

 private:
  [[noreturn]] static void fail(const char* why) {
    throw Error(std::string("the kernel metadata is damaged: ") + why);
  }

  template <class T>
  T take() {
    T v = data_.get<T>(at_, "the kernel metadata");
    at_ += sizeof(T);
    return v;
  }

  template <class T>
  T big() {
    T v = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i) v = static_cast<T>(v << 8 | take<u8>());
    return v;
  }

  static Value integer(i64 n) {
    Value v;
    v.kind = Value::Kind::Int;
    v.integer = n;
    return v;
  }

  static Value real(double x) {
    Value v;
    v.kind = Value::Kind::Float;
    v.real = x;
    return v;
  }

  Value text(u32 size) {
    Reader part = data_.slice(at_, size, "the kernel metadata");
    at_ += size;
    Value v;
    v.kind = Value::Kind::Text;
    v.text.assign(reinterpret_cast<const char*>(part.data()), size);
    return v;
  }

  Value list(u32 size, int depth) {
    Value v;
    v.kind = Value::Kind::List;
    for (u32 i = 0; i < size; ++i) v.list.push_back(value(depth + 1));
    return v;
  }

  Value map(u32 size, int depth) {
    Value v;
    v.kind = Value::Kind::Map;
    for (u32 i = 0; i < size; ++i) {
      Value key = value(depth + 1);
      if (key.kind != Value::Kind::Text) fail("a key is not text");
      v.map[key.text] = value(depth + 1);
    }
    return v;
  }

  const Reader& data_;
  u64 at_ = 0;
  u32 count_ = 0;
};

}  // namespace

const Value* Value::find(const std::string& key) const {
  auto it = map.find(key);
  return it == map.end() ? nullptr : &it->second;
}

i64 Value::number(const std::string& key, i64 otherwise) const {
  const Value* v = find(key);
  return v != nullptr && (v->kind == Kind::Int || v->kind == Kind::Bool) ? v->integer : otherwise;
}

std::string Value::word(const std::string& key) const {
  const Value* v = find(key);
  return v != nullptr ? v->text : std::string();
}

Value read_msgpack(const Reader& data) { return Parser(data).value(0); }

}  // namespace mgx
