// Workgroups over host threads; the waves of a workgroup in turns between barriers.
#include "exec/launch.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <set>
#include <thread>

#include "isa/print.h"

namespace mgx {
namespace {

constexpr u8 kPoison = 0xcd;
constexpr std::size_t kShownProblems = 10;
// Instructions that a wave runs before the others of its group get their turn, and turns that a
// group gets before the next one starts beside it: waves, and groups, may wait for each other.
constexpr u64 kTurn = 16384;
constexpr int kPatience = 64;
constexpr u64 kMostWaves = 4096;  // that have begun and not ended, over all host threads
constexpr u64 kMostLds = u64{1} << 20;
constexpr u32 kDynamicStack = 16384;  // bytes of a lane where the code's depth is not known

// Bits of a kernel descriptor.
bool has_property(const KernelInfo& k, int bit) { return k.properties >> bit & 1; }

class Group {
 public:
  // executed: by all groups of the launch, which has a number
  Group(Program& program, Memory& memory, const Launch& launch, u64 number, std::atomic<u64>& executed)
      : p_(program), memory_(memory), l_(launch), k_(*launch.kernel), number_(number), all_executed_(executed) {
    const u64 threads = u64{l_.threads.x} * l_.threads.y * l_.threads.z;
    lanes_ = k_.wave32 ? 32 : 64;
    packs_ = p_.arch.generation != Generation::Gfx10;
    const u64 count = (threads + lanes_ - 1) / lanes_;
    threads_ = static_cast<u32>(threads);
    for (u64 n = 0; n < count; ++n) {
      void* space = std::aligned_alloc(64, (sizeof(Wave) + 63) / 64 * 64);
      if (space == nullptr) throw Error("out of memory for waves");
      waves_.emplace_back(new (space) Wave, std::free);
    }
    lds_.resize(u64{k_.lds} + l_.dynamic_lds + 16);
    scratch_size_ = k_.scratch + (has_property(k_, 11) ? kDynamicStack : 0);
    scratch_.resize(u64{scratch_size_} * kLanes * count + 16);
    if (l_.checks.any()) checker_ = std::make_unique<Checker>(l_.checks, k_.lds + l_.dynamic_lds, waves_.size());
    if (l_.count) counts_.assign(p_.code.size(), 0);
  }

  void begin(u32 x, u32 y, u32 z) {
    std::memset(lds_.data(), kPoison, lds_.size());
    std::memset(scratch_.data(), kPoison, scratch_.size());
    const u64 group = x + u64{l_.groups.x} * (y + u64{l_.groups.y} * z);
    if (checker_) checker_->start_group(number_ << 32 | (group & 0xffffffff));
    for (std::size_t n = 0; n < waves_.size(); ++n) start(*waves_[n], static_cast<u32>(n), x, y, z);
  }

  // Runs each wave for a turn, then the others; false: all have ended. A barrier opens where every
  // wave that has not ended stands at it.
  bool turn() {
    bool running = false, waiting = false;
    for (auto& w : waves_) {
      if (w->state == Wave::State::Resting) w->state = Wave::State::Running;
      if (w->state == Wave::State::Running) step(*w);
      running = running || w->state == Wave::State::Running || w->state == Wave::State::Resting;
      waiting = waiting || w->state == Wave::State::Barrier;
    }
    if (running) return true;
    if (waiting) {
      for (auto& w : waves_) {
        if (w->state == Wave::State::Barrier) w->state = Wave::State::Running;
      }
      if (checker_) checker_->barrier();
      return true;
    }
    for (auto& w : waves_) result_.instructions += w->executed;
    result_.waves += waves_.size();
    return false;
  }

  const LaunchResult& result() const { return result_; }
  const std::vector<u64>& counts() const { return counts_; }
  const Checker* checker() const { return checker_.get(); }

 private:
  void start(Wave& w, u32 number, u32 x, u32 y, u32 z) {
    w.generation = p_.arch.generation;
    w.wave32 = k_.wave32;
    w.fnuz = p_.arch.name == "gfx942";
    w.program = &p_;
    w.memory = &memory_;
    w.number = number;
    w.group[0] = x;
    w.group[1] = y;
    w.group[2] = z;
    w.executed = 0;
    w.scc = false;
    w.index_mode = 0;
    // rounding and denormals; IEEE 754 until GFX12; what overflows in f16
    const bool has_ieee = p_.arch.generation != Generation::Gfx12;
    w.mode = (k_.rsrc1 >> 12 & 0xff) | (has_ieee && (k_.rsrc1 >> 23 & 1) ? kIeeeMode : 0) | (k_.rsrc1 >> 26 & 1 ? kOverflowMode : 0);
    check_mode(w.mode);
    w.state = Wave::State::Running;
    w.lds = lds_.data();
    w.lds_size = k_.lds + l_.dynamic_lds;
    w.scratch_size = scratch_size_;
    w.scratch = scratch_.data() + u64{scratch_size_} * kLanes * number;
    for (Range& r : w.ranges) r = {};
    std::memset(w.s, kPoison, sizeof w.s);
    std::memset(w.v, 0xff, sizeof w.v);
    const u32 first = number * lanes_, left = threads_ - first;
    w.exec = left >= lanes_ ? (lanes_ == 64 ? ~u64{0} : 0xffffffff) : (u64{1} << left) - 1;
    scalars(w, x, y, z);
    // places in the workgroup: one register for all dims, or before GFX11 one for each that is asked for
    w.given_vectors = packs_ ? 1 : 1 + std::min(k_.rsrc2 >> 11 & 3, 2u);
    for (u32 l = 0; l < lanes_; ++l) {
      const u32 t = first + l;
      const u32 tx = t % l_.threads.x, ty = t / l_.threads.x % l_.threads.y, tz = t / (l_.threads.x * l_.threads.y);
      if (packs_) {
        w.v[0][l] = tx | ty << 10 | tz << 20;
      } else {
        const u32 t3[] = {tx, ty, tz};
        for (u32 n = 0; n < w.given_vectors; ++n) w.v[n][l] = t3[n];
      }
    }
    w.pc = static_cast<u32>(p_.index_of(entry_));
    w.checker = checker_.get();
    if (checker_) checker_->start_wave(w);
  }

  // What the hardware puts into scalar registers, in the order of the kernel descriptor.
  void scalars(Wave& w, u32 x, u32 y, u32 z) {
    u32 s = 0;
    if (has_property(k_, 0)) {  // a buffer over the lane's scratch
      w.s[0] = static_cast<u32>(kScratchWindow);
      w.s[1] = static_cast<u32>(kScratchWindow >> 32);
      w.s[2] = 0xffffffff;
      w.s[3] = 0;
      s += 4;
    }
    if (has_property(k_, 1)) {
      write_scalar64(w, s, reinterpret_cast<u64>(l_.packet));
      s += 2;
    }
    if (has_property(k_, 2)) {
      write_scalar64(w, s, reinterpret_cast<u64>(l_.queue));
      s += 2;
    }
    if (has_property(k_, 3)) {
      write_scalar64(w, s, reinterpret_cast<u64>(l_.arguments));
      s += 2;
    }
    if (has_property(k_, 4)) {  // the number of the launch
      write_scalar64(w, s, 0);
      s += 2;
    }
    if (has_property(k_, 5)) {  // flat scratch: offset and size
      w.s[s] = 0;
      w.s[s + 1] = scratch_size_;
      s += 2;
    }
    if (has_property(k_, 6)) w.s[s++] = scratch_size_;
    const u32 length = k_.preload & 127, offset = k_.preload >> 7;
    for (u32 n = 0; n < length; ++n) std::memcpy(&w.s[s + n], l_.arguments + 4 * (offset + n), 4);
    w.given_scalars = s + length;
    entry_ = k_.entry + (length != 0 ? 256 : 0);  // past the code that loads what is preloaded
    s = w.user_scalars = k_.rsrc2 >> 1 & 31;
    if (p_.arch.generation == Generation::Gfx12) {
      w.s[kTtmp + 9] = x;
      w.s[kTtmp + 7] = (y & 0xffff) | z << 16;
      w.s[kTtmp + 8] = w.number << 25;
      w.initial_scalars = s;
      return;
    }
    if (k_.rsrc2 >> 7 & 1) w.s[s++] = x;
    if (k_.rsrc2 >> 8 & 1) w.s[s++] = y;
    if (k_.rsrc2 >> 9 & 1) w.s[s++] = z;
    if (k_.rsrc2 >> 10 & 1) ++s;
    const bool places_scratch = p_.arch.name == "gfx90a" || p_.arch.generation == Generation::Gfx10;
    if ((k_.rsrc2 & 1) && places_scratch) w.s[s++] = 0;  // the wave's place in scratch
    w.initial_scalars = s;
  }

  void step(Wave& w) {
    apply_mode(w);
    const Instruction* code = p_.code.data();
    const u32 size = static_cast<u32>(p_.code.size());
    const u64 left = l_.limit - std::min(l_.limit, w.executed), turn = std::min(left, kTurn);
    u64 executed = 0;
    u32 at = w.pc;
    try {
      while (w.state == Wave::State::Running) {
        at = w.pc;
        if (at >= size) throw Fault("it ran past its code");
        const Instruction& i = code[at];
        if (executed == turn && turn != left) break;
        w.pc = at + 1;
        if (executed == left) throw Fault("it ran " + std::to_string(l_.limit) + " instructions (MGX_EMULATE_LIMIT) and did not end");
        ++executed;
        if (!counts_.empty()) ++counts_[at];
        if (checker_) {
          const u64 exec = w.exec;
          checker_->before(w, i);
          i.run(w, i);
          checker_->after(w, i, exec);
        } else {
          i.run(w, i);
        }
      }
    } catch (const Fault& f) {
      if (at >= size) throw Fault(std::string(f.what()) + ": kernel '" + k_.name + "'");
      char place[128];
      std::snprintf(place, sizeof place, " at 0x%llx in wave %u of workgroup (%u, %u, %u)",
                    static_cast<unsigned long long>(code[at].address), w.number, w.group[0], w.group[1], w.group[2]);
      throw Fault(std::string(f.what()) + ": kernel '" + k_.name + "', " + to_text(code[at]) + place);
    }
    w.executed += executed;
    // many waves may each stay below their limit, and together run for hours
    if ((all_executed_ += executed) > l_.launch_limit) {
      throw Fault("its waves ran more than " + std::to_string(l_.launch_limit) +
                  " instructions together (MGX_EMULATE_LAUNCH_LIMIT): kernel '" + k_.name + "'");
    }
  }

  Program& p_;
  Memory& memory_;
  const Launch& l_;
  const KernelInfo& k_;
  const u64 number_;
  std::atomic<u64>& all_executed_;
  bool packs_ = true;  // a lane's place is one register
  u32 lanes_ = 64, threads_ = 0, scratch_size_ = 0;
  u64 entry_ = 0;
  std::vector<std::unique_ptr<Wave, void (*)(void*)>> waves_;
  std::vector<u8> lds_, scratch_;
  std::vector<u64> counts_;
  std::unique_ptr<Checker> checker_;
  LaunchResult result_;
};

// The workgroups of one host thread: one at a time, until one takes so long that it may wait for
// another; then several in turns.
class Groups {
 public:
  Groups(Program& program, Memory& memory, const Launch& launch, std::size_t most, u64 number, std::atomic<u64>& executed)
      : program_(program), memory_(memory), launch_(launch), most_(most), number_(number), executed_(executed) {}

  void run(std::atomic<u64>& next, u64 total, const std::atomic<bool>& failed) {
    bool more = true;
    while (!failed && (more || !active_.empty())) {
      if (more && (active_.empty() || (active_.size() < most_ && all_are_slow()))) {
        const u64 n = next++;
        more = n < total;
        if (more) begin(n);
        if (active_.empty()) return;
      }
      for (std::size_t k = 0; k < active_.size() && !failed;) {
        Entry& e = active_[k];
        bool on = true;
        // alone it goes on as long as it is not slow
        do {
          on = e.group->turn();
          ++e.turns;
        } while (on && active_.size() == 1 && (e.turns < kPatience || !more) && !failed);
        if (on) {
          ++k;
          continue;
        }
        idle_.push_back(e.group);
        active_.erase(active_.begin() + static_cast<std::ptrdiff_t>(k));
      }
    }
  }

  const std::vector<std::unique_ptr<Group>>& all() const { return all_; }

 private:
  struct Entry {
    Group* group;
    int turns;
  };

  bool all_are_slow() const {
    return std::all_of(active_.begin(), active_.end(), [](const Entry& e) { return e.turns >= kPatience; });
  }

  void begin(u64 n) {
    if (idle_.empty()) {
      all_.push_back(std::make_unique<Group>(program_, memory_, launch_, number_, executed_));
      idle_.push_back(all_.back().get());
    }
    Group* group = idle_.back();
    idle_.pop_back();
    group->begin(static_cast<u32>(n % launch_.groups.x), static_cast<u32>(n / launch_.groups.x % launch_.groups.y),
                 static_cast<u32>(n / (u64{launch_.groups.x} * launch_.groups.y)));
    active_.push_back({group, 0});
  }

  Program& program_;
  Memory& memory_;
  const Launch& launch_;
  const std::size_t most_;
  const u64 number_;
  std::atomic<u64>& executed_;
  std::vector<std::unique_ptr<Group>> all_;
  std::vector<Group*> idle_;
  std::vector<Entry> active_;
};

}  // namespace

u64 most_groups(const KernelInfo& kernel, const Grid& threads) {
  const u64 lanes = kernel.wave32 ? 32 : 64, count = (u64{threads.x} * threads.y * threads.z + lanes - 1) / lanes;
  return std::max<u64>(1, kMostWaves / std::max<u64>(1, count));
}

LaunchResult run_launch(Program& program, Memory& memory, const Launch& launch) {
  const KernelInfo& k = *launch.kernel;
  const u64 threads = u64{launch.threads.x} * launch.threads.y * launch.threads.z;
  if (threads == 0 || threads > 1024) {
    throw Error("kernel '" + k.name + "': expected 1 to 1024 threads in a workgroup, got " + std::to_string(threads));
  }
  if (u64{k.lds} + launch.dynamic_lds > kMostLds) {
    throw Error("kernel '" + k.name + "': expected at most " + std::to_string(kMostLds) + " bytes of LDS, got " +
                std::to_string(u64{k.lds} + launch.dynamic_lds));
  }
  if (u64{k.scratch} * threads > launch.most_scratch) {
    throw Error("kernel '" + k.name + "': " + std::to_string(k.scratch) + " bytes of scratch for each thread are more than the device has");
  }
  const u64 total = u64{launch.groups.x} * launch.groups.y * launch.groups.z;
  const u64 workers = std::max<u64>(1, std::min<u64>(static_cast<u64>(std::max(1, launch.host_threads)), total));
  const std::size_t most = static_cast<std::size_t>(std::max<u64>(1, most_groups(k, launch.threads) / workers));
  std::atomic<u64> next{0}, executed{0};
  static std::atomic<u64> launches{0};
  const u64 number = ++launches;
  std::atomic<bool> failed{false};
  std::mutex mutex;
  std::string failure;
  std::set<std::string> problems;
  LaunchResult result;
  const auto work = [&] {
    const HostMode restore;
    try {
      Groups groups(program, memory, launch, most, number, executed);
      groups.run(next, total, failed);
      std::lock_guard<std::mutex> lock(mutex);
      for (const auto& group : groups.all()) {
        result.waves += group->result().waves;
        result.instructions += group->result().instructions;
        if (group->checker() != nullptr) problems.insert(group->checker()->problems().begin(), group->checker()->problems().end());
        for (std::size_t n = 0; n < group->counts().size(); ++n) program.executed[n] += group->counts()[n];
      }
    } catch (const std::exception& e) {
      std::lock_guard<std::mutex> lock(mutex);
      if (!failed.exchange(true)) failure = e.what();
    }
  };
  std::vector<std::thread> threads_running;
  for (int t = 1; t < launch.host_threads && static_cast<u64>(t) < total; ++t) threads_running.emplace_back(work);
  work();
  for (std::thread& t : threads_running) t.join();
  if (failed) throw Fault(failure);
  if (!problems.empty()) {
    std::string text = "the checks found problems:";
    std::size_t shown = 0;
    for (const std::string& p : problems) {
      if (++shown > kShownProblems) break;
      text += "\n  " + p;
    }
    throw Fault(text + "\n");
  }
  return result;
}

}  // namespace mgx
