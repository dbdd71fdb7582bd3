"""The host waits ahead of what IREE's CUDA queue would wait for on the device."""

from __future__ import annotations

import subprocess
import sys

from mgx_mlir.targets import worker

# an execution behind an allocation; a copy behind it; a loop whose copies follow one another
PROGRAM = """
util.func public @main(%device: !hal.device, %cmd: !hal.command_buffer, %from: !hal.buffer,
                       %n: index, %again: i1) {
  %any = arith.constant -1 : i64
  %none = util.null : !hal.fence
  %kind = arith.constant 48 : i32
  %a = hal.fence.create device(%device : !hal.device) flags("None") : !hal.fence
  %to = hal.device.queue.alloca<%device : !hal.device> affinity(%any) wait(%none) signal(%a)
      pool(%any) type(%kind) usage(%kind) flags("None") : !hal.buffer{%n}
  %b = hal.fence.create device(%device : !hal.device) flags("None") : !hal.fence
  %ab = hal.fence.join at([%a, %none]) flags("None") -> !hal.fence
  hal.device.queue.execute<%device : !hal.device> affinity(%any) wait(%ab) signal(%b)
      commands(%cmd) flags("None")
  %c = hal.fence.create device(%device : !hal.device) flags("None") : !hal.fence
  hal.device.queue.copy<%device : !hal.device> affinity(%any) wait(%b) signal(%c)
      source(%from : !hal.buffer)[%n] target(%to : !hal.buffer)[%n] length(%n) flags("None")
  cf.br ^loop(%c : !hal.fence)
^loop(%before: !hal.fence):
  %d = hal.fence.create device(%device : !hal.device) flags("None") : !hal.fence
  hal.device.queue.copy<%device : !hal.device> affinity(%any) wait(%before) signal(%d)
      source(%from : !hal.buffer)[%n] target(%to : !hal.buffer)[%n] length(%n) flags("None")
  cf.cond_br %again, ^loop(%d : !hal.fence), ^end
^end:
  util.return
}
"""
ADDED = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("worker", sys.argv[1])
worker = importlib.util.module_from_spec(spec)
spec.loader.exec_module(worker)
worker._set_options()
ir, waits = worker._bindings(), worker._beside("worker_waits")
with ir.Context():
    module = ir.Module.parse(sys.argv[2])
    print(waits.add(ir, module.operation), module.operation.verify())
    print(module)
"""


def test_what_waits_for_an_allocation_alone_is_left() -> None:
    done = subprocess.run(
        [sys.executable, "-c", ADDED, str(worker.__file__), PROGRAM],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    first, _, text = done.stdout.partition("\n")
    assert first == "2 True"
    lines = [line.strip() for line in text.splitlines()]
    queue = [i for i, line in enumerate(lines) if line.startswith("hal.device.queue.")]
    ahead = ["fence.await" in lines[i - 2] and "check_ok" in lines[i - 1] for i in queue]
    assert ahead == [False, True, True]
    fences = [lines[i - 2].split("[")[1].split("]")[0] for i in queue[1:]]
    assert all(f"wait({f})" in lines[i] for f, i in zip(fences, queue[1:], strict=True))
