// The part of MessagePack that AMD's kernel metadata uses, read with limits on depth and count.
#pragma once

#include <map>
#include <vector>

#include "loader/reader.h"

namespace mgx {

struct Value {
  enum class Kind { Nil, Bool, Int, Float, Text, List, Map };
  Kind kind = Kind::Nil;
  i64 integer = 0;  // also of Bool
  double real = 0;
  std::string text;
  std::vector<Value> list;
  std::map<std::string, Value> map;

  // The entry of a map, or nullptr.
  const Value* find(const std::string& key) const;
  // The integer entry of a map, or a default.
  i64 number(const std::string& key, i64 otherwise = 0) const;
  // The text entry of a map, or "".
  std::string word(const std::string& key) const;
};

// Errors: damaged data, more than 64 levels or 1 << 20 values.
Value read_msgpack(const Reader& data);

}  // namespace mgx
