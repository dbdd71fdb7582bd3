"""Times of the passes of a target's pipeline, in milliseconds, with op counts.

python benchmarks/passes.py                      # made-up programs of 2,000 and of 20,000 ops
python benchmarks/passes.py model.onnx ...       # model files
python benchmarks/passes.py --ops 2000 --nested --profile
"""

from __future__ import annotations

import argparse
import cProfile
import itertools
import pstats
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import mgx_mlir.dialects
import mgx_mlir.passes  # noqa: F401  (declares the passes)
from mgx_mlir.core.context import new_context
from mgx_mlir.core.ir import func, ir
from mgx_mlir.core.literals import WeightStore
from mgx_mlir.frontends.onnx.importer import parse_onnx
from mgx_mlir.passes.pipelines import pipeline
from mgx_mlir.programs.build import Builder
from mgx_mlir.programs.program_ir import ProgramIR
from mgx_mlir.rewrite.passes import resolve, run_pipeline, verify_module
from mgx_mlir.rewrite.pattern import op_names

ROWS, WIDTH, HEADS, CHANNELS, SIDE = 16, 32, 4, 16, 8


class Net:
    """A program as exporters write them: norms and activations in pieces, shapes moved about."""

    def __init__(self, seed: int = 0) -> None:
        self.b, self.numbers, self.built = Builder(), np.random.default_rng(seed), 0

    def op(self, name: str, *operands: Any, **attributes: Any) -> Any:
        self.built += 1
        return self.b.op(name, *operands, **attributes)

    def const(self, *dims: int, scale: float = 0.1) -> ir.Value:
        self.built += 1
        return self.b.literal((self.numbers.normal(size=dims) * scale).astype(np.float32))

    def number(self, x: float, like: ir.Value) -> ir.Value:
        self.built += 1
        return self.spread(self.b.literal(np.array([x], np.float32)), like)

    def spread(self, v: ir.Value, like: ir.Value) -> ir.Value:
        return self.op("multibroadcast", [v], out_lens=list(self.b.dims(like)))

    def binary(self, name: str, x: ir.Value, y: ir.Value | float) -> ir.Value:
        other = self.number(y, x) if isinstance(y, float) else y
        if self.b.dims(other) != self.b.dims(x):
            other = self.spread(other, x)
        return self.op(name, x, other)

    def norm(self, x: ir.Value) -> ir.Value:
        mean = self.op("reduce_mean", x, axes=[-1])
        centred = self.binary("sub", x, mean)
        variance = self.op("reduce_mean", self.binary("pow", centred, 2.0), axes=[-1])
        root = self.op("sqrt", self.binary("add", variance, 1e-5))
        y = self.binary("mul", self.binary("div", centred, root), self.const(WIDTH))
        return self.binary("add", y, self.const(WIDTH))

    def linear(self, x: ir.Value, n: int) -> ir.Value:
        k = self.b.dims(x)[-1]
        w = self.op("transpose", self.const(n, k), permutation=[1, 0])
        wide = self.op("multibroadcast", [w], out_lens=[*self.b.dims(x)[:-2], k, n])
        return self.binary("add", self.op("dot", x, wide), self.const(n))

    def heads(self, x: ir.Value, permutation: Sequence[int]) -> ir.Value:
        y = self.op("reshape", x, dims=[0, 0, HEADS, WIDTH // HEADS])
        return self.op("transpose", y, permutation=list(permutation))

    def encoder_layer(self, x: ir.Value) -> ir.Value:
        """Attention and a GELU network, each with its residual and layer norm."""
        h = self.norm(x)
        q = self.heads(self.linear(h, WIDTH), (0, 2, 1, 3))
        k = self.heads(self.linear(h, WIDTH), (0, 2, 3, 1))
        v = self.heads(self.linear(h, WIDTH), (0, 2, 1, 3))
        scores = self.binary("div", self.op("dot", q, k), float(np.sqrt(WIDTH / HEADS)))
        seen = self.op("dot", self.op("softmax", scores, axis=-1), v)
        seen = self.op("transpose", seen, permutation=[0, 2, 1, 3])
        seen = self.op("reshape", seen, dims=[0, 0, WIDTH])
        x = self.binary("add", x, self.linear(seen, WIDTH))
        h = self.linear(self.norm(x), 2 * WIDTH)
        erf = self.op("erf", self.binary("div", h, float(np.sqrt(2))))
        h = self.binary("mul", self.binary("mul", h, self.binary("add", erf, 1.0)), 0.5)
        return self.binary("add", x, self.linear(h, WIDTH))

    def conv_bn(self, x: ir.Value, side: int) -> ir.Value:
        """A convolution and its batch norm: scale and shift per channel."""
        padding = [side // 2] * 2
        y = self.op("convolution", x, self.const(CHANNELS, CHANNELS, side, side), padding=padding)
        for name in ("mul", "add"):
            column = self.op("unsqueeze", self.const(CHANNELS), axes=[1, 2])
            y = self.binary(name, y, column)
        return y

    def residual_block(self, x: ir.Value) -> ir.Value:
        y = self.op("relu", self.conv_bn(x, 1))
        y = self.op("relu", self.conv_bn(y, 3))
        gate = self.op("reduce_mean", y, axes=[2, 3])
        gate = self.op(
            "sigmoid", self.op("convolution", gate, self.const(CHANNELS, CHANNELS, 1, 1))
        )
        y = self.binary("mul", y, gate)
        return self.op("relu", self.binary("add", self.conv_bn(y, 1), x))


def made_up(ops: int) -> ProgramIR:
    """A program of about `ops` ops: encoder layers on tokens, residual blocks on an image."""
    context, store, net = new_context(), WeightStore(), Net()
    with context, ir.Location.unknown(), store.active():
        module = ir.Module.create()
        f32 = ir.F32Type.get()
        kinds = [
            ir.RankedTensorType.get(dims, f32)
            for dims in ([2, ROWS, WIDTH], [1, CHANNELS, SIDE, SIDE])
        ]
        with ir.InsertionPoint(module.body):
            main = func.FuncOp("main", (kinds, []))
        with ir.InsertionPoint(main.add_entry_block()):
            tokens, image = main.entry_block.arguments
            while net.built < ops:
                tokens = net.encoder_layer(tokens)
                for _ in range(2):
                    image = net.residual_block(image)
            func.ReturnOp([tokens, image])
        signature = ir.FunctionType.get(kinds, kinds)
        main.attributes["function_type"] = ir.TypeAttr.get(signature)
    return ProgramIR(context, module, store, f"{net.built} ops")


@dataclass
class Row:
    """One pass of a run: its nesting, time, and the ops before and after it.

    The time is the process's on the CPU, which stands on a busy machine; of nested passes it is
    that of the clock.
    """

    name: str
    depth: int
    ms: float
    before: int = 0
    after: int = 0


def measure(program: ProgramIR, target: str) -> list[Row]:
    """Run the target's pipeline on a program, pass by pass."""
    operation = program.module.operation
    rows = []
    for step in resolve(pipeline(target), program.ctx):
        before = len(op_names(operation))
        start = time.process_time()
        how = run_pipeline(operation, [step], store=program.store, verify=False)
        ms = (time.process_time() - start) * 1e3
        rows.append(Row(str(step), 0, ms, before, len(op_names(operation))))
        rows += [Row(t.name, t.depth, t.ms) for t in how.timings if t.depth]
    start = time.process_time()
    verify_module(operation)
    count = len(op_names(operation))
    rows.append(Row("(verify)", 0, (time.process_time() - start) * 1e3, count, count))
    return rows


def table(title: str, rows: Sequence[Row], nested: bool) -> str:
    """The rows as a Markdown table with a total; nested passes are summed below."""
    lines = [f"### {title}", "", "| pass | ms | ops before | ops after |", "|---|---:|---:|---:|"]
    outer = [r for r in rows if r.depth == 0]
    lines += [f"| {r.name} | {r.ms:.1f} | {r.before} | {r.after} |" for r in outer]
    total = sum(r.ms for r in outer)
    lines.append(f"| **all** | **{total:.1f}** | {outer[0].before} | {outer[-1].after} |")
    if nested:
        inner: dict[str, list[float]] = {}
        for r in rows:
            if r.depth:
                inner.setdefault(r.name, []).append(r.ms)
        lines += ["", "| within others | runs | ms |", "|---|---:|---:|"]
        lines += [f"| {name} | {len(ms)} | {sum(ms):.1f} |" for name, ms in inner.items()]
    return "\n".join(lines) + "\n"


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", help="model files; none: made-up programs")
    parser.add_argument("--ops", type=int, nargs="+", default=[2000, 20000])
    parser.add_argument("--target", default="cpu")
    parser.add_argument("--nested", action="store_true", help="also the passes within passes")
    parser.add_argument("--profile", action="store_true", help="where the time goes, in Python")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    """Print a table for each program."""
    arguments = parse(argv)
    totals = []
    for source in arguments.models or arguments.ops:
        if isinstance(source, int):
            program = made_up(source)
        else:
            program = parse_onnx(source)
        profiler = cProfile.Profile()
        if arguments.profile:
            profiler.enable()
        rows = measure(program, arguments.target)
        profiler.disable()
        print(table(program.source or str(source), rows, arguments.nested))
        totals.append((rows[0].before, sum(r.ms for r in rows if r.depth == 0)))
        if arguments.profile:
            pstats.Stats(profiler).sort_stats("tottime").print_stats(35)
    for (few, short), (many, long) in itertools.pairwise(totals):
        if not arguments.models:
            print(f"{many / few:.1f} times the ops take {long / short:.1f} times as long")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
