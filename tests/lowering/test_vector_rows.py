"""Concatenations with pointwise ops around them: vector loops, and the loop that GPUs run."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from mgx_mlir.core import dtypes
from mgx_mlir.core.context import new_context
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import OPS, Pointwise
from mgx_mlir.passes.lowering.cpu.frame.isa import isa_of
from mgx_mlir.programs.interpreter import Interpreter
from mgx_mlir.programs.lowered import Lowered
from tests.lowering.harness import difference, examples_of, load_dialect
from tests.lowering.programs import Programs, execute, kernels_of

needs_vectors = pytest.mark.skipif(isa_of("host") is None, reason="no vector kernels for this host")
FUSE = "fuse_concat"
load_dialect()


class Concats(Programs):
    """Programs that are compared with what the interpreter makes of them unfused."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        self.random, self.numbers = random.Random(seed), np.random.default_rng(seed)
        self.names: list[str] = []

    def draw(self, dtype: str, *dims: int) -> np.ndarray:
        t = dtypes.from_name(dtype)
        if t.is_bool:
            return self.numbers.integers(0, 2, dims).astype(t.np)
        if t.is_float:
            return self.numbers.normal(0, 1.5, dims).astype(t.np)
        return self.numbers.integers(0 if t.is_unsigned else -7, 8, dims).astype(t.np)

    def case(self, name: str, build: Callable[..., Any], arrays: Sequence[np.ndarray]) -> None:
        self.add(build, arrays, np.zeros(0))
        self.names.append(name)

    def fused(self, **options: Any) -> Lowered:
        """Return the lowered program, and set `want` to the unfused program's results."""
        self.finish()
        named = {f"x{i}": a for i, a in enumerate(self.inputs)}
        self.want = Interpreter(self.module, self.store).run(named)
        return self.lowered(FUSE, **options)

    def check(self, threads: int = 1, *, vectors: bool = True, **options: Any) -> Lowered:
        lowered = self.fused(**options)
        if vectors:
            assert kernels_of(lowered) == len(self.names), "some are no vector kernels"
        got = execute(lowered, self.inputs, threads)
        problems = [
            f"{name}: {text}"
            for name, found, want in zip(self.names, got, self.want, strict=True)
            if (text := difference(found, want))
        ]
        assert not problems, "\n".join(problems)
        return lowered

    # ---- forms -------------------------------------------------------------------------------

    def rotary(self, dtype: str, rows: int, heads: int, half: int) -> None:
        """x cos + (-high, low) sin of (batch, rows, heads * width)."""
        dims = (2, heads, rows, 2 * half)

        def build(b: Any, x: Any, cos: Any, sin: Any) -> Any:
            x = b.op("reshape", x, dims=[2, rows, heads, 2 * half])
            x = b.op("transpose", x, permutation=[0, 2, 1, 3])
            low = b.op("slice", x, axes=[3], starts=[0], ends=[half])
            high = b.op("slice", x, axes=[3], starts=[half], ends=[2 * half])
            other = b.op("concat", [b.op("neg", high), low], axis=-1)
            cos, sin = b.multibroadcast(cos, dims), b.multibroadcast(sin, dims)
            return b.op("add", b.op("mul", x, cos), b.op("mul", other, sin))

        arrays = [self.draw(dtype, 2, rows, heads * 2 * half)]
        arrays += [self.draw(dtype, 1, rows, 2 * half) for _ in range(2)]
        self.case(f"rotary {dtype} {rows} rows, {heads} heads of {2 * half}", build, arrays)

    def parts(self) -> None:
        """A random concatenation: views and pointwise ops before it, more after it."""
        r = self.random
        dtype = r.choice(("f32", "f32", "f16", "bf16", "i32", "i8", "ui8", "i16", "ui32", "bool"))
        rank = r.randint(1, 4)
        axis = r.choice((rank - 1, r.randrange(rank)))
        dims = [r.randint(1, 4) for _ in range(rank)]
        dims[-1] = r.choice((8, 16, 24, 40, 5, 64, 33))
        if axis == rank - 1:
            extents = [r.choice((8, 16, 24, 64)) for _ in range(r.randint(1, 4))]
        else:
            extents = [r.randint(1, 5) for _ in range(r.randint(1, 4))]
        arrays: list[np.ndarray] = []
        steps: list[Callable[[Any, Sequence[Any], Any], Any]] = []
        both = "logical_xor" if dtype == "bool" else r.choice(("add", "sub", "mul", "max"))
        for n in extents:
            own = [n if i == axis else d for i, d in enumerate(dims)]
            at = len(arrays)
            form = r.choice(("plain", "slice", "swap", "row", "two"))
            if form == "swap" and rank > 2:
                arrays.append(self.draw(dtype, own[1], own[0], *own[2:]))
                order = [1, 0, *range(2, rank)]
                steps.append(
                    lambda b, v, _, at=at, o=order: b.op("transpose", v[at], permutation=o)
                )
            elif form == "slice":
                start = r.choice((3, 8, 16))
                arrays.append(self.draw(dtype, own[0] + start + 1, *own[1:]))
                if rank == 1:
                    start = 8
                steps.append(
                    lambda b, v, _, at=at, s=start, n=own[0]: b.op(
                        "slice", v[at], axes=[0], starts=[s], ends=[s + n]
                    )
                )
                if rank == 1:
                    arrays[-1] = self.draw(dtype, own[0] + 9)
            elif form == "row":
                arrays.append(self.draw(dtype, own[-1]))
                steps.append(lambda b, v, _, at=at, d=own: b.multibroadcast(v[at], d))
            else:
                arrays += [self.draw(dtype, *own), self.draw(dtype, *own)]
                steps.append(lambda b, v, _, at=at: b.op(both, v[at], v[at + 1]))
        whole = [sum(extents) if i == axis else d for i, d in enumerate(dims)]
        arrays.append(self.draw(dtype, *r.choice((whole, whole[-1:], [1] * rank))))

        def build(b: Any, *v: Any) -> Any:
            found = [step(b, v, None) for step in steps]
            c = b.op("concat", found, axis=axis)
            return b.op(both, c, b.multibroadcast(v[-1], whole))

        self.case(f"{both} of {dtype} {whole}, axis {axis}, {extents}", build, arrays)


@needs_vectors
@pytest.mark.parametrize("seed", range(2))
def test_random(seed: int) -> None:
    net = Concats(seed)
    for _ in range(14):
        net.parts()
    net.check(threads=1 + seed)


@needs_vectors
def test_rotary() -> None:
    net = Concats()
    for dtype, rows, heads, half in (
        ("f32", 1, 2, 32), ("f32", 130, 3, 64), ("f16", 7, 2, 16), ("bf16", 9, 1, 8),
        ("f32", 5, 2, 40),
    ):  # fmt: skip
        net.rotary(dtype, rows, heads, half)
    net.check(threads=2)


@needs_vectors
def test_many_parts() -> None:
    """A part is found by halves: iree-compile takes forever over deeply nested branches."""
    net = Concats()
    extents = [1 + i % 3 for i in range(24)]
    arrays = [net.draw("f32", n, 16) for n in extents]

    def build(b: Any, *parts: Any) -> Any:
        return b.op("abs", b.op("concat", list(parts), axis=0))

    net.case("24 parts", build, arrays)
    assert _depth(net.check(), "scf.if") == 5


def _depth(lowered: Lowered, name: str) -> int:
    """Return how deep ops of this name are nested."""
    ctx = new_context()
    ctx.allow_unregistered_dialects = True
    module = ir.Module.parse(lowered.bytecode, ctx)
    deepest = 0

    def visit(op: ir.Operation) -> ir.WalkResult:
        nonlocal deepest
        depth, at = 0, op
        while at is not None:
            depth += at.name == name
            at = at.parent
        deepest = max(deepest, depth)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return deepest


def _examples(net: Concats, wanted: Callable[[tuple[str, ...]], bool], most: int) -> None:
    """The examples of every pointwise op, laid out as rows behind a concatenation.

    wanted: by the types of the operands; `most` of an op.
    """
    for name, cls in OPS.items():
        if not issubclass(cls, Pointwise) or cls.raw:
            continue
        found = 0
        for example in examples_of(cls):
            arrays = [np.asarray(a) for a in example.operands]
            types = tuple(dtypes.from_numpy(a.dtype) for a in arrays)
            target = example.attributes.get("target_type")
            wide = any(t.size == 8 for t in types) or (
                isinstance(target, dtypes.DType) and target.size == 8
            )
            if wide or found == most or not wanted(tuple(t.mlir for t in types)):
                continue
            if not all(a.size for a in arrays):
                continue
            found += 1
            rows = [np.resize(a, (5, 16)) for a in arrays]

            def build(
                b: Any, x: Any, y: Any, *more: Any, name: str = name, e: Any = example
            ) -> Any:
                whole = b.op("concat", [x, y], axis=0)
                return b.op(name, whole, *more, **e.attributes)

            named = f"{name} of {', '.join(t.mlir for t in types)} {dict(example.attributes)}"
            net.case(named, build, [rows[0][:2], rows[0][2:], *rows[1:]])


@needs_vectors
def test_every_pointwise_op() -> None:
    net = Concats()
    _examples(net, lambda types: "f32" in types, 1)
    net.check()


@needs_vectors
@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16", "i8", "ui8", "i16", "i32", "ui32", "i1"])
def test_every_pointwise_op_of_each_type(dtype: str) -> None:
    net = Concats()
    _examples(net, lambda types: types[0] == dtype, 30)
    net.check()
