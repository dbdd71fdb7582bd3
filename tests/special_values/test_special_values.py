"""NaN, infinities, subnormal numbers and extremes through every family of kernels."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

import mgx_mlir
from tests.special_values.cases import FLOATS, GROUPS, TYPES, Case, model_of
from tests.special_values.compared import (
    Difference,
    Row,
    differences,
    expected,
    rows_of_the_document,
)

# combinations that always run, and in the table's own check; the others with -m slow
COMBINATIONS = [
    ("f32", "pointwise"), ("f32", "rows"), ("f32", "casts"), ("f32", "attention"),
    ("f64", "pointwise"), ("f64", "rows"), ("f64", "casts"),
    ("f16", "pointwise"), ("f16", "rows"), ("f16", "casts"),
    ("bf16", "pointwise"), ("bf16", "rows"), ("bf16", "casts"),
]  # fmt: skip
INTEGERS = [(k, "casts") for k in TYPES if k not in FLOATS]


@cache
def found(kind: str, group: str, target: str) -> tuple[Difference, ...]:
    (cases, want), arrays = _expected(kind, group), GROUPS[group](kind)[1]
    compiled = mgx_mlir.compile(model_of(cases, arrays, kind), target, cache=False)
    used = {n for c in cases for n in c.inputs}
    outputs = compiled.run({k: v for k, v in arrays.items() if k in used})
    got = [np.asarray(v) for v in outputs]
    return tuple(differences(cases, arrays, kind, target, got, want))


@cache
def _expected(kind: str, group: str) -> tuple[list[Case], list[Any]]:
    cases, arrays = GROUPS[group](kind)
    want = expected(cases, arrays, kind)
    # an operator that onnxruntime lacks in a type is not compared; of f64 that is 22 of 52
    held = [i for i, w in enumerate(want) if w is not None]
    assert len(held) >= 0.55 * len(want)
    return [cases[i] for i in held], [want[i] for i in held]


def unexplained(kind: str, group: str, target: str) -> list[str]:
    table = list(rows_of_the_document())
    return [str(d) for d in found(kind, group, target) if not any(row.explains(d) for row in table)]


def combinations(chosen: list[tuple[str, str]], target: str) -> Iterator[Any]:
    for kind, group in chosen:
        # compiles of other types than f32 and of many kernels take their time
        slow = target == "cpu" and (kind != "f32" or group == "attention")
        marks = [pytest.mark.slow] if slow else []
        yield pytest.param(kind, group, target, marks=marks, id=f"{kind}-{group}-{target}")


@pytest.mark.parametrize(
    ("kind", "group", "target"),
    [*combinations([*COMBINATIONS, *INTEGERS], "ref"), *combinations(COMBINATIONS, "cpu"),
     *combinations(INTEGERS, "cpu")],
)  # fmt: skip
def test_as_onnxruntime_or_as_documented(kind: str, group: str, target: str) -> None:
    odd = unexplained(kind, group, target)
    assert not odd, f"{len(odd)} rows:\n" + "\n".join(odd[:20])


def test_every_row_of_the_document_is_a_difference() -> None:
    """A row that explains nothing is stale."""
    ran = [("f32", g) for g in ("pointwise", "rows", "casts")]
    seen = [d for kind, group in ran for t in ("ref", "cpu") for d in found(kind, group, t)]
    seen += [d for kind, group in COMBINATIONS for d in found(kind, group, "ref")]

    def is_stale(row: Row) -> bool:
        # rows of types that only slow tests compile are checked there
        only = set(row.kinds) <= {"f64", "f16", "bf16"} and row.targets == ("cpu",)
        return not only and not any(row.explains(d) for d in seen)

    stale = [row for row in rows_of_the_document() if is_stale(row)]
    assert not stale


@pytest.mark.slow
def test_every_row_of_other_types_is_a_difference() -> None:
    seen = [d for kind, group in COMBINATIONS for d in found(kind, group, "cpu")]
    for row in rows_of_the_document():
        if "cpu" in row.targets:
            assert any(row.explains(d) for d in seen), row


def test_subnormal_numbers_are_flushed_by_the_runtime() -> None:
    """If this fails, docs/special-values.md and `verify` may say less."""
    cases, _ = GROUPS["pointwise"]("f32")
    case = next(c for c in cases if c.op == "Relu")
    x = np.array([1e-45, 1e-39, 2.0**-126], np.float32)
    made = mgx_mlir.compile(model_of([case], {"x": x}, "f32"), "cpu", cache=False)
    np.testing.assert_array_equal(made.run({"x": x})[0], np.array([0, 0, 2.0**-126], np.float32))


@pytest.mark.parametrize("target", ["ref", "cpu"])
@pytest.mark.parametrize(
    ("kind", "digits", "once"),
    [("BFLOAT16", 8, False), ("FLOAT8E4M3FN", 4, False), ("FLOAT16", 11, True)],
)
def test_casts_of_f64_round_as_documented(kind: str, digits: int, once: bool, target: str) -> None:
    """Just above the middle of 1 and the next number: f32 would be the middle itself."""
    x = np.array([1 + 2.0**-digits + 2.0**-40])
    nodes = [
        helper.make_node("Cast", ["x"], ["narrow"], to=TensorProto.DataType.Value(kind)),
        helper.make_node("Cast", ["narrow"], ["y"], to=TensorProto.DOUBLE),
    ]
    ends = [helper.make_tensor_value_info(n, TensorProto.DOUBLE, [1]) for n in ("x", "y")]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    [y] = mgx_mlir.compile(model, target, cache=False).run({"x": x})
    assert y == (1 + 2.0 ** (1 - digits) if once else 1)


@pytest.mark.parametrize("target", ["ref", "cpu"])
def test_f64_beside_each_middle_of_two_f16(target: str) -> None:
    """IREE rounds through f32 on CPUs without an instruction for f16."""
    each = np.arange(1 << 15, dtype=np.uint16).view(np.float16).astype(np.float64)
    each = each[np.isfinite(each)]
    middle = (each[1:] + each[:-1]) / 2
    x = np.concatenate([middle * (1 + e) for e in (0, 2.0**-40, -(2.0**-40))])
    x = np.concatenate([x, -x, [0.0, -0.0, 65519.99, 65520, 1e300, 1e-300, np.inf, np.nan]])
    cast = helper.make_node("Cast", ["x"], ["y"], to=TensorProto.FLOAT16)
    ends = [
        helper.make_tensor_value_info("x", TensorProto.DOUBLE, list(x.shape)),
        helper.make_tensor_value_info("y", TensorProto.FLOAT16, list(x.shape)),
    ]
    graph = helper.make_graph([cast], "g", ends[:1], ends[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    [y] = mgx_mlir.compile(model, target, cache=False).run({"x": x})
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(np.asarray(y), x.astype(np.float16))


@pytest.mark.parametrize("fast_math", [True, False])
@pytest.mark.parametrize("target", ["ref", "cpu"])
def test_the_sign_of_a_sum_with_zero_is_as_documented(target: str, fast_math: bool) -> None:
    zero = helper.make_tensor("zero", TensorProto.FLOAT, [1], [0.0])
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [2]) for n in ("x", "y")]
    add = helper.make_node("Add", ["x", "zero"], ["y"])
    graph = helper.make_graph([add], "g", ends[:1], ends[1:], [zero])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    made = mgx_mlir.compile(model, target, cache=False, fast_math=fast_math)
    [y] = made.run({"x": np.array([-0.0, 0.0], np.float32)})
    np.testing.assert_array_equal(np.signbit(np.asarray(y)), [target == "cpu", False])


@pytest.mark.parametrize("target", ["ref", "cpu"])
@pytest.mark.parametrize("kind", ["f16", "f32", "f64"])
@pytest.mark.parametrize("exponent", [-np.inf, -3, -2, -0.5, 0, 0.5, 1, 2, 3, np.inf])
def test_powers_of_zeros_and_infinities(kind: str, exponent: float, target: str) -> None:
    """Annex F of the C standard has these results."""
    x = np.array([-np.inf, -0.0, 0.0, np.inf])
    want = np.array([math.pow(v, exponent) if v or exponent >= 0 else np.inf for v in x])
    want[1] = -np.inf if exponent == -3 else want[1]
    node = helper.make_node("Pow", ["x", "y"], ["z"])
    number = {"f16": TensorProto.FLOAT16, "f32": TensorProto.FLOAT, "f64": TensorProto.DOUBLE}
    ends = [
        helper.make_tensor_value_info(n, number[kind], d)
        for n, d in zip("xyz", ([4], [], [4]), strict=True)
    ]
    graph = helper.make_graph([node], "g", ends[:2], ends[2:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 15)], ir_version=8)
    dtype = {"f16": np.float16, "f32": np.float32, "f64": np.float64}[kind]
    compiled = mgx_mlir.compile(model, target, cache=False)
    got = np.asarray(compiled.run(x=x.astype(dtype), y=np.array(exponent, dtype))[0])
    np.testing.assert_array_equal(got, want.astype(dtype))
    np.testing.assert_array_equal(np.signbit(got), np.signbit(want))
