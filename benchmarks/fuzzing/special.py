"""NaN and infinities in the inputs of graphs, and the operators that docs/special-values.md leaves
to differ on them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np

DOCUMENT = Path(__file__).parents[2] / "docs" / "special-values.md"
SPECIAL = (np.nan, np.inf, -np.inf)
SHARE = 0.4  # share of the float inputs
# a fast transform leaves out products with 0 and 1, by which infinities become NaN; where the scale
# is infinite or NaN all elements are what QuantizeLinear's row says;
# onnx.reference, which pools the types that onnxruntime has no kernel for, passes over NaN
OPEN = (
    "LpPool",
    "DFT",
    "STFT",
    "DynamicQuantizeLinear",
    "DynamicQuantizeMatMul",
    "DynamicQuantizeLSTM",
)


@lru_cache(maxsize=1)
def contested() -> frozenset[str]:
    """The operators of the document's table of differences, but for the row that has them all."""
    text = DOCUMENT.read_text().partition("<!-- compared -->")[2].partition("<!-- end -->")[0]
    rows = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    names = [name for row in rows for name in re.findall(r"`([A-Za-z]+)[.*]*`", row)]
    assert names, "no table in the document"
    return frozenset((*names, *OPEN))


def holds(arrays: Sequence[np.ndarray]) -> bool:
    """Return whether any float array has an element that is not finite."""
    floats = [a for a in arrays if a.dtype.kind == "f"]
    return any(not np.isfinite(a).all() for a in floats)


def sprinkled(array: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The array with one or two elements that are special, or none of them."""
    if array.dtype.kind != "f" or not array.size or rng.random() > SHARE:
        return array
    made = array.copy()
    for _ in range(int(rng.integers(1, 3))):
        made.flat[int(rng.integers(made.size))] = SPECIAL[int(rng.integers(len(SPECIAL)))]
    return made
