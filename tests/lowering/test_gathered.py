"""Convolutions of few channels on GPUs, whose windows are gathered: numbers and code."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mgx_mlir.core import dtypes
from mgx_mlir.programs.lowered import Lowered
from mgx_mlir.rewrite.passes import run_pipeline
from mgx_mlir.targets.child import shared_compiler
from mgx_mlir.targets.flags import gpu_ladder
from mgx_mlir.targets.report import gpu_report
from tests.lowering.programs import Programs, text_of

GATHERED = "mgx-fuse-layout{gathered=true}"
# image, window, result channels, then attributes; the image in f32 and planar, or as it is read
FORMS = [
    ((1, 12, 10, 3), (7, 7), 16, {"padding": [3, 3, 3, 3], "stride": [2, 2]}, True),
    ((2, 9, 8, 3), (3, 3), 32, {"padding": [1, 0, 0, 1], "stride": [1, 2]}, True),
    ((1, 9, 9, 4), (3, 2), 8, {"padding": [0, 0, 0, 0], "dilation": [2, 1]}, False),
    ((1, 8, 8, 3), (4, 4), 24, {"padding": [0, 0, 0, 0], "stride": [4, 4]}, True),
    ((1, 7, 6, 1), (5, 5), 16, {"padding": [2, 2, 2, 2]}, False),
]


def convolutions() -> Programs:
    rng = np.random.default_rng(7)
    net = Programs()
    for image, window, columns, attributes, planar in FORMS:
        x = rng.standard_normal(image).astype(np.float32)
        w = (rng.standard_normal((*window, image[-1], columns)) / 4).astype(np.float16)
        own = {"stride": [1, 1], "dilation": [1, 1], **attributes}
        want = np.maximum(reference(x.astype(np.float16), w, **own), 0)

        def build(b: Any, v: Any, w: Any = w, own: Any = own, planar: bool = planar) -> Any:
            if planar:
                v = b.op("convert", v, target_type=dtypes.HALF)
                v = b.op("transpose", v, permutation=[0, 2, 3, 1])
            return b.relu(b.op("convolution", v, b.literal(w), channels_last=True, **own))

        given = x.transpose(0, 3, 1, 2) if planar else x.astype(np.float16)
        net.add(build, [given], want, tolerance=2e-3)
    return net


def reference(
    x: np.ndarray, w: np.ndarray, padding: list[int], stride: list[int], dilation: list[int]
) -> np.ndarray:
    """In float64, by windows."""
    low, high = padding[:2], padding[2:]
    x = np.pad(x.astype(np.float64), [(0, 0), *zip(low, high, strict=True), (0, 0)])
    reach = [d * (k - 1) + 1 for d, k in zip(dilation, w.shape, strict=False)]
    cut = np.lib.stride_tricks.sliding_window_view(x, reach, axis=(1, 2))
    cut = cut[:, :: stride[0], :: stride[1], :, :: dilation[0], :: dilation[1]]
    return np.einsum("nhwcij,ijcf->nhwf", cut, w.astype(np.float64))


def lowered(net: Programs, **options: Any) -> Lowered:
    net.finish()
    run_pipeline(net.module, ["fuse_pointwise_reduce", GATHERED], store=net.store)
    return net.lowered("dead_code_elimination", target="gpu", **options)


def test_numbers() -> None:
    """Lower as for GPUs, run on the CPU: each image is one dispatch with its prologue."""
    net = convolutions()
    found = lowered(net)
    text = text_of(found)
    assert text.count('"flow.dispatch.region"') == len(FORMS)
    assert "tensor.pad" not in text
    net.compare(found)


@pytest.mark.parametrize("arch", ["gfx942", "gfx1100"])
def test_code(arch: str) -> None:
    made = shared_compiler().run(
        lowered(convolutions(), arch=arch).bytecode, gpu_ladder(arch)[0].flags
    )
    report = gpu_report(made.vmfb)
    assert len(report.kernels) == len(FORMS)
    assert [k.name for k in report.kernels if k.spills or k.scratch] == []
