"""Both packages under one name, and small models."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import onnxruntime
import pytest

import mgx_mlir.onnxruntime
from tests.support.models import parsed, parsed_bytes

MODULES = {"theirs": onnxruntime, "ours": mgx_mlir.onnxruntime}


@pytest.fixture(params=list(MODULES))
def ort(request: pytest.FixtureRequest) -> ModuleType:
    """onnxruntime, and ours: what a test states is true of both."""
    return MODULES[request.param]


def sum_of_two() -> bytes:
    """y = x + z, of the same dynamic dim."""
    return parsed_bytes("(float[n] x, float[n] z) => (float[n] y) { y = Add (x, z) }")


def two_outputs() -> bytes:
    """y = x + w, z = y * k; the batch is dynamic."""
    made = parsed(
        """(float[batch,3] x, float[3] k) => (float[batch,3] y, float[] z)
        { y = Add (x, w) z = Mul (y, k) }""",
        {"w": np.float32([1, 2, 3])},
        opset=18,
        ml=3,
    )
    made.producer_name, made.doc_string = "me", "what it is"
    made.domain, made.model_version = "org.example", 7
    made.metadata_props.add(key="a", value="b")
    return made.SerializeToString()


X = np.arange(6, dtype=np.float32).reshape(2, 3)
K = np.array([2, 3, 4], np.float32)
W = np.array([1, 2, 3], np.float32)
