"""The engines that `cpu.py` times a model with, each a call from numpy arrays to numpy arrays.

onnxruntime and this project's `cpu` target are always there; OpenVINO and torch's inductor
(`pip install openvino`, `pip install '.[bench]'`) where they are asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

Call = Callable[[], list[np.ndarray]]
Inputs = Mapping[str, np.ndarray]


def onnxruntime(path: Path, inputs: Inputs, threads: int, name: str) -> Call:
    """onnxruntime with its default optimisations, on the CPU."""
    from benchmarks.oracle import session

    made = session(path, threads)
    return lambda: made.run(None, dict(inputs))


def mgx(path: Path, inputs: Inputs, threads: int, name: str) -> Call:
    """The `cpu` target in f32."""
    import mgx_mlir

    program = mgx_mlir.compile(str(path), target="cpu", threads=threads)
    return lambda: program.run(dict(inputs))


def mgx_bf16(path: Path, inputs: Inputs, threads: int, name: str) -> Call:
    """The `cpu` target after `quantize_bf16`."""
    import mgx_mlir

    half = mgx_mlir.parse_onnx(str(path))
    mgx_mlir.quantize_bf16(half)
    program = mgx_mlir.compile(half, target="cpu", threads=threads)
    return lambda: program.run(dict(inputs))


def _openvino(path: Path, inputs: Inputs, threads: int, **options: object) -> Call:
    import openvino

    core = openvino.Core()
    options |= {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY"}
    compiled = core.compile_model(str(path), "CPU", options)
    request = compiled.create_infer_request()
    outputs = list(compiled.outputs)

    def call() -> list[np.ndarray]:
        found = request.infer(dict(inputs), share_inputs=True)
        return [np.asarray(found[output]) for output in outputs]

    return call


def openvino(path: Path, inputs: Inputs, threads: int, name: str) -> Call:
    """OpenVINO in f32, for one call at a time."""
    return _openvino(path, inputs, threads, INFERENCE_PRECISION_HINT="f32")


def openvino_default(path: Path, inputs: Inputs, threads: int, name: str) -> Call:
    """OpenVINO in the type that it chooses: bf16 if the CPU multiplies it."""
    return _openvino(path, inputs, threads)


def inductor(path: Path, inputs: Inputs, threads: int, name: str) -> Call:
    """torch.compile of the net that the model was exported from: models with names alone."""
    import torch

    from benchmarks import models

    torch.set_num_threads(threads)
    net, _ = models.build(name)
    compiled = torch.compile(net)
    given = [torch.from_numpy(np.array(x)) for x in inputs.values()]

    def call() -> list[np.ndarray]:
        with torch.inference_mode():
            found = compiled(*given)
        found = found if isinstance(found, tuple | list) else (found,)
        return [x.numpy() for x in found if isinstance(x, torch.Tensor)]

    return call


ENGINES: dict[str, Callable[[Path, Inputs, int, str], Call]] = {
    "onnxruntime": onnxruntime,
    "mgx": mgx,
    "mgx-bf16": mgx_bf16,
    "openvino": openvino,
    "openvino-default": openvino_default,
    "inductor": inductor,
}
# error, as a share of onnxruntime's largest element, for engines that may choose bf16
ERROR_LIMITS = {"mgx-bf16": 2e-2, "openvino-default": 2e-2}
ERROR_LIMIT = 1e-4  # other orders of sums, Winograd's form
