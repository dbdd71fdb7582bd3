"""Random graphs of shape arithmetic over two dynamic dims, at sizes around every constant in them.

    python -m pytest tests/frontends/test_random_shapes.py -m slow

A size that onnxruntime refuses is no program, and is left out.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

import mgx_mlir
from tests.support.draws import seeds
from tests.support.models import bytes_of
from tests.support.oracle import ort_session

NUMBERS = (1, 2, 3, 5, 8)
SIZES = [(0, 3), (1, 1), (1, 9), (2, 5), (3, 4), (4, 2), (5, 1), (7, 8), (8, 7), (9, 3), (16, 31)]
END = 2**63 - 1
_ERRORS = onnxruntime.capi.onnxruntime_pybind11_state
REFUSED = (_ERRORS.Fail, _ERRORS.RuntimeException, _ERRORS.InvalidArgument)


class Graph:
    """A graph being drawn: tensors of rank 2 to take from, and i64 vectors of one extent."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.tensors = ["x"]
        self.extents: list[str] = []
        self.narrow: set[str] = set()  # tensors of one row

    def node(self, kind: str, *inputs: str, **attributes: Any) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def ints(self, *values: int) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(helper.make_tensor(name, TensorProto.INT64, [len(values)], values))
        return name

    def pick(self, names: list[str]) -> str:
        # newer values are taken more often
        return names[-1 - min(int(self.rng.geometric(0.35)) - 1, len(names) - 1)]

    def number(self) -> int:
        return int(self.rng.choice(NUMBERS))

    def shape(self, t: str, axis: int) -> str:
        return self.node("Shape", t, start=axis, end=axis + 1)

    # ---- extents -----------------------------------------------------------------------------

    def extent(self) -> str:
        """A new extent from those there are."""
        kind = int(self.rng.integers(0, 10))
        if kind < 3 or not self.extents:
            made = self.shape(self.pick(self.tensors), int(self.rng.integers(0, 2)))
        else:
            a, k = self.pick(self.extents), self.ints(self.number())
            other = self.pick(self.extents) if self.rng.random() < 0.4 else k
            made = [
                lambda: self.node("Min", a, other),
                lambda: self.node("Max", a, other),
                lambda: self.node("Add", a, other),
                lambda: self.node("Div", a, k),
                lambda: self.node("Div", self.node("Add", a, k), self.ints(2)),
                lambda: self.node("Max", self.node("Sub", a, other), self.ints(0)),
                lambda: self.node("Where", self.node("Less", a, other), k, a),
            ][kind - 3]()
        self.extents.append(made)
        return made

    # ---- tensors -----------------------------------------------------------------------------

    def tensor(self) -> None:
        t = self.pick(self.tensors)
        axis = int(self.rng.integers(0, 2))
        made = self._steps(t, axis)[int(self.rng.integers(0, 11))]()
        self.tensors.append(made)

    def _steps(self, t: str, axis: int) -> list[Any]:
        k, at = self.number(), self.ints(axis)
        pair = self.ints(-1), self.ints(END)
        return [
            lambda: self.node("Slice", t, self.ints(0), self.ints(k), at),
            lambda: self.node("Slice", t, self.ints(-k), pair[1], at),
            lambda: self.node("Slice", t, self.ints(0), self.extent(), at),
            lambda: self.node("Slice", t, self.ints(0), pair[1], at, self.ints(2)),
            lambda: self.node("Slice", t, self.ints(1), pair[1], at, self.ints(2)),
            lambda: self._expanded(t, axis),
            lambda: self._combined(t),
            lambda: self._combined(t),
            lambda: self._reshaped(t),
            lambda: self._reshaped(t),
            lambda: self._filled(),
        ]

    def _expanded(self, t: str, axis: int) -> str:
        one = self.node("Slice", t, self.ints(0), self.ints(1), self.ints(axis))
        e, rest = self.extent(), self.shape(t, 1 - axis)
        dims = [e, rest] if axis == 0 else [rest, e]
        return self.node("Expand", one, self.node("Concat", *dims, axis=0))

    def _combined(self, t: str) -> str:
        kind = str(self.rng.choice(["Add", "Mul", "Sub"]))
        return self.node(kind, t, self.pick(self.tensors))

    def _reshaped(self, t: str) -> str:
        rows, columns = self.shape(t, 0), self.shape(t, 1)
        both = self.node("Mul", rows, columns)
        one, rest = self.ints(1), self.ints(-1)
        dims = [[columns, rows], [both, one], [one, rest], [rest, one], [rows, rest], [one, both]]
        chosen = dims[int(self.rng.integers(0, len(dims)))]
        return self.node("Reshape", t, self.node("Concat", *chosen, axis=0))

    def _filled(self) -> str:
        dims = self.node("Concat", self.extent(), self.extent(), axis=0)
        half = helper.make_tensor("", TensorProto.FLOAT, [1], [0.5])
        return self.node("ConstantOfShape", dims, value=half)

    def model(self) -> bytes:
        for _ in range(int(self.rng.integers(4, 9))):
            self.tensor()
        outputs = [self.node("Identity", t) for t in self.tensors[-3:]]
        counts = [self.node("Identity", e) for e in self.extents[-2:]]
        results: dict[str, Any] = {o: [None, None] for o in outputs}
        results |= {c: (TensorProto.INT64, [1]) for c in counts}
        return bytes_of(self.nodes, {"x": ["n", "m"]}, results, self.constants)


def oracle(data: bytes) -> dict[tuple[int, int], tuple[np.ndarray, list[np.ndarray]]]:
    """The input and the outputs of each size that the model runs at."""
    # onnxruntime's rewrites of a Reshape accept sizes that the Reshape itself refuses
    session = ort_session(data, optimised=False)
    found = {}
    for n, m in SIZES:
        x = np.random.default_rng(n).integers(-2, 3, (n, m)).astype(np.float32)
        try:
            found[n, m] = x, session.run(None, {"x": x})
        except REFUSED:
            continue
    return found


def check(seed: int, target: str) -> int:
    """Compare a graph at all its sizes; how many there are."""
    data = Graph(seed).model()
    wanted = oracle(data)
    if wanted:
        compiled = mgx_mlir.compile(data, target=target, cache=False)
        for size, (x, outputs) in wanted.items():
            for got, want in zip(compiled.run({"x": x}), outputs, strict=True):
                got = np.asarray(got)
                assert got.shape == want.shape, (seed, size)
                np.testing.assert_allclose(got, want, rtol=1e-5, err_msg=str((seed, size)))
    return len(wanted)


def test_on_ref() -> None:
    ran = [check(seed, "ref") for seed in range(40)]
    assert sum(ran) > 4 * len(ran)  # most graphs run at most sizes


@pytest.mark.parametrize("seed", seeds(3, 5))
def test_on_cpu(seed: int) -> None:
    assert check(seed, "cpu")


@pytest.mark.slow
def test_many_on_ref() -> None:
    for seed in range(40, 3000):
        check(seed, "ref")


@pytest.mark.slow
def test_many_on_cpu() -> None:
    for seed in range(5, 150):
        check(seed, "cpu")
