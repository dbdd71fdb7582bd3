"""Input and output arrays: views, orders, alignment, sharing, and ownership of results."""

from __future__ import annotations

import functools
import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import TensorProto

import mgx_mlir
from mgx_mlir.api.parse import parse_onnx_buffer
from mgx_mlir.core.errors import MgxError, RunError
from tests.support.models import bytes_of, node

# dims of arrays that are used in place (from 64 KiB on), and of copied ones
EXTENTS = ((3, 5), (64, 256), (130, 127), (1, 20000))
DTYPES = {"float32": TensorProto.FLOAT, "int64": TensorProto.INT64, "bool": TensorProto.BOOL}
FORMS = (
    "plain", "transposed", "fortran", "reversed", "every second", "unaligned", "read-only",
    "other byte order", "repeated rows", "in a larger one", "off by a word",
)  # fmt: skip


def model(dtype: str) -> bytes:
    """d = a - b (a xor b of bools), s = a, t = a: a result that is no input, and two that are."""
    nodes = [
        node("Xor" if dtype == "bool" else "Sub", "a b", "d"),
        node("Identity", "a", "s"),
        node("Identity", "a", "t"),
    ]
    like = (DTYPES[dtype], ["m", "n"])
    return bytes_of(nodes, dict.fromkeys("ab", like), dict.fromkeys("dst", like), opset=18)


@functools.cache
def runner(target: str, dtype: str, api: str) -> Any:
    """A function of a and b through one of the two APIs."""
    options = {"threads": 1} if target == "cpu" else {}
    if api == "compile":
        return mgx_mlir.compile(model(dtype), target, **options).run
    any_size = mgx_mlir.shape.dynamic_dimension(1, 1 << 20)
    made = parse_onnx_buffer(model(dtype), default_dyn_dim_value=any_size)
    made.compile(mgx_mlir.get_target(target))
    return lambda **inputs: [
        np.asarray(r) for r in made.run({k: mgx_mlir.argument(v) for k, v in inputs.items()})
    ]


def formed(values: np.ndarray, form: str) -> np.ndarray:
    """An array equal to `values` that lies in memory as the form says."""
    m, n = values.shape
    if form == "transposed":
        return np.ascontiguousarray(values.T).T
    if form == "fortran":
        return np.asfortranarray(values)
    if form == "reversed":
        return np.ascontiguousarray(values[::-1, ::-1])[::-1, ::-1]
    if form == "every second":
        wide = np.zeros((m, 2 * n), values.dtype)
        wide[:, ::2] = values
        return wide[:, ::2]
    if form in ("unaligned", "off by a word"):
        shift = 1 if form == "unaligned" else values.itemsize
        raw = np.zeros(values.nbytes + 64, np.uint8)
        found = raw[shift : shift + values.nbytes].view(values.dtype).reshape(m, n)
        found[...] = values
        return found
    if form == "other byte order":
        return values.astype(values.dtype.newbyteorder(">"))
    if form == "repeated rows":
        return np.broadcast_to(values[:1], values.shape)
    if form == "in a larger one":
        wide = np.zeros((m + 2, n + 3), values.dtype)
        wide[1:-1, 2:-1] = values
        return wide[1:-1, 2:-1]
    found = values.copy()
    found.flags.writeable = form != "read-only"
    return found


def drawn(seed: int, dims: tuple[int, int], dtype: str) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if dtype == "float32":
        return rng.standard_normal(dims).astype(np.float32)
    return rng.integers(0, 2 if dtype == "bool" else 1000, dims).astype(dtype)


def difference(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a ^ b if a.dtype == np.bool_ else a - b


@pytest.mark.parametrize("api", ["compile", "program"])
@pytest.mark.parametrize("target", ["cpu", "ref"])
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_forms(target: str, api: str, data: st.DataObject) -> None:
    """Any form of two inputs gives the numbers of plain ones; nothing is shared or changed."""
    dtype = data.draw(st.sampled_from(sorted(DTYPES)))
    dims = data.draw(st.sampled_from(EXTENTS))
    run = runner(target, dtype, api)
    given_arrays, wanted = {}, {}
    for i, name in enumerate("ab"):
        array = formed(drawn(i, dims, dtype), data.draw(st.sampled_from(FORMS)))
        given_arrays[name] = array
        wanted[name] = np.array(array, dtype)
    if data.draw(st.booleans()):  # both are one array
        given_arrays["b"], wanted["b"] = given_arrays["a"], wanted["a"]
    want = (difference(wanted["a"], wanted["b"]), wanted["a"], wanted["a"])
    kept = [run(**given_arrays) for _ in range(3)]
    for results in kept:
        for got, right in zip(results, want, strict=True):
            np.testing.assert_array_equal(got, right)
    flat = [r for results in kept for r in results]
    pairs = [*itertools.combinations(flat, 2), *itertools.product(flat, given_arrays.values())]
    assert not any(np.may_share_memory(x, y) for x, y in pairs)
    for r in flat:
        assert r.flags.writeable
        r[...] = 0
    for name, array in given_arrays.items():
        np.testing.assert_array_equal(array, wanted[name])
    np.testing.assert_array_equal(run(**given_arrays)[0], want[0])


@pytest.mark.parametrize("target", ["cpu", "ref"])
def test_results_fed_back_and_inputs_changed_later(target: str) -> None:
    run = runner(target, "float32", "compile")
    a, b = (drawn(i, (64, 256), "float32") for i in range(2))
    right, first = a - b, run(a=a, b=b)
    kept = [first[0]]
    a[...], b[...] = 7, 3  # the caller's memory is the caller's again
    np.testing.assert_array_equal(first[0], right)
    x, y = first[0], first[1]
    for _ in range(20):
        want = x - y
        found = run(a=x, b=y)
        np.testing.assert_array_equal(found[0], want)
        kept.append(found[0])
        x, y = found[0], found[2]
    np.testing.assert_array_equal(kept[0], right)


@pytest.mark.parametrize("target", ["cpu", "ref"])
def test_scalars_and_empty_arrays(target: str) -> None:
    run = runner(target, "int64", "compile")
    for dims in ((0, 5), (5, 0), (1, 1)):
        a = np.ones(dims, np.int64)
        for got in run(a=a.astype(">i8"), b=a[::-1])[1:]:
            np.testing.assert_array_equal(got, a)


@pytest.mark.parametrize("target", ["cpu", "ref"])
def test_bools_of_any_byte(target: str) -> None:
    raw = np.array([[0, 1, 2, 128, 255]], np.uint8)
    found = runner(target, "bool", "compile")(a=raw.view(bool), b=np.zeros((1, 5), bool))
    for got in found:
        np.testing.assert_array_equal(got.view(np.uint8), raw != 0)


@pytest.mark.parametrize("value", [[[1.5]], [[float("nan")]], [[2**63]]])
def test_numbers_that_an_integer_input_lacks_are_errors(value: list[list[float]]) -> None:
    with pytest.raises(RunError, match="input 'a'"):
        runner("ref", "int64", "compile")(a=value, b=[[1]])
    assert runner("ref", "int64", "compile")(a=[[3.0]], b=[[1]])[0] == 2


@pytest.mark.parametrize("target", ["cpu", "ref"])
def test_more_than_memory_is_an_error(target: str) -> None:
    huge = np.broadcast_to(np.float32(0), (1 << 30, 1 << 30))
    with pytest.raises(MgxError, match=r"too little memory|more memory than is available"):
        runner(target, "float32", "compile")(a=huge, b=huge)
    with pytest.raises(MgxError, match="more elements than an array can hold"):
        mgx_mlir.generate_argument(mgx_mlir.shape(type="float_type", lens=[1 << 33, 1 << 33]))
    with pytest.raises(MgxError, match="rank 64 or less"):
        mgx_mlir.generate_argument(mgx_mlir.shape(type="float_type", lens=[1] * 70))
