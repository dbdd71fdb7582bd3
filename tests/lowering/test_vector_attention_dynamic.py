"""Attention whose batch, heads, queries and keys are dynamic: one program, at many lengths."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import onnx.parser
import pytest
from onnx import TensorProto, helper

import mgx_mlir
from mgx_mlir.passes.lowering.cpu.frame.isa import isa_of
from tests.lowering.programs import check
from tests.support.models import model_of
from tests.support.oracle import ort_session

pytestmark = pytest.mark.skipif(isa_of("host") is None, reason="no vector kernels for this host")

LENGTHS = (1, 5, 7, 8, 16, 17, 128, 300)
DIMS: dict[str, tuple[str | int, ...]] = {
    "q": ("b", "h", "m", 64), "k": ("b", "h", "n", 64), "v": ("b", "h", "n", 32),
    "p": ("b", "h", "m", 64),
    "mask": ("b", 1, 1, "n"), "bias": ("h", "m", "n"), "keep": ("m", "n"),
    "rows": ("b", "m", 6 * 24), "cached": ("b", 2, "n", 24), "column": ("b", "m", 1),
}  # fmt: skip


def model() -> onnx.ModelProto:
    """Masks added and chosen by; heads split from rows, of keys and values that three share."""
    nodes: list[onnx.NodeProto] = []
    numbers: dict[str, np.ndarray] = {}

    def op(kind: str, *inputs: str, **attributes: Any) -> str:
        name = f"v{len(nodes)}"
        nodes.append(helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def ints(*values: int) -> str:
        numbers[name := f"i{'_'.join(map(str, values))}"] = np.array(values, np.int64)
        return name

    def attend(q: str, k: str, v: str, scale: str) -> tuple[str, str]:
        turned = op("Transpose", k, perm=[0, 1, 3, 2])
        return op("Mul", op("MatMul", q, turned), scale), v

    numbers["scale"] = np.array(0.125, np.float32)
    numbers["low"] = np.array(-np.inf, np.float32)
    scores, v = attend("q", "k", "v", "scale")
    scores = op("Add", op("Add", scores, "mask"), "bias")
    first = op("MatMul", op("Softmax", scores, axis=-1), v)
    scores, v = attend("p", "k", "v", "scale")
    scores = op("Where", "keep", scores, "low")
    second = op("Relu", op("MatMul", op("Softmax", scores, axis=-1), v))
    # grouped heads
    split = op("Transpose", op("Reshape", "rows", ints(0, 0, 6, 24)), perm=[0, 2, 1, 3])
    dims = op("Concat", *(op("Shape", "cached", start=i, end=i + 1) for i in (0, 1)), ints(3),
              op("Shape", "cached", start=2), axis=0)  # fmt: skip
    wide = op("Expand", op("Unsqueeze", "cached", ints(2)), dims)
    shared = op("Reshape", wide, ints(0, 6, -1, 24))
    scores, v = attend(split, shared, shared, "scale")
    joined = op("Transpose", op("MatMul", op("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
    third = op("Add", op("Reshape", joined, ints(0, 0, 6 * 24)), "column")
    inputs = {n: (TensorProto.BOOL if n == "keep" else TensorProto.FLOAT, list(d))
              for n, d in DIMS.items()}  # fmt: skip
    return model_of(nodes, inputs, f"{first} {second} {third}", numbers, opset=18, ir_version=10)


def softmax(x: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        e = np.exp(x - x.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)


def expected(x: dict[str, np.ndarray]) -> list[np.ndarray]:
    w = {n: a if a.dtype == bool else a.astype(np.float64) for n, a in x.items()}
    scores = w["q"] @ w["k"].swapaxes(-1, -2) * 0.125
    first = softmax(scores + w["mask"] + w["bias"]) @ w["v"]
    scores = w["p"] @ w["k"].swapaxes(-1, -2) * 0.125
    second = softmax(np.where(w["keep"], scores, -np.inf)) @ w["v"]
    second = np.maximum(second, 0)
    b, m, _ = x["rows"].shape
    split = w["rows"].reshape(b, m, 6, 24).swapaxes(1, 2)
    shared = w["cached"].repeat(3, 1)
    third = softmax(split @ shared.swapaxes(-1, -2) * 0.125) @ shared
    return [first, second, third.swapaxes(1, 2).reshape(b, m, 6 * 24) + w["column"]]


def drawn(sizes: dict[str, int], rng: np.random.Generator) -> dict[str, np.ndarray]:
    x: dict[str, np.ndarray] = {}
    for name, dims in DIMS.items():
        shape = [sizes[d] if isinstance(d, str) else d for d in dims]
        x[name] = rng.standard_normal(shape, np.float32)
    x["keep"] = rng.random(x["keep"].shape) < 0.7
    x["keep"][:, 0] = True
    x["mask"][..., 1:][rng.random(x["mask"][..., 1:].shape) < 0.2] = -np.inf
    return x


@pytest.fixture(scope="module", params=(1, 2))
def program(request: pytest.FixtureRequest) -> Any:
    made = mgx_mlir.compile(model().SerializeToString(), target="cpu", threads=request.param)
    assert len([k for k in made.kernels if "softmax" in k.name and "dot" in k.name]) == 3
    return made


def test_lengths(program: Any) -> None:
    """Against float64, at lengths below, at and past a vector, a block and the scratch memory."""
    rng = np.random.default_rng(1)
    pairs = [*zip(LENGTHS, LENGTHS, strict=True), (1, 300), (1, 16), (1, 2100), (300, 1), (9, 600)]
    for (m, n), (b, h) in zip(pairs, itertools.cycle([(1, 3), (2, 1), (3, 2)]), strict=False):
        x = drawn({"b": b, "h": h, "m": m, "n": n}, rng)
        for i, (got, want) in enumerate(zip(program.run(x), expected(x), strict=True)):
            check(got, want, 3e-6, f"result {i} of {b}x{h} heads, {m} queries, {n} keys")


def test_special_numbers(program: Any) -> None:
    """Rows without keys, NaN and infinity: as onnxruntime."""
    oracle = ort_session(model())
    rng = np.random.default_rng(2)
    for m, n in ((1, 40), (5, 17), (33, 300)):
        x = drawn({"b": 1, "h": 2, "m": m, "n": n}, rng)
        x["keep"][m // 2] = False
        x["q"][0, 0, m // 2, 3] = np.nan
        x["v"][0, 1, n - 1, 5] = np.inf
        x["k"][0, 1, n // 2, 0] = np.inf
        found: Any = oracle.run(None, x)
        assert np.isnan(found[0]).any()
        assert np.isnan(found[1]).any()
        for got, want in zip(program.run(x), found, strict=True):
            check(got, want.astype(np.float64), 1e-5, f"{m} queries, {n} keys")


def test_nothing(program: Any) -> None:
    """No queries, no batch; over no keys all weights are none, and their sums 0."""
    rng = np.random.default_rng(3)
    for sizes in ({"b": 0, "m": 3, "n": 4}, {"b": 1, "m": 0, "n": 4}):
        x = drawn({"h": 2, **sizes}, rng)
        for got, want in zip(program.run(x), expected(x), strict=True):
            assert got.shape == want.shape
    for m in (2, 20):
        x = drawn({"b": 2, "h": 2, "m": m, "n": 1}, rng)
        for name, dims in DIMS.items():
            if "n" in dims:
                x[name] = np.take(x[name], [], dims.index("n"))
        first, second, third = program.run(x)
        assert not first.any()
        assert not second.any()
        np.testing.assert_array_equal(third, np.broadcast_to(x["column"], third.shape))


# width, depth: of heads from one element to more than the scratch memory holds
HEADS = ((1, 1), (7, 5), (8, 8), (64, 64), (61, 80), (100, 33), (300, 20), (20, 600), (520, 257))


@pytest.fixture(scope="module", params=(1, 2))
def of_any_head(request: pytest.FixtureRequest) -> tuple[Any, bytes]:
    """Scores, a mask, and what follows the sums; the size of a head is dynamic too."""
    text = """<ir_version: 8, opset_import: ["": 18]>
        g (float[b,h,m,d] q, float[b,h,n,d] k, float[b,h,n,e] v, float[m,n] mask)
            => (float[b,h,m,e] y) <float scale = {0.125}> {
            t = Transpose <perm = [0, 1, 3, 2]> (k) p = MatMul (q, t) s = Mul (p, scale)
            a = Add (s, mask) c = Softmax <axis = -1> (a) o = MatMul (c, v) y = Relu (o)
        }"""
    model = onnx.parser.parse_model(text).SerializeToString()
    made = mgx_mlir.compile(model, target="cpu", threads=request.param, cache=False)
    assert not made.executable.fallbacks
    # the epilogue is a separate kernel if the size of the values is dynamic
    attention, after = made.executable.dispatches["main"]
    assert "softmax" in attention
    assert after.endswith("relu")
    return made, model


def test_dynamic_heads(of_any_head: tuple[Any, bytes]) -> None:
    """Against float64: few queries and blocks of them, keys within and beyond a block."""
    made, _ = of_any_head
    rng = np.random.default_rng(4)
    counts = itertools.cycle([(1, 40), (5, 9), (8, 8), (19, 33), (40, 300), (3, 2100), (16, 1)])
    for width, depth in HEADS:
        for (m, n), (b, h) in zip(itertools.islice(counts, 4), [(1, 2), (2, 1)] * 2, strict=True):
            shapes = {"q": (b, h, m, width), "k": (b, h, n, width), "v": (b, h, n, depth)}
            shapes |= {"mask": (m, n)}
            x = {i: rng.standard_normal(s).astype(np.float32) for i, s in shapes.items()}
            x["q"] /= np.float32(width**0.5)
            x["mask"][:, 1:][rng.random((m, n - 1)) < 0.2] = -np.inf
            wide = {i: a.astype(np.float64) for i, a in x.items()}
            scores = wide["q"] @ wide["k"].swapaxes(-1, -2) * 0.125 + wide["mask"]
            want = np.maximum(softmax(scores) @ wide["v"], 0)
            [got] = made.run(x)
            check(got, want, 3e-6, f"{m} queries, {n} keys, heads of {width} and {depth}")


def test_special_numbers_of_dynamic_heads(of_any_head: tuple[Any, bytes]) -> None:
    """NaN and infinity beside and within what a vector reads past a head's end."""
    made, model = of_any_head
    oracle = ort_session(model)
    rng = np.random.default_rng(5)
    for m, n, width, depth in ((1, 20, 5, 3), (30, 20, 5, 3), (30, 20, 300, 11)):
        shapes = {"q": (1, 2, m, width), "k": (1, 2, n, width), "v": (1, 2, n, depth)}
        shapes |= {"mask": (m, n)}
        x = {i: rng.standard_normal(s).astype(np.float32) for i, s in shapes.items()}
        x["q"][0, 0, m // 2, width - 1] = np.nan
        x["k"][0, 1, n // 2, 0] = np.inf
        x["v"][0, 0, n - 1, depth - 1] = np.inf
        x["v"][0, 1, 0, 0] = np.nan
        [want] = oracle.run(None, x)
        assert np.isnan(want).any()
        [got] = made.run(x)
        check(got, want.astype(np.float64), 1e-5, f"{m} queries, {n} keys, {width} and {depth}")
    for zero in ("b", "m", "e"):
        sizes = {"b": 1, "h": 2, "m": 9, "n": 4, "d": 8, "e": 8} | {zero: 0}
        dims = {"q": "bhmd", "k": "bhnd", "v": "bhne", "mask": "mn"}
        x = {i: np.zeros([sizes[d] for d in t], np.float32) for i, t in dims.items()}
        assert made.run(x)[0].shape == tuple(sizes[d] for d in "bhme")
