"""Programs for NVIDIA GPUs, without a GPU: their PTX runs on the CPU, under IREE's CUDA driver.

The stand-in (cuda_stand_in.cpp) finds memory faults, barriers in diverged code, and reads of shared
memory ahead of its copies. Numbers are compared with onnxruntime's.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime as ort
import pytest

import mgx_mlir
from tests.runtime import cuda_library
from tests.support.models import parsed

STORED = Path(__file__).parents[1] / "families" / "stored"
PADDED = "gru_tagger_padded.script.17.dynamic"
RUN = """
import json, sys
import numpy as np
import mgx_mlir
program = mgx_mlir.load(sys.argv[1])
for _ in range(int(sys.argv[3])):
    with np.load(sys.argv[2]) as held:
        inputs = {n: held[n] for n in held}
    np.savez(sys.argv[1] + ".npz", *program.run(inputs))
print(json.dumps({"done": True}), flush=True)
"""
# the graph, and the largest error; the depth of the f16 matmul is of whole tiles and a rest
GRAPHS = {
    "matmul-f16": ("""(float16[96,136] x, float16[136,128] w) => (float16[96,128] y)
        { y = MatMul (x, w) }""", 2e-3),
    "matmul-dynamic": ("(float[n,72] x, float[72,40] w) => (float[n,40] y) { y = MatMul (x, w) }",
                       1e-5),
    "one-row": ("""(float16[1,512] x, float16[512,1024] w) => (float16[1,1024] y)
        { y = MatMul (x, w) }""", 2e-3),
    "softmax": ("(float[5,1000] x) => (float[5,1000] y) { y = Softmax (x) }", 1e-5),
    "cumulative": ("""(float[3,700] x) => (float[3,700] y) <int64 axis = {1}>
        { y = CumSum (x, axis) }""", 1e-5),
    "largest": ("""(float[7,333] x) => (int64[7] y)
        { y = ArgMax <axis = 1, keepdims = 0> (x) }""", 0.0),
    "scatter": ("""(float[40,8] x, int64[60,1] i, float[60,8] u) => (float[40,8] y)
        { y = ScatterND <reduction = "add"> (x, i, u) }""", 1e-5),
    "convolution": ("""(float16[1,64,14,14] x, float16[64,64,3,3] w) => (float16[1,64,14,14] y)
        { y = Conv <pads = [1, 1, 1, 1]> (x, w) }""", 2e-3),
}  # fmt: skip


Arrays = dict[str, np.ndarray]


@pytest.fixture(scope="module")
def folder() -> Path:
    return cuda_library.built()


def run(
    folder: Path, made: Path, inputs: dict[str, np.ndarray], times: int, **more: str
) -> list[np.ndarray]:
    """Return the results of the last of some calls."""
    given = made.with_suffix(".in.npz")
    np.savez(given, allow_pickle=False, **inputs)
    cuda_library.ran(folder, RUN, str(made), str(given), str(times), **more)
    with np.load(f"{made}.npz") as held:
        return [held[n] for n in held.files]


@pytest.mark.parametrize("name", GRAPHS)
def test_kernels_compute_what_they_should(name: str, folder: Path, tmp_path: Path) -> None:
    text, limit = GRAPHS[name]
    model = parsed(text)
    rng = np.random.default_rng(0)
    inputs: Arrays = {}
    for value in model.graph.input:
        kind = value.type.tensor_type
        dims = [d.dim_value or 37 for d in kind.shape.dim]
        drawn = rng.standard_normal(dims) / max(dims[0], 1) ** (value.name == "w")
        if value.name == "i":
            inputs[value.name] = rng.integers(0, 40, dims)
        else:
            inputs[value.name] = drawn.astype(np.float16 if kind.elem_type == 10 else np.float32)
    made = tmp_path / "program.mxr"
    with mgx_mlir.compile(model, "gpu", arch="sm_89") as program:
        mgx_mlir.save(program, made)
    [found] = run(folder, made, inputs, 1)
    [wanted] = ort.InferenceSession(model.SerializeToString()).run(None, inputs)
    assert found.shape == wanted.shape
    error = np.abs(found.astype(np.float64) - wanted).max()
    assert error <= limit * np.abs(wanted.astype(np.float64)).max()


def test_a_loop_that_appends_runs_while_the_device_is_late(folder: Path, tmp_path: Path) -> None:
    """Copies that wait for copies: IREE's queue corrupts memory unless the host waits ahead."""
    path = STORED / f"{PADDED}.onnx"
    made = tmp_path / "program.mxr"
    with mgx_mlir.compile(path, "gpu", arch="sm_89") as program:
        mgx_mlir.save(program, made)
    with np.load(STORED / f"{PADDED}.0.npz") as held:
        inputs = {n: held[n] for n in held}
    [found] = run(folder, made, inputs, 12, STAND_IN_EVENT_US="500")
    [wanted] = ort.InferenceSession(path).run(None, inputs)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)
