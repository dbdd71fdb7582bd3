"""The overhead of a call of a compiled torch module: `-m benchmarks.torch_call`.

CPU microseconds, one thread, ten `nn.Linear` of 32 with ReLU. Each line is the median over blocks
of one way. "within a call" is the program as a
call of the module meets it: what ran before has taken the processor's caches.
"""

from __future__ import annotations

import copy
import sys
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from mgx_mlir.compiler.iree_program import IreeProgram
from mgx_mlir.debug.engine_times import time_engines
from mgx_mlir.integrations.torch import calls
from mgx_mlir.integrations.torch.backend import mgx

CALLS = 4000  # calls of the module, in which the program is timed


def main() -> int:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    layers = [part for _ in range(10) for part in (nn.Linear(32, 32), nn.ReLU())]
    model, x = nn.Sequential(*layers).eval(), torch.randn(4, 32)
    programs: list[Any] = []
    within: list[int] = []
    before = calls.runner

    def noted(made: Any) -> Any:
        programs.append(made)
        return before(made)

    import mgx_mlir.integrations.torch.backend as backend

    backend.runner = noted
    with torch.no_grad():
        held = [model(x)]

        def nothing(gm: Any, examples: Any) -> Any:
            return lambda *_: held

        def compiled(how: Any, **more: Any) -> Callable[[], Any]:
            run = torch.compile(copy.deepcopy(model), backend=how, **more)
            run(x)
            return lambda: run(x)

        ways = {
            "eager": lambda: model(x),
            "a backend that gives the graph back": compiled(lambda gm, _: gm.forward),
            "a backend that does nothing": compiled(nothing),
            "mgx": compiled(mgx, options={"threads": 1}),
        }
        [program] = programs
        given = {program.input_names[0]: x.numpy()}
        ways["the program alone"] = lambda: program.run(given)
        times = time_engines(ways, clock="cpu", block=0.05)
        found = {name: times.seconds(name) * 1e6 for name in ways}
        for name, value in found.items():
            print(f"{name:40} {value:7.1f} us")

        run_known = IreeProgram.run_known

        def timed(self: Any, given: Any) -> Any:
            start = time.perf_counter_ns()
            result = run_known(self, given)
            within.append(time.perf_counter_ns() - start)
            return result

        IreeProgram.run_known = timed  # type: ignore[method-assign]
        torch._dynamo.reset()
        run = compiled(mgx, options={"threads": 1})
        within.clear()
        for _ in range(CALLS):
            run()
        inside = sorted(within)[len(within) // 10] / 1e3
    print(f"{'the program within a call':40} {inside:7.1f} us")
    total = found["mgx"]
    print(f"beyond the program alone: {total - found['the program alone']:.1f} us")
    print(f"beyond the program within a call: {total - inside:.1f} us")
    return 0


if __name__ == "__main__":
    sys.exit(main())
