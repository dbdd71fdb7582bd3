"""Cost of a GPU call beyond its kernels: torch.compile, the program, the launch alone.

All are measured in one process, interleaved, on one `nn.Linear` of 64 x 64 and 4 rows in f16: the
latency of a synchronous call, and the mean of 200 asynchronous calls in a row, which the host
bounds.
"""

from __future__ import annotations

import copy
import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

import mgx_mlir
from benchmarks import gpu_stored
from benchmarks.gpu_networks import NETWORKS
from benchmarks.gpu_parts import say
from benchmarks.gpu_times import timed
from mgx_mlir.integrations.torch import calls
from mgx_mlir.runtime.device_memory import at_address
from mgx_mlir.runtime.graphs import GraphModule

NAME, ROW = "call-linear", 200
_MODES = (None, "default", "reduce-overhead")  # modes of torch's inductor; None: eager


def ahead(made: Any) -> Callable[..., Any]:
    """Return a backend of torch.compile whose program was compiled ahead, for a whole module."""
    from mgx_mlir.integrations.torch.backend import Graph
    from mgx_mlir.integrations.torch.options import TorchOptions

    class Ahead(Graph):
        def _call(self, frozen: Any) -> calls.Call:
            return calls.Call(frozen, calls.runner(made))

    return lambda gm, examples: Ahead(gm, examples, TorchOptions.of({}, None)).function()


def cost(folder: Path) -> None:
    """Time a call in all ways; each is a line."""
    network = NETWORKS[NAME]
    file = folder / "models" / f"{NAME}.mxr"
    case = gpu_stored.read(file)
    module = network.built().cuda()
    x = network.inputs()[0].cuda()
    runs: dict[str, Callable[[], Any]] = {}
    with torch.inference_mode():
        for label, graph in (("ours", None), ("ours, launches", False)):
            made = mgx_mlir.load(file, graph=graph)
            run = calls.runner(made)
            wrong = gpu_stored.judge(case, [t.cpu().numpy() for t in run([x])], case.runs[0][1])
            say(call=f"{label}, the program", wrong=wrong, kind=type(made.load()).__name__)
            runs[f"{label}, the program"] = lambda run=run: run([x])
            if importlib.util.find_spec("torch_mlir") is None:
                say(call=label, skipped="the bindings are not installed")
                continue
            fast = torch.compile(copy.deepcopy(module), backend=ahead(made))
            wrong = gpu_stored.judge(case, [fast(x).cpu().numpy()], case.runs[0][1])
            say(call=f"{label}, torch.compile", wrong=wrong)
            runs[f"{label}, torch.compile"] = lambda fast=fast: fast(x)
        add_launch(runs, mgx_mlir.load(file), x)
        held = [module(x)]
        nothing = torch.compile(copy.deepcopy(module), backend=lambda gm, _: lambda *a: held)
        nothing(x)
        runs["a backend that does nothing"] = lambda: nothing(x)
        for mode in _MODES:
            other = copy.deepcopy(module)
            f = other if mode is None else torch.compile(other, mode=mode)
            for _ in range(3):
                f(x)
            runs[f"torch {mode or 'eager'}"] = lambda f=f: f(x)
        for label, row in timed(runs, ROW).items():
            say(call=label, **row)


def add_launch(runs: dict[str, Callable[[], Any]], made: Any, x: torch.Tensor) -> None:
    """Add the recorded launch between its copies, without a check of inputs or new results."""
    module = made.load()
    if not isinstance(module, GraphModule):
        return
    port = module.inputs[0]
    call = module.recorded([at_address(module.device, x.data_ptr(), port.dtype, port.dims)])
    if call is None:
        return
    y = torch.empty(call.dims[0], dtype=x.dtype, device=x.device)
    stream = torch.cuda.current_stream().cuda_stream
    at = [x.data_ptr()], [y.data_ptr()]

    def launch(_: Any = (made, y)) -> None:  # the default keeps program and result alive
        call.launch(*at, stream, wait=False)

    runs["the launch alone"] = launch
