"""RNN, GRU and LSTM as one vector kernel for all steps: dims, operands, types, special values."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import mgx_mlir
from mgx_mlir.core import dtypes
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import OPS
from mgx_mlir.passes.lowering.cpu.frame import exponential
from mgx_mlir.passes.lowering.cpu.frame.isa import isa_of
from mgx_mlir.passes.lowering.cpu.frame.workgroup_builder import (
    ResultTile,
    WorkgroupBuilder,
    dispatch,
)
from tests.lowering.programs import Programs, check
from tests.lowering.vector_kernels import run
from tests.support.models import bytes_of, node
from tests.support.oracle import ort_session

pytestmark = pytest.mark.skipif(isa_of("host") is None, reason="no vector kernels for this host")

CELLS = {"rnn": 1, "gru": 3, "lstm": 4}  # nets, and how many gates they have
TYPES: dict[str, Any] = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}
FUNCTIONS = (
    "tanh", "sigmoid", "relu", "leaky_relu{alpha=0.2}", "elu{alpha=0.5}", "hard_sigmoid",
    "affine{alpha=0.5,beta=0.1}", "scaled_tanh{alpha=0.7,beta=0.9}", "softsign", "softplus",
    "thresholded_relu{alpha=0.3}",
)  # fmt: skip
USUAL = {"rnn": ["tanh"], "gru": ["sigmoid", "tanh"], "lstm": ["sigmoid", "tanh", "tanh"]}
HIDDEN = (1, 5, 15, 16, 17, 33, 64)


class Networks(Programs):
    """Steps of one random stream, both results of an lstm; the oracle is numpy in f64."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.random, self.numbers = random.Random(seed), np.random.default_rng(seed)

    def draw(
        self, cell: str, steps: int, batch: int, hidden: int, kind: str = "f32", **given: Any
    ) -> None:
        gates = CELLS[cell]
        coin, uniform = self.random.random, self.numbers.uniform
        direction = self.random.choice(["forward", "reverse", "bidirectional"])
        d = 2 if direction == "bidirectional" else 1
        own = self.random.choices(FUNCTIONS, k=len(USUAL[cell]))
        if gates > 1:  # gates outside of [0, 1] make states grow from step to step
            own[0] = self.random.choice(["sigmoid", "hard_sigmoid"])
        attributes: dict[str, Any] = {
            "direction": direction, "hidden_size": hidden, "clip": self.random.choice([0.0, 0.5]),
            "actv_func": USUAL[cell] if coin() < 0.6 else own,
        }  # fmt: skip
        if cell == "gru":
            attributes["linear_before_reset"] = self.random.choice([0, 1])
        if cell == "lstm":
            attributes["input_forget"] = self.random.choice([0, 1])

        def some(*dims: int) -> np.ndarray | None:
            return uniform(-1, 1, dims).astype(TYPES[kind]) if coin() < 0.5 else None

        x = uniform(-2, 2, (steps, batch, d * gates * hidden)).astype(TYPES[kind])
        r = (uniform(-1, 1, (d, gates * hidden, hidden)) / hidden**0.5).astype(TYPES[kind])
        lens = self.numbers.integers(-1, steps + 2, batch).astype(np.int32)
        rest = [some(d, 2 * gates * hidden), lens if coin() < 0.4 else None, some(d, batch, hidden)]
        if cell == "lstm":
            rest += [some(d, batch, hidden), some(d, 3 * hidden)]
        self.steps_of(cell, x, r, [*rest], attributes, kind, **given)

    def steps_of(
        self, cell: str, x: np.ndarray, r: np.ndarray, rest: list[np.ndarray | None],
        attributes: dict[str, Any], kind: str, *, fixed: bool = True, constant: bool = True,
    ) -> None:  # fmt: skip
        cls = OPS[f"{cell}_steps"]
        wide = [a if a is None or a.dtype.kind == "i" else a.astype(np.float64)
                for a in (x, r, *rest)]  # fmt: skip
        defaults = {d.field: d.default for d in cls.ATTRS.values()}
        found = cls.reference(*wide, **{**defaults, **attributes})
        wants = found if isinstance(found, tuple) else (found,)
        arrays = [x, *([] if constant else [r]), *[a for a in rest if a is not None]]

        def type_of(a: np.ndarray, axes: Sequence[int]) -> str:
            own = "i32" if a.dtype == np.int32 else kind
            dims = ["?" if i in axes and not fixed else str(n) for i, n in enumerate(a.shape)]
            return f"tensor<{'x'.join([*dims, own])}>"

        # the batch of what has one is open as well
        batch_axes = [(), (0,), (1,), (1,), (), ()]
        types = [type_of(x, (0, 1))]
        types += [] if constant else [type_of(r, ())]
        types += [
            type_of(a, axes) for a, axes in zip(rest, batch_axes, strict=False) if a is not None
        ]
        i = self.random.randrange(len(wants))

        def build(b: Any, first: Any, *others: Any) -> Any:
            left = list(others)
            matrix = b.literal(r) if constant else left.pop(0)
            given = [None if a is None else left.pop(0) for a in rest]
            made = b.op(f"{cell}_steps", first, matrix, *given, **attributes)
            return made[i] if isinstance(made, tuple) else made

        name = f"{cell} {x.shape} {kind} {attributes}, result {i}"
        want = np.asarray(wants[i])
        self.add(build, arrays, want, types=types, name=name, tolerance=TOLERANCE[kind])


STEP = "dead_code_elimination"
# share of the largest result; 16-bit results are rounded once
TOLERANCE = {"f32": 2e-6, "f16": 1e-3, "bf16": 8e-3}


@pytest.mark.parametrize(
    ("seed", "threads", "fixed", "arch"),
    [(0, 1, True, "a64fx"), (1, 2, False, "host"), (2, 1, True, "haswell")],
)
def test_all_steps(seed: int, threads: int, fixed: bool, arch: str) -> None:
    """The vectors of any processor run on every other one."""
    nets = Networks(seed)
    kinds = {"rnn": "f16", "gru": "f32", "lstm": "bf16" if seed else "f32"}
    for cell, kind in kinds.items():
        steps, batch = nets.random.choice([1, 2, 7]), nets.random.choice([1, 2, 3, 5, 9])
        hidden = nets.random.choice(HIDDEN)
        nets.draw(cell, steps, batch, hidden, kind, fixed=fixed, constant=fixed)
    nets.agree(STEP, threads=(threads,), arch=arch)


@pytest.mark.parametrize(
    ("threads", "fixed", "arch"),
    [(1, True, "a64fx"), (2, False, "host"), (1, False, "haswell")],
)
def test_states_in_8_bits(threads: int, fixed: bool, arch: str) -> None:
    """Rows of several tiles, whose codes have one range. Few, lest one be near the next code."""
    nets = Networks(7)
    # R of i8 and of more, whose sums are exact in f32
    for batch, hidden, direction, most in ((1, 17, "forward", 127), (5, 21, "bidirectional", 255)):
        d = 2 if direction == "bidirectional" else 1
        x = nets.numbers.uniform(-2, 2, (3, batch, d * 4 * hidden)).astype(np.float32)
        r = nets.numbers.integers(-most, most + 1, (d, 4 * hidden, hidden)).astype(np.float32)
        scale = (nets.numbers.uniform(0.5, 1, (d, 4 * hidden)) / 255 / hidden**0.5).astype(
            np.float32
        )
        attributes = {
            "direction": direction, "hidden_size": hidden,
            "actv_func": USUAL["lstm"], "clip": 0.0,
        }  # fmt: skip
        nets.steps_of("lstm", x, r, [*[None] * 5, scale], attributes, "f32", fixed=fixed)
    nets.limits = [(name, 5e-6) for name, _ in nets.limits]  # states as they are: 3e-4 and more
    nets.agree(STEP, threads=(threads,), arch=arch)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 140))
def test_more_networks(seed: int) -> None:
    nets = Networks(seed)
    pick = nets.random.choice
    for cell in CELLS:
        for fixed in (True, False):
            hidden = pick((*HIDDEN, 100, 128, 256))
            kind = pick(["f32", "f32", "f16", "bf16"])
            nets.draw(
                cell, pick([1, 2, 3, 20]), pick([1, 2, 3, 4, 5, 6, 7, 8, 9, 13]), hidden, kind,
                fixed=fixed, constant=pick([True, False]),
            )  # fmt: skip
    threads = (pick([1, 2]),)
    nets.agree(STEP, threads=threads, arch=pick(["host", "haswell", "a64fx"]))


def test_special_values_are_those_of_onnxruntime() -> None:
    """Large numbers, infinities and NaN at some of the steps, in all gates."""
    steps, batch, hidden = 6, 7, 17
    numbers = np.random.default_rng(5)
    x = numbers.standard_normal((steps, batch, 1)).astype(np.float32)
    for n, value in enumerate((1e4, -1e4, np.inf, -np.inf, np.nan, 90.0)):
        x[2, n] = value
    weights: dict[str, np.ndarray] = {}
    nodes: list[Any] = []
    for cell, gates in CELLS.items():
        dims = (1, gates * hidden)
        weights[f"w_{cell}"] = numbers.uniform(0.5, 1, (*dims, 1)).astype(np.float32)
        weights[f"r_{cell}"] = numbers.uniform(-0.3, 0.3, (*dims, hidden)).astype(np.float32)
        nodes.append(node(cell.upper(), f"x w_{cell} r_{cell}", cell, hidden_size=hidden))
    model = bytes_of(nodes, {"x": x}, " ".join(CELLS), weights, opset=14, ir_version=8)
    wants = ort_session(model).run(None, {"x": x})
    program: Any = mgx_mlir.parse_onnx_buffer(model)
    program.compile("cpu")
    for cell, got, want in zip(CELLS, program.run({"x": x}), wants, strict=True):
        for n in range(batch):
            wide = np.asarray(want, np.float64)[:, :, n]
            check(np.asarray(got)[:, :, n], wide, 2e-6, f"{cell}, row {n}")


def test_functions_on_vectors() -> None:
    """Sigmoid and tanh are right to some ulp for every magnitude, and tanh is never beyond 1."""
    sizes = np.logspace(-30, 3, 4000).astype(np.float32)
    x = np.concatenate([sizes, -sizes, np.linspace(-20, 20, 8192, dtype=np.float32)])
    x = np.resize(x, (len(x) // 16, 16))

    def build(source: ir.Value) -> list[ir.Value]:
        def body(k: WorkgroupBuilder) -> list[ResultTile]:
            def row(i: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
                v = k.read(k.inputs[0], [i, 0], 16)
                found = [exponential.sigmoid(k, v), exponential.tanh(k, v)]
                return [k.write(f, c, [i, 0]) for f, c in zip(found, carried, strict=True)]

            made = k.loop(0, len(x), 1, [k.empty(x.shape), k.empty(x.shape)], row)
            return [ResultTile(m, (0, 0), x.shape) for m in made]

        return dispatch([source], [(x.shape, dtypes.FLOAT)] * 2, [(len(x), len(x))], body)

    sigmoid, tanh = run(build, [x])
    wide = x.astype(np.float64)
    held = np.maximum(wide, -80)  # exp of less is subnormal
    want = 1 / (1 + np.exp(-held))
    # e^x has the error of x, which is that of its last bit
    error = (np.abs(sigmoid - want) / want)[wide >= -80]
    assert np.all(error < 4e-7 + 1e-7 * np.abs(wide[wide >= -80]))
    assert np.all(sigmoid[wide < -80] < 1e-34)
    np.testing.assert_allclose(tanh, np.tanh(wide), rtol=5e-7)
    assert np.all(np.abs(tanh) <= 1)
    far = np.abs(wide) > 9
    assert np.array_equal(tanh[far], np.sign(x[far]))  # 1 + tanh is then 0, as in GELU
