"""Corners that operators' texts state and peers leave, against numpy in f64."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import mgx_mlir
from mgx_mlir.core.errors import MgxError
from tests.support.models import bytes_of, node

RNG = np.random.default_rng(5)


def attended(q: Any, k: Any, v: Any, mask: Any, *, pads: bool) -> np.ndarray:
    """Attention in f64; `pads`: a mask with fewer columns than keys hides the others."""
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    bias = np.where(mask, 0, -np.inf) if mask.dtype == bool else mask.astype(np.float64)
    if pads:
        short = k.shape[2] - bias.shape[-1]
        bias = np.pad(bias, [(0, 0)] * (bias.ndim - 1) + [(0, short)], constant_values=-np.inf)
    scores = q @ k.transpose(0, 1, 3, 2) / np.sqrt(q.shape[3]) + bias
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ v


@pytest.mark.parametrize("target", ["ref", "cpu"])
@pytest.mark.parametrize("opset", [23, 24])
@pytest.mark.parametrize("dynamic", [False, True])
def test_an_attention_mask_of_fewer_columns_than_keys(
    target: str, opset: int, dynamic: bool
) -> None:
    """From opset 24 it hides the rest; in 23 one column holds for every key."""
    q, k, v = (RNG.standard_normal((1, 2, n, 4)).astype(np.float32) for n in (3, 5, 5))
    masks = [np.ones((3, n), bool) for n in (1, 3, 5)] + [np.ones((1, 1, 3, 1), np.float32)]
    for mask in masks[:: 1 if opset == 24 else 3]:
        if mask.dtype == bool:
            mask[1, 1:] = False
        feeds = {"q": q, "k": k, "v": v, "m": mask}
        ports: dict[str, Any] = dict(feeds)
        if dynamic:
            ports = {n: [f"{n}{i}" for i in range(x.ndim)] for n, x in feeds.items()}
            ports["m"] = (mask.dtype, ports["m"])
        for names in ("y", "y _ _ s"):  # with the scores it is read by the operator's body
            data = bytes_of([node("Attention", "q k v m", names)], ports, "y", opset=opset,
                            ir_version=11)  # fmt: skip
            program = mgx_mlir.compile(data, target, cache=False)
            want = attended(q, k, v, mask, pads=opset == 24)
            np.testing.assert_allclose(program.run(feeds)[0], want, rtol=1e-5, atol=1e-6)


def test_an_attention_mask_of_more_columns_than_keys_is_refused() -> None:
    x, mask = np.ones((1, 1, 2, 4), np.float32), np.ones((2, 3), bool)
    data = bytes_of(
        [node("Attention", "x x x m", "y")], {"x": x, "m": mask}, "y", opset=24, ir_version=11
    )
    with pytest.raises(MgxError, match="attn_mask of 3 columns, expected at most the 2 keys"):
        mgx_mlir.compile(data, "ref")


@pytest.mark.parametrize(
    ("kind", "scale_kind"),
    [
        (np.float16, np.float32),
        (ml_dtypes.bfloat16, np.float32),
        (np.float32, np.float16),
        (np.float64, np.float32),
    ],
)
def test_an_rms_norm_has_the_type_of_its_scale(kind: Any, scale_kind: Any) -> None:
    x, scale = RNG.standard_normal((3, 8)).astype(kind), RNG.standard_normal(8).astype(scale_kind)
    data = bytes_of(
        [node("RMSNormalization", "x s", "y")], {"x": x, "s": scale}, [("y", scale_kind, [3, 8])],
        opset=23, ir_version=11,
    )  # fmt: skip
    (y,) = mgx_mlir.compile(data, "ref").run({"x": x, "s": scale})
    wide = x.astype(np.float64)
    want = wide / np.sqrt((wide**2).mean(-1, keepdims=True) + 1e-5) * scale.astype(np.float64)
    assert y.dtype == scale_kind
    np.testing.assert_allclose(y, want, rtol=2e-3 if scale_kind is np.float16 else 1e-5)


@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("target", ["ref", "cpu"])
def test_samples_of_a_region_outside_of_the_image_are_0(target: str, mode: str) -> None:
    """Infinite elements do not change that; a coordinate that is NaN is outside."""
    x = np.full((1, 1, 4, 4), np.inf, np.float32)
    x[0, 0, 1:3, 1:3] = 3
    outside = [[6, 6, 9, 9], [-9, 0, -6, 3], [np.nan, 0, 2, 2], [0, 0, 2, np.nan]]
    rois = np.array([*outside, [1.75, 1.75, 2.25, 2.25]], np.float32)
    feeds = {"x": x, "r": rois, "i": np.zeros(len(rois), np.int64)}
    a = {"mode": mode, "coordinate_transformation_mode": "half_pixel"}
    nodes = [node("RoiAlign", "x r i", f"y{n}", sampling_ratio=n, **a) for n in (0, 1, 2)]
    data = bytes_of(nodes, feeds, "y0 y1 y2", opset=16)
    for y in mgx_mlir.compile(data, target, cache=False).run(feeds):
        assert not np.any(y[:-1])
        assert np.all(y[-1] > 0)
        assert np.all(y[-1] <= 3)
