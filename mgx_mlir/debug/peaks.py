"""Peak rates of this machine: bytes and operations a second, measured by small kernels."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from mgx_mlir.core.errors import FileError
from mgx_mlir.core.files import atomic, read_bytes
from mgx_mlir.core.literals import aligned_empty
from mgx_mlir.programs.lowered import Lowered
from mgx_mlir.runtime.iree_runtime import LoadedModule
from mgx_mlir.targets.base import BackendOptions, CpuTarget
from mgx_mlir.targets.cache import default_cache, digest
from mgx_mlir.targets.child import compiler_version
from mgx_mlir.targets.flags import host_cpu

_FLOATS = 1 << 24  # floats of each copied array: 64 MiB, larger than the caches
_LANES = 1 << 16  # elements of the compute kernel, which stay in caches
_CHAINS = 8  # independent sums per element, so that no addition waits for the one before
_STEPS = 64  # fused multiply-adds of each chain
_REPEATS = 20
_LARGEST = 1 << 16  # largest size in bytes of the file with the measured peaks
_ROUNDS = 3  # measurements at most; later results above the peaks are due to noise of the machine


@dataclass(frozen=True)
class Peaks:
    """Highest rates measured on this number of threads."""

    threads: int
    gb_s: float  # memory bandwidth in 10**9 bytes a second, read and written
    gflop_s: float  # rate of f32 fused multiply-adds in 10**9 operations a second


def machine_peaks(threads: int, *, least: Peaks | None = None) -> Peaks:
    """Return the peaks of this machine, measured once and stored in the cache.

    With `least`, an earlier measurement, they are measured again and the higher values are stored.
    After some rounds the stored ones are returned. Errors: those of compiling and running.
    """
    path = _file(threads)
    kept, rounds = (None, 0) if path is None else _read(path, threads)
    if kept is not None and (least is None or rounds >= _ROUNDS):
        return kept
    found = _measure(threads)
    if least is not None:
        higher = max(found.gb_s, least.gb_s), max(found.gflop_s, least.gflop_s)
        found = Peaks(threads, *higher)
    if path is not None:
        _write(path, found, rounds + 1)
    return found


def _file(threads: int) -> Path | None:
    store = default_cache()
    if store is None:
        return None
    key = digest("peaks 1", host_cpu(), compiler_version(), str(threads))[:24]
    return store.root / "peaks" / f"{key}.json"


def _read(path: Path, threads: int) -> tuple[Peaks | None, int]:
    """Return the stored peaks and the number of their measurements; None for a malformed file."""
    try:
        data = read_bytes(path)
        row = json.loads(bytes(data)) if len(data) <= _LARGEST else {}
        found = Peaks(int(row["threads"]), float(row["gb_s"]), float(row["gflop_s"]))
        rounds = int(row.get("rounds", 1))
    except (FileError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None, 0
    sound = all(math.isfinite(x) and x > 0 for x in (found.gb_s, found.gflop_s))
    return (found, rounds) if sound and found.threads == threads else (None, 0)


def _write(path: Path, found: Peaks, rounds: int) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic(path) as f:
            f.write(json.dumps({**asdict(found), "rounds": rounds}).encode())
    except OSError:
        return  # the peak is measured again


def _measure(threads: int) -> Peaks:
    x, y = (_filled(_FLOATS, v) for v in (1.0, 2.0))
    elapsed, used = _best(_sum_kernel(), threads, [x, y])
    # wall time counts for several threads: they share the memory
    moved = min(elapsed, used) if threads == 1 else elapsed
    a, b = (_filled(_LANES * threads, v) for v in (0.5, 0.25))
    elapsed, used = _best(_fma_kernel(threads), threads, [a, b], inner=32)
    # CPU time counts for one thread: other load changes it less than wall time
    computed = min(elapsed, used / threads)
    operations = 2 * _CHAINS * _STEPS * _LANES * threads
    return Peaks(threads, 3 * 4 * _FLOATS / moved / 1e9, operations / computed / 1e9)


def _filled(count: int, value: float) -> np.ndarray:
    out = aligned_empty((count,), np.dtype(np.float32))
    out[...] = value
    return out


def _best(
    text: str, threads: int, arrays: Sequence[np.ndarray], inner: int = 1
) -> tuple[float, float]:
    """Return the seconds of a module's fastest call, in wall time and in CPU time."""
    target = CpuTarget(threads=threads)
    made = target.compile_lowered(Lowered(text.encode()), BackendOptions())
    loaded = LoadedModule(made.vmfb, threads=threads)
    loaded.run(arrays)
    elapsed, used = [], []
    for _ in range(_REPEATS):
        start, start_used = time.perf_counter(), time.process_time()
        for _ in range(inner):
            loaded.run(arrays)
        elapsed.append((time.perf_counter() - start) / inner)
        used.append((time.process_time() - start_used) / inner)
    return min(elapsed), min(used)


def _sum_kernel() -> str:
    return _generic(_FLOATS, ["%r = arith.addf %x, %y : f32"])


def _fma_kernel(threads: int) -> str:
    """Return a kernel of x * y + x, repeated in independent chains whose results are added."""
    lines = []
    for c in range(_CHAINS):
        # each chain has another constant: equal chains would be merged
        lines.append(f"%k{c} = arith.constant {c + 1}.0 : f32")
        lines.append(f"%c{c}_0 = arith.mulf %x, %k{c} : f32")
    for s in range(_STEPS):
        for c in range(_CHAINS):
            lines.append(f"%c{c}_{s + 1} = math.fma %c{c}_{s}, %y, %x : f32")
    last = f"%c0_{_STEPS}"
    for c in range(1, _CHAINS):
        name = "%r" if c == _CHAINS - 1 else f"%t{c}"
        lines.append(f"{name} = arith.addf {last}, %c{c}_{_STEPS} : f32")
        last = name
    return _generic(_LANES * threads, lines)


def _generic(count: int, body: Sequence[str]) -> str:
    inside = "\n      ".join(body)
    return f"""
#map = affine_map<(d0) -> (d0)>
func.func @main(%a: tensor<{count}xf32>, %b: tensor<{count}xf32>) -> tensor<{count}xf32> {{
  %init = tensor.empty() : tensor<{count}xf32>
  %0 = linalg.generic {{indexing_maps = [#map, #map, #map], iterator_types = ["parallel"]}}
      ins(%a, %b : tensor<{count}xf32>, tensor<{count}xf32>) outs(%init : tensor<{count}xf32>) {{
    ^bb0(%x: f32, %y: f32, %o: f32):
      {inside}
      linalg.yield %r : f32
  }} -> tensor<{count}xf32>
  return %0 : tensor<{count}xf32>
}}
"""
