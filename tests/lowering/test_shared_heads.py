"""Attention of heads that share keys and values, of one query and of many: right at every size."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

import mgx_mlir
from mgx_mlir.passes.lowering.cpu.attention import attention, attention_heads
from mgx_mlir.passes.lowering.cpu.frame.isa import isa_of
from tests.support.models import bytes_of

pytestmark = pytest.mark.skipif(isa_of("host") is None, reason="no vector kernels for this host")

SHARED, TIMES, SIZE, DEPTH = 2, 6, 32, 16
TYPES: dict[int, Any] = {TensorProto.FLOAT: np.float32, TensorProto.FLOAT16: np.float16}


def model(
    kind: int, keys: Any, *, masked: bool, times: int = TIMES, queries: Any = 1, alike: bool = False
) -> bytes:
    """Repeat keys and values for `times` heads each, and attend with queries.

    masked: each head sees other keys; if `alike`, the same.
    """
    inputs = {"q": (kind, ["B", SHARED * times, queries, SIZE]),
              "k": (kind, ["B", SHARED, keys, SIZE]),
              "v": (kind, ["B", SHARED, keys, DEPTH])}  # fmt: skip
    if masked:
        heads = 1 if alike else SHARED * times
        inputs["mask"] = (TensorProto.BOOL, ["B", heads, queries, keys])
    attend = helper.make_node("Attention", list(inputs), ["y"], scale=0.4)
    return bytes_of([attend], inputs, {"y": (kind, None)}, opset=23, ir_version=11)


def expected(feeds: dict[str, np.ndarray]) -> np.ndarray:
    q, k, v = (feeds[n].astype(np.float64) for n in "qkv")
    k, v = (np.repeat(x, q.shape[1] // k.shape[1], axis=1) for x in (k, v))
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


@pytest.mark.parametrize(
    ("times", "queries", "mask"),
    [(3, "Q", "alike"), (4, "Q", ""), (6, 40, "alike"), (8, "Q", "each"), (5, 33, ""), (2, 8, "")],
)
def test_blocks_of_queries(
    times: int, queries: Any, mask: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Few and many queries, with a last group of fewer; masks that heads have alike and not."""
    made: list[int] = []
    found = attention_heads.heads_of_block
    monkeypatch.setattr(attention, "heads_of_block", lambda *a: made.append(found(*a)) or made[-1])
    given = model(TensorProto.FLOAT, "T", masked=bool(mask), times=times, queries=queries,
                  alike=mask == "alike")  # fmt: skip
    program = mgx_mlir.compile(given, "cpu", cache=False, threads=2)
    assert made
    assert times % max(made) == 0
    assert queries != 8 or max(made) == 1
    r = np.random.default_rng(times)
    for batch, many, count in ((2, 1, 33), (1, 7, 40), (2, 16, 300), (1, 40, 515), (1, 100, 17)):
        rows = many if queries == "Q" else queries
        sizes = {"q": (SHARED * times, rows, SIZE), "k": (SHARED, count, SIZE),
                 "v": (SHARED, count, DEPTH)}  # fmt: skip
        feeds: dict[str, np.ndarray] = {
            n: r.standard_normal((batch, *dims), np.float32) for n, dims in sizes.items()
        }
        feeds["k"][..., count // 2, :] *= 9
        if mask:
            heads = 1 if mask == "alike" else SHARED * times
            feeds["mask"] = r.random((batch, heads, rows, count)) < 0.7
            feeds["mask"][..., count // 3] = True
        want, got = expected(feeds), np.asarray(program.run(feeds)[0], np.float64)
        assert np.abs(got - want).max() <= 2e-6 * np.abs(want).max(), (batch, rows, count)
