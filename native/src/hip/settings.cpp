// Reads the environment.
#include "hip/settings.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <sched.h>
#include <unistd.h>

namespace mgx {
namespace {

constexpr u64 kMostThreads = 256, kMostDevices = 64;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// The number in a variable, 0 where it is not set. Errors: no number, or more than `most`.
u64 number(const char* name, u64 most) {
  const std::string text = variable(name);
  if (text.empty()) return 0;
  char* end = nullptr;
  const u64 found = std::strtoull(text.c_str(), &end, 10);
  if (*end != 0 || text[0] == '-' || found > most) {
    throw Error(std::string(name) + ": expected a number up to " + std::to_string(most) + ", got '" + text + "'");
  }
  return found;
}

int processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

// "gfx942, gfx1100" as its names.
std::vector<std::string> names(const std::string& text) {
  std::vector<std::string> found(1);
  for (char c : text) {
    if (c == ',') found.emplace_back();
    else if (c != ' ') found.back() += c;
  }
  return found;
}

}  // namespace

Settings Settings::from_environment() {
  Settings s;
  s.archs = names(variable("MGX_EMULATE_ARCH"));
  const u64 devices = number("MGX_EMULATE_DEVICES", kMostDevices);
  if (variable("MGX_EMULATE_DEVICES") == "0") s.archs.clear();
  else if (devices != 0) s.archs.resize(devices, s.archs[0]);
  s.memory = number("MGX_EMULATE_MEMORY", u64{1} << 48);
  const u64 machine = static_cast<u64>(sysconf(_SC_PHYS_PAGES)) * static_cast<u64>(sysconf(_SC_PAGE_SIZE));
  if (s.memory == 0) s.memory = machine;
  s.threads = static_cast<int>(number("MGX_EMULATE_THREADS", kMostThreads));
  if (s.threads == 0) s.threads = processors();
  s.statistics = variable("MGX_EMULATE_STATS");
  s.checks = Checks::parse(variable("MGX_EMULATE_CHECK"));
  s.queues = !variable("MGX_EMULATE_QUEUES").empty();
  s.log = !variable("MGX_EMULATE_LOG").empty();
  const std::string version = variable("MGX_EMULATE_HIP");
  int major = 0, minor = 0, patch = 0;
  if (!version.empty()) {
    if (std::sscanf(version.c_str(), "%2d.%2d.%5d", &major, &minor, &patch) < 2 || major < 0 || minor < 0 || patch < 0) {
      throw Error("MGX_EMULATE_HIP: expected a version such as 6.4, got '" + version + "'");
    }
    s.version = major * 10000000 + minor * 100000 + patch;
  }
  const u64 limit = number("MGX_EMULATE_LIMIT", ~u64{0});
  if (limit != 0) s.limit = limit;
  const u64 launch_limit = number("MGX_EMULATE_LAUNCH_LIMIT", ~u64{0});
  if (launch_limit != 0) s.launch_limit = launch_limit;
  return s;
}

}  // namespace mgx
