"""Operators of the com.microsoft domain, on the reference interpreter, against onnxruntime."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from mgx_mlir.core.interpreter import Interpreter
from mgx_mlir.frontends.onnx.importer import parse_onnx_buffer

ort = pytest.importorskip("onnxruntime")

# operator, inputs by dims (None: absent; an array: as it is), attributes, outputs wanted
X = (2, 5, 16)
CASES = [
    ("RotaryEmbedding", [X, np.int64([3]), (12, 4), (12, 4)], {}, 1),
    (
        "RotaryEmbedding",
        [X, np.int64([[0, 2, 1, 4, 3]] * 2), (12, 4), (12, 4)],
        {"interleaved": 1},
        1,
    ),
    (
        "RotaryEmbedding",
        [X, np.int64([1]), (12, 2), (12, 2)],
        {"num_heads": 2, "rotary_embedding_dim": 4},
        1,
    ),
    ("MultiHeadAttention", [X, (2, 7, 16), (2, 7, 16)], {"num_heads": 4}, 1),
    ("MultiHeadAttention", [X, X, X, (48,)], {"num_heads": 2, "unidirectional": 1}, 1),
    (
        "MultiHeadAttention",
        [X, (2, 7, 16), (2, 7, 16), None, np.int32([[1] * 7, [1, 1, 1, 0, 0, 0, 0]])],
        {"num_heads": 2, "scale": 0.3},
        1,
    ),
    (
        "MultiHeadAttention",
        [X, X, X, None, None, (1, 2, 5, 8), (2, 2, 3, 8), (2, 2, 3, 8)],
        {"num_heads": 2},
        3,
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c[0]}-{len(c[1])}")
def test_against_onnxruntime(case: tuple) -> None:
    name, given, attributes, outputs = case
    random = np.random.default_rng(8)
    inputs, infos, names = {}, [], []
    for i, g in enumerate(given):
        if g is None:
            names.append("")
            continue
        array = g if isinstance(g, np.ndarray) else random.standard_normal(g).astype(np.float32)
        names.append(f"x{i}")
        inputs[f"x{i}"] = array
        kind = helper.np_dtype_to_tensor_dtype(array.dtype)
        infos.append(helper.make_tensor_value_info(f"x{i}", kind, array.shape))
    skipped = {1, 2} if name == "SkipLayerNormalization" else set()  # training outputs
    made = ["" if i in skipped else f"y{i}" for i in range(outputs)]
    node = helper.make_node(name, names, made, domain=domain, **attributes)
    results = [helper.make_tensor_value_info(y, TensorProto.FLOAT, None) for y in made if y]
    model = helper.make_model(
        helper.make_graph([node], "g", infos, results),
        opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)],
    )
    model.ir_version = 8
    data = model.SerializeToString()
    assert isinstance(model, onnx.ModelProto)
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    want = ort.InferenceSession(data, options, providers=["CPUExecutionProvider"]).run(None, inputs)
    program = parse_onnx_buffer(data)
    got = Interpreter(program.module, program.store).run(inputs)
    for g, w in zip(got, want, strict=True):
        assert g.shape == w.shape
        np.testing.assert_allclose(g, w, rtol=3e-5, atol=3e-6)
