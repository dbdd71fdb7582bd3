// What each instruction of PTX does, from its name and operands.
#pragma once
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "ptx_memory.h"

namespace ptx {

class Builder {
 public:
  Builder(const Module& module, const Kernel& kernel, Check check) : module_(module), kernel_(kernel), check_(std::move(check)) {
    code_.kernel = &kernel;
    for (const char* name : kSpecial) reg(name);
    for (const Statement& s : kernel.code) {
      s_ = &s;
      Instruction made;
      if (!s.guard.empty()) made.guard = reg(s.guard);
      made.is_negated = s.is_negated;
      build(made);
      code_.all.push_back(std::move(made));
    }
    code_.registers = registers_;
  }
  Code&& code() { return std::move(code_); }

 private:
  const Module& module_;
  const Kernel& kernel_;
  Check check_;
  Code code_;
  std::map<std::string, int> known_;
  int registers_ = 0;
  const Statement* s_ = nullptr;

  [[noreturn]] void fail() const { throw Fault(kInvalidPtx, "the PTX instruction " + s_->text() + " is not known here"); }

  int reg(const std::string& name) {
    const auto [it, is_new] = known_.try_emplace(name, registers_);
    if (is_new) ++registers_;
    return it->second;
  }
  int number(std::uint64_t value) {
    const int made = registers_++;
    code_.numbers.emplace_back(made, value);
    return made;
  }
  // The register of an operand: numbers and addresses of names have one, too. bits: of a float.
  int source(const std::string& word, const std::string& type = "") {
    if (word == "WARP_SZ") return number(kLanes);
    const bool is_number = std::isdigit(static_cast<unsigned char>(word[0])) || (word[0] == '-' && word.size() > 1);
    if (is_number) {
      if (word.compare(0, 2, "0f") == 0 || word.compare(0, 2, "0F") == 0 || word.compare(0, 2, "0d") == 0 || word.compare(0, 2, "0D") == 0)
        return number(std::strtoull(word.c_str() + 2, nullptr, 16));
      std::uint64_t value = word[0] == '-' ? 0 - std::strtoull(word.c_str() + 1, nullptr, 0) : std::strtoull(word.c_str(), nullptr, 0);
      if (type == "pred") value = value != 0;
      return number(value);
    }
    if (const auto it = module_.shared.find(word); it != module_.shared.end()) return number(it->second == kDynamic ? kernel_.shared : it->second);
    if (const auto it = module_.data.find(word); it != module_.data.end()) return number(reinterpret_cast<std::uint64_t>(it->second.bytes.get()));
    if (const auto it = kernel_.offsets.find(word); it != kernel_.offsets.end()) return number(it->second);
    return reg(word);
  }
  int in(std::size_t i, const std::string& type = "") { return source(s_->operands.at(i).at(0), type); }
  std::vector<int> several(std::size_t i) {
    std::vector<int> found;
    for (const auto& word : s_->operands.at(i)) found.push_back(word == "_" ? registers_++ : source(word));
    return found;
  }
  Place place(std::size_t i) {
    const auto& words = s_->operands.at(i);
    Place made;
    for (const char* space : {"global", "shared", "local", "param", "const"})
      if (s_->has(space)) {
        made.space = space;
        if (s_->name[0] != "cp") break;
      }
    made.reg = source(words[0].substr(1));
    made.offset = std::strtoll(words.at(1).c_str(), nullptr, 0);
    made.check = check_;
    return made;
  }
  const std::string& type() const { return s_->name.back(); }

  // d = f(a, b, ...) of T for each lane.
  template <class T, class F>
  void compute(Instruction& made, F f) {
    const int d = in(0);
    const std::size_t count = s_->operands.size() - 1;
    const int a = in(1, type()), b = count > 1 ? in(2, type()) : a, c = count > 2 ? in(3, type()) : a;
    made.run = [=](Warp& w, std::uint32_t mask) {
      each(mask, [&](int lane) { w.set(d, lane, f(w.get<T>(a, lane), w.get<T>(b, lane), w.get<T>(c, lane))); });
    };
  }
  template <class F>
  void integers(Instruction& made, F f) {
    const bool good = with_type(type(), [&](auto t) {
      using T = decltype(t);
      if constexpr (std::is_integral_v<T>) compute<T>(made, f);
    });
    if (!good || !made.run) fail();
  }
  // Of integers f, of floats g on f32 or f64.
  template <class F, class G>
  void arithmetic(Instruction& made, F f, G g) {
    const bool good = with_type(type(), [&](auto t) {
      using T = decltype(t);
      if constexpr (std::is_same_v<T, bool>) return;
      else if constexpr (std::is_integral_v<T>) compute<T>(made, f);
      else if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) compute<T>(made, g);
      else if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, Brain>)
        compute<T>(made, [g](T a, T b, T c) { return T(g(float(a), float(b), float(c))); });
      else
        compute<T>(made, [g](T a, T b, T c) {
          using E = decltype(a.low);
          return T{E(g(float(a.low), float(b.low), float(c.low))), E(g(float(a.high), float(b.high), float(c.high)))};
        });
    });
    if (!good || !made.run) fail();
  }
  // Of one or two floats, as f32 or f64.
  template <class F>
  void floats(Instruction& made, F f) {
    if (type() == "f64") compute<double>(made, [f](double a, double b, double) { return f(a, b); });
    else if (type() == "f32") compute<float>(made, [f](float a, float b, float) { return static_cast<float>(f(a, b)); });
    else if (type() == "f16") compute<Half>(made, [f](Half a, Half b, Half) { return Half(static_cast<float>(f(float(a), float(b)))); });
    else fail();
  }

  void build(Instruction& made) {
    const std::string& op = s_->name[0];
    if (op == "bra") {
      const auto it = kernel_.labels.find(s_->operands.at(0).at(0));
      if (it == kernel_.labels.end()) fail();
      made.is_branch = true;
      made.target = it->second;
    } else if (op == "ret" || op == "exit") made.is_exit = true;
    else if (op == "bar" || op == "barrier") {
      if (s_->has("warp")) made.of_all = true, made.run = [](Warp&, std::uint32_t) {};
      else if (!s_->has("sync") || s_->operands.size() != 1) fail();
      else made.is_barrier = true;
    } else if (op == "membar" || op == "fence" || op == "nanosleep" || op == "prefetch") made.run = [](Warp&, std::uint32_t) {};
    else if (!memory(made, op) && !together(made, op) && !moves(made, op) && !numbers(made, op) && !integral(made, op)) fail();
  }

  bool memory(Instruction& made, const std::string& op) {
    if (op == "ld" || op == "st") {
      const bool is_load = op == "ld";
      const Place at = place(is_load ? 1 : 0);
      const std::vector<int> regs = several(is_load ? 0 : 1);
      return with_type(type(), [&](auto t) { made.run = is_load ? load<decltype(t)>(at, regs) : store<decltype(t)>(at, regs); });
    }
    if (op == "atom" || op == "red") {
      const std::size_t first = op == "atom" ? 1 : 0;
      std::vector<int> from;
      for (std::size_t i = first + 1; i < s_->operands.size(); ++i) from.push_back(in(i));
      std::string kind;
      for (const char* name : {"add", "max", "min", "cas", "exch", "and", "or", "xor"})
        if (s_->has(name)) kind = name;
      const int to = first == 1 ? in(0) : -1;
      if (kind.empty()) return false;
      return with_type(type(), [&](auto t) { made.run = atomic<decltype(t)>(place(first), kind, to, from); });
    }
    if (op != "cp") return false;
    if (s_->has("commit_group")) {
      made.run = [](Warp& w, std::uint32_t) { w.copies.push_back(std::move(w.begun)), w.begun.clear(); };
      made.of_all = true;
    } else if (s_->has("wait_group") || s_->has("wait_all")) {
      const std::size_t left = s_->has("wait_all") ? 0 : std::strtoull(s_->operands.at(0).at(0).c_str(), nullptr, 0);
      const bool all = s_->has("wait_all");
      made.of_all = true;
      made.run = [=](Warp& w, std::uint32_t) {
        for (; w.copies.size() > left; w.copies.pop_front()) arrive(w, w.copies.front());
        if (all) arrive(w, w.begun), w.begun.clear();
      };
    } else {
      Place to = place(0), from = place(1);
      to.space = "shared";
      from.space = "global";
      const int given = s_->operands.size() > 3 ? in(3) : -1;
      made.run = copy_async(to, from, static_cast<std::uint32_t>(std::strtoul(s_->operands.at(2).at(0).c_str(), nullptr, 0)), given);
    }
    return true;
  }

  bool together(Instruction& made, const std::string& op) {
    if (op == "shfl") {
      const std::string& to = s_->operands.at(0).at(0);
      const std::size_t bar = to.find('|');
      made.of_all = true;
      made.run = shuffle(s_->name.at(2), reg(to.substr(0, bar)), bar == std::string::npos ? -1 : reg(to.substr(bar + 1)), in(1), in(2), in(3));
    } else if (op == "ldmatrix") {
      made.of_all = true;
      Place from = place(1);
      from.space = "shared";
      made.run = load_matrix(from, several(0), s_->has("trans"));
    } else if (op == "mma") {
      const std::size_t n = s_->name.size();
      Multiply m{several(0), several(1), several(2), several(3), s_->name.at(n - 3)};
      m.is_half = s_->name.at(n - 4) == "f16";
      m.is_integer = s_->name.at(n - 4) == "s32";
      made.of_all = true;
      made.run = m;
    } else if (op == "vote" || op == "activemask" || op == "redux") {
      made.of_all = op != "activemask";
      const int d = in(0), a = op == "activemask" ? d : in(1, "pred");
      const bool is_all = s_->has("all"), is_any = s_->has("any"), is_ballot = s_->has("ballot"), is_negated = op == "vote" && s_->operands[1][0][0] == '!';
      if (op == "redux") return reduce(made, d, a);
      made.run = [=](Warp& w, std::uint32_t mask) {
        std::uint32_t set = 0;
        each(mask, [&](int lane) { set |= std::uint32_t{(w.lanes(a)[lane] != 0) != is_negated} << lane; });
        const std::uint32_t value = is_all ? set == mask : is_any ? set != 0 : is_ballot ? set : mask;
        each(mask, [&](int lane) { w.set(d, lane, value); });
      };
    } else return false;
    return true;
  }

  bool reduce(Instruction& made, int d, int a) {
    const std::string kind = s_->name.at(2);
    return with_type(type(), [&](auto t) {
      using T = decltype(t);
      if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
        made.run = [=](Warp& w, std::uint32_t mask) {
          T found = w.get<T>(a, __builtin_ctz(mask));
          each(mask & (mask - 1), [&](int lane) {
            const T x = w.get<T>(a, lane);
            found = kind == "add" ? found + x : kind == "min" ? std::min(found, x) : kind == "max" ? std::max(found, x)
                  : kind == "and" ? found & x : kind == "or" ? found | x : found ^ x;
          });
          each(mask, [&](int lane) { w.set(d, lane, found); });
        };
    });
  }

  // Moves, selections, comparisons, conversions.
  bool moves(Instruction& made, const std::string& op) {
    if (op == "mov") {
      const std::vector<int> to = several(0);
      std::vector<int> from;
      for (const auto& word : s_->operands.at(1)) from.push_back(source(word, type()));
      const int width = std::atoi(type().c_str() + 1) / static_cast<int>(std::max(to.size(), from.size()));
      const std::uint64_t low = width == 0 ? kAll : (std::uint64_t{1} << (width & 63)) - 1;
      made.run = [=](Warp& w, std::uint32_t mask) {
        each(mask, [&](int lane) {
          if (to.size() == from.size()) {
            w.lanes(to[0])[lane] = w.lanes(from[0])[lane];
          } else if (to.size() == 1) {
            std::uint64_t sum = 0;
            for (std::size_t i = from.size(); i-- > 0;) sum = sum << width | (w.lanes(from[i])[lane] & low);
            w.lanes(to[0])[lane] = sum;
          } else {
            const std::uint64_t whole = w.lanes(from[0])[lane];
            for (std::size_t i = 0; i < to.size(); ++i) w.lanes(to[i])[lane] = whole >> width * i & low;
          }
        });
      };
    } else if (op == "cvta") {
      const int d = in(0), a = in(1);
      if (s_->has("shared") || s_->has("local")) return false;  // addresses of no space are not known
      made.run = [=](Warp& w, std::uint32_t mask) { each(mask, [&](int lane) { w.lanes(d)[lane] = w.lanes(a)[lane]; }); };
    } else if (op == "selp") {
      const int d = in(0), a = in(1), b = in(2), p = in(3);
      made.run = [=](Warp& w, std::uint32_t mask) {
        each(mask, [&](int lane) { w.lanes(d)[lane] = w.lanes(w.lanes(p)[lane] != 0 ? a : b)[lane]; });
      };
    } else if (op == "setp" || op == "set") return compare(made);
    else if (op == "cvt") return convert(made);
    else return false;
    return true;
  }

  template <class T>
  static bool holds(const std::string& how, T a, T b) {
    if constexpr (is_float<T>) {
      const double x = a, y = b;
      const bool odd = std::isnan(x) || std::isnan(y);
      if (how == "num") return !odd;
      if (how == "nan") return odd;
      if (odd) return how.size() == 3;  // equ, ltu and the like
      return holds<std::int64_t>(how.substr(0, 2), x < y ? 0 : 1, x == y ? 1 : x < y ? 1 : 0);
    } else {
      if (how == "eq") return a == b;
      if (how == "ne") return a != b;
      if (how == "lt" || how == "lo") return a < b;
      if (how == "le" || how == "ls") return a <= b;
      if (how == "gt" || how == "hi") return a > b;
      return a >= b;
    }
  }

  bool compare(Instruction& made) {
    if (s_->name[0] != "setp") return false;
    const std::string how = s_->name.at(1), joined = s_->operands.size() > 3 ? s_->name.at(2) : "";
    const std::string& to = s_->operands.at(0).at(0);
    const std::size_t bar = to.find('|');
    const int d = reg(to.substr(0, bar)), e = bar == std::string::npos ? -1 : reg(to.substr(bar + 1));
    const int a = in(1), b = in(2), c = joined.empty() ? -1 : in(3);
    return with_type(type(), [&](auto t) {
      using T = decltype(t);
      if constexpr (std::is_arithmetic_v<T> || is_float<T>)
        made.run = [=](Warp& w, std::uint32_t mask) {
          each(mask, [&](int lane) {
            const bool one = holds(how, w.get<T>(a, lane), w.get<T>(b, lane));
            const bool other = c >= 0 && w.lanes(c)[lane] != 0;
            auto join = [&](bool x) { return joined == "and" ? x && other : joined == "or" ? x || other : joined == "xor" ? x != other : x; };
            w.set(d, lane, std::uint64_t{join(one)});
            if (e >= 0) w.set(e, lane, std::uint64_t{join(!one)});
          });
        };
    });
  }

  // A number between two types: an integer is exact, a float is f64.
  struct Number {
    double real = 0;
    std::int64_t whole = 0;
    bool is_real = false, is_unsigned = false;
  };
  template <class T>
  static Number read(Warp& w, int reg, int lane) {
    const T x = w.get<T>(reg, lane);
    if constexpr (std::is_same_v<T, double>) return {x, 0, true, false};
    else if constexpr (is_float<T>) return {static_cast<double>(static_cast<float>(x)), 0, true, false};
    else return {0, static_cast<std::int64_t>(x), false, std::is_unsigned_v<T>};
  }
  template <class T>
  static void write(Warp& w, int reg, int lane, const Number& x, const std::string& rounding, bool is_limited) {
    T value;
    if (x.is_real) value = converted<T>(x.real, rounding);
    else if (x.is_unsigned) value = converted<T>(static_cast<std::uint64_t>(x.whole), rounding);
    else value = converted<T>(x.whole, rounding);
    if constexpr (is_float<T>)
      if (is_limited) value = T(std::min(std::max(float(value), 0.0f), 1.0f));
    if constexpr (std::is_integral_v<T> && std::is_signed_v<T>) w.set(reg, lane, static_cast<std::int64_t>(value));
    else w.set(reg, lane, value);
  }

  bool convert(Instruction& made) {
    const std::string to = s_->name.at(s_->name.size() - 2), rounding = s_->name.at(1);
    const int d = in(0), a = in(1), b = s_->operands.size() > 2 ? in(2) : -1;
    const bool is_limited = s_->has("sat");
    if (to == "f16x2" || to == "bf16x2") {
      const bool is_half = to == "f16x2";
      made.run = [=](Warp& w, std::uint32_t mask) {
        each(mask, [&](int lane) {
          const float low = w.get<float>(b, lane), high = w.get<float>(a, lane);
          if (is_half) w.set(d, lane, Pair<Half>{low, high});
          else w.set(d, lane, Pair<Brain>{low, high});
        });
      };
      return true;
    }
    Number (*get)(Warp&, int, int) = nullptr;
    void (*put)(Warp&, int, int, const Number&, const std::string&, bool) = nullptr;
    with_type(type(), [&](auto t) {
      if constexpr (std::is_arithmetic_v<decltype(t)> || is_float<decltype(t)>) get = &read<decltype(t)>;
    });
    with_type(to, [&](auto t) {
      if constexpr (std::is_arithmetic_v<decltype(t)> || is_float<decltype(t)>) put = &write<decltype(t)>;
    });
    made.run = [=](Warp& w, std::uint32_t mask) {
      each(mask, [&](int lane) { put(w, d, lane, get(w, a, lane), rounding, is_limited); });
    };
    return get != nullptr && put != nullptr;
  }

  bool numbers(Instruction& made, const std::string& op) {
    const bool nan = s_->has("NaN");
    const int mode = s_->has("rz") ? FE_TOWARDZERO : s_->has("rm") ? FE_DOWNWARD : s_->has("rp") ? FE_UPWARD : FE_TONEAREST;
    const bool is_f32 = type() == "f32" && mode != FE_TONEAREST;
    if (op == "add" && is_f32) compute<float>(made, [mode](float a, float b, float) { return rounded(mode, [&] { volatile float x = a; return x + b; }); });
    else if (op == "mul" && is_f32) compute<float>(made, [mode](float a, float b, float) { return rounded(mode, [&] { volatile float x = a; return x * b; }); });
    else if (op == "add") arithmetic(made, [](auto a, auto b, auto) { return decltype(a)(a + b); }, [](auto a, auto b, auto) { return a + b; });
    else if (op == "sub") arithmetic(made, [](auto a, auto b, auto) { return decltype(a)(a - b); }, [](auto a, auto b, auto) { return a - b; });
    else if (op == "max") arithmetic(made, [](auto a, auto b, auto) { return larger(a, b, false); }, [nan](auto a, auto b, auto) { return larger(a, b, nan); });
    else if (op == "min") arithmetic(made, [](auto a, auto b, auto) { return smaller(a, b, false); }, [nan](auto a, auto b, auto) { return smaller(a, b, nan); });
    else if (op == "neg") arithmetic(made, [](auto a, auto, auto) { return decltype(a)(0 - a); }, [](auto a, auto, auto) { return -a; });
    else if (op == "abs") arithmetic(made, [](auto a, auto, auto) { return a < 0 ? decltype(a)(0 - a) : a; }, [](auto a, auto, auto) { return std::fabs(a); });
    else if (op == "div")
      arithmetic(made, [](auto a, auto b, auto) { return b == 0 ? decltype(a)(-1) : decltype(a)(a / b); }, [](auto a, auto b, auto) { return a / b; });
    else if (op == "mul" && !s_->has("wide") && !s_->has("hi"))
      arithmetic(made, [](auto a, auto b, auto) { return static_cast<decltype(a)>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b)); },
                 [](auto a, auto b, auto) { return a * b; });
    else if ((op == "mad" && !s_->has("wide") && !s_->has("hi")) || op == "fma")
      arithmetic(made, [](auto a, auto b, auto c) { return static_cast<decltype(a)>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b) + static_cast<std::uint64_t>(c)); },
                 [](auto a, auto b, auto c) { return std::fma(a, b, c); });
    else if (op == "sqrt") floats(made, [](double a, double) { return std::sqrt(a); });
    else if (op == "rsqrt") floats(made, [](double a, double) { return 1 / std::sqrt(a); });
    else if (op == "rcp") floats(made, [](double a, double) { return 1 / a; });
    else if (op == "ex2") floats(made, [](double a, double) { return std::exp2(a); });
    else if (op == "lg2") floats(made, [](double a, double) { return std::log2(a); });
    else if (op == "sin") floats(made, [](double a, double) { return std::sin(a); });
    else if (op == "cos") floats(made, [](double a, double) { return std::cos(a); });
    else if (op == "tanh") floats(made, [](double a, double) { return std::tanh(a); });
    else if (op == "copysign") floats(made, [](double a, double b) { return std::copysign(b, a); });
    else return false;
    return true;
  }

  bool integral(Instruction& made, const std::string& op) {
    if (type() == "pred") {
      if (op == "and") compute<bool>(made, [](bool a, bool b, bool) { return a && b; });
      else if (op == "or") compute<bool>(made, [](bool a, bool b, bool) { return a || b; });
      else if (op == "xor") compute<bool>(made, [](bool a, bool b, bool) { return a != b; });
      else if (op == "not") compute<bool>(made, [](bool a, bool, bool) { return !a; });
      else return false;
    } else if (op == "and") integers(made, [](auto a, auto b, auto) { return decltype(a)(a & b); });
    else if (op == "or") integers(made, [](auto a, auto b, auto) { return decltype(a)(a | b); });
    else if (op == "xor") integers(made, [](auto a, auto b, auto) { return decltype(a)(a ^ b); });
    else if (op == "not") integers(made, [](auto a, auto, auto) { return decltype(a)(~a); });
    else if (op == "cnot") integers(made, [](auto a, auto, auto) { return decltype(a)(a == 0); });
    else if (op == "rem") integers(made, [](auto a, auto b, auto) { return b == 0 ? a : decltype(a)(a % b); });
    else if (op == "shl" || op == "shr") shift(made, op == "shl");
    else if (op == "mul" || op == "mad") products(made, op == "mad");
    else if (op == "popc" || op == "clz" || op == "brev" || op == "bfind") counts(made, op);
    else if (op == "prmt")
      compute<std::uint32_t>(made, [](std::uint32_t a, std::uint32_t b, std::uint32_t how) {
        const std::uint64_t both = std::uint64_t{b} << 32 | a;
        std::uint32_t found = 0;
        for (int i = 0; i < 4; ++i) {
          const int n = how >> 4 * i & 15;
          std::uint32_t byte = both >> 8 * (n & 7) & 0xff;
          if ((n & 8) != 0) byte = (byte & 0x80) != 0 ? 0xff : 0;
          found |= byte << 8 * i;
        }
        return found;
      });
    else if (op == "shf") {
      const bool is_left = s_->has("l"), wraps = s_->has("wrap");
      compute<std::uint32_t>(made, [=](std::uint32_t a, std::uint32_t b, std::uint32_t c) {
        const std::uint32_t n = wraps ? c & 31 : std::min(c, 32u);
        const std::uint64_t both = std::uint64_t{b} << 32 | a;
        return static_cast<std::uint32_t>(is_left ? (n == 0 ? both >> 32 : both >> (32 - n)) : both >> n);
      });
    } else if (op == "bfe") {
      integers(made, [](auto a, auto b, auto c) {
        using T = decltype(a);
        const int from = static_cast<int>(b) & 0xff, count = static_cast<int>(c) & 0xff, width = sizeof(T) * 8;
        if (count == 0 || from >= width) return T(0);
        const int left = std::max(width - from - count, 0);
        return T(T(a << left) >> std::min(left + from, width - 1));
      });
    } else if (op == "bfi") {
      const int d = in(0), a = in(1), b = in(2), from = in(3), count = in(4), width = type() == "b64" ? 64 : 32;
      made.run = [=](Warp& w, std::uint32_t mask) {
        each(mask, [&](int lane) {
          const std::uint64_t at = w.get<std::uint8_t>(from, lane), n = w.get<std::uint8_t>(count, lane);
          const std::uint64_t some = at >= 64 ? 0 : (n >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << n) - 1) << at;
          const std::uint64_t whole = width == 64 ? ~std::uint64_t{0} : 0xffffffff;
          w.lanes(d)[lane] = ((w.lanes(b)[lane] & ~some) | (w.lanes(a)[lane] << (at & 63) & some)) & whole;
        });
      };
    } else if (op == "lop3") {
      const int d = in(0), a = in(1), b = in(2), c = in(3);
      const auto table = std::strtoul(s_->operands.at(4).at(0).c_str(), nullptr, 0);
      made.run = [=](Warp& w, std::uint32_t mask) {
        each(mask, [&](int lane) {
          std::uint32_t x = w.get<std::uint32_t>(a, lane), y = w.get<std::uint32_t>(b, lane), z = w.get<std::uint32_t>(c, lane), found = 0;
          for (int i = 0; i < 32; ++i) found |= static_cast<std::uint32_t>(table >> ((x >> i & 1) << 2 | (y >> i & 1) << 1 | (z >> i & 1)) & 1) << i;
          w.set(d, lane, found);
        });
      };
    } else return false;
    return true;
  }

  void shift(Instruction& made, bool is_left) {
    const int d = in(0), a = in(1), b = in(2);
    with_type(type(), [&](auto t) {
      using T = decltype(t);
      if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
        made.run = [=](Warp& w, std::uint32_t mask) {
          constexpr std::uint32_t width = sizeof(T) * 8;
          each(mask, [&](int lane) {
            const T x = w.get<T>(a, lane);
            const auto n = w.get<std::uint32_t>(b, lane);
            w.set(d, lane, n >= width ? T(!is_left && x < 0 ? -1 : 0) : is_left ? T(x << n) : T(x >> n));
          });
        };
    });
    if (!made.run) fail();
  }

  void products(Instruction& made, bool adds) {  // mul.wide, mul.hi, mad.wide, mad.hi
    const int d = in(0), a = in(1), b = in(2), c = adds ? in(3) : -1;
    const bool is_wide = s_->has("wide");
    with_type(type(), [&](auto t) {
      using T = decltype(t);
      if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
        made.run = [=](Warp& w, std::uint32_t mask) {
          each(mask, [&](int lane) {
            const __int128 whole = static_cast<__int128>(w.get<T>(a, lane)) * w.get<T>(b, lane);
            std::uint64_t found = static_cast<std::uint64_t>(is_wide ? whole : whole >> sizeof(T) * 8);
            if (adds) found += w.lanes(c)[lane];
            const std::size_t width = (is_wide ? 2 : 1) * sizeof(T);
            w.lanes(d)[lane] = width >= 8 ? found : found & ((std::uint64_t{1} << width * 8) - 1);
          });
        };
    });
    if (!made.run) fail();
  }

  void counts(Instruction& made, const std::string& op) {
    const int d = in(0), a = in(1);
    const int width = type().substr(1) == "64" ? 64 : 32;
    made.run = [=](Warp& w, std::uint32_t mask) {
      each(mask, [&](int lane) {
        const std::uint64_t x = width == 64 ? w.lanes(a)[lane] : w.get<std::uint32_t>(a, lane);
        const int zeros = x == 0 ? width : __builtin_clzll(x) - (64 - width);
        std::uint64_t turned = 0;
        for (int i = 0; i < width; ++i) turned |= (x >> i & 1) << (width - 1 - i);
        w.lanes(d)[lane] = op == "popc" ? __builtin_popcountll(x) : op == "clz" ? zeros : op == "brev" ? turned : static_cast<std::uint32_t>(width - 1 - zeros);
      });
    };
  }
};

}  // namespace ptx
