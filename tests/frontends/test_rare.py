"""Operators of ai.onnx and ai.onnx.ml that the onnx package has no case of, against onnxruntime."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from contrib_cases import Case, Draws, check

import mgx_mlir
from mgx_mlir.core.errors import MgxError, RunError
from tests.support.models import parsed

ML = "ai.onnx.ml"


def test_max_roi_pool() -> None:
    """Regions beyond the borders, of one pixel, and of other batch entries."""
    g = Draws(3)
    rois = [[0, 0, 0, 3, 3], [1, 2, 1, 6, 4], [1, 5, 5, 5, 5], [0, 6, 4, 9, 9], [0, 1, 1, 2, 6]]
    inputs = [g.floats(2, 3, 7, 8), np.array(rois, np.float32)]
    check(
        [
            Case("MaxRoiPool", inputs, {"pooled_shape": shape, "spatial_scale": scale}, domain="")
            for shape, scale in (([1, 1], 1.0), ([2, 3], 1.0), ([4, 2], 0.5))
        ]
    )


def test_feature_vectorizer() -> None:
    """Inputs that are cut, padded, and of one element."""
    g = Draws(4)
    check(
        [
            Case("FeatureVectorizer", [g.floats(3, 2), g.floats(3, 4)],
                 {"inputdimensions": [2, 4]}, domain=ML),
            Case("FeatureVectorizer", [g.floats(2, 5), g.floats(2, 1), g.floats(2, 3)],
                 {"inputdimensions": [5, 1, 3]}, domain=ML),
            Case("FeatureVectorizer", [g.ints(-9, 9, 2, 3, dtype=np.int64)],
                 {"inputdimensions": [3]}, domain=ML),
        ]
    )  # fmt: skip


def test_thresholds_of_16_bit_floats() -> None:
    """A float attribute between two f16 numbers parts them: it is not rounded to f16 first."""
    near = np.nextafter(np.float16(0.27832), np.float16([0, 1]), dtype=np.float16)
    x = np.array([*near, 0.27832, *-near, -0.27832, 0, 1, -1], np.float16)
    limit = 0.27829072  # rounded to f16 it is 0.27832, which is above it
    wide = x.astype(np.float64)
    model = parsed(
        f"""(float16[9] x) => (float16[9] s, float16[9] r) {{
        s = Shrink <bias = 0.25, lambd = {limit}> (x)
        r = ThresholdedRelu <alpha = {limit}> (x) }}""",
        opset=22,
    )
    shrunk, kept = mgx_mlir.compile(model, target="ref").run({"x": x})
    wanted = np.where(wide > limit, wide - 0.25, np.where(wide < -limit, wide + 0.25, 0))
    np.testing.assert_allclose(shrunk, wanted, rtol=1e-3)
    np.testing.assert_array_equal(kept, np.where(wide > limit, wide, 0))


WINDOWS = {
    "HannWindow": (0.5, -0.5, 0), "HammingWindow": (25 / 46, -21 / 46, 0),
    "BlackmanWindow": (0.42, -0.5, 0.08),
}  # fmt: skip


@pytest.mark.parametrize("target", ["ref", "cpu"])
@pytest.mark.parametrize("known", [True, False])
def test_windows_of_few_elements(known: bool, target: str) -> None:
    """A symmetric window of one element is 0 / 0, as in ONNX's function body.

    1e-4: the ends of a Blackman window are 0, and 3e-8 as a sum of f32.
    """
    for size in (0, 1, 2, 5):
        cases = [
            Case(op, [np.array(size)], {"periodic": periodic}, domain="",
                 constants={0} if known else (), want=window_of(op), tol=1e-4)
            for op in WINDOWS for periodic in (0, 1)
        ]  # fmt: skip
        if target == "ref" or size == 1:
            check(cases, target=target)


def window_of(op: str) -> Any:
    """ONNX's function body in f64."""

    def want(size: np.ndarray, periodic: int) -> np.ndarray:
        with np.errstate(invalid="ignore"):
            angle = 2 * np.pi * np.arange(size) / np.float64(size if periodic else size - 1)
        terms = zip(WINDOWS[op], (np.ones(size), np.cos(angle), np.cos(2 * angle)), strict=True)
        return np.sum([c * t for c, t in terms], 0)

    return want


@pytest.mark.parametrize("known", [True, False])
def test_range_of_16_bit_floats(known: bool) -> None:
    """With `stash_type` written out, and beyond 2048, from where f16 has no odd numbers."""
    cases = [
        Case("Range", list(np.array(numbers, kind)), how, domain="", opset=27,
             constants={0, 1, 2} if known else (), want=stepped, tol=1e-6)
        for numbers in ((0, 1, 0.25), (2040, 2060, 3), (3, -3, -0.7))
        for kind in (np.float16, ml_dtypes.bfloat16, np.float32)
        for how in ({}, {"stash_type": 1})
    ]  # fmt: skip
    check(cases, target="ref")


def stepped(start: Any, limit: Any, delta: Any, **_: int) -> np.ndarray:
    """In f32, rounded once."""
    first, last, step = (np.float32(v) for v in (start, limit, delta))
    count = int(np.ceil((last - first) / step))
    return (first + np.arange(count, dtype=np.float32) * step).astype(start.dtype)


def test_range_in_another_type_is_refused() -> None:
    numbers = list(np.array((0, 1, 0.25), np.float16))
    case = Case("Range", numbers, {"stash_type": 10}, domain="", opset=27, want=stepped)
    with pytest.raises(MgxError, match=r"stash_type 10 with half_type, expected 1"):
        check([case])


@pytest.mark.parametrize("length", [1, 4, 10])
@pytest.mark.parametrize("known", [True, False])
def test_a_window_that_does_not_fit_a_frame(length: int, known: bool) -> None:
    """At import where the lengths are known, else in the run."""
    g = Draws(6)
    case = Case(
        "STFT", [g.floats(1, 16, 1), np.array(4), g.floats(length), np.array(8)],
        domain="", constants={1, 3}, want=lambda *_: [0],
    )  # fmt: skip
    text = f"a window of {length} elements does not fit frame_length 8"
    with pytest.raises(MgxError, match=text if known else "expected a window of frame_length"):
        check([case], free=() if known else {2}, target="ref")


def test_a_frame_of_the_whole_signal() -> None:
    g = Draws(7)
    x = g.floats(2, 16, 1)
    want = np.fft.rfft(x[..., 0])
    parts = np.stack([want.real, want.imag], -1)[:, None]
    check([Case("STFT", [x, np.array(4)], domain="", constants={1}, want=lambda *_: [parts])])


@pytest.mark.parametrize("op", ["Squeeze", "Unsqueeze"])
@pytest.mark.parametrize("target", ["ref", "cpu"])
def test_run_time_axes_that_repeat_are_named(op: str, target: str) -> None:
    dims = "1, 1, 3" if op == "Squeeze" else "3"
    text = f"""<ir_version: 8, opset_import: ["" : 18]>
        f (float[{dims}] x, int64[2] axes) => (float[a, b, c] y) {{ y = {op} (x, axes) }}"""
    if op == "Squeeze":
        text = text.replace("float[a, b, c] y", "float[n] y")
    program: Any = mgx_mlir.compile(onnx.parser.parse_model(text), target=target)
    x = np.arange(3, dtype=np.float32).reshape([int(d) for d in dims.split(", ")])
    assert program.run([x, np.array([0, 1])])[0].size == 3
    for axes in ([0, 0], [1, 1]):
        with pytest.raises(RunError, match="expected axes that differ"):
            program.run([x, np.array(axes)])
