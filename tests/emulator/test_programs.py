"""Our compiler's programs, run by IREE's hip driver on the emulator, against independent values."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

import mgx_mlir
from tests.emulator.models import CASES, Case

# relative to the norm of the wanted values: what a correct kernel's rounding amounts to
LIMITS = {"f32": 1e-5, "f16": 2e-3, "bf16": 1e-2, "i8": 0.0}
ARCHS = ("gfx942", "gfx90a", "gfx950", "gfx1100", "gfx1201")
DTYPES = dict.fromkeys(CASES, ("f32", "f16")) | {
    "gemm": ("f32", "f16", "bf16", "i8"),
    "long_gemm": ("f16",),
}
# three kernels of each architecture in CI, the rest with `-m slow`
QUICK = {
    ("long_gemm", "f16"),
    ("gemm", "f16"),
    ("gemm", "i8"),
    ("attention", "f16"),
    ("layernorm", "f32"),
}


def oracle(case: Case) -> list[np.ndarray]:
    """What onnxruntime says, in f32: the weights and inputs as the case rounds them."""
    import onnxruntime as ort

    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    for w in model.graph.initializer:
        value = onnx.numpy_helper.to_array(w)
        if value.dtype == np.float16:
            w.CopyFrom(onnx.numpy_helper.from_array(value.astype(np.float32), w.name))
    for port in (*model.graph.input, *model.graph.output):
        port.type.tensor_type.elem_type = onnx.TensorProto.FLOAT
    session = ort.InferenceSession(model.SerializeToString())
    return session.run(None, {k: v.astype(np.float32) for k, v in case.inputs.items()})


def error(got: np.ndarray, want: np.ndarray) -> float:
    a, b = got.astype(np.float64), want.astype(np.float64)
    assert a.shape == b.shape
    assert b.std() > 0.01 * np.abs(b).max(), "the wanted values are flat: a blind test"
    return float(np.linalg.norm(a - b) / np.linalg.norm(b))


@pytest.mark.parametrize(
    ("name", "dtype", "arch"),
    [
        pytest.param(
            name, dtype, arch,
            marks=() if arch == "gfx942" or (name, dtype) in QUICK else pytest.mark.slow,
        )
        for name in CASES
        for dtype in DTYPES[name]
        for arch in ARCHS
    ],
)  # fmt: skip
def test_program(name: str, dtype: str, arch: str, library: Path) -> None:
    case = CASES[name](dtype, seed=ARCHS.index(arch) if arch in ARCHS else len(ARCHS))
    compiled = mgx_mlir.compile(
        case.model.SerializeToString(), target="gpu", arch=arch, emulate=True
    )
    got = compiled.run(case.inputs)
    wanted = case.wanted or oracle(case)
    assert len(got) == len(wanted)
    for a, b in zip(got, wanted, strict=True):
        assert error(a, b) <= LIMITS[dtype]
