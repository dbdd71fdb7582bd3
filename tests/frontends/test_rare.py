"""Operators of ai.onnx and ai.onnx.ml that the onnx package has no case of, against onnxruntime."""

from __future__ import annotations

import numpy as np
from contrib_cases import Case, Draws, check

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
