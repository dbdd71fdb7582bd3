"""Compares programs with dynamic and with static dims: kernels, and time relative to onnxruntime.

    python benchmarks/dynamic_dims.py bert cnn --rounds 7

The dynamic program is compiled once and run at every size, a fixed one is compiled for each. Times
are CPU times of one thread in one process, medians over blocks; ratios are to onnxruntime on
the same model, medians over rounds. Exit code 1 where a result is wrong.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import mgx_mlir
from mgx_mlir.debug.engine_times import time_engines
from zoo.dynamic_models import MODELS, inputs_of

LIMIT = 2e-4  # error, as a share of the largest element


def session(model: bytes) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    return ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def error_of(got: Any, want: Any) -> float:
    return max(
        float(np.abs(a - b).max(initial=0) / max(np.abs(b).max(initial=0), 1e-30))
        for a, b in zip(got, want, strict=True)
    )


def compiled(model: bytes) -> Any:
    return mgx_mlir.compile(model, target="cpu", threads=1)


def launches(program: Any) -> int:
    found = program.executable.dispatches.items()
    return sum(len(names) for function, names in found if function != "initializer")


@dataclass(frozen=True)
class Pair:
    """A model at one size: its dynamic and its static program, and onnxruntime's session."""

    opened: Any
    fixed: Any
    oracle: ort.InferenceSession
    inputs: dict[str, np.ndarray]

    @property
    def kernels(self) -> str:
        """Kernels (launches) of both."""
        both = (f"{len(p.kernels)} ({launches(p)})" for p in (self.opened, self.fixed))
        return " / ".join(both)

    def error(self) -> float:
        want = self.oracle.run(None, self.inputs)
        return max(error_of(p.run(self.inputs), want) for p in (self.opened, self.fixed))

    def ratios(self, rounds: int | None, seconds: float) -> tuple[float, float, float]:
        """Time by CPU clock: dynamic / onnxruntime, fixed / onnxruntime, dynamic / fixed."""
        inputs = self.inputs
        engines = {
            "ort": lambda: self.oracle.run(None, inputs),
            "dynamic": lambda: self.opened.run(inputs),
            "fixed": lambda: self.fixed.run(inputs),
        }
        times = time_engines(engines, clock="cpu", rounds=rounds, block=seconds)
        pairs = (("dynamic", "ort"), ("fixed", "ort"), ("dynamic", "fixed"))
        a, b, c = (times.ratio(*pair).value for pair in pairs)
        return a, b, c


def list_kernels(pair: Pair) -> None:
    for p in (pair.opened, pair.fixed):
        for name, n in Counter(k.name for k in p.kernels).most_common():
            print(f"    {n:3} {name}")
        print()


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("models", nargs="*", default=list(MODELS))
    parser.add_argument("--rounds", type=int, help="default: until the ratios are known")
    parser.add_argument("--seconds", type=float, default=0.15)
    parser.add_argument("--kernels", action="store_true", help="list them; measure nothing")
    parser.add_argument("--sizes", type=int, default=99, help="of each model at most")
    arguments = parser.parse_args(argv)
    wrong = False
    print("| model | size | kernels (launches) both | dynamic | fixed | dynamic / fixed | error |")
    print("|---|---|---|---:|---:|---:|---:|")
    for name in arguments.models or MODELS:
        m = MODELS[name]
        proto = m.build(*m.names)
        model = proto.SerializeToString()
        opened, oracle = compiled(model), session(model)
        for size in m.sizes[: arguments.sizes]:
            fixed = compiled(m.build(*size).SerializeToString())
            inputs = inputs_of(proto, dict(zip(m.names, size, strict=True)))
            pair = Pair(opened, fixed, oracle, inputs)
            if arguments.kernels:
                print(name, pair.kernels)
                list_kernels(pair)
                break
            error = pair.error()
            wrong |= not error < LIMIT
            a, b, c = pair.ratios(arguments.rounds, arguments.seconds)
            shown = "x".join(map(str, size))
            row = (
                f"| {name} | {shown} | {pair.kernels} | {a:.2f} | {b:.2f} | {c:.2f} | {error:.0e} |"
            )
            print(row, flush=True)
    return int(wrong)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as cache:
        os.environ.setdefault("MGX_CACHE_DIR", cache)
        raise SystemExit(main())
