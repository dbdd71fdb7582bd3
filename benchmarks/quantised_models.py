"""Times a model in 8 bits, as onnxruntime's quantisers make it, against onnxruntime's own run.

    python benchmarks/quantised_models.py MODEL.onnx ... --how dynamic static --threads 2 --openvino

MODEL.inputs.npz beside a model holds its inputs (benchmarks/models.py writes both). dynamic:
products whose activations are scaled in each run; static: QDQ by the range of those inputs.
Printed are our time and OpenVINO's by onnxruntime's of the same file, ours by that of our own f32
program, and the largest difference from onnxruntime by the largest element.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from onnxruntime.quantization import (
    CalibrationDataReader,
    QuantFormat,
    QuantType,
    quantize_dynamic,
    quantize_static,
)

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.engines import openvino  # noqa: E402
from benchmarks.oracle import inputs_for, session  # noqa: E402
from mgx_mlir.debug.engine_times import time_engines  # noqa: E402

HOW = ("dynamic", "static")


class _Once(CalibrationDataReader):
    """One set of inputs."""

    def __init__(self, feeds: dict[str, np.ndarray]) -> None:
        self._left = [feeds]

    def get_next(self) -> dict[str, np.ndarray] | None:
        return self._left.pop() if self._left else None


def quantised(path: Path, how: str, feeds: dict[str, np.ndarray], folder: Path) -> Path:
    """Return the file of a model in 8 bits."""
    made = folder / f"{path.stem}_{how}.onnx"
    if how == "dynamic":
        quantize_dynamic(path, made, weight_type=QuantType.QInt8)
    else:
        quantize_static(
            path, made, _Once(feeds), quant_format=QuantFormat.QDQ,
            activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8,
        )  # fmt: skip
    return made


def measure(path: Path, how: str, options: argparse.Namespace, folder: Path) -> None:
    """Compare and time one form of a model, and print its line."""
    import mgx_mlir

    feeds = inputs_for(path)
    made = quantised(path, how, feeds, folder)
    oracle = session(made, options.threads)
    start = time.process_time()
    program = mgx_mlir.compile(str(made), target="cpu", threads=options.threads)
    compiled = time.process_time() - start
    f32 = mgx_mlir.compile(str(path), target="cpu", threads=options.threads)
    engines: dict[str, Callable[[], Any]] = {
        "ort": lambda: oracle.run(None, feeds),
        "mgx": lambda: program.run(feeds),
        "f32": lambda: f32.run(feeds),
    }
    if options.openvino:
        engines["openvino"] = openvino(made, feeds, options.threads, made.stem)
    want, got = np.asarray(engines["ort"]()[0]), np.asarray(engines["mgx"]()[0])
    error = np.abs(got - want).max() / np.abs(want).max()
    clock = "cpu" if options.threads == 1 else "wall"
    times = time_engines(engines, clock=clock, rounds=options.rounds, block=options.seconds)
    found = {name: times.seconds(name) for name in engines}
    ort, mgx = found["ort"], found["mgx"]
    beside = f", openvino {found['openvino'] / ort:4.2f}" if options.openvino else ""
    print(
        f"{made.stem:36} ort {ort * 1e3:7.2f} ms, ours {mgx / ort:4.2f}{beside}; of our f32 "
        f"{mgx / found['f32']:4.2f}; {len(program.kernels)} kernels, compiled in {compiled:.1f} "
        f"CPU s here; error {error:.1e}",
        flush=True,
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Measure the models in the forms asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--how", nargs="+", choices=HOW, default=HOW)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--openvino", action="store_true", help="OpenVINO's time, too")
    parser.add_argument("--rounds", type=int, help="default: until the ratios are known")
    parser.add_argument("--seconds", type=float, default=0.3, help="of one engine in one round")
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="mgx-quantised-") as folder:
        for path in options.models:
            for how in options.how:
                measure(path, how, options, Path(folder))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
