"""Attention of one query for heads that share keys and values: right at every number of keys."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

import mgx_mlir
from mgx_mlir.passes.lowering.cpu.attention import attention_heads
from mgx_mlir.passes.lowering.cpu.frame.isa import isa_of
from tests.support.models import bytes_of

pytestmark = pytest.mark.skipif(isa_of("host") is None, reason="no vector kernels for this host")

SHARED, TIMES, SIZE, DEPTH = 2, 6, 32, 16
TYPES: dict[int, Any] = {TensorProto.FLOAT: np.float32, TensorProto.FLOAT16: np.float16}


def model(kind: int, keys: Any, *, masked: bool) -> bytes:
    """Repeat keys and values for `TIMES` heads each, and attend with one query."""
    inputs = {"q": (kind, ["B", SHARED * TIMES, 1, SIZE]), "k": (kind, ["B", SHARED, keys, SIZE]),
              "v": (kind, ["B", SHARED, keys, DEPTH])}  # fmt: skip
    if masked:  # each head sees other keys
        inputs["mask"] = (TensorProto.BOOL, ["B", SHARED * TIMES, 1, keys])
    attend = helper.make_node("Attention", list(inputs), ["y"], scale=0.4)
    return bytes_of([attend], inputs, {"y": (kind, None)}, opset=23, ir_version=11)


def expected(feeds: dict[str, np.ndarray]) -> np.ndarray:
    q, k, v = (feeds[n].astype(np.float64) for n in "qkv")
    k, v = (np.repeat(x, TIMES, axis=1) for x in (k, v))
    s = q @ k.swapaxes(-1, -2) * 0.4
    if "mask" in feeds:
        s = np.where(feeds["mask"], s, -np.inf)
    e = np.exp(s - s.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True) @ v


@pytest.mark.parametrize(
    ("kind", "keys", "masked"),
    [
        (TensorProto.FLOAT, "T", False),
        (TensorProto.FLOAT, "T", True),
        (TensorProto.FLOAT16, "T", False),
        (TensorProto.FLOAT, 1030, False),
    ],
)
def test_one_query(kind: int, keys: Any, masked: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    store = attention_heads.SharedHeads.store

    def counted(self: attention_heads.SharedHeads) -> None:
        made.append(self.count)
        store(self)

    monkeypatch.setattr(attention_heads.SharedHeads, "store", counted)
    program = mgx_mlir.compile(model(kind, keys, masked=masked), "cpu", cache=False, threads=2)
    assert set(made) == {TIMES}
    r = np.random.default_rng(3)
    sizes = (1, 15, 16, 33, 512, 513, 1040) if keys == "T" else (keys,)
    for batch, count in ((b, n) for b in (1, 3) for n in sizes):
        feeds = {"q": r.standard_normal((batch, SHARED * TIMES, 1, SIZE)),
                 "k": r.standard_normal((batch, SHARED, count, SIZE)),
                 "v": r.standard_normal((batch, SHARED, count, DEPTH))}  # fmt: skip
        feeds["k"][..., count // 2, :] *= 9  # the maximum grows past a block
        feeds = {n: x.astype(TYPES[kind]) for n, x in feeds.items()}
        if masked:
            feeds["mask"] = r.random((batch, SHARED * TIMES, 1, count)) < 0.7
            feeds["mask"][..., count // 3] = True
        want = expected(feeds)
        got = np.asarray(program.run(feeds)[0], np.float64)
        limit = 2e-6 if kind == TensorProto.FLOAT else 2e-3
        assert np.abs(got - want).max() <= limit * np.abs(want).max(), (batch, count)


def test_a_number_that_is_none_stays_in_its_head() -> None:
    program = mgx_mlir.compile(model(TensorProto.FLOAT, 40, masked=False), "cpu", cache=False)
    r = np.random.default_rng(5)
    feeds = {"q": r.standard_normal((1, SHARED * TIMES, 1, SIZE), np.float32),
             "k": r.standard_normal((1, SHARED, 40, SIZE), np.float32),
             "v": r.standard_normal((1, SHARED, 40, DEPTH), np.float32)}  # fmt: skip
    whole = np.asarray(program.run(feeds)[0])
    feeds["q"][0, 4, 0, 7] = np.nan
    got = np.asarray(program.run(feeds)[0])
    assert np.isnan(got[0, 4]).all()
    others = [h for h in range(SHARED * TIMES) if h != 4]
    np.testing.assert_array_equal(got[0, others], whole[0, others])
