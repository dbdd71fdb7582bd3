"""The bound on GEMMs beside times that AMD has published, and the constants that bring it there.

    python -m benchmarks.gpu_published [--features FILE] [-o docs/data/published-gemms.md]

`docs/data/published-gemms.csv` has times of the best known kernel of each GEMM. For each our own
kernels are compiled, and bounded from their code (targets/kernel_time.py). Of each architecture
three constants are fitted, those with the least largest ratio of estimate and time:

    us of a launch = start + max(bound, bytes of the launch's tensors / (share * bandwidth),
                                 bytes that all workgroups load and store / (units * GHz * rate))

The kernels are not the same, so that an error is also what their tiles differ by. With --features
what the code says is kept in a file, and read from it: the fit alone takes a second.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import json
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from unittest import mock

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from benchmarks.gpu_layer import kernels
from mgx_mlir.hardware.chips import CHIPS, Chip

TABLE = Path(__file__).resolve().parent.parent / "docs" / "data" / "published-gemms.csv"
_CACHE_BYTES = 64  # a clock, by which kernel_time counts the clocks of the way to the cache
STARTS = [0.25 * i for i in range(25)]  # us
SHARES = [0.5 + 0.05 * i for i in range(11)]
RATES = [6 + i for i in range(59)]  # bytes a clock of each unit, all at once
WITHIN = 1.5


@dataclass(frozen=True)
class Part:
    """A launch: its bound, and what its bytes take at the peak of memory, in us; bytes moved."""

    bound: float
    memory: float
    moved: float


@dataclass(frozen=True)
class Fit:
    """Constants of an architecture."""

    start: float  # us
    share: float  # share of the memory's bandwidth
    rate: int  # bytes a clock that each unit moves, all at once

    def estimate(self, chip: Chip, parts: Sequence[Part]) -> float:
        """Return the microseconds of a GEMM."""
        clock = chip.units * chip.ghz * 1e3 * self.rate
        return sum(self.start + max(p.bound, p.memory / self.share, p.moved / clock) for p in parts)


@dataclass(frozen=True)
class Row:
    """A published time, and the launches of our kernel."""

    arch: str
    dims: tuple[int, int, int]
    us: float
    parts: tuple[Part, ...]

    @property
    def bound(self) -> float:
        return sum(p.bound for p in self.parts)


def model(m: int, n: int, k: int) -> onnx.ModelProto:
    """A GEMM of a bf16 input by weights."""
    drawn = np.random.default_rng(0).standard_normal((k, n), np.float32)  # zeros would be folded
    weights = numpy_helper.from_array(drawn.astype(ml_dtypes.bfloat16), "w")
    ports = [helper.make_tensor_value_info(name, TensorProto.BFLOAT16, dims)
             for name, dims in (("x", [m, k]), ("y", [m, n]))]  # fmt: skip
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    graph = helper.make_graph([node], "gemm", ports[:1], ports[1:], [weights])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)


def parts_of(arch: str, dims: tuple[int, int, int]) -> tuple[Part, ...]:
    """Compile a GEMM; its launches, bounded without what is fitted here."""
    found = []
    with mock.patch.dict(CHIPS, {arch: replace(CHIPS[arch], together=0)}):
        launches = kernels(model(*dims), arch)
    for launch in launches:
        if launch.time is None or launch.workgroups is None:
            raise SystemExit(f"{arch} {dims}: {launch.kernel.name} has no bound")
        moved = launch.time.busy["cache"] * _CACHE_BYTES * launch.workgroups
        found.append(Part(launch.time.us, launch.time.memory_us, moved))
    return tuple(found)


def rows(features: Path | None) -> list[Row]:
    """The table, with launches compiled or read."""
    kept = json.loads(features.read_text()) if features and features.is_file() else {}
    lines = [line for line in TABLE.read_text().splitlines() if not line.startswith("#")]
    found = []
    for line in csv.DictReader(lines):
        dims = int(line["m"]), int(line["n"]), int(line["k"])
        key = f"{line['gfx']} {dims}"
        if key not in kept:
            parts = parts_of(line["gfx"], dims)
            kept[key] = [[p.bound, p.memory, p.moved] for p in parts]
            print(key, line["us"], kept[key], file=sys.stderr, flush=True)
            if features:
                features.write_text(json.dumps(kept))
        parts = tuple(Part(*p) for p in kept[key])
        found.append(Row(line["gfx"], dims, float(line["us"]), parts))
    return found


def worst(fit: Fit, chip: Chip, given: Sequence[Row]) -> float:
    """The largest ratio of estimate and time, whichever is greater."""
    return max(math.exp(abs(math.log(fit.estimate(chip, r.parts) / r.us))) for r in given)


def fitted(chip: Chip, given: Sequence[Row]) -> Fit:
    """The constants with the least largest ratio."""
    every = (Fit(*found) for found in itertools.product(STARTS, SHARES, RATES))
    return min(every, key=lambda fit: worst(fit, chip, given))


def held_out(chip: Chip, given: Sequence[Row]) -> float:
    """The largest ratio of rows that the constants were not fitted to: halves in turn."""
    halves = given[::2], given[1::2]
    return max(worst(fitted(chip, a), chip, b) for a, b in (halves, halves[::-1]))


def page(given: Sequence[Row]) -> str:
    """The page, in Markdown."""
    out = [
        "# GEMMs beside published times", "",
        "Written by `python -m benchmarks.gpu_published` from [the times](published-gemms.csv),",
        "which are AMD's, of the best known kernel of each GEMM. `bound` and `estimate` are of our",
        "kernel, from its code; nothing ran.", "",
    ]  # fmt: skip
    tables = []
    for arch in sorted({r.arch for r in given}):
        chip, own = CHIPS[arch], [r for r in given if r.arch == arch]
        fit = fitted(chip, own)
        ratios = [fit.estimate(chip, r.parts) / r.us for r in own]
        near = sum(1 / WITHIN <= x <= WITHIN for x in ratios)
        plain = [r.bound / r.us for r in own]
        out += [
            f"* {arch}: the bound is {min(plain):.2f} to {max(plain):.2f} of the time. With "
            f"{fit.start:.2f} us for the start of a launch,",
            f"  {fit.share:.2f} of the memory's bandwidth, {fit.rate} bytes a clock of each unit,",
            f"  estimates are {min(ratios):.2f} to {max(ratios):.2f} of it; "
            f"{near} of {len(own)} within {WITHIN}.",
            f"  Fitted to every second row alone, the others are within {held_out(chip, own):.2f}.",
        ]  # fmt: skip
        tables += ["", f"## {arch}", "| m x n x k | published us | bound | estimate | ratio |",
                   "|---|---|---|---|---|"]  # fmt: skip
        for r, ratio in zip(own, ratios, strict=True):
            dims = " x ".join(map(str, r.dims))
            figures = (r.us, r.bound, ratio * r.us, ratio)
            tables.append(f"| {dims} | {' | '.join(f'{x:.2f}' for x in figures)} |")
    return "\n".join(out + tables) + "\n"


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--features", type=Path)
    parser.add_argument("-o", dest="out", type=Path)
    options = parser.parse_args(argv)
    text = page(rows(options.features))
    if options.out:
        options.out.write_text(text)
    else:
        print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
