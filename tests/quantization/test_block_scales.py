"""QuantizeLinear and DequantizeLinear in blocks: MX and other formats, against onnx.reference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import mgx_mlir as migraphx

FLOATS: dict[str, Any] = {
    "FLOAT4E2M1": ml_dtypes.float4_e2m1fn,
    "FLOAT8E4M3FN": ml_dtypes.float8_e4m3fn,
    "FLOAT8E5M2": ml_dtypes.float8_e5m2,
}
INTS: dict[str, Any] = {
    "INT4": ml_dtypes.int4, "UINT4": ml_dtypes.uint4, "INT8": np.int8, "UINT8": np.uint8,
    "INT2": ml_dtypes.int2, "UINT2": ml_dtypes.uint2,
}  # fmt: skip
SCALES: dict[str, Any] = {
    "FLOAT": np.float32, "FLOAT16": np.float16, "FLOAT8E8M0": ml_dtypes.float8_e8m0fnu,
}  # fmt: skip


@dataclass(frozen=True)
class Form:
    """A way to write blocks. scale: its type; axis: of the blocks; zeros: there are zero points.

    of: "weights" that a product reads, or "activations" that go through the type and back.
    """

    kind: str
    scale: str = "FLOAT"
    block: int = 32
    axis: int = 0
    of: str = "weights"
    zeros: bool = False

    def __str__(self) -> str:
        return f"{self.kind}-{self.scale}-{self.block}-{self.axis}-{self.of}-{self.zeros}"


FORMS = [
    *(Form(k, "FLOAT8E8M0", of=of) for k in FLOATS for of in ("weights", "activations")),  # MX
    *(Form(k, "FLOAT16", 16, 1) for k in ("FLOAT4E2M1", "INT4", "UINT2")),
    *(Form(k, "FLOAT", 16, of="activations") for k in (*FLOATS, *INTS)),
    *(Form(k, "FLOAT", 32, zeros=True) for k in INTS),
    *(Form(k, "FLOAT8E8M0", 32) for k in INTS),
]
DEPTH, COLUMNS = 64, 32


def model(f: Form) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    rng = np.random.default_rng(0)
    kind: Any = {**FLOATS, **INTS}[f.kind]
    number = getattr(TensorProto, f.kind)
    dims = (DEPTH, COLUMNS)
    of_scales = [n // f.block if i == f.axis else n for i, n in enumerate(dims)]
    drawn = 2.0 ** rng.integers(-4, 4, of_scales) if f.scale == "FLOAT8E8M0" else (
        rng.uniform(0.1, 0.5, of_scales)
    )  # fmt: skip
    constants = [numpy_helper.from_array(drawn.astype(SCALES[f.scale]), "s")]
    more: Sequence[str] = ["s"]
    if f.zeros:
        zeros = rng.integers(0, 2, of_scales).astype(kind)
        constants.append(numpy_helper.from_array(zeros, "z"))
        more = ["s", "z"]
    form: dict[str, Any] = {"axis": f.axis, "block_size": f.block}
    to = {"output_dtype": TensorProto.FLOAT}
    feeds = {"x": rng.standard_normal((8, DEPTH)).astype(np.float32)}
    nodes = []
    if f.of == "weights":
        w = rng.standard_normal(dims) * 3
        w = w if f.kind in FLOATS else np.clip(np.rint(w), *limits(kind))
        constants.append(numpy_helper.from_array(w.astype(kind), "w"))
    else:
        feeds = {"x": rng.standard_normal(dims).astype(np.float32) * 2}
        nodes.append(helper.make_node("QuantizeLinear", ["x", *more], ["w"],
                                      output_dtype=number, **form))  # fmt: skip
    nodes.append(helper.make_node("DequantizeLinear", ["w", *more], ["d"], **form, **to))
    result = "d"
    if f.of == "weights":
        nodes.append(helper.make_node("MatMul", ["x", "d"], ["m"]))
        result = "m"
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, feeds["x"].shape)]
    outputs = [helper.make_tensor_value_info(result, TensorProto.FLOAT, None)]
    graph = helper.make_graph(nodes, "g", inputs, outputs, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)]), feeds


def limits(kind: Any) -> tuple[int, int]:
    found = np.iinfo(kind) if kind in (np.int8, np.uint8) else ml_dtypes.iinfo(kind)
    return int(found.min), int(found.max)


@pytest.mark.parametrize("target", ["ref", pytest.param("cpu", marks=pytest.mark.slow)])
@pytest.mark.parametrize("form", FORMS, ids=str)
def test_blocks(form: Form, target: str) -> None:
    made, feeds = model(form)
    [want] = ReferenceEvaluator(made).run(None, feeds)
    [got] = migraphx.compile(made, target=target).run(feeds)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-4)
