"""Schedules of matmuls on NVIDIA GPUs by a clock: compiled ahead, timed on the device, judged.

    python benchmarks/gpu_schedules.py compile --arch sm_90 FOLDER      # any machine
    python benchmarks/gpu_schedules.py time FOLDER -o times.json        # the machine with the GPU
    python benchmarks/gpu_schedules.py judge times.json... [--write]    # any machine

`compile` makes a module for each GEMM, in which each function is one schedule. `time` needs
iree-base-runtime, numpy and torch, and nothing of this package: torch's profiler gives the time of
each kernel, its matmul the right result and the peer's time. `judge` says how the bound that
chooses tiles (`passes/lowering/gpu/matmul/tiles.py`) orders them beside the clock. With --fit it
fits the bound's clocks to the times of the first 17 GEMMs; the others judge the fit. With --write
clocks and timed schedules go to the configs of NVIDIA's architectures
(`passes/lowering/gpu/configs`), and the figures to docs/data/nvidia-matmuls.md.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from pathlib import Path
from typing import Any
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

# rows, columns and depth: layers of BERT-base, ResNet-50 and Llama, and squares
FIRST = (
    (6144, 3072, 768), (6144, 768, 3072), (4096, 4096, 4096), (1024, 1024, 1024), (128, 768, 768),
    (128, 768, 3072), (512, 2304, 768), (784, 128, 512), (196, 256, 1024), (49, 2048, 512),
    (3136, 256, 64), (64, 4096, 4096), (2048, 2048, 2048), (256, 1024, 4096), (1000, 512, 2048),
    (32, 2304, 768), (400, 1280, 1280),
)  # fmt: skip
# held out from fits: BERT-large, ViT, Whisper, ResNet-50, GPT-2, UNets, Llama, Qwen, others
HELD_OUT = (
    (384, 1024, 1024), (384, 4096, 1024), (384, 1024, 4096), (3072, 3072, 1024),
    (197, 2304, 768), (197, 768, 3072), (577, 1024, 1024), (577, 4096, 1024), (1576, 3072, 768),
    (1500, 384, 384), (1500, 1536, 384), (1500, 512, 512), (1500, 1280, 1280), (1500, 5120, 1280),
    (784, 512, 128), (784, 256, 512), (196, 1024, 256), (196, 512, 1024), (49, 512, 2048),
    (25088, 256, 64), (25088, 64, 256), (6272, 512, 128), (1568, 1024, 256), (1568, 256, 1024),
    (392, 2048, 512), (64, 2304, 768), (256, 3072, 768), (1024, 768, 768), (1024, 2304, 768),
    (4096, 320, 320), (4096, 2560, 320), (4096, 320, 1280), (1024, 640, 640), (1024, 5120, 640),
    (256, 1280, 1280), (256, 1280, 5120), (154, 1280, 1024), (16, 4096, 4096), (32, 4096, 4096),
    (128, 4096, 4096), (512, 4096, 4096), (512, 6144, 4096), (512, 14336, 4096),
    (512, 4096, 14336), (16, 14336, 4096), (64, 4096, 14336), (128, 3584, 3584),
    (128, 18944, 3584), (1024, 2048, 2048), (2048, 512, 2048), (512, 512, 512), (256, 256, 256),
    (3072, 3072, 3072), (1234, 1000, 1024), (333, 777, 512), (100, 1000, 2048), (48, 1536, 1536),
    (72, 576, 2304), (640, 2560, 640), (896, 896, 896), (2000, 256, 256), (5000, 96, 384),
    (8192, 1024, 1024),
)  # fmt: skip
GEMMS = (*FIRST, *HELD_OUT)
# instructions of 16x8 along the rows and columns of a workgroup, its warps, instructions of depth
# 16 between two barriers
SCHEDULES = (
    ((8, 16), (2, 2), 2), ((8, 16), (2, 2), 4), ((8, 16), (2, 4), 2), ((4, 16), (2, 2), 2),
    ((4, 16), (2, 2), 4), ((8, 8), (2, 2), 2), ((8, 8), (2, 2), 4), ((4, 8), (2, 2), 4),
    ((4, 8), (2, 2), 8), ((4, 8), (2, 4), 8), ((2, 8), (2, 2), 8), ((2, 8), (2, 2), 16),
    ((2, 8), (2, 4), 16), ((2, 4), (2, 2), 8), ((2, 4), (2, 2), 16), ((1, 8), (1, 4), 16),
    ((1, 4), (1, 4), 16), ((2, 2), (2, 2), 16),
)  # fmt: skip
WRONG = 2e-3  # largest error of the largest result that rounding to f16 makes
CALLS = 12  # timed runs of each kernel
SEED = 0


# ------------------------------------------------------------------------------------ compile


def _program(m: int, n: int, k: int, dtype: str, arch: str) -> Any:
    """Make a matmul by weights, as it is after the passes."""
    import ml_dtypes
    import numpy as np
    from onnx import TensorProto, helper

    from mgx_mlir.compiler.models import program_of
    from mgx_mlir.compiler.options import CompileOptions
    from mgx_mlir.compiler.stages import run_passes

    kind = {"f16": TensorProto.FLOAT16, "bf16": TensorProto.BFLOAT16}[dtype]
    w = (
        np.random.default_rng(SEED)
        .standard_normal((k, n))
        .astype(np.float16 if dtype == "f16" else ml_dtypes.bfloat16)
    )
    held = helper.make_tensor("w", kind, [k, n], w.tobytes(), raw=True)
    x, y = (helper.make_tensor_value_info(i, kind, d) for i, d in (("x", [m, k]), ("y", [m, n])))
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])], "g", [x], [y], [held]
    )
    opsets = [helper.make_opsetid("", 18)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
    program = program_of(model.SerializeToString(), {})
    run_passes(program, CompileOptions(target="gpu", arch=arch))
    return program


def compile_all(arch: str, folder: Path, dtype: str) -> int:
    """Write a module for each GEMM, and what its functions are."""
    from mgx_mlir.compiler.tuning.gemm_search import TOGETHER, lowered_choices, product_kernels
    from mgx_mlir.core.errors import CompileError
    from mgx_mlir.passes.lowering.gpu.matmul.gemm_shape import ROWS, GemmConfig
    from mgx_mlir.passes.lowering.gpu.matmul.tiles import MmaSchedule
    from mgx_mlir.targets.child import shared_compiler
    from mgx_mlir.targets.flags import gpu_ladder

    folder.mkdir(parents=True, exist_ok=True)
    configs = [GemmConfig(None)]
    configs += [GemmConfig(MmaSchedule((1, *t), (1, *w), steps)) for t, w, steps in SCHEDULES]
    flags, compiler = gpu_ladder(arch)[0].flags, shared_compiler()
    listed = folder / "work.json"
    rows: list[dict[str, Any]] = json.loads(listed.read_text()) if listed.exists() else []
    for m, n, k in GEMMS:
        if any(r["dims"] == [m, n, k] and r["dtype"] == dtype for r in rows):
            continue
        program = _program(m, n, k, dtype, arch)
        kernels = product_kernels(program, arch)
        if not kernels:
            print(f"{m}x{n}x{k}: no matmul with tiles", flush=True)
            continue

        [(shape, _)] = kernels.items()
        fitting = [c for c in configs if c.tile is None or _fits(c.tile, m, n, k)]
        todo = [fitting[i : i + TOGETHER] for i in range(0, len(fitting), TOGETHER)]
        while todo:
            part = todo.pop()
            lowered, names = lowered_choices(program, kernels, [(shape, c) for c in part], arch)
            try:
                made = compiler.run(lowered.bytecode, flags, reproducer=False)
            except CompileError as e:
                half = len(part) // 2
                todo += [part[:half], part[half:]] if half else []
                if not half:
                    print(f"{m}x{n}x{k}: {part[0]} is refused: {e.message[:100]}", flush=True)
                continue
            name = f"{dtype}_{m}x{n}x{k}_{len(rows)}.vmfb"
            (folder / name).write_bytes(made.vmfb)
            params = {key: [str(a.dtype), list(a.shape)] for key, a in lowered.params.items()}
            functions = {f: c.to_json()["tile"] for f, c in zip(names, part, strict=True)}
            row = {"file": name, "dims": [m, n, k], "dtype": dtype, "arch": arch}
            by_rows = shape.layout == ROWS  # weights are stored N x K
            rows.append({**row, "by_rows": by_rows, "params": params, "functions": functions})
        listed.write_text(json.dumps(rows))
        print(f"{m}x{n}x{k}: {len(fitting)} schedules", flush=True)
    return 0


def _fits(tile: Any, m: int, n: int, k: int) -> bool:
    """Return whether a schedule is no larger than what covers the result, and divides the depth."""
    rows, columns = tile.tiles[1] * 16, tile.tiles[2] * 8
    return rows < 2 * m + 16 and columns < 2 * n and k % (16 * tile.k_tiles) == 0


# --------------------------------------------------------------------------------------- time


def time_all(folder: Path, out: Path) -> int:
    """Time each schedule of a folder on the device, and check its result."""
    import iree.runtime as rt
    import numpy as np
    import torch

    device = rt.get_driver("cuda").create_default_device()
    found: list[dict[str, Any]] = []
    peers: dict[str, float] = {}
    for row in json.loads((folder / "work.json").read_text()):
        m, n, k = row["dims"]
        kind = {"f16": torch.float16, "bf16": torch.bfloat16}[row["dtype"]]
        [key] = row["params"]
        torch.manual_seed(SEED)
        x = torch.randn(m, k).to(kind)
        w = torch.randn(k, n).to(kind)
        stored = w.T.contiguous() if row["by_rows"] else w
        a, b = x.cuda(), w.cuda()
        want = (a.float() @ b.float()).cpu().numpy()
        name = f"{row['dtype']} {m}x{n}x{k}"
        if name not in peers:
            peers[name] = _kernel_us(torch, partial(torch.matmul, a, b), "")
        instance = rt.VmInstance()
        index = rt.ParameterIndex()
        index.add_buffer(key, stored.view(torch.uint8).numpy().tobytes())
        modules = [
            rt.create_io_parameters_module(instance, index.create_provider(scope="model")),
            rt.create_hal_module(instance, device),
            rt.VmModule.copy_buffer(instance, (folder / row["file"]).read_bytes()),
        ]
        context = rt.VmContext(instance, modules)
        given = rt.asdevicearray(device, x.numpy() if kind == torch.float16 else None)
        for function, tile in row["functions"].items():
            exported = modules[-1].lookup_function(function)
            assert exported is not None
            call = rt.FunctionInvoker(context, device, exported)
            record = {"dims": row["dims"], "dtype": row["dtype"], "tile": tile}
            found.append(record)
            try:
                got = np.asarray(call(given)).astype(np.float32)
                record["error"] = float(np.abs(got - want).max() / np.abs(want).max())
                record["us"] = _kernel_us(torch, partial(call, given), function + "_")
            except Exception as e:
                record["failed"] = str(e)[:200]
        for record in found[-len(row["functions"]) :]:
            print(name, record["tile"], record.get("us"), record.get("error"), flush=True)
        out.write_text(json.dumps({"device": _device(torch), "peers": peers, "times": found}))
    return 0


def _kernel_us(torch: Any, call: Any, prefix: str) -> float:
    """Return the median microseconds of the kernels of a call whose names begin so."""
    for _ in range(3):
        call()
    torch.cuda.synchronize()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        for _ in range(CALLS):
            call()
        torch.cuda.synchronize()
    times: dict[str, list[float]] = {}
    for event in profile.events():
        on_device = event.device_type == torch.autograd.DeviceType.CUDA
        if on_device and event.name.startswith(prefix) and "Mem" not in event.name:
            times.setdefault(event.name, []).append(event.device_time)
    return sum(statistics.median(each) for each in times.values())


def _device(torch: Any) -> dict[str, Any]:
    import datetime
    import subprocess

    asked = ["nvidia-smi", "--query-gpu=name,driver_version,clocks.sm,clocks.max.sm",
             "--format=csv,noheader"]  # fmt: skip
    said = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()
    today = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
    return {"said": said, "date": today, "torch": torch.__version__}


# -------------------------------------------------------------------------------------- judge

ROOT = Path(__file__).resolve().parent.parent
CONFIGS = ROOT / "passes" / "lowering" / "gpu" / "configs"
FITTED = ("least", "meet", "ends", "step", "piece")  # clocks that are fitted
TRIALS, STARTS = 1200, 4
# GEMMs without matrix instructions: f32, f16, and int4 by a row of f16
PLAIN = "9 kernels on an H200 take 0.04 to 0.95 of what IREE's own take"
# clocks of convolutions, whose windows are not copied ahead: fitted to GEMMs without such copies
WINDOWS = {"least": 835.0, "meet": 591.0, "ends": 3267.5, "step": 0.0, "piece": 822.8}
WINDOWS_JUDGE = "clock of an NVIDIA H200, driver 580.159.04, f16, 17 GEMMs"
WINDOWS_MADE = "2026-11-29"
# words of codes for one row: most columns of a lane, and waves that share the depth. 1 x 14336 by
# 4096 columns: 10.8 us; 13.6 by one wave, 14.0 by one wave of four columns
WORDS = {"word_waves": 2, "word_wave_columns": 8, "word_columns": 8}
NEAR = 1.0  # the lowest bound is taken
COSTS = {"sum": 1500, "unaligned": 3, "unaligned_partial": 8}  # AMD's costs: not timed
# attentions in f16 by a clock: microseconds of 33 heads of four tiles of queries, one workgroup a
# unit, over 512 and 1024 keys, and of 132 heads of eight tiles over 512 keys; by elements of a row,
# then waves, keys and lines of a tile
ATTENTIONS = {
    64: {(4, 32, 1): (13.10, 23.82, 48.59), (4, 64, 2): (12.98, 21.71, 75.65)},
    128: {(4, 32, 1): (15.71, 26.98, 92.51)},
}
ATTENTION_JUDGE = (
    "clock of an NVIDIA H200, driver 580.159.04, f16, rows of 64 and 128; others by line"
)
ATTENTION_MADE = "2026-11-30"
ROWS = (16, 32, 48, 64, 96, 128, 192, 256)  # elements of rows of keys and of values
Times = dict[tuple[int, int, int], dict[Any, float]]  # GEMM -> schedule -> microseconds


@dataclass
class Timed:
    """Times of schedules, with IREE's own choice and the peer's for each GEMM."""

    times: Times
    own: dict[tuple[int, int, int], float]
    peers: dict[tuple[int, int, int], float]
    device: Mapping[str, str]
    wrong: int = 0  # schedules whose result is off by more than rounding


def read(paths: Sequence[Path]) -> Timed:
    """Read what `time` wrote; of several files of a schedule the last counts."""
    from mgx_mlir.passes.lowering.gpu.matmul.tiles import MmaSchedule

    found = Timed({}, {}, {}, {})
    for path in paths:
        said = json.loads(path.read_text())
        found.device = said["device"]
        for name, us in said["peers"].items():
            m, n, k = map(int, name.split()[1].split("x"))
            found.peers[m, n, k] = us
        for row in said["times"]:
            dims, tile = tuple(row["dims"]), row["tile"]
            if "us" not in row:
                continue
            found.wrong += row["error"] > WRONG
            if tile is None:
                found.own[dims] = row["us"]
                continue
            schedule = MmaSchedule(tuple(tile["size"]), tuple(tile["waves"]), tile["steps"])
            found.times.setdefault(dims, {})[schedule] = row["us"]
    return found


def ranks(values: Sequence[float]) -> list[float]:
    """Return the ranks of values, equal ones at their mean."""
    order = sorted(values)
    return [order.index(v) + (order.count(v) - 1) / 2 for v in values]


def correlation(a: Sequence[float], b: Sequence[float]) -> float:
    """Return the rank correlation of two lists."""
    x, y = ranks(a), ranks(b)
    return statistics.correlation(x, y) if len(set(x)) > 1 and len(set(y)) > 1 else 0.0


def bounds_of(arch: str, known: Any, timed: Timed) -> dict[tuple[int, int, int], list[float]]:
    """Return the bound of each timed schedule in microseconds, by clocks of `known`."""
    from mgx_mlir.core import dtypes
    from mgx_mlir.hardware.chips import CHIPS
    from mgx_mlir.passes.lowering.gpu import schedules
    from mgx_mlir.passes.lowering.gpu.matmul.gemm_shape import DOT, GemmShape
    from mgx_mlir.passes.lowering.gpu.matmul.mma import INTRINSICS
    from mgx_mlir.passes.lowering.gpu.matmul.tiles import clocks

    chip, mma = CHIPS[arch], INTRINSICS[arch][dtypes.HALF]
    out: dict[tuple[int, int, int], list[float]] = {}
    with mock.patch.object(schedules, "mma", return_value=known):
        for dims, times in timed.times.items():
            of = GemmShape(DOT, dtypes.HALF.name, dims).extents
            out[dims] = [clocks(chip, mma, t, of) / chip.ghz / 1e3 for t in times]
    return out


def judged(bounds: Mapping[Any, Sequence[float]], timed: Timed) -> dict[Any, tuple[float, float]]:
    """Return for each GEMM the rank correlation, and the chosen schedule's time over the best."""
    out = {}
    for dims, bound in bounds.items():
        us = list(timed.times[dims].values())
        chosen = us[min(range(len(us)), key=lambda i: bound[i])]
        out[dims] = correlation(bound, us), chosen / min(us)
    return out


def known_of(values: Mapping[str, float]) -> Any:
    """Return the clocks of the bound that has these, and takes the lowest."""
    from mgx_mlir.passes.lowering.gpu.schedules import MmaClocks

    return MmaClocks(near=NEAR, **dict[str, Any](values))


def fit(arch: str, timed: Timed) -> dict[str, float]:
    """Return the clocks by which the chosen schedules lose least, by searches with seeds."""

    def loss(values: Mapping[str, float]) -> float:
        bounds = bounds_of(arch, known_of(values), timed)
        seen = judged(bounds, timed).values()
        off = [
            math.log(b / us) ** 2
            for dims, bound in bounds.items()
            for b, us in zip(bound, timed.times[dims].values(), strict=True)
        ]
        lost = statistics.mean(lose for _, lose in seen) - 1
        order = 1 - statistics.mean(rank for rank, _ in seen)
        return lost + 0.3 * order + 0.1 * math.sqrt(statistics.mean(off))

    ends = []
    for seed in range(STARTS):
        rng = random.Random(seed)
        found = {"least": 480.0, "meet": 180.0, "ends": 1000.0, "step": 36.0, "piece": 200.0}
        least = loss(found)
        for _ in range(TRIALS):
            tried = dict(found)
            for name in rng.sample(FITTED, rng.choice((1, 1, 2, 3))):
                tried[name] = max(0.0, tried[name] * math.exp(rng.gauss(0, 0.5)) + rng.gauss(0, 10))
            if (now := loss(tried)) < least:
                found, least = tried, now
        ends.append((least, found))
    best = min(ends, key=lambda end: end[0])[1]
    return {name: round(value, 1) for name, value in best.items()}


def attention_clocks(ghz: float) -> dict[str, dict[str, list[int]]]:
    """Return the clocks of attention tiles, by elements of a row; fewer waves do as many do."""

    def clocks(rows: int, tile: tuple[int, int, int]) -> list[float]:
        few, many, full = ATTENTIONS[rows][tile]
        each = (many - few) / (512 / tile[1])
        busy = full / (8 * 512 / tile[1])
        return [us * ghz * 1e3 for us in (each, few - 512 / tile[1] * each, busy)]

    out: dict[str, dict[str, list[int]]] = {}
    narrow, wide = (clocks(n, (4, 32, 1)) for n in (64, 128))
    for n in ROWS:
        at = (n - 64) / 64
        own = [
            max(round(a + (b - a) * at), round(a / 4)) for a, b in zip(narrow, wide, strict=True)
        ]
        out[str(n)] = {f"{waves}x32x1": own for waves in (1, 2, 4)}
        if n <= 64:  # longer rows have no registers for two lines
            share = max(n / 64, 0.5)
            out[str(n)]["4x64x2"] = [round(c * share) for c in clocks(64, (4, 64, 2))]
    return out


def config(timed: Timed, values: Mapping[str, float], arch: str) -> str:
    """Return the text of an architecture's file."""
    from benchmarks.gpu_tiles import LANES, THREADS
    from mgx_mlir.hardware.chips import CHIPS

    card, driver = (w.strip() for w in timed.device["said"].split(",")[:2])
    own = "" if arch == "sm_90" else f", taken for {arch}"
    judge, fitted = (
        f"clock of an {card}, driver {driver}, f16, {n} GEMMs{own}"
        for n in (len(timed.times), len(FIRST))
    )
    made = timed.device["date"]
    known = sorted({(t.tiles, t.subgroups, t.k_tiles) for ts in timed.times.values() for t in ts})
    tiles = [f"  {json.dumps([list(size), list(waves), k])}" for size, waves, k in known]
    best = []
    for dims, times in timed.times.items():
        t = min(times, key=lambda t: times[t])
        row = [list(dims), list(t.tiles), list(t.subgroups), t.k_tiles, round(times[t], 1)]
        best.append(f"  {json.dumps(row)}")
    whole = {
        "matmul": {"judge": WINDOWS_JUDGE + own, "made": WINDOWS_MADE,
                   "clocks": {**WINDOWS, "near": NEAR}},
        "gemm": {"judge": fitted, "made": made, "clocks": {**values, "near": NEAR}},
        "gemm_costs": {"judge": "those of AMD: not timed", "made": made, "costs": COSTS},
        "threads": {"judge": f"those of gfx1100: {PLAIN}", "made": made, "tiles": THREADS},
        "lanes": {"judge": f"those of gfx942: {PLAIN}", "made": made,
                  "tiles": {**LANES, **WORDS}},
        "attention": {"judge": ATTENTION_JUDGE + own, "made": ATTENTION_MADE,
                      "clocks": attention_clocks(CHIPS["sm_90"].ghz)},
    }  # fmt: skip
    head = ",\n".join(f'"{k}": {json.dumps(v)}' for k, v in whole.items())
    lines = ",\n".join(tiles), ",\n".join(best)
    return (
        f'{{{head},\n"timed": {{"judge": {json.dumps(judge)}, "made": "{made}",\n'
        f' "tiles": [\n{lines[0]}\n ],\n "best": [\n{lines[1]}\n ]}}}}\n'
    )


def page(timed: Timed, seen: Mapping[Any, tuple[float, float]], before: Mapping[Any, Any]) -> str:
    """Return the page of figures."""
    card, driver = (w.strip() for w in timed.device["said"].split(",")[:2])
    rows = [f"| {' | '.join(HEAD)} |", "|---" * len(HEAD) + "|"]
    for dims, times in timed.times.items():
        t = min(times, key=lambda t: times[t])
        m, n, k = dims
        size = f"{t.tiles[1] * 16}x{t.tiles[2] * 8}x{t.k_tiles * 16}"
        rate = 2 * m * n * k / times[t] / 1e6
        own, peer = timed.own.get(dims, math.nan), timed.peers[dims]
        rank, lose = seen[dims]
        rows.append(
            f"| {m} x {n} x {k} | {peer:.1f} | {own:.1f} | {times[t]:.1f} | {rate:.0f} | "
            f"{peer / times[t]:.2f} | {size}, {prod(t.subgroups)} | {rank:.2f} | {lose:.2f} |"
        )
    count = sum(map(len, timed.times.values()))
    old, new = (tuple(summary(x, part) for part in (FIRST, HELD_OUT)) for x in (before, seen))
    return PAGE.format(
        card=card, driver=driver, date=timed.device["date"], torch=timed.device["torch"],
        count=count, gemms=len(timed.times), wrong=timed.wrong, rows="\n".join(rows),
        old=" | ".join(old), new=" | ".join(new), first=len(FIRST),
    )  # fmt: skip


def summary(seen: Mapping[Any, tuple[float, float]], part: Sequence[Any]) -> str:
    """Return mean rank, and mean and largest loss of the chosen schedules, of these GEMMs."""
    of = [seen[dims] for dims in part if dims in seen]
    if not of:
        return "not timed"
    lost = [lose for _, lose in of]
    return f"{statistics.mean(r for r, _ in of):.2f}, {statistics.mean(lost):.2f}, {max(lost):.2f}"


HEAD = (
    "rows x columns x depth", "torch", "IREE's own", "best tile", "TFLOP/s", "of torch",
    "tile, warps", "rank", "chosen / best",
)  # fmt: skip
PAGE = """# Matmuls on an NVIDIA GPU, by its clock

{card}, driver {driver}, {date}; torch {torch}. f16, weights N x K, f16 result; microseconds of
the kernel by CUPTI, median of 12 calls. Written by `python benchmarks/gpu_schedules.py judge` from
what its `time` wrote. [Kernels on NVIDIA GPUs](../nvidia-kernels.md) says what follows.

{count} schedules of {gemms} GEMMs; {wrong} were wrong by more than rounding.

{rows}

*rank*: rank correlation of the bound with the clock over the schedules of a GEMM.
*chosen / best*: time of the schedule that the bound puts first over the time of the best.

Mean rank, mean and largest *chosen / best* over the first {first} GEMMs, to which the clocks are
fitted, and over the others, which no fit has seen:

| clocks of the bound | the first {first} | the others |
|---|---|---|
| as fitted to AMD's compiled code | {old} |
| fitted to times of the first {first} | {new} |
"""


def judge_all(paths: Sequence[Path], *, write: bool, refit: bool) -> int:
    """Print how the bound orders the schedules; write: the configs and the page."""
    from mgx_mlir.passes.lowering.gpu.schedules import MmaClocks

    timed, arch = read(paths), "sm_90"
    amd = json.loads((CONFIGS / "gfx942.json").read_text())["matmul"]["clocks"]
    before = judged(bounds_of(arch, MmaClocks(**amd), timed), timed)
    if refit:
        first = {dims: us for dims, us in timed.times.items() if dims in FIRST}
        values = fit(arch, replace(timed, times=first))
    else:
        stored = json.loads((CONFIGS / f"{arch}.json").read_text())["gemm"]["clocks"]
        values = {name: stored[name] for name in FITTED}
    seen = judged(bounds_of(arch, known_of(values), timed), timed)
    text = page(timed, seen, before)
    print(text)
    if write:
        for each in ("sm_80", "sm_86", "sm_89", "sm_90"):
            (CONFIGS / f"{each}.json").write_text(config(timed, values, each))
        (ROOT / "docs" / "data" / "nvidia-matmuls.md").write_text(text)
    return 1 if timed.wrong else 0


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    commands = parser.add_subparsers(dest="command", required=True)
    ahead = commands.add_parser("compile")
    ahead.add_argument("folder", type=Path)
    ahead.add_argument("--arch", default="sm_90")
    ahead.add_argument("--type", default="f16", choices=("f16", "bf16"))
    timed = commands.add_parser("time")
    timed.add_argument("folder", type=Path)
    timed.add_argument("-o", type=Path, required=True)
    last = commands.add_parser("judge")
    last.add_argument("times", nargs="+", type=Path)
    last.add_argument("--write", action="store_true")
    last.add_argument("--fit", action="store_true", help="fit the clocks anew: half an hour")
    options = parser.parse_args(argv)
    if options.command == "judge":
        return judge_all(options.times, write=options.write, refit=options.fit)
    if options.command == "compile":
        return compile_all(options.arch, options.folder, options.type)
    return time_all(options.folder, options.o)


if __name__ == "__main__":
    sys.exit(main())
