"""com.microsoft: GroupQueryAttention with quantised caches and caches of the latest rows."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from contrib_cases import Case, Draws, check, expected, run
from contrib_cases import model as model_of

from mgx_mlir.core.errors import MgxError
from mgx_mlir.frontends.onnx.importer import parse_onnx_buffer

SIZE = 16  # width of a head; rotations take a multiple of it


def node(g: Draws, batch: int, rows: int, past: list[Any], old: Any, **more: Any) -> Case:
    """Attention of `rows` new rows behind `old` ones of each entry."""
    kv_heads = past[0].shape[1]
    count = kv_heads * g.size(1, 3)
    new = [g.floats(batch, rows, n * SIZE) for n in (count, kv_heads, kv_heads)]
    total = int(np.max(old)) + rows
    lengths = (np.asarray(old) + rows - 1).astype(np.int32)
    given = [*new, *past, lengths, np.array(total, np.int32)]
    bias = g.floats(g.pick(1, batch), g.pick(1, count), rows, total) if g.coin(0.3) else None
    a: dict[str, Any] = {"num_heads": count, "kv_num_heads": kv_heads}
    rotary = [None, None]
    if g.coin(0.3):
        angles = g.floats(24, SIZE // 2)
        rotary, a["do_rotary"] = [np.cos(angles), np.sin(angles)], 1
    if g.coin(0.3):
        a["softcap"] = 2.0
    scales = more.pop("scales", [])
    given += [*rotary, None, bias, None, *scales]
    return Case("GroupQueryAttention", given, a | more, 3, constants=[6], tol=3e-5, off_by_one=True)


def quantised(g: Draws) -> Case:
    """i8 numbers, or 4-bit ones two to a byte; scales of the whole or of each channel."""
    bits, kind = g.pick((8, np.int8), (4, np.uint8))
    batch, kv_heads = g.size(1, 2), g.size(1, 2)
    old = g.size(0, 4)
    rows = g.size(1, 4) if batch == 1 or not old else 1
    dims = (batch, kv_heads, old + g.pick(0, rows, rows + 2), SIZE * bits // 8)
    per = g.coin()
    how = "PER_CHANNEL" if per else "PER_TENSOR"
    scales = [
        np.asarray(g.positive(*((1, kv_heads, 1, SIZE) if per else (1,))) * 0.1) for _ in range(2)
    ]
    past = [g.bytes(*dims, dtype=kind) for _ in range(2)]
    for p in past:  # rows that are not there yet; onnxruntime gives zeros for them
        p[:, :, old:] = 0
    return node(
        g, batch, rows, past, [old] * batch, k_quant_type=how, v_quant_type=how,
        kv_cache_bit_width=bits, scales=scales,
    )  # fmt: skip


@pytest.mark.parametrize("target", ["ref", "cpu"])
def test_quantised_caches(target: str) -> None:
    g = Draws(1)
    cases = [quantised(g) for _ in range(12)]
    for case in cases:
        for i, output in ((1, 3), (2, 4)):
            case.kinds[i] = case.inputs[output].dtype
    check(cases, target=target)


def held(total: int, capacity: int, window: int) -> int:
    """L(T) of the operator's text."""
    step = capacity - window + 1
    return total if total <= capacity else total - step * -(-(total - capacity) // step)


def sliding(g: Draws) -> tuple[Case, list[int]]:
    """A case, and how many rows of each entry's cache count afterwards: the others are any."""
    window = g.size(1, 4)
    capacity = window + g.size(0, 3)
    batch = g.size(1, 3)
    rows = g.size(1, 7) if batch == 1 else 1
    old = g.ints(0, 12, batch)
    past = [g.floats(batch, g.size(1, 2), capacity, SIZE)]
    past.append(g.floats(*past[0].shape))
    case = node(g, batch, rows, past, old, local_window_size=window, sliding_window_cache=1)
    return case, [held(int(n) + rows, capacity, window) for n in old]


@pytest.mark.parametrize("target", ["ref", "cpu"])
def test_caches_of_the_latest_rows(target: str) -> None:
    g = Draws(2)
    drawn = [sliding(g) for _ in range(16)]
    data, feeds, names = model_of([case for case, _ in drawn])
    made = iter(run(data, feeds, target))
    for case, counts in drawn:
        want, got = expected(case), [np.asarray(next(made)) for _ in range(3)]
        np.testing.assert_allclose(got[0], want[0], rtol=1e-4, atol=1e-5)
        for a, b in zip(got[1:], want[1:], strict=True):
            assert a.shape == b.shape
            for entry, count in enumerate(counts):
                np.testing.assert_allclose(
                    a[entry, :, :count], b[entry, :, :count], rtol=1e-4, atol=1e-5
                )
    assert len(names) == len(drawn)


def test_a_cache_of_8_bit_floats() -> None:
    """onnxruntime has it for GPUs alone: numpy, with ml_dtypes' rounding."""
    g, kind = Draws(3), ml_dtypes.float8_e4m3fn
    past = [g.floats(1, 1, 3, SIZE, scale=9).astype(kind) for _ in range(2)]
    scales = [np.array([0.05], np.float32), np.array([0.2], np.float32)]
    q, k, v = g.floats(1, 1, 2 * SIZE), g.floats(1, 1, SIZE), g.floats(1, 1, SIZE)
    case = Case(
        "GroupQueryAttention",
        [q, k, v, *past, np.array([3], np.int32), np.array(4, np.int32), *[None] * 5, *scales],
        {"num_heads": 2, "kv_num_heads": 1, "k_quant_type": "PER_TENSOR",
         "v_quant_type": "PER_TENSOR", "kv_cache_bit_width": 8},
        3, constants=[6], kinds={1: kind, 2: kind}, tol=1e-5,
    )  # fmt: skip

    def want(*_: Any, **__: Any) -> list[np.ndarray]:
        caches = [
            np.concatenate([old, (new.reshape(1, 1, 1, SIZE) / s).astype(kind)], 2)
            for old, new, s in zip(past, (k, v), scales, strict=True)
        ]
        keys, values = (c.astype(np.float32) * s for c, s in zip(caches, scales, strict=True))
        scores = q.reshape(1, 2, 1, SIZE) @ keys.swapaxes(2, 3) / np.sqrt(SIZE)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        out = weights / weights.sum(-1, keepdims=True) @ values
        return [out.reshape(1, 1, 2 * SIZE), *caches]

    case.want = want
    check([case], target="ref")


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"k_quant_type": "PER_ROW", "v_quant_type": "PER_ROW"}, "k_quant_type and v_quant_type"),
        ({"k_quant_type": "PER_TENSOR", "v_quant_type": "NONE"}, "both be quantised"),
        ({"k_quant_type": "PER_TENSOR", "v_quant_type": "PER_TENSOR"}, "k_scale and v_scale"),
        ({"sliding_window_cache": 1}, "local_window_size expected 1"),
        ({"sliding_window_cache": 1, "local_window_size": 9}, "a window of 9 rows does not fit"),
    ],
)
def test_refused(attributes: dict[str, Any], message: str) -> None:
    g = Draws(4)
    past = [g.floats(1, 1, 4, SIZE) for _ in range(2)]
    case = node(g, 1, 1, past, [2], **attributes)
    with pytest.raises(MgxError, match=message):
        parse_onnx_buffer(model_of([case])[0])
