// A reader of PTX: kernels, their parameters and shared memory, and instructions as words.
#pragma once
#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace ptx {

struct Fault : std::runtime_error {
  int status;
  Fault(int status, const std::string& what) : std::runtime_error(what), status(status) {}
};
constexpr int kInvalidPtx = 218;
constexpr int kDynamic = -1;  // the offset of what begins behind all shared memory of fixed size

// One instruction: `@%p1 ld.global.v2.b32 {%r1, %r2}, [%rd1+8]`. An operand in braces is several.
struct Statement {
  std::string guard;  // register of the predicate, "" where there is none
  bool is_negated = false;
  std::vector<std::string> name;                   // parts between points
  std::vector<std::vector<std::string>> operands;  // registers, numbers, names; [a+8] is `[a`, `8`
  bool has(const char* part) const {
    for (const auto& n : name)
      if (n == part) return true;
    return false;
  }
  std::string text() const {
    std::string found;
    for (const auto& n : name) found += (found.empty() ? "" : ".") + n;
    return found;
  }
};

struct Kernel {
  std::string name;
  std::vector<int> sizes;              // of the parameters, in bytes
  std::map<std::string, int> offsets;  // of the parameters, and of names in shared and local memory
  int bytes = 0, shared = 0, local = 0;
  std::vector<Statement> code;
  std::map<std::string, int> labels;
};

struct Data {  // constants and variables of a module
  std::unique_ptr<char[]> bytes;
  std::size_t size = 0;
};

struct Module {
  std::map<std::string, Kernel> kernels;
  std::map<std::string, Data> data;
  std::map<std::string, int> shared;  // offsets of names in shared memory
};

class Reader {
 public:
  Reader(const char* text, Module& out) : out_(out) {
    for (const char* p = text; *p != 0; ++p) {  // no comments
      if (p[0] == '/' && p[1] == '/') {
        while (*p != 0 && *p != '\n') ++p;
        if (*p == 0) break;
      }
      text_ += *p;
    }
    read();
  }

 private:
  Module& out_;
  std::string text_;
  std::size_t at_ = 0;
  int shared_ = 0;  // bytes of shared memory that have names in the module

  [[noreturn]] void fail(const std::string& what) const {
    throw Fault(kInvalidPtx, what + " at '" + text_.substr(at_, 60) + "'");
  }
  void skip() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  bool is_end() {
    skip();
    return at_ >= text_.size();
  }
  static bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || std::strchr("_$%.:-|!", c) != nullptr; }
  // A word, or one sign.
  std::string token() {
    skip();
    if (at_ >= text_.size()) fail("the text ends");
    if (!is_word(text_[at_])) return std::string(1, text_[at_++]);
    const std::size_t from = at_;
    while (at_ < text_.size() && is_word(text_[at_])) ++at_;
    return text_.substr(from, at_ - from);
  }
  std::string peek() {
    const std::size_t at = at_;
    std::string found = token();
    at_ = at;
    return found;
  }
  void to_line_end() {
    while (at_ < text_.size() && text_[at_] != '\n') ++at_;
  }

  static int size_of(const std::string& type) {
    if (type == ".pred") return 1;
    const int bits = std::atoi(type.c_str() + type.find_first_of("0123456789"));
    return bits / 8;
  }

  void read() {
    while (!is_end()) {
      const std::string word = token();
      if (word == ".version" || word == ".target" || word == ".address_size" || word == ".file") to_line_end();
      else if (word == ".entry") kernel();
      else if (word == ".const" || word == ".global" || word == ".shared") variable(word, nullptr);
      else if (word == ".func") fail("functions are not known");
    }
    for (auto& [name, k] : out_.kernels) k.shared = (shared_ + 15) / 16 * 16;
  }

  // `.align 16 .b8 name[240] = {1, 2};` of a module or a kernel.
  void variable(const std::string& space, Kernel* in) {
    int align = 1, element = 1;
    std::string word = token();
    for (; word[0] == '.'; word = token()) {
      if (word == ".align") align = std::atoi(token().c_str());
      else if (word != ".visible" && word != ".attribute") element = size_of(word);
    }
    const std::string name = word;
    std::size_t count = 1;
    while (peek() == "[") {
      token();
      count = peek() == "]" ? 0 : count * std::strtoull(token().c_str(), nullptr, 10);
      token();
    }
    const std::size_t size = count * element;
    if (space == ".shared" && count == 0) {
      out_.shared[name] = kDynamic;
    } else if (space == ".shared") {
      shared_ = (shared_ + align - 1) / align * align;
      out_.shared[name] = shared_;
      shared_ += static_cast<int>(size);
    } else if (space == ".local") {
      in->local = (in->local + align - 1) / align * align;
      in->offsets[name] = in->local;
      in->local += static_cast<int>(size);
    } else {
      Data made{std::unique_ptr<char[]>(new char[size + 64]()), size};
      if (peek() == "=") {
        token();
        if (peek() == "{") token();
        for (std::size_t i = 0; peek() != "}" && peek() != ";" && i < count;) {
          const std::string number = token();
          if (number == ",") continue;
          const std::uint64_t value = std::strtoull(number.c_str(), nullptr, 0);
          std::memcpy(made.bytes.get() + i++ * element, &value, element);
        }
      }
      out_.data[name] = std::move(made);
    }
    while (token() != ";") {
    }
  }

  void kernel() {
    Kernel k;
    k.name = token();
    if (token() != "(") fail("expected parameters");
    while (peek() != ")") {
      std::string word = token();
      if (word != ".param") {
        if (word == ",") continue;
        fail("expected a parameter");
      }
      int size = 0;
      for (word = token(); word[0] == '.'; word = token()) {
        if (word == ".align") token();
        else if (word != ".ptr" && word != ".global" && word != ".shared") size = size_of(word);
      }
      k.bytes = (k.bytes + size - 1) / size * size;
      k.offsets[word] = k.bytes;
      k.sizes.push_back(size);
      k.bytes += size;
    }
    token();
    while (peek() != "{") token();  // .maxntid and the like
    token();
    for (int depth = 1; depth > 0;) {
      const std::string word = peek();
      if (word == "{") {
        token();
        ++depth;
      } else if (word == "}") {
        token();
        --depth;
      } else if (word == ".loc") to_line_end();
      else if (word == ".local" || word == ".shared") {
        token();
        variable(word, &k);
      } else if (word[0] == '.') {  // .reg, .pragma: registers are known by their names
        while (token() != ";") {
        }
      } else if (word.back() == ':') {
        token();
        k.labels[word.substr(0, word.size() - 1)] = static_cast<int>(k.code.size());
      } else k.code.push_back(statement());
    }
    out_.kernels[k.name] = std::move(k);
  }

  Statement statement() {
    Statement s;
    std::string word = token();
    if (word == "@") {
      word = token();
      s.is_negated = word[0] == '!';
      s.guard = word.substr(s.is_negated ? 1 : 0);
      word = token();
    }
    for (std::size_t from = 0; from <= word.size();) {
      std::size_t to = word.find('.', from);
      if (to == std::string::npos) to = word.size();
      std::string part = word.substr(from, to - from);
      const std::size_t colons = part.find("::");  // param::entry
      s.name.push_back(colons == std::string::npos ? part : part.substr(0, colons));
      from = to + 1;
    }
    while (peek() != ";") {
      word = token();
      if (word == ",") continue;
      std::vector<std::string> operand;
      if (word == "{") {
        while ((word = token()) != "}")
          if (word != ",") operand.push_back(word);
      } else if (word == "[") {
        operand.push_back("[" + token());
        std::string offset = "0";
        while ((word = token()) != "]")
          if (word != "+") offset = word;
        operand.push_back(offset);
      } else operand.push_back(word);
      s.operands.push_back(std::move(operand));
    }
    token();
    return s;
  }
};

}  // namespace ptx
