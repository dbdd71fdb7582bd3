"""onnxruntime's results for special values, and the page's row that explains a difference."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

from tests.special_values.cases import TYPES, Case, model_of

DOCUMENT = Path(__file__).parents[2] / "docs" / "special-values.md"
# largest relative difference of finite results that counts as none
CLOSE = {"f32": 5e-5, "f64": 1e-11, "f16": 4e-3, "bf16": 3e-2}


@dataclass(frozen=True)
class Difference:
    """One row of a case's results that is not onnxruntime's."""

    case: Case
    kind: str
    target: str
    inputs: tuple[np.ndarray, ...]
    got: np.ndarray
    want: np.ndarray

    def __str__(self) -> str:
        given = "; ".join(str(v.reshape(-1)[:8]) for v in self.inputs)
        return (
            f"{self.case.name} {self.kind} {self.target}: ({given}) -> {self.got}, not {self.want}"
        )


def _any(d: Difference, test: Any) -> bool:
    return any(bool(np.any(test(v.astype(np.float64)))) for v in d.inputs)


def _numbers(d: Difference) -> np.ndarray:
    return np.concatenate([np.asarray(v, np.float64).reshape(-1) for v in (d.got, d.want)])


def _subnormal(d: Difference) -> bool:
    """A subnormal number among the operands or results, or next to one of them."""
    least = float(ml_dtypes.finfo(TYPES["f64" if d.kind == "f64" else "f32"][0]).tiny)

    def tiny(v: np.ndarray) -> np.ndarray:
        return (np.abs(v) <= least) & (v != 0)

    return _any(d, tiny) or bool(np.any(tiny(_numbers(d))))


def _zeros(d: Difference) -> bool:
    return bool(np.array_equal(d.got.astype(np.float64), d.want.astype(np.float64)))


def _nan(d: Difference) -> bool:
    return _any(d, np.isnan)


def _beyond(d: Difference) -> bool:
    """A float that the integer type of the result does not hold, or NaN."""
    if d.got.dtype.kind not in "iu":
        return False
    info = np.iinfo(d.got.dtype)
    low, high = float(info.min), float(info.max)
    return _any(d, lambda v: ~((v > low - 1) & (v < high) | (v == low)))


def _large(size: float) -> Any:
    return lambda d: _any(d, lambda v: np.abs(v) >= size)


def _infinite(d: Difference) -> bool:
    return _any(d, np.isinf)


# entries of the page's column "where"
WHERE = {
    "subnormal": _subnormal,
    "zeros": _zeros,
    "NaN": _nan,
    "infinite": _infinite,
    "beyond": _beyond,
    "from 1e8": _large(1e8),
    "from 1e15": _large(1e15),
    "overflow": lambda d: _large(float(ml_dtypes.finfo(TYPES[d.kind][0]).max) / 16)(d),
    "below -87.3": lambda d: _any(d, lambda v: v < -87.3),  # exp is subnormal in f32
    "anywhere": lambda d: True,
}


@dataclass(frozen=True)
class Row:
    """One row of the document's table: operators, types, targets, where they differ."""

    ops: tuple[str, ...]
    kinds: tuple[str, ...]
    targets: tuple[str, ...]
    where: str
    reason: str

    def explains(self, d: Difference) -> bool:
        return (
            d.target in self.targets
            and d.kind in self.kinds
            and any(fnmatch(d.case.name, p) for p in self.ops)
            and WHERE[self.where](d)
        )


def rows_of_the_document() -> Iterator[Row]:
    text = DOCUMENT.read_text().partition("<!-- compared -->")[2].partition("<!-- end -->")[0]
    for line in text.splitlines():
        cells = [c.strip() for c in line.strip().strip("|").split("|")]
        if len(cells) == 5 and not re.fullmatch(r"[-\s]*", cells[0]) and cells[0] != "operators":
            ops, kinds, targets = (tuple(c.replace("`", "").split()) for c in cells[:3])
            yield Row(ops, kinds, targets, cells[3], cells[4])


def expected(cases: list[Case], arrays: dict[str, np.ndarray], kind: str) -> list[Any]:
    """onnxruntime's results, one node at a time; None where it has no such kernel, or onnx no such
    type for the operator.

    Types of 16 bits are computed in f32 and rounded once, which is what is asked of us.
    """
    found: list[Any] = []
    for c in cases:
        casts = c.op == "Cast"
        wide = "f32" if kind in ("f16", "bf16") and not casts else kind
        own = {k: v for k, v in arrays.items() if k in c.inputs}
        feeds = {k: v.astype(TYPES[wide][0]) for k, v in own.items()}
        held = {
            k: v.astype(TYPES[wide][0]) if v.dtype == TYPES[kind][0] else v
            for k, v in c.held.items()
        }
        out = wide if c.out == kind else c.out
        one = Case(c.op, c.inputs, out, held, c.attributes)
        found.append(_run(one, feeds, wide, TYPES[c.out][0]))
    return found


def _run(case: Case, feeds: dict[str, np.ndarray], kind: str, dtype: np.dtype) -> Any:
    quiet = onnxruntime.SessionOptions()
    quiet.log_severity_level = 4
    quiet.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    model = onnx.load_from_string(model_of([case], feeds, kind))
    if kind in _HELD_ELSEWHERE:  # numpy has no such type: in and out by way of f32
        given = list(model.graph.input)
        for i in given:
            first = helper.make_node("Cast", [f"{i.name}.f32"], [i.name], to=TYPES[kind][1])
            if kind != "bf16":
                first.attribute.append(helper.make_attribute("saturate", 0))  # inf stays
            model.graph.node.insert(0, first)
            i.name = f"{i.name}.f32"
            i.type.tensor_type.elem_type = TensorProto.FLOAT
        feeds = {f"{k}.f32": v.astype(np.float32) for k, v in feeds.items()}
    if case.out in _HELD_ELSEWHERE:
        model.graph.node.append(helper.make_node("Cast", ["y0"], ["y"], to=TensorProto.FLOAT))
        model.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", TensorProto.FLOAT, None))
    try:
        session = onnxruntime.InferenceSession(
            model.SerializeToString(), quiet, providers=["CPUExecutionProvider"]
        )
        with np.errstate(all="ignore"):
            return session.run(None, feeds)[0].astype(dtype)
    except Exception as e:
        if any(text in str(e) for text in ("NOT_IMPLEMENTED", "Type Error: Type")):
            return None
        raise


_HELD_ELSEWHERE = ("bf16", "e4m3", "e5m2")


def differences(
    cases: list[Case], arrays: dict[str, np.ndarray], kind: str, target: str,
    got: list[np.ndarray], want: list[Any],
) -> Iterator[Difference]:  # fmt: skip
    """Every row of every case that is not within rounding of onnxruntime's."""
    for c, a, b in zip(cases, got, want, strict=True):
        if b is None:
            continue
        assert (a.shape, a.dtype) == (b.shape, b.dtype), c
        for i in range(len(a)):
            if not _same(a[i], b[i], c.out):
                inputs = tuple(arrays[n][i] for n in c.inputs if n in arrays)
                yield Difference(c, kind, target, inputs, a[i], b[i])


def _same(a: np.ndarray, b: np.ndarray, kind: str) -> bool:
    x, y = np.asarray(a, np.float64), np.asarray(b, np.float64)
    if kind not in CLOSE:
        return bool(np.all((a == b) | (np.isnan(x) & np.isnan(y))))
    with np.errstate(all="ignore"):
        finite = np.isfinite(x) & np.isfinite(y)
        scale = np.max(np.abs(y), where=np.isfinite(y), initial=0)
        near = np.abs(x - y) <= CLOSE[kind] * np.maximum(np.abs(y), scale)
    same = np.where(finite, near, (x == y) | (np.isnan(x) & np.isnan(y)))
    signs = (x != 0) | (y != 0) | (np.signbit(x) == np.signbit(y))
    return bool(np.all(same & signs))
