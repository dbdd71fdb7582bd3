"""Kernels that are alike but for a number: code is shared only where nothing in it differs."""

from __future__ import annotations

import re

import numpy as np
import onnx.parser
import pytest
from onnx import numpy_helper

import mgx_mlir
from tests.support.oracle import ort_session

HEAD = """<ir_version: 9, opset_import: ["" : 19]> g (float[1,8,9,9] x) => (float[1,8,9,9] y)"""
# a layer `a -> b` in which N is a number that differs from layer to layer
LAYERS = {
    "relu6": "c = Clip(a,lowN,highN)  b = Conv<pads=[1,1,1,1]>(c,wN)",
    "clip behind": "c = Conv<pads=[1,1,1,1]>(a,wN)  b = Clip(c,lowN,highN)",
    "scaled": "c = Mul(a,highN)  b = Conv<pads=[1,1,1,1]>(c,wN)",
    "padded": "c = Pad(a,pads,lowN)  b = Conv(c,wN)",
    "pairs": "p = QuantizeLinear(a,sN,zN)  c = DequantizeLinear(p,sN,zN)  b = Sigmoid(c)",
    "bytes": """p = QuantizeLinear(a,sN,zN)  c = QLinearConv<pads=[1,1,1,1]>(p,sN,zN,vN,tN,oN,uN,kN)
             b = DequantizeLinear(c,uN,kN)""",
    "leaky": "c = LeakyRelu<alpha=0.N>(a)  b = Softmax<axis=3>(c)",
    "pow": "c = Abs(a)  d = Pow(c,highN)  b = Softmax<axis=1>(d)",
    "gathered": "c = Gather<axis=1>(a,iN)  b = Add(c,highN)",
    "resized": 'c = Resize<mode="linear">(a,,fN)  b = Resize<mode="linear">(c,,,size)',
}


def net(layer: str, count: int) -> onnx.ModelProto:
    """Return a net of layers that differ in their numbers alone."""
    rng = np.random.default_rng(5)
    lines, held = [], {
        "pads": np.array([0, 0, 1, 1, 0, 0, 1, 1]),
        "size": np.array([1, 8, 9, 9]),
    }  # fmt: skip
    for i in range(count):
        text = layer.replace("N", str(i + 1))
        for name, new in (
            ("a", f"a{i}" if i else "x"), ("b", f"a{i + 1}" if i + 1 < count else "y"),
            ("c", f"c{i}"), ("d", f"d{i}"), ("p", f"p{i}"),
        ):  # fmt: skip
            text = _renamed(text, name, new)
        lines.append(text)
        n = str(i + 1)
        held |= {
            f"low{n}": np.float32(-0.3 - 0.2 * i), f"high{n}": np.float32(0.7 + 0.4 * i),
            f"s{n}": np.float32(0.02 + 0.013 * i), f"z{n}": np.uint8(100 + 31 * i),
            f"u{n}": np.float32(0.02 + 0.013 * i), f"k{n}": np.uint8(100 + 31 * i),
            f"t{n}": np.float32(0.02), f"o{n}": np.int8(0),
            f"w{n}": (rng.standard_normal((8, 8, 3, 3)) / 8).astype(np.float32),
            f"v{n}": rng.integers(-127, 128, (8, 8, 3, 3)).astype(np.int8),
            f"i{n}": rng.permutation(8), f"f{n}": np.array([1, 1, 2 + i, 2], np.float32),
        }  # fmt: skip
    model = onnx.parser.parse_model(f"{HEAD} {{ {'  '.join(lines)} }}")
    used = {name for node in model.graph.node for name in node.input}
    for name, value in held.items():
        if name in used:
            model.graph.initializer.append(numpy_helper.from_array(np.asarray(value), name))
    return model


def _renamed(text: str, name: str, new: str) -> str:
    return re.sub(rf"(?<![\w.\"]){name}(?=[,)( ]|$)", new, text)


@pytest.mark.parametrize("name", LAYERS)
def test_numbers_that_differ(name: str) -> None:
    data = net(LAYERS[name], 3).SerializeToString()
    x = {"x": np.random.default_rng(1).standard_normal((1, 8, 9, 9)).astype(np.float32)}
    session = ort_session(data)
    want = session.run(None, x)[0]
    got = np.asarray(mgx_mlir.compile(data, target="cpu", cache=False).run(x)[0])
    # a sum of 8 bits that onnxruntime rounds the other way is a step of the last scale
    step = 0.046 if "bytes" in name or "pairs" in name else 0.0
    apart = np.abs(got - want)
    assert np.mean(apart > 1e-5) < 0.01
    assert np.all(apart <= 1e-5 + 1.01 * step)
