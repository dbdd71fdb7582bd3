"""Attention over caches whose batch, length and rows are dynamic: one kernel, right at every
size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto

import mgx_mlir
from mgx_mlir.core.errors import MgxError
from tests.lowering.programs import Programs
from tests.support.models import Nodes, bytes_of, node
from tests.support.oracle import ort_session

HEADS, SHARED, SIZE = 4, 2, 16
FLOAT, INT32, INT64 = TensorProto.FLOAT, TensorProto.INT32, TensorProto.INT64


class Graph(Nodes):
    """A model that is written node by node."""

    def of(self, inputs: dict[str, tuple[int, list[Any]]], outputs: Sequence[str]) -> bytes:
        made = self.model(inputs, " ".join(outputs), opset=21, ir_version=10, ms=1)
        return made.SerializeToString()


def _inputs(**more: tuple[int, list[Any]]) -> dict[str, tuple[int, list[Any]]]:
    cache = (FLOAT, ["B", SHARED, "P", SIZE])
    return {"q": (FLOAT, ["B", "S", HEADS * SIZE]), "k": (FLOAT, ["B", "S", SHARED * SIZE]),
            "v": (FLOAT, ["B", "S", SHARED * SIZE]), "pk": cache, "pv": cache, **more}  # fmt: skip


def grouped(*, told: bool) -> bytes:
    """GroupQueryAttention with its lengths from a mask, as decoders are shipped, or as inputs."""
    g = Graph()
    if told:
        counts = g.op("Sub", g.op("ReduceSum", "mask", [1], keepdims=0), np.int64(1))
        g.op("Cast", counts, into=["lengths"], to=INT32)
        g.op("Cast", g.op("Gather", g.op("Shape", "mask"), np.int64(1)), into=["total"], to=INT32)
        more = {"mask": (INT64, ["B", "T"])}
        rotary = [np.cos(_angles()), np.sin(_angles())]
    else:
        more, rotary = {"lengths": (INT32, ["B"]), "total": (INT32, [1])}, []
    g.op("GroupQueryAttention", "q", "k", "v", "pk", "pv", "lengths", "total", *rotary,
      into=["y", "nk", "nv"], domain="com.microsoft", num_heads=HEADS, kv_num_heads=SHARED,
      do_rotary=int(told))  # fmt: skip
    return g.of(_inputs(**more), ["y", "nk", "nv"])


def _angles() -> np.ndarray:
    return np.outer(np.arange(64), 10.0 ** -np.arange(SIZE // 2)).astype(np.float32)


def written_out() -> bytes:
    """Concat caches, repeated heads and a mask of its own length, as PyTorch's exporter writes."""
    g = Graph()
    q, k, v = (
        g.op("Transpose", g.op("Reshape", x, [0, 0, n, SIZE]), perm=[0, 2, 1, 3])
        for x, n in (("q", HEADS), ("k", SHARED), ("v", SHARED))
    )
    g.op("Concat", "pk", k, into=["nk"], axis=2)
    g.op("Concat", "pv", v, into=["nv"], axis=2)
    shape = g.op("Shape", "nk")
    batch, total = (g.op("Unsqueeze", g.op("Gather", shape, np.int64(i)), [0]) for i in (0, 2))
    many = g.op("Concat", batch, [SHARED, HEADS // SHARED], total, [SIZE], axis=0)
    flat = g.op("Concat", batch, [HEADS], total, [SIZE], axis=0)
    keys, values = (
        g.op("Reshape", g.op("Expand", g.op("Unsqueeze", x, [2]), many), flat) for x in ("nk", "nv")
    )
    scores = g.op("MatMul", q, g.op("Transpose", keys, perm=[0, 1, 3, 2]))
    scores = g.op("Mul", scores, np.float32(SIZE**-0.5))
    given = g.op("Equal", g.op("Unsqueeze", "mask", [1, 2]), np.int64(1))
    new = g.op("Gather", g.op("Shape", "q"), np.int64(1))
    rows = g.op("Squeeze", total, [0])
    place = g.op("Add", g.op("Range", np.int64(0), new, np.int64(1)), g.op("Sub", rows, new))
    late = g.op(
        "LessOrEqual", g.op("Range", np.int64(0), rows, np.int64(1)), g.op("Unsqueeze", place, [1])
    )
    lowest = np.float32(np.finfo(np.float32).min)
    bias = g.op("Where", g.op("And", late, given), np.float32(0), lowest)
    weights = g.op("Softmax", g.op("Add", scores, bias), axis=-1)
    joined = g.op("Transpose", g.op("MatMul", weights, values), perm=[0, 2, 1, 3])
    g.op("Reshape", joined, [0, 0, HEADS * SIZE], into=["y"])
    return g.of(_inputs(mask=(INT64, ["B", "T"])), ["y", "nk", "nv"])


def _arrays(batch: int, new: int, past: int, **more: np.ndarray) -> dict[str, np.ndarray]:
    draw = np.random.default_rng(batch + new + past).standard_normal
    heads = {"q": HEADS, "k": SHARED, "v": SHARED}
    found = {n: draw((batch, new, h * SIZE)) for n, h in heads.items()}
    found |= {n: draw((batch, SHARED, past, SIZE)) for n in ("pk", "pv")}
    return {**{n: x.astype(np.float32) for n, x in found.items()}, **more}


def _compare(program: Any, model: bytes, given: dict[str, np.ndarray], rows: int) -> None:
    want = ort_session(model).run(None, given)
    for a, b in zip(program.run(given), want, strict=True):
        a = np.asarray(a)
        if a.ndim == 4:  # rows behind the last one are anything
            a, b = a[:, :, :rows], b[:, :, :rows]
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=2e-6)


def _is_one_kernel(program: Any) -> bool:
    names = [k.name for k in program.kernels if "softmax" in k.name]
    return len(names) == 1 and names[0].endswith("_dot") and "dot" in names[0].split("softmax")[0]


@pytest.mark.parametrize("told", [True, False])
def test_grouped_query_attention(told: bool) -> None:
    model = grouped(told=told)
    program = mgx_mlir.compile(model, target="cpu", cache=False, threads=2)
    assert program.stats.unnamed_dynamic_dims is None
    assert _is_one_kernel(program)
    for batch, new, past in ((1, 1, 7), (1, 5, 0), (3, 1, 40), (2, 9, 0), (1, 1, 0)):
        total = past + new
        if told:
            given = _arrays(batch, new, past, mask=np.ones((batch, total), np.int64))
        else:
            lengths = np.full(batch, total - 1, np.int32)
            given = _arrays(batch, new, past, lengths=lengths, total=np.array([total], np.int32))
        _compare(program, model, given, total)


def test_rows_that_no_query_sees_may_be_anything() -> None:
    """A cache has more rows than tokens, and entries have lengths of their own."""
    model = grouped(told=False)
    program = mgx_mlir.compile(model, target="cpu", cache=False, threads=1)
    for lengths, total in (([6, 2], 7), ([30, 11], 31)):
        more = {"lengths": np.array(lengths, np.int32), "total": np.array([total], np.int32)}
        given = _arrays(2, 1, 50, **more)
        for i, n in enumerate(lengths):
            given["pk"][i, :, n:] = np.nan
            given["pv"][i, :, n:] = np.inf
        want = ort_session(model).run(None, given)
        np.testing.assert_allclose(program.run(given)[0], want[0], rtol=1e-5, atol=2e-6)
        caches = {"nk": given["pk"], "nv": given["pv"]}
        got = program.run(given, out=caches)  # in the memory of the caches
        np.testing.assert_allclose(got[0], want[0], rtol=1e-5, atol=2e-6)
        for i, n in enumerate(lengths):
            np.testing.assert_array_equal(caches["nk"][i, :, : n + 1], want[1][i, :, : n + 1])


@pytest.mark.parametrize("window", [-1, 50])
def test_chunks_of_a_prompt(window: int) -> None:
    """Rows in use are some of the cache's; the others may be anything."""
    g, rows = Graph(), 300
    g.op("GroupQueryAttention", "q", "k", "v", "pk", "pv", "lengths", "total",
         into=["y", "nk", "nv"], domain="com.microsoft", num_heads=HEADS, kv_num_heads=SHARED,
         local_window_size=window)  # fmt: skip
    model = g.of(_inputs(lengths=(INT32, ["B"]), total=(INT32, [1])), ["y", "nk", "nv"])
    program = mgx_mlir.compile(model, target="cpu", cache=False, threads=1)
    for new, past in ((40, 0), (33, 17), (9, 250), (64, 128), (70, 230), (5, 90), (1, 299)):
        total = np.array([past + new], np.int32)
        given = _arrays(1, new, rows, lengths=total - 1, total=total)
        want = ort_session(model).run(None, given)
        for cache in ("pk", "pv"):
            given[cache][:, :, past + new :] = np.nan
        np.testing.assert_allclose(program.run(given)[0], want[0], rtol=1e-5, atol=2e-6)


MASKS = ("causal", "inner", "late", "none", "sparse")


@pytest.mark.parametrize("mask", MASKS)
def test_any_mask_on_a_cache(mask: str) -> None:
    """Queries between the first and the last see what these two do not; some see nothing."""
    rng, queries, keys, size = np.random.default_rng(3), 40, 200, 16
    at, key = np.arange(queries)[:, None], np.arange(keys)
    seen = key <= at + 100
    if mask == "inner":
        seen[20, 180:190] = True
    elif mask == "late":
        seen &= key >= 40
        seen[7, 3] = True
    elif mask == "none":
        seen &= key >= 100
        seen[5] = False
    elif mask == "sparse":
        seen &= rng.random(seen.shape) < 0.7
    q, k, v = (rng.standard_normal((1, 2, n, size)).astype(np.float32)
               for n in (queries, keys, keys))  # fmt: skip
    for x in (k, v):
        x[:, :, seen.any(0).nonzero()[0].max() + 1 :] = np.nan  # rows behind all that is seen

    def build(b: Any, q: Any, k: Any, v: Any, mask: Any) -> Any:
        n, none = b.literal(np.array([keys - 1], np.int32)), b.literal(k_none)
        k, v = (b.concat_past_present(none, n, x, kv_num_heads=2) for x in (k, v))
        scores = b.op("dot", q, b.op("transpose", k, permutation=[0, 1, 3, 2]))
        low = b.multibroadcast(b.literal(np.float32(-np.inf)), [1, 2, queries, keys])
        scores = b.op("where", b.multibroadcast(mask, [1, 2, queries, keys]), scores, low)
        return b.op("dot", b.op("softmax", scores, axis=3), v)

    k_none = np.zeros((1, 2, 0, size), np.float32)
    wide = [np.nan_to_num(x.astype(np.float64)) for x in (q, k, v)]
    with np.errstate(invalid="ignore"):
        scores = np.where(seen, wide[0] @ wide[1].swapaxes(2, 3), -np.inf)
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        want = shares / shares.sum(-1, keepdims=True) @ wide[2]
    made = Programs()
    made.add(build, [q, k, v, seen[None, None]], want, name=mask, tolerance=2e-6)
    lowered = made.lowered("fuse_attention", "fuse_pointwise_reduce", arch="host")
    made.compare(lowered, threads=(1,))


def test_a_mask_with_a_length_of_its_own() -> None:
    model = written_out()
    program = mgx_mlir.compile(model, target="cpu", cache=False, threads=2)
    assert _is_one_kernel(program)
    for batch, new, past in ((1, 1, 7), (2, 5, 0), (3, 4, 40), (1, 1, 0)):
        mask = np.ones((batch, past + new), np.int64)
        mask[-1, : past // 2] = 0
        _compare(program, model, _arrays(batch, new, past, mask=mask), past + new)
    one = _arrays(2, 3, 4, mask=np.ones((2, 1), np.int64))  # for all keys
    _compare(program, model, one, 7)
    for new, past, length in ((1, 0, 5), (3, 4, 6)):
        with pytest.raises(MgxError, match="'mask'"):
            program.run(_arrays(1, new, past, mask=np.ones((1, length), np.int64)))


def test_attention_of_shared_heads_compiles() -> None:
    """Dynamic lengths do not hide how many heads there are."""
    attend = node("Attention", "q k v _ pk pv", "y nk nv", q_num_heads=HEADS, kv_num_heads=SHARED,
                  is_causal=1)  # fmt: skip
    model = bytes_of([attend], _inputs(), "y nk nv", opset=23, ir_version=11)
    program = mgx_mlir.compile(model, target="cpu", cache=False)
    assert _is_one_kernel(program)
    for batch, new, past in ((1, 1, 7), (2, 3, 5)):
        _compare(program, model, _arrays(batch, new, past), past + new)
