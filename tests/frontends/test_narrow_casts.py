"""Cast to float8e8m0 and 8-bit floats: ONNX's tables of what does not fit; onnxruntime."""

from __future__ import annotations

import itertools

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, helper

import mgx_mlir
from tests.support.models import bytes_of
from tests.support.oracle import ort_session

LEAST, MOST = 2.0**-127, 2.0**127
NAN = np.nan


def cast_model(x: np.ndarray, to: int, **attributes: object) -> bytes:
    """Cast there and back to f32."""
    nodes = [
        helper.make_node("Cast", ["x"], ["narrow"], to=to, **attributes),
        helper.make_node("Cast", ["narrow"], ["y"], to=TensorProto.FLOAT),
    ]
    return bytes_of(nodes, {"x": x}, {"y": list(x.shape)}, opset=24, ir_version=11)


def run(data: bytes, x: np.ndarray, target: str) -> np.ndarray:
    if target == "onnxruntime":
        session = ort_session(data)
        return np.asarray(session.run(None, {"x": x})[0])
    return np.asarray(mgx_mlir.compile(data, target, cache=False).run({"x": x})[0])


# ONNX's table of Cast: (saturate, round_mode) -> [(x, result)]
TABLE = {
    (1, "up"): [(0, LEAST), (NAN, NAN), (np.inf, MOST), (1.5 * MOST, MOST), (1e-45, LEAST)],
    (0, "nearest"): [(0, NAN), (NAN, NAN), (np.inf, NAN), (1.5 * MOST, NAN), (1e-45, NAN)],
}


@pytest.mark.parametrize("form", TABLE)
@pytest.mark.parametrize("target", ["ref", "cpu"])
def test_the_table_of_exponents(form: tuple[int, str], target: str) -> None:
    x, want = np.array(TABLE[form], np.float32).T
    data = cast_model(x, TensorProto.FLOAT8E8M0, saturate=form[0], round_mode=form[1])
    np.testing.assert_array_equal(run(data, x, target), want)


@pytest.mark.parametrize("kind", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_every_rounding_to_exponents(kind: type) -> None:
    """onnxruntime is the oracle; ONNX's text leaves negative numbers free."""
    sizes = [1.2, 1.5, 1.7, 2, 3, 1.4, LEAST / 2, LEAST, 1.2 * LEAST, 1.5 * LEAST, 1.7 * LEAST]
    sizes += [2 * LEAST, MOST, 1.2 * MOST, 1e-45, 0, np.inf]
    with np.errstate(over="ignore"):
        x = np.array([*sizes, *(-s for s in sizes), NAN], np.float32).astype(kind)
    for saturate, mode in itertools.product((0, 1), ("up", "down", "nearest")):
        data = cast_model(x, TensorProto.FLOAT8E8M0, saturate=saturate, round_mode=mode)
        wide = x.astype(np.float32)  # onnxruntime takes no bf16 from numpy
        same = cast_model(wide, TensorProto.FLOAT8E8M0, saturate=saturate, round_mode=mode)
        want = run(same, wide, "onnxruntime")
        np.testing.assert_array_equal(run(data, x, "ref"), want, f"{saturate} {mode}")


# largest numbers, and what lies above them: a NaN where a type has no infinity
EIGHT_BITS = {
    TensorProto.FLOAT8E4M3FN: (448, NAN), TensorProto.FLOAT8E4M3FNUZ: (240, NAN),
    TensorProto.FLOAT8E5M2: (57344, np.inf), TensorProto.FLOAT8E5M2FNUZ: (57344, NAN),
}  # fmt: skip


@pytest.mark.parametrize("kind", EIGHT_BITS)
def test_the_tables_of_8_bit_floats(kind: int) -> None:
    most, beyond = EIGHT_BITS[kind]
    x = np.array([0, most, 1.2 * most, np.inf, -np.inf, NAN], np.float32)
    for saturate in (0, 1):
        over = most if saturate else beyond
        want = [0, most, over, over, -over, NAN]
        found = run(cast_model(x, kind, saturate=saturate), x, "ref")
        np.testing.assert_array_equal(found, np.array(want, np.float32))


@pytest.mark.parametrize("target", ["ref", "cpu"])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_the_lowest_bits_of_large_numbers(kind: type, target: str) -> None:
    """Also beyond the integers that a conversion passes through, where it would saturate."""
    sizes = [7, 9, 2**24 - 1, 2**31, 2**31 + 5, 2**40 + 11, 2**53 - 1, 2**63, 2**64 + 4096]
    x = np.array([*sizes, *(-s for s in sizes), 3e38, np.inf, -np.inf, NAN], kind)
    whole = [int(v) if np.isfinite(v) else 0 for v in x]
    for to, bits, low in ((TensorProto.INT4, 4, -8), (TensorProto.UINT4, 4, 0)):
        want = [(v - low) % 2**bits + low for v in whole]
        found = run(cast_model(x, to), x, target)
        np.testing.assert_array_equal(found, np.array(want, np.float32))
