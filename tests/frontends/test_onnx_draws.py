"""Operators of ai.onnx at random attributes (onnx_draws.py), on `ref` and on `cpu`."""

from __future__ import annotations

import collections
import os
import sys
from collections.abc import Iterable

sys.path.insert(0, os.path.dirname(__file__))

import contrib_cases
import numpy as np
import onnx.parser
import onnx_draws
import pytest
from contrib_cases import Case, Draws, check

import mgx_mlir
from mgx_mlir.frontends.onnx.importer import parse_onnx_buffer
from tests.support.models import bytes_of, node
from tests.support.oracle import ort_session

DRAWS = pytest.mark.parametrize("draw", onnx_draws.DRAWS, ids=lambda d: d.__name__.strip("_"))


def checked(cases: Iterable[Case], target: str) -> None:
    """One model for each opset: a compile costs a second."""
    by_opset = collections.defaultdict(list)
    for case in cases:
        by_opset[case.opset].append(case)
    for found in by_opset.values():
        check(found, target=target)


@DRAWS
def test_reference(draw) -> None:
    checked((draw(Draws(seed)) for seed in range(16)), "ref")


def test_compiled() -> None:
    checked((draw(Draws(100)) for draw in onnx_draws.DRAWS), "cpu")


@pytest.mark.slow
@DRAWS
def test_many_compiled(draw) -> None:
    checked((draw(Draws(seed)) for seed in range(200, 230)), "cpu")


def in_f64(case: Case) -> Case:
    """The same node with its f32 inputs in f64."""
    case.inputs = [
        x.astype(np.float64) if x is not None and x.dtype == np.float32 and i not in case.constants
        else x
        for i, x in enumerate(case.inputs)
    ]  # fmt: skip
    return case


F64 = (
    "conv_transpose", "pool", "deform_conv", "grid_sample", "roi_align", "einsum", "attention",
    "rotary_embedding", "resize",
)  # fmt: skip


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_f64_stays_f64(seed: int) -> None:
    """Compiled against the numpy references: an f32 anywhere inside costs eight digits."""
    cases = [in_f64(d(Draws(seed))) for d in onnx_draws.DRAWS if d.__name__ in F64]
    for opset in sorted({c.opset for c in cases}):
        found = [c for c in cases if c.opset == opset]
        for case, want in zip(found, results(found, "ref"), strict=True):
            case.want, case.tol = lambda *_, w=want, **__: w, 1e-12
        check(found)


def results(cases: list[Case], target: str) -> list[list[np.ndarray]]:
    data, feeds, names = contrib_cases.model(cases)
    made = iter(contrib_cases.run(data, feeds, target))
    return [[next(made) for _ in each] for each in names]


def test_slice_backwards_from_before_the_first_element() -> None:
    """The text clamps a start to the first element, which is taken; Python takes nothing."""
    x = np.arange(5, dtype=np.float32)
    cases = [
        onnx_draws.case(
            "Slice", x, *(np.array([v], np.int64) for v in (start, -9, 0, -2)), opset=13,
            constants=constants,
        )
        for start in (-7, -6, -(2**63))
        for constants in ((), (1, 2, 3, 4))
    ]  # fmt: skip
    check(cases, target="ref")
    assert results(cases[:1], "ref")[0][0].tolist() == [0]


@pytest.mark.parametrize("target", ["ref", "cpu"])
def test_negative_pads_cut_before_the_rest_is_repeated(target: str) -> None:
    x = np.arange(12, dtype=np.float32).reshape(2, 6)
    pads = ([0, -2, 0, 3], [0, 4, 0, -1], [1, -1, 0, -2], [0, -5, 1, 2])
    check(
        [
            onnx_draws.case("Pad", x, np.array(p), opset=19, mode=mode, constants=constants)
            for mode in ("wrap", "edge", "reflect")
            for p in pads
            if mode != "reflect" or max(p) < 2
            for constants in ((), (1,))
        ],
        target=target,
    )


def test_pools_of_windows_that_do_not_fit() -> None:
    """A window too large by less than a stride gives no result, with ceil_mode one.

    onnxruntime rounds negative numbers upwards.
    """
    x = np.arange(96, dtype=np.float32).reshape(2, 2, 6, 4)
    cases = [
        onnx_draws.case(
            op, x, opset=22, kernel_shape=[5, 5], strides=[3, 2], ceil_mode=ceil,
            oracle="onnxruntime" if ceil else "onnx.reference",
        )
        for op in ("AveragePool", "MaxPool", "LpPool")
        for ceil in (0, 1)
    ]  # fmt: skip
    check(cases)
    assert results(cases[:1], "ref")[0][0].shape == (2, 2, 1, 0)


@pytest.mark.parametrize("p", [1, 2, 3])
def test_global_pool_of_dynamic_dims(p: int) -> None:
    data = bytes_of([node("GlobalLpPool", "x", "y", p=p)], {"x": ["n", 2, "h", "w"]}, "y", opset=22)
    for dims in ((1, 2, 3, 5), (2, 2, 1, 4)):
        array = Draws(p).floats(*dims)
        (got,) = contrib_cases.run(data, {"x": array}, "ref")
        want = (np.abs(array.astype(np.float64)) ** p).sum((2, 3), keepdims=True) ** (1 / p)
        np.testing.assert_allclose(got, want, rtol=1e-6)


@pytest.mark.parametrize("target", ["ref", "cpu"])
def test_grid_sample_of_dynamic_dims(target: str) -> None:
    """One program for all heights and widths, one of which is 1."""
    forms = [
        {"mode": mode, "padding_mode": padding, "align_corners": corners}
        for mode in ("linear", "nearest", "cubic")
        for padding in ("zeros", "border", "reflection")
        for corners in (0, 1)
        if (mode, padding) != ("cubic", "border")  # same exception as in onnx_draws.grid_sample
    ]
    nodes = [node("GridSample", "x g", f"y{i}", **a) for i, a in enumerate(forms)]
    inputs = {"x": ["n", 2, "h", "w"], "g": ["n", "oh", "ow", 2]}
    data = bytes_of(nodes, inputs, " ".join(n.output[0] for n in nodes), opset=20)
    session = ort_session(data)
    program = parse_onnx_buffer(data)
    compiled = mgx_mlir.compile(program, target=target, cache=False)
    if target == "cpu":  # a kernel that is refused: all is compiled again
        assert compiled.executable.fallbacks == ()
    g = Draws(5)
    for dims, out in (((2, 2, 4, 5), (3, 2)), ((1, 2, 1, 3), (4, 1))):
        feeds = {"x": g.floats(*dims), "g": g.floats(dims[0], *out, 2)}
        wants = session.run(None, feeds)
        for form, got, want in zip(forms, compiled.run(feeds), wants, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5, err_msg=str(form))


def test_a_column_backwards() -> None:
    """Part of each row, in the other direction: the compiler cannot read it where it lies."""
    text = """<ir_version: 10, opset_import: ["" : 18]> g (float[2,3,11,2] x) => (float[2,3,11] y)
      <int64[1] zero = {0}, int64[1] one = {1}, int64[1] three = {3}, int64[1] last = {-1},
       int64[1] far = {-99}, int64[1] two = {2}> {
        part = Slice(x, zero, one, three)
        column = Squeeze(part, three)
        back = Slice(column, last, far, two, last)
        y = Add(back, column)
      }"""
    x = Draws(6).floats(2, 3, 11, 2)
    data = onnx.parser.parse_model(text).SerializeToString()
    (got,) = contrib_cases.run(data, {"x": x}, "cpu")
    np.testing.assert_allclose(got, x[..., 0] + x[..., ::-1, 0], rtol=1e-6)
