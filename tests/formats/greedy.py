"""Small ONNX models that ask for gigabytes: what reading and compiling them takes is bounded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tests.support.models import MS, bytes_of

I64, F32 = TensorProto.INT64, TensorProto.FLOAT


def model(
    nodes: Sequence[onnx.NodeProto],
    *,
    inputs: Sequence[tuple[str, int, list[int]]] = (("x", F32, [1]),),
    opset: int = 18,
    ms: bool = False,
    **constants: Any,
) -> bytes:
    """A model of `nodes`, the last of which gives the output."""
    tensors = [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()]
    ends = (
        {n: (kind, dims) for n, kind, dims in inputs},
        [onnx.ValueInfoProto(name=nodes[-1].output[0])],
    )
    return bytes_of(nodes, *ends, tensors, opset=opset, ir_version=8, **({MS: 1} if ms else {}))


def n(op: str, inputs: str, output: str = "y", **attributes: Any) -> onnx.NodeProto:
    names = inputs.split(",") if inputs else []
    return helper.make_node(op, names, [output], **attributes)


def ms(op: str, inputs: str, output: str = "y", **attributes: Any) -> onnx.NodeProto:
    return n(op, inputs, output, domain="com.microsoft", **attributes)


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def long_line(*dims: int) -> np.ndarray:
    return np.arange(np.prod(dims), dtype=np.float32).reshape(dims) / 7


HUGE = 1 << 31


def _many_tables() -> bytes:
    nodes = [n("Range", f"zero,end{i},one", f"r{i}") for i in range(200)]
    nodes += [n("ReduceSum", f"r{i}", f"s{i}") for i in range(200)] + [
        n("Sum", ",".join(f"s{i}" for i in range(200)))
    ]
    ends = {f"end{i}": np.int64(3_900_000 + i) for i in range(200)}
    return model(nodes, zero=np.int64(0), one=np.int64(1), **ends)


def _many_folded() -> bytes:
    nodes = []
    for i in range(300):
        nodes += [n("Mul", f"a{i},b", f"m{i}"), n("Add", f"m{i},x", f"t{i}")]
    nodes.append(n("Sum", ",".join(f"t{i}" for i in range(300))))
    columns = {f"a{i}": long_line(2000, 1) + i for i in range(300)}
    return model(nodes, b=long_line(1, 2000), **columns)


def _long_chain() -> bytes:
    nodes = [n("Mul", "a,b", "t0")]
    nodes += [n("Sin", f"t{i}", f"t{i + 1}") for i in range(200)]
    nodes += [n("ReduceSum", "t200", "t"), n("Add", "t,x")]
    return model(nodes, a=long_line(3900, 1), b=long_line(1, 3900))


GREEDY: dict[str, Callable[[], bytes]] = {
    "range": lambda: model(
        [n("Range", "a,b,c")], a=np.int64(0), b=np.int64(HUGE), c=np.int64(1)
    ),
    "float range": lambda: model(
        [n("Range", "a,b,c")], a=np.float32(0), b=np.float32(1e30), c=np.float32(1e-30)
    ),
    "constant of shape": lambda: model([n("ConstantOfShape", "s")], s=ints(HUGE)),
    "constants that are added": lambda: model(
        [n("ConstantOfShape", "s", "a"), n("Sin", "a", "b"), n("ReduceSum", "b", "c"),
         n("Add", "c,x")], s=ints(1 << 28),
    ),
    "diagonal": lambda: model([n("EyeLike", "x")], inputs=[("x", F32, [46000, 46000])]),
    "triangle": lambda: model([n("Trilu", "x")], inputs=[("x", F32, [46000, 46000])]),
    "window": lambda: model([n("HannWindow", "s")], s=np.int64(HUGE)),
    "product": lambda: model(
        [n("Mul", "a,b", "c"), n("ReduceSum", "c", "d"), n("Add", "d,x")],
        a=long_line(40000, 1), b=long_line(1, 40000),
    ),
    "matrix product": lambda: model(
        [n("MatMul", "a,b", "c"), n("ReduceSum", "c", "d"), n("Add", "d,x")],
        a=long_line(40000, 1), b=long_line(1, 40000),
    ),
    "resize": lambda: model(
        [n("Resize", "a,,,s", "c", mode="linear"), n("ReduceMax", "c", "d"), n("Add", "d,x")],
        a=long_line(1, 1, 4, 4), s=ints(1, 1, 40000, 40000),
    ),
    "nearest": lambda: model(
        [n("Resize", "a,,,s", "c", mode="nearest"), n("ReduceMax", "c", "d"), n("Add", "d,x")],
        a=long_line(1, 1, 4, 4), s=ints(1, 1, 40000, 40000),
    ),
    "cubic": lambda: model(
        [n("Resize", "a,,,s", "c", mode="cubic"), n("ReduceMax", "c", "d"), n("Add", "d,x")],
        a=long_line(1, 1, 4, 4), s=ints(1, 1, 40000, 40000),
    ),
    "expand": lambda: model(
        [n("Expand", "a,s", "c"), n("ReduceSum", "c", "d"), n("Add", "d,x")],
        a=long_line(1), s=ints(1 << 40),
    ),
    "tile": lambda: model(
        [n("Tile", "a,s", "c"), n("ReduceSum", "c", "d"), n("Add", "d,x")],
        a=long_line(2), s=ints(1 << 33),
    ),
    "pad": lambda: model(
        [n("Pad", "a,s", "c"), n("ReduceSum", "c", "d"), n("Add", "d,x")],
        a=long_line(2), s=ints(0, 1 << 33),
    ),
    "one hot": lambda: model(
        [n("OneHot", "a,b,c", "d"), n("ReduceSum", "d", "e"), n("Add", "e,x")],
        a=ints(*range(64)), b=np.int64(1 << 30), c=np.array([0, 1], np.float32),
    ),
    "many ranges": _many_tables,
    "many products": _many_folded,
    "long chain": _long_chain,
    "causal mask": lambda: model(
        [n("Attention", "q,q,q", is_causal=1)], opset=23, inputs=[("q", F32, [1, 1, 60000, 4])]
    ),
    "indices of maxima": lambda: model(
        [helper.make_node("MaxPool", ["x"], ["z", "i"], kernel_shape=[99, 99]), n("Add", "i,i")],
        inputs=[("x", F32, [1, 1, 9000, 9000])],
    ),
    "unpool": lambda: model(
        [n("MaxUnpool", "x,i", kernel_shape=[2, 2], strides=[60000, 60000])],
        inputs=[("x", F32, [1, 1, 4, 4]), ("i", I64, [1, 1, 4, 4])],
    ),
    "mel weights": lambda: model(
        [n("MelWeightMatrix", "a,b,c,d,e")], a=np.int64(1 << 20), b=np.int64(1 << 21),
        c=np.int64(8000), d=np.float32(0), e=np.float32(4000),
    ),
    "transform": lambda: model(
        [n("DFT", "x")], inputs=[("x", F32, [1, 46337, 1])], opset=17
    ),
    "dropout mask": lambda: model(
        [helper.make_node("Dropout", ["x"], ["z", "m"]), n("Not", "m")],
        inputs=[("x", F32, [HUGE])],
    ),
    "random": lambda: model([n("RandomNormal", "", shape=[1 << 20, 1 << 20])]),
    "bernoulli": lambda: model([n("Bernoulli", "x")], inputs=[("x", F32, [1 << 20, 1 << 20])]),
    "affine grid": lambda: model(
        [n("AffineGrid", "x,s")], opset=20, inputs=[("x", F32, [1, 2, 3])],
        s=ints(1, 1, 40000, 40000),
    ),
    "concatenation": lambda: model(
        [n("Concat", ",".join(["a"] * 4000), "b", axis=0), n("Concat", ",".join(["b"] * 4000), "c",
         axis=0), n("ReduceSum", "c", "d"), n("Add", "d,x")], a=long_line(64),
    ),
    "inverse": lambda: model([ms("Inverse", "x")], inputs=[("x", F32, [60000, 60000])], ms=True),
    "fourier": lambda: model([ms("Rfft", "x", onesided=1, signal_ndim=1, normalized=0)],
                             inputs=[("x", F32, [60000])], ms=True),
    "unfold": lambda: model(
        [ms("UnfoldTensor", "x", dim=0, size=30000)], inputs=[("x", F32, [60000])], ms=True
    ),
    "relative positions": lambda: model(
        [ms("RelativePositionBias", "t,a,b", max_distance=9)], ms=True,
        inputs=[("t", F32, [4, 4])], a=ints(60000), b=ints(60000),
    ),
}  # fmt: skip
