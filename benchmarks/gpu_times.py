"""Times of whole networks on a GPU beside torch: eager, inductor, inductor's max-autotune.

All of one network run in one process, interleaved, with inputs and results on the device. A time
is the median of synchronous calls, or the mean of a row of asynchronous calls. Without a recorded
graph our calls are synchronous, so that both are the same.
"""

from __future__ import annotations

import fcntl
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

import mgx_mlir
from benchmarks import gpu_stored
from benchmarks.gpu_networks import NETWORKS, Network, moved_bytes
from benchmarks.gpu_parts import say
from mgx_mlir.core.errors import MgxError
from mgx_mlir.integrations.torch import calls

ROUNDS, ROW = 15, 10  # turns of each; calls of a row


@contextmanager
def alone(lock: Path) -> Iterator[None]:
    """Hold the machine's turn for times: other networks compile meanwhile."""
    with open(lock, "w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


def models(folder: Path, name: str, together: str = "1") -> None:
    """Time a network; each figure is a line. together: processes that time one beside it."""
    try:
        one(folder, name, NETWORKS[name], int(together))
    except Exception as e:  # the file says why
        say(model=name, error=f"{type(e).__name__}: {e}"[:600])


def meet(folder: Path, stage: str, name: str, together: int, seconds: float = 110.0) -> None:
    """Wait until all processes have compiled: compilers on the CPUs slow hosts' work down."""
    place = folder / f"compiled-{stage}"
    place.mkdir(exist_ok=True)
    (place / name).touch()
    end = time.monotonic() + seconds
    while time.monotonic() < end and len(list(place.iterdir())) < together:
        time.sleep(0.2)


def one(folder: Path, name: str, network: Network, together: int) -> None:
    """Check and time a network beside its peers: those that compile fast first."""
    inputs, module = [t.cuda() for t in network.inputs()], network.built()
    moved, runs = moved_bytes(network, module), ours(folder, name, network, inputs)
    module, given = module.cuda(), list(inputs)
    if network.channels_last:
        module = module.to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]
        given = [t.contiguous(memory_format=torch.channels_last) for t in given]
    quick = [p for p in network.peers if p != "max-autotune"]
    with torch.inference_mode():
        slow = [p for p in network.peers if p not in quick]
        for stage, peers in (("quick", quick), ("slow", slow)):
            for peer in peers:
                add_peer(runs, name, peer, module, given)
            meet(folder, stage, name, together)
            if peers or stage == "quick":
                with alone(folder / "turn"):
                    for label, row in timed(runs).items():
                        say(model=name, by=label, moved_bytes=moved, **row)
            if stage == "quick":  # slow compilers measure on the same card
                meet(folder, "timed", name, together)


def ours(
    folder: Path, name: str, network: Network, inputs: list[torch.Tensor]
) -> dict[str, Callable[[], Any]]:
    """Load our program, check it, and return what runs it: as is the default, and by launches."""
    file = folder / "models" / f"{network.program or name}.mxr"
    if not file.is_file():
        say(model=name, by="ours", error="not compiled")
        return {}
    case = gpu_stored.read(file)
    runs: dict[str, Callable[[], Any]] = {}
    for label, graph in (("ours", None), ("ours, launches", False)):
        try:
            made = mgx_mlir.load(file, graph=graph)
            run = calls.runner(made)
            # results are stored for the sizes of the program's first network alone
            wrong = None
            if not network.program:
                # results of the stored inputs: another torch may draw others from the same seed
                held, wanted = case.runs[0]
                given = [torch.from_numpy(held[n]).cuda() for n in network.names]
                found = [t.cpu().numpy() for t in run(given)]
                wrong = gpu_stored.judge(case, found, wanted)
            say(model=name, by=label, wrong=wrong,
                kernels=len(made.executable.launches("main")),
                fallbacks=list(made.executable.fallbacks))  # fmt: skip
            runs[label] = lambda run=run: run(inputs)
        except (MgxError, RuntimeError) as e:
            say(model=name, by=label, error=str(e)[:600])
    return runs


def add_peer(
    runs: dict[str, Callable[[], Any]], name: str, peer: str, module: Any, given: list[torch.Tensor]
) -> None:
    """Compile a network by torch, and add what runs it."""
    start = time.perf_counter()
    try:
        f = module if peer == "eager" else torch.compile(module, mode=peer)
        for _ in range(3):
            f(*given)
        torch.cuda.synchronize()
    except Exception as e:  # a peer that fails is no reason to time no other
        say(model=name, by=f"torch {peer}", error=f"{type(e).__name__}: {e}"[:300])
        return
    runs[f"torch {peer}"] = lambda: f(*given)
    say(model=name, by=f"torch {peer}", compile_s=round(time.perf_counter() - start, 1))


def timed(runs: dict[str, Callable[[], Any]], row: int = ROW) -> dict[str, dict[str, float]]:
    """Return microseconds of each, interleaved: of single calls, and of `row` calls in a row."""
    single: dict[str, list[float]] = {label: [] for label in runs}
    rows: dict[str, list[float]] = {label: [] for label in runs}
    for run in runs.values():
        for _ in range(5):
            run()
    torch.cuda.synchronize()
    for _ in range(ROUNDS):
        for label, run in runs.items():
            run()
            torch.cuda.synchronize()
            begin = time.perf_counter()
            run()
            torch.cuda.synchronize()
            single[label].append(time.perf_counter() - begin)
            begin = time.perf_counter()
            for _ in range(row):
                run()
            torch.cuda.synchronize()
            rows[label].append((time.perf_counter() - begin) / row)
    return {
        label: {
            "us": round(statistics.median(single[label]) * 1e6, 1),
            "least_us": round(min(single[label]) * 1e6, 1),
            "row_us": round(statistics.median(rows[label]) * 1e6, 1),
        }
        for label in runs
    }
