"""Trains two classifiers, quantises them, and compares accuracies with onnxruntime's quantiser.

    pip install scikit-learn onnx-ir --no-deps --target build/tasks
    PYTHONPATH=build/tasks python benchmarks/quantised_tasks.py                # both
    PYTHONPATH=build/tasks python benchmarks/quantised_tasks.py speech int8    # rows with "int8"

Rows are ways to make a model smaller: ours, and onnxruntime's on the same samples. Loss is how many
points of accuracy fewer than onnxruntime's f32; changed, how many answers in 100 differ from it,
which tells chance from harm: as many wrong answers become right as right ones wrong where rounding
is harmless. Trained models are kept in build/tasks. Exit code 1 where a row of ours that has a
limit loses more.
"""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnxruntime import quantization as ort_quantization

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import mgx_mlir  # noqa: E402
from benchmarks.oracle import session  # noqa: E402
from benchmarks.trained_nets import TASKS, Task  # noqa: E402

_BATCH = 100  # batch of calibration and evaluation; samples beyond the last whole batch are dropped
_STORE = ROOT / "build" / "tasks"


@dataclass(frozen=True)
class Row:
    """A way to make a model smaller; limit: the points of accuracy that it may lose."""

    name: str
    run: Callable[[Task], np.ndarray]
    limit: float | None = None


def _batches(x: np.ndarray) -> Iterator[dict[str, np.ndarray]]:
    for at in range(0, len(x) - _BATCH + 1, _BATCH):
        yield {"x": np.ascontiguousarray(x[at : at + _BATCH])}


# ---- ours ----------------------------------------------------------------------------------------


def _ours(name: str, *, data: bool = False, **options: Any) -> Callable[[Task], np.ndarray]:
    """Return what quantises by a function of the API and runs on the held samples.

    data: it takes samples as `calibration`.
    """

    def run(task: Task) -> np.ndarray:
        target = mgx_mlir.get_target("cpu")
        program = mgx_mlir.parse_onnx_buffer(
            task.model.SerializeToString(), map_input_dims={"x": [_BATCH, *task.held.shape[1:]]}
        )
        function = getattr(mgx_mlir, name)
        given = options | ({"calibration": list(_batches(task.calibration))} if data else {})
        function(program, *([target] if name in ("quantize_int8", "quantize_fp8") else []), **given)
        program.compile(target)
        return np.concatenate([np.asarray(program.run(b)[0]) for b in _batches(task.held)])

    return run


# ---- onnxruntime's -------------------------------------------------------------------------------


def _answers(model: bytes | Path, task: Task) -> np.ndarray:
    made = session(model)
    return np.concatenate([made.run(None, b)[0] for b in _batches(task.held)])


class _Samples(ort_quantization.CalibrationDataReader):
    def __init__(self, task: Task) -> None:
        self._left = _batches(task.calibration)

    def get_next(self) -> dict[str, np.ndarray] | None:
        return next(self._left, None)


def _static(method: str, **options: Any) -> Callable[[Task], np.ndarray]:
    """Return what quantises by `quantize_static`, to QDQ."""

    def run(task: Task) -> np.ndarray:
        with tempfile.TemporaryDirectory() as folder:
            path, out = Path(folder) / "whole.onnx", Path(folder) / "small.onnx"
            onnx.save(task.model, path)
            kind = ort_quantization.QuantType.QInt8
            ort_quantization.quantize_static(
                path, out, _Samples(task), per_channel=True, activation_type=kind,
                weight_type=kind, calibrate_method=ort_quantization.CalibrationMethod[method],
                **options,
            )  # fmt: skip
            return _answers(out, task)

    return run


def _dynamic(task: Task) -> np.ndarray:
    with tempfile.TemporaryDirectory() as folder:
        path, out = Path(folder) / "whole.onnx", Path(folder) / "small.onnx"
        onnx.save(task.model, path)
        ort_quantization.quantize_dynamic(path, out, per_channel=True)
        return _answers(out, task)


def _four_bits(task: Task) -> np.ndarray:
    # needs onnx-ir, which the others do not
    from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

    made: Any = MatMulNBitsQuantizer(task.model, bits=4, block_size=32, is_symmetric=False)
    made.process()
    return _answers(made.model.model.SerializeToString(), task)


INT8 = partial(_ours, "quantize_int8", data=True)
INT4 = partial(_ours, "quantize_int4_weights")
ROWS = (
    Row("fp16", _ours("quantize_fp16"), 0.1),
    Row("bf16", _ours("quantize_bf16"), 0.1),
    Row("int8", INT8(), 0.5),
    Row("int8 minmax", INT8(method="minmax")),
    Row("int8 percentile", INT8(method="percentile")),
    Row("int8 entropy", INT8(method="entropy")),
    Row("int8 asymmetric", INT8(asymmetric=True)),
    Row("int8 per tensor", INT8(per_channel=False)),
    Row("int8 bias corrected", INT8(bias_correction=True)),
    Row("int8 smooth 0.5", INT8(smooth=0.5), 0.5),
    Row("int8 equalised", INT8(equalize=True), 0.5),
    Row("int8 per tensor equalised", INT8(per_channel=False, equalize=True)),
    Row("int8 of each run", INT8(data=False)),
    Row("int8 onnxruntime minmax", _static("MinMax")),
    Row("int8 onnxruntime entropy", _static("Entropy")),
    Row("int8 onnxruntime percentile", _static("Percentile")),
    Row("int8 onnxruntime dynamic", _dynamic),
    Row("fp8", _ours("quantize_fp8", data=True), 0.5),
    Row("int4 weights", INT4(), 1.0),
    Row("int4 weights 128", INT4(group_size=128)),
    Row("int4 weights by samples", INT4(data=True), 1.0),
    Row("int4 weights by samples 128", INT4(data=True, group_size=128), 1.0),
    Row("int4 weights onnxruntime", _four_bits),
)


def _trained(name: str) -> Task:
    """Return a task as it was trained at an earlier run, else train it."""
    path = _STORE / f"{name}.npz"
    if path.exists():
        with np.load(path) as kept:
            model = onnx.load_model_from_string(kept["model"].tobytes())
            return Task(name, model, kept["calibration"], kept["held"], kept["labels"])
    task = TASKS[name]()
    path.parent.mkdir(parents=True, exist_ok=True)
    model = np.frombuffer(task.model.SerializeToString(), np.uint8)
    np.savez(path, model=model, calibration=task.calibration, held=task.held, labels=task.labels)
    return task


def compared(task: Task, rows: Sequence[Row]) -> bool:
    """Print a table; False where a row loses more than it may."""
    own = _answers(task.model.SerializeToString(), task)
    labels = task.labels[: len(own)]
    right = 100 * float((own.argmax(1) == labels).mean())
    print(f"{task.name}: {right:.2f} % of {len(own)} in f32\n")
    print(f"{'':30}{'accuracy':>9}{'loss':>7}{'limit':>7}{'changed':>9}{'rms':>8}")
    good = True
    for row in rows:
        try:
            got = row.run(task)
        except Exception as e:
            print(f"{row.name:30}fails: {str(e).splitlines()[0][:60]}")
            good = good and row.limit is None
            continue
        found = 100 * float((got.argmax(1) == labels).mean())
        changed = 100 * float((got.argmax(1) != own.argmax(1)).mean())
        off = float(np.sqrt(((got - own) ** 2).mean() / (own**2).mean()))
        limit = "" if row.limit is None else f"{row.limit:.1f}"
        print(f"{row.name:30}{found:9.2f}{right - found:7.2f}{limit:>7}{changed:9.2f}{off:8.4f}",
              flush=True)  # fmt: skip
        good = good and (row.limit is None or right - found < row.limit)
    print()
    return good


def main() -> int:
    """Compare the tasks and rows that are asked for."""
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    parser.add_argument("words", nargs="*", help="tasks, and words that names of rows contain")
    words = parser.parse_args().words
    logging.disable(logging.WARNING)  # onnxruntime's advice about preparing the model
    tasks = [t for t in TASKS if t in words] or list(TASKS)
    words = [w for w in words if w not in TASKS]
    rows = [r for r in ROWS if all(w in r.name.split() for w in words)]
    good = [compared(_trained(name), rows) for name in tasks]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
