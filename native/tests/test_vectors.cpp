// test_vectors FILE: runs the cases of make_vectors.py and compares every lane.
#include <cmath>
#include <fstream>
#include <map>
#include <sstream>

#include "harness.h"

namespace {

using namespace mgx;

struct Wanted {
  std::string name;
  int ulp;
  std::vector<u32> values;
};

struct Case {
  std::string arch, text;
  std::vector<u32> words;
  std::map<std::string, std::vector<u32>> inputs;
  std::vector<Wanted> outputs;
};

std::vector<u32> numbers(std::istringstream& line) {
  std::vector<u32> out;
  std::string word;
  while (line >> word) out.push_back(static_cast<u32>(std::strtoul(word.c_str(), nullptr, 16)));
  return out;
}

std::vector<Case> read(const char* path) {
  std::ifstream file(path);
  std::vector<Case> cases;
  std::string text;
  while (std::getline(file, text)) {
    std::istringstream line(text);
    std::string kind, name;
    line >> kind;
    if (kind == "case") {
      cases.emplace_back();
      line >> cases.back().arch;
      std::getline(line, cases.back().text);
    } else if (kind == "words") {
      cases.back().words = numbers(line);
    } else if (kind == "in") {
      line >> name;
      cases.back().inputs[name] = numbers(line);
    } else if (kind == "out") {
      int ulp;
      line >> name >> ulp;
      cases.back().outputs.push_back({name, ulp, numbers(line)});
    }
  }
  return cases;
}

bool close(u32 got, u32 want, int ulp) {
  if (got == want) return true;
  const float a = as_f32(got), b = as_f32(want);
  if (std::isnan(a) && std::isnan(b)) return true;
  if (ulp == 0 || std::signbit(a) != std::signbit(b)) return false;
  return std::llabs(i64{got} - i64{want}) <= ulp;
}

void run(const Case& c) {
  const bool wave32 = c.arch.compare(0, 4, "gfx1") == 0;
  test::Runner r(test::code_of(c.arch, c.words, wave32));
  Wave& w = *r.wave;
  for (const auto& [name, values] : c.inputs) {
    const u32 reg = static_cast<u32>(std::atoi(name.c_str() + 1));
    if (name[0] == 's') {
      w.s[reg] = values[0];
    } else {
      for (int l = 0; l < kLanes; ++l) w.v[reg][l] = values[static_cast<std::size_t>(l) % values.size()];
    }
  }
  r.run();
  for (const Wanted& out : c.outputs) {
    const u32 reg = static_cast<u32>(std::atoi(out.name.c_str() + 1));
    const int lanes = out.name[0] == 's' ? 1 : wave32 ? 32 : 64;
    for (int l = 0; l < lanes; ++l) {
      const u32 want = out.values[static_cast<std::size_t>(l) % out.values.size()];
      const u32 got = out.name[0] == 's' ? w.s[reg] : w.v[reg][l];
      if (close(got, want, out.ulp)) continue;
      char text[96];
      std::snprintf(text, sizeof text, ": %s lane %d is %08x, expected %08x", out.name.c_str(), l, got, want);
      test::check(false, c.arch + c.text + text);
      return;
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::vector<Case> cases = read(argv[1]);
  test::check(cases.size() > 500, "expected more than 500 cases, got " + std::to_string(cases.size()));
  for (const Case& c : cases) {
    try {
      run(c);
    } catch (const Error& e) {
      test::check(false, c.arch + c.text + ": " + e.what());
    }
  }
  return test::result();
}
