"""Operators of ai.onnx and ai.onnx.ml that the onnx package has no case of, against onnxruntime."""

from __future__ import annotations

import numpy as np
import onnx
from contrib_cases import Case, Draws, check

import mgx_mlir

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
    g = onnx.parser.parse_graph(
        "t (float16[9] x) => (float16[9] s, float16[9] r) {"
        f" s = Shrink <bias = 0.25, lambd = {limit}> (x)"
        f" r = ThresholdedRelu <alpha = {limit}> (x) }}"
    )
    model = onnx.helper.make_model(g, opset_imports=[onnx.helper.make_opsetid("", 22)])
    shrunk, kept = mgx_mlir.compile(model.SerializeToString(), target="ref").run({"x": x})
    wanted = np.where(wide > limit, wide - 0.25, np.where(wide < -limit, wide + 0.25, 0))
    np.testing.assert_allclose(shrunk, wanted, rtol=1e-3)
    np.testing.assert_array_equal(kept, np.where(wide > limit, wide, 0))
