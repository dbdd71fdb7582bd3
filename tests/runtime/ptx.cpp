// Runs kernels of PTX: warps of a workgroup by turns, each until a barrier or its end.
#include "ptx.h"

#include "ptx_code.h"

namespace ptx {
namespace {

// Runs a warp until it ends or all of it waits at a barrier.
void run(Warp& w, const Code& code) {
  std::uint32_t arrived = 0;  // lanes at an instruction of all lanes, which wait for the others
  while (w.live != 0) {
    int at = 1 << 30, other = 1 << 30;
    std::uint32_t mask = 0;
    const bool all_arrived = (w.live & ~arrived) == 0;
    if (all_arrived) arrived = 0;
    each(w.live & ~arrived, [&](int lane) {
      if (w.pc[lane] < at) {
        other = at;
        at = w.pc[lane];
        mask = 0;
      } else if (w.pc[lane] > at && w.pc[lane] < other) other = w.pc[lane];
      if (w.pc[lane] == at) mask |= 1u << lane;
    });
    if (all_arrived && mask != w.live) throw Fault(kFailed, "lanes of a warp wait for one another at two instructions");
    for (int pc = at; pc != other;) {
      const Instruction& one = code.all[pc];
      if ((one.is_barrier || one.of_all) && mask != w.live) {
        each(mask, [&](int lane) { w.pc[lane] = pc; });
        arrived |= mask;
        break;
      }
      std::uint32_t now = mask;
      if (one.guard >= 0)
        each(mask, [&](int lane) {
          if ((w.lanes(one.guard)[lane] != 0) == one.is_negated) now &= ~(1u << lane);
        });
      ++pc;
      if (one.is_exit) {
        w.live &= ~now;
        mask &= ~now;
        if (mask == 0) {
          each(now, [&](int lane) { w.pc[lane] = pc; });
          break;
        }
      } else if (one.is_branch) {
        if (now == mask && other == 1 << 30) {
          pc = one.target;
        } else if (now != 0) {
          each(mask, [&](int lane) { w.pc[lane] = pc; });
          each(now, [&](int lane) { w.pc[lane] = one.target; });
          mask = 0;
          break;
        }
      } else if (one.is_barrier) {
        if (now != w.live) throw Fault(kFailed, "a part of a warp waits at a barrier");
        each(w.live, [&](int lane) { w.pc[lane] = pc; });
        return;
      } else {
        if (one.of_all && now != w.live) throw Fault(kFailed, "an instruction of all lanes in diverged code");
        if (now != 0) one.run(w, now);
      }
      if (pc == other || pc == static_cast<int>(code.all.size())) {
        each(mask, [&](int lane) { w.pc[lane] = pc; });
        break;
      }
    }
  }
}

void begin(Warp& w, Group& group, const Code& code, unsigned first) {
  const unsigned x = group.block.x, y = group.block.y, threads = x * y * group.block.z;
  w.group = &group;
  w.number = static_cast<int>(first / kLanes);
  w.r.assign(std::size_t(code.registers) * kLanes, 0);
  w.local.assign(std::size_t(code.kernel->local) * kLanes, 0);
  w.begun.clear();
  w.copies.clear();
  w.live = 0;
  for (int lane = 0; lane < kLanes; ++lane) {
    w.pc[lane] = 0;
    const unsigned t = first + lane;
    if (t < threads) w.live |= 1u << lane;
    const unsigned values[kSpecials] = {t % x, t / x % y, t / x / y, x, y, group.block.z, group.at.x, group.at.y, group.at.z,
                                        group.grid.x, group.grid.y, group.grid.z, static_cast<unsigned>(lane), first / kLanes};
    for (int i = 0; i < kSpecials; ++i) w.set(i, lane, values[i]);
  }
  for (const auto& [reg, value] : code.numbers)
    for (int lane = 0; lane < kLanes; ++lane) w.lanes(reg)[lane] = value;
}

}  // namespace

void launch(const Code& code, Dims grid, Dims block, std::size_t dynamic, const char* parameters) {
  const unsigned threads = block.x * block.y * block.z;
  Group group{block, grid, {}, {}, parameters, 1, {}};
  std::vector<Warp> warps((threads + kLanes - 1) / kLanes);
  for (unsigned z = 0; z < grid.z; ++z)
    for (unsigned y = 0; y < grid.y; ++y)
      for (unsigned x = 0; x < grid.x; ++x) {
        group.at = {x, y, z};
        group.shared.assign(code.kernel->shared + dynamic, static_cast<char>(0xff));
        group.uses.assign(group.shared.size() / 4 + 1, {});
        for (std::size_t i = 0; i < warps.size(); ++i) begin(warps[i], group, code, static_cast<unsigned>(i) * kLanes);
        for (bool some = true; some;) {
          some = false;
          ++group.turn;
          for (Warp& w : warps) {
            run(w, code);
            some = some || w.live != 0;
          }
        }
      }
}


std::unique_ptr<Loaded> load(const char* text, const Check& check) {
  auto made = std::make_unique<Loaded>();
  Reader(text, made->text);
  for (const auto& [name, kernel] : made->text.kernels) {
    Builder builder(made->text, kernel, check);
    made->kernels[name] = std::make_unique<Code>(builder.code());
  }
  return made;
}

}  // namespace ptx
