"""Compares operators, compiled for `cpu`, with onnxruntime, onnx.reference or a numpy function.

A case is one node with its arrays. The nodes of a test are compiled as one model, for a compile
costs a second; onnxruntime runs each in a model of its own.
"""

from __future__ import annotations

import contextlib
import functools
import io
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import mgx_mlir
from mgx_mlir.frontends.onnx.importer import parse_onnx_buffer
from mgx_mlir.programs.interpreter import Interpreter
from tests.support.oracle import ort_session

ort = pytest.importorskip("onnxruntime")
state = pytest.importorskip("onnxruntime.capi.onnxruntime_pybind11_state")

MS = "com.microsoft"
OPSET = 20  # opset of ai.onnx, beside com.microsoft


@dataclass
class Case:
    """One node. `constants` are the inputs that are initializers; `outputs` a count, or which.

    Of com.microsoft, unless `domain` says another one: "" is ai.onnx, of operator set `opset`.

    `want` computes the results where onnxruntime does not: it gets the inputs and attributes.
    """

    op: str
    inputs: Sequence[np.ndarray | None]
    attributes: dict[str, Any] = field(default_factory=dict)
    outputs: int | Sequence[int] = 1
    constants: Iterable[int] = ()
    want: Callable[..., Any] | None = None
    domain: str = MS
    opset: int = OPSET
    oracle: str = "onnxruntime"  # "onnxruntime" or "onnx.reference"
    tol: float | None = None  # relative to the largest; f32 1e-5, f16 2e-3, bf16 2e-2
    kinds: dict[int, Any] = field(default_factory=dict)  # outputs whose type must be stated
    dynamic: Container[int] = ()  # inputs of which every dim is a symbol
    off_by_one: bool = False  # integers: a rounding that lies on the edge may go either way

    def __post_init__(self) -> None:
        self.inputs = [None if x is None else np.asarray(x) for x in self.inputs]

    def node(self, prefix: str) -> tuple[onnx.NodeProto, dict[str, np.ndarray], list[str]]:
        named = {f"{prefix}i{i}": x for i, x in enumerate(self.inputs) if x is not None}
        names = ["" if x is None else f"{prefix}i{i}" for i, x in enumerate(self.inputs)]
        wanted = list(range(self.outputs)) if isinstance(self.outputs, int) else self.outputs
        outputs = [f"{prefix}o{i}" if i in wanted else "" for i in range(max(wanted) + 1)]
        node = helper.make_node(
            self.op, names, outputs, name=prefix, domain=self.domain, **self.attributes
        )
        return node, named, [o for o in outputs if o]


def model(
    cases: Sequence[Case], free: Container[int] = ()
) -> tuple[bytes, dict[str, np.ndarray], list[list[str]]]:
    """One model of all nodes, of one opset, its inputs, and the output names of each case.

    Batch and length, the first two dims (of heads the first and the third), of the inputs in
    `free` are symbols.
    """
    nodes, infos, initializers, results = [], [], [], []
    feeds: dict[str, np.ndarray] = {}
    for c, case in enumerate(cases):
        node, named, outputs = case.node(f"c{c}")
        nodes.append(node)
        results.append(outputs)
        fixed = {f"c{c}i{i}" for i in case.constants}
        for name, x in named.items():
            if name in fixed:
                initializers.append(numpy_helper.from_array(x, name))
                continue
            feeds[name] = x
            kind = helper.np_dtype_to_tensor_dtype(x.dtype)
            dims: list[Any] = list(x.shape)
            if int(name.rpartition("i")[2]) in case.dynamic:
                dims = [f"{name}_{axis}" for axis in range(x.ndim)]
            elif int(name.rpartition("i")[2]) in free:
                dims[0] = f"batch{c}"
                for axis in (1,) if x.ndim < 4 else (2,):
                    if axis < x.ndim:
                        dims[axis] = f"length{c}_{dims[axis]}"
            infos.append(helper.make_tensor_value_info(name, kind, dims))
    outs = [_output(case, o) for case, names in zip(cases, results, strict=True) for o in names]
    proto = helper.make_model(
        helper.make_graph(nodes, "contrib", infos, outs, initializers),
        opset_imports=[
            helper.make_opsetid("", cases[0].opset),
            *(helper.make_opsetid(d, 1) for d in sorted({MS, *(c.domain for c in cases)} - {""})),
        ],
    )
    proto.ir_version = 10 if cases[0].opset < 23 else 11
    return proto.SerializeToString(), feeds, results


def _output(case: Case, name: str) -> onnx.ValueInfoProto:
    index = int(name.rpartition("o")[2])
    if index not in case.kinds:
        return helper.make_empty_tensor_value_info(name)
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(case.kinds[index]))
    return helper.make_tensor_value_info(name, kind, None)


@functools.cache
def _kernels() -> set[str]:
    """The operators that onnxruntime computes here: an older one may lack some."""
    return {k.op_name for k in state.get_all_opkernel_def() if k.domain == MS}


def expected(case: Case) -> list[np.ndarray]:
    if case.want is not None:
        found = case.want(*case.inputs, **case.attributes)
        return list(found) if isinstance(found, tuple | list) else [found]
    if case.domain == MS and case.op not in _kernels():
        pytest.skip(f"onnxruntime {ort.__version__} does not compute {case.op}")
    constants = {i for i, x in enumerate(case.inputs) if i and x is not None}
    # exact products with i8 want their weights constant, and optimisations; those of two i8 are
    # exact anyway, and have no such form
    first = case.inputs[0]
    mixed = any(x is not None and x.dtype == np.int8 for x in case.inputs[1:])
    mixed &= first is not None and first.dtype != np.int8
    data, feeds, _ = model([replace(case, constants=constants) if mixed else case])
    if case.oracle == "onnx.reference":
        with contextlib.redirect_stdout(io.StringIO()):  # the function prints
            return [np.asarray(x) for x in ReferenceEvaluator(data).run(None, feeds)]
    try:
        return ort_session(data, optimised=mixed).run(None, feeds)
    except Exception as e:
        raise AssertionError(f"onnxruntime refuses {describe(case)}: {e}") from None


def describe(case: Case) -> str:
    shown = ", ".join("-" if x is None else f"{x.dtype}{list(x.shape)}" for x in case.inputs)
    return f"{case.op}({shown}) {case.attributes}"


TOLERANCES = {"float16": 2e-3, "bfloat16": 2e-2}


def compare(case: Case, got: np.ndarray, want: np.ndarray, what: str) -> None:
    want = np.asarray(want)
    assert got.shape == want.shape, f"{what}: dims {got.shape}, expected {want.shape}"
    assert got.dtype == want.dtype or case.want is not None, f"{what}: {got.dtype}, {want.dtype}"
    if got.dtype.kind in "iub":
        slack = 1 if case.off_by_one else 0
        off = np.abs(got.astype(np.int64) - want.astype(np.int64))
        assert off.max(initial=0) <= slack, f"{what}: off by {off.max()}"
        # the edge is rare
        assert np.count_nonzero(off) <= max(2, off.size // 20), f"{what}: {np.count_nonzero(off)}"
        return
    g, w = got.astype(np.float64), want.astype(np.float64)
    finite = np.abs(w) < 1e30  # the lowest number, which masks are made of, stands apart too
    np.testing.assert_array_equal(np.abs(g) < 1e30, finite, err_msg=what)
    np.testing.assert_allclose(g[~finite], w[~finite], rtol=1e-5, err_msg=what)
    if not finite.any():
        return
    tol = case.tol or TOLERANCES.get(got.dtype.name, 1e-5)
    off = np.abs(g[finite] - w[finite]).max() / max(np.abs(w[finite]).max(), 1e-3)
    assert off <= tol, f"{what}: off by {off:.2g} of the largest"


def check(cases: Sequence[Case], free: Container[int] = (), target: str = "cpu") -> None:
    """Compile all cases as one model and compare every output."""
    wants = [expected(case) for case in cases]
    data, feeds, names = model(cases, free)
    made = iter(run(data, feeds, target))
    for case, want, outs in zip(cases, wants, names, strict=True):
        for w, name in zip(want, outs, strict=True):
            got = np.asarray(next(made))
            compare(case, got, w, f"{describe(case)} {name}")


def run(data: bytes, feeds: dict[str, np.ndarray], target: str) -> list[Any]:
    """The outputs of a model on `ref` or a compiled target."""
    program = parse_onnx_buffer(data)
    if target == "ref":
        return Interpreter(program.module, program.store).run(feeds)
    return list(mgx_mlir.compile(program, target=target, cache=False).run(feeds))


class Draws:
    """Random arrays and choices of a seeded test."""

    def __init__(self, seed: int) -> None:
        self.np = np.random.default_rng(seed)

    def floats(self, *dims: int, dtype: Any = np.float32, scale: float = 1.0) -> np.ndarray:
        return np.asarray(self.np.standard_normal(dims) * scale, dtype)

    def positive(self, *dims: int, dtype: Any = np.float32) -> np.ndarray:
        return np.asarray(self.np.random(dims) + 0.25, dtype)

    def ints(self, low: int, high: int, *dims: int, dtype: Any = np.int32) -> np.ndarray:
        """Draw integers of [low, high)."""
        return np.asarray(self.np.integers(low, high, dims), dtype)

    def bytes(self, *dims: int, dtype: Any = np.uint8) -> np.ndarray:
        info = np.iinfo(dtype)
        return self.np.integers(info.min, info.max + 1, dims).astype(dtype)

    def pick(self, *choices: Any) -> Any:
        return choices[int(self.np.integers(len(choices)))]

    def coin(self, share: float = 0.5) -> bool:
        return bool(self.np.random() < share)

    def size(self, low: int, high: int) -> int:
        """Return an integer drawn from [low, high]."""
        return int(self.np.integers(low, high + 1))
