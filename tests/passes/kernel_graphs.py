"""Random programs for the passes that form kernels: every op is valid by construction.

A graph holds pointwise ops with broadcasts, reductions, softmax, dots, convolutions, poolings and
data movement, with values used many times and several results. Ops keep values tame, so that
results can be compared within 1e-5.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np

from mgx_mlir.core.ir import func, ir
from mgx_mlir.core.literals import WeightStore
from mgx_mlir.core.shapes import DYN
from mgx_mlir.programs.build import Builder
from mgx_mlir.programs.program_ir import ProgramIR

UNARY = ("relu", "tanh", "sigmoid", "abs", "neg", "erf")
BINARY = ("add", "add", "sub", "mul", "max", "min")
REDUCE = ("reduce_sum", "reduce_mean", "reduce_max", "reduce_min")
MOVES = ("transpose", "reshape", "unsqueeze", "squeeze", "slice", "concat", "pad", "gather")
KINDS = ("unary", "binary", "binary", "binary", "reduce", "softmax", "norm", "dot", "dot",
         "convolution", "convolution", "pooling", "move", "move")  # fmt: skip
MAX_ELEMENTS = 4096


class KernelGraph:
    """One random @main. `kinds` are the kinds of steps; `dynamic` leaves the first dims dynamic."""

    def __init__(
        self,
        seed: int,
        context: ir.Context,
        kinds: Sequence[str] = KINDS,
        steps: int = 16,
        dynamic: bool = False,
    ) -> None:
        self.random, self.kinds = random.Random(seed), kinds
        self.numbers = np.random.default_rng(seed)
        self.dynamic, self.batch = dynamic, self.random.choice((1, 2, 3))
        self.b, self.store = Builder(), WeightStore()
        arguments = self.argument_dims()
        with context, ir.Location.unknown(), self.store.active():
            self.module = ir.Module.create()
            types = [
                ir.RankedTensorType.get([DYN, *d[1:]] if dynamic else d, ir.F32Type.get())
                for d in arguments
            ]
            with ir.InsertionPoint(self.module.body):
                main = func.FuncOp("main", (types, []))
            block = main.add_entry_block()
            with ir.InsertionPoint(block):
                self.values = list(block.arguments)
                for v in self.values:
                    self.b.probe.argument(v, ["n", *[None] * (len(v.type.shape) - 1)])
                while len(self.values) < len(arguments) + steps:
                    self.step(self.random.choice(self.kinds))
                results = self.results(len(arguments))
                func.ReturnOp(results)
            signature = ir.FunctionType.get(types, [r.type for r in results])
            main.attributes["function_type"] = ir.TypeAttr.get(signature)
            self.module.operation.verify()
        self.program = ProgramIR(context, self.module, self.store, f"graph {seed}")

    def inputs(self, seed: int = 0) -> dict[str, np.ndarray]:
        """An array for each argument; an open first dim is this graph's batch."""
        rng = np.random.default_rng(seed)
        kinds = [v.type.shape for v in self.program.main().regions[0].blocks[0].arguments]
        return {
            f"x{i}": rng.normal(size=[self.batch if d < 0 else d for d in dims]).astype(np.float32)
            for i, dims in enumerate(kinds)
        }

    def argument_dims(self) -> list[list[int]]:
        r = self.random
        image = [self.batch, r.choice((2, 4)), r.choice((1, 3, 5)), r.choice((1, 4, 5))]
        rows = [self.batch, *r.choice(([3, 4], [4], [16, 16], [1, 3], [2, 3, 4], [2, 16, 16]))]
        return [image, rows, r.choice((image, rows))]

    def results(self, arguments: int) -> list[ir.Value]:
        """Return the values without users, and sometimes values with users."""
        made = self.values[arguments:]
        free = [v for v in made if next(iter(v.uses), None) is None]
        return free + [v for v in made if v not in free and self.random.random() < 0.1]

    def coin(self, chance: float = 0.5) -> bool:
        return self.random.random() < chance

    def weights(self, dims: Sequence[int]) -> ir.Value:
        if self.coin(0.3):
            return self.b.literal(np.full(dims, self.random.choice((1.0, 0.5)), np.float32))
        return self.b.literal((self.numbers.normal(size=dims) * 0.5).astype(np.float32))

    def step(self, kind: str) -> None:
        x = (
            self.random.choice(self.values[-4:])
            if self.coin(0.8)
            else self.random.choice(self.values)
        )
        made = getattr(self, kind)(x, list(self.b.dims(x)))
        if made is not None and self.b.type(made).elements <= MAX_ELEMENTS:
            self.values.append(made)

    # ---- steps: None where they do not fit -------------------------------------------------------

    def unary(self, x: Any, dims: list[int]) -> Any:
        return self.b.op(self.random.choice(UNARY), x)

    def binary(self, x: Any, dims: list[int]) -> Any:
        pair = (x, self.other(x, dims))
        if self.coin():
            pair = pair[::-1]
        y = self.b.op(self.random.choice(BINARY), *pair)
        return self.b.op("tanh", y) if self.coin(0.2) else y

    def other(self, x: Any, dims: list[int]) -> Any:
        """An operand of `x`'s dims: another value, one that is broadcast, a constant."""
        r = self.random
        if self.coin(0.4):
            return r.choice([v for v in self.values if list(self.b.dims(v)) == dims])
        if DYN in dims:
            number = self.weights([1] if self.coin() or dims[-1] == DYN else [dims[-1]])
            return self.b.op("multibroadcast", [number, x])
        fitting = [v for v in self.values if self.spreads(list(self.b.dims(v)), dims)]
        if fitting and self.coin(0.6):
            return self.b.op("multibroadcast", [r.choice(fitting)], out_lens=dims)
        if dims and self.coin(0.3):
            axis = r.randrange(len(dims))
            w = self.weights([dims[axis]])
            return self.b.op("broadcast", w, axis=axis, out_lens=dims)
        if self.coin(0.2):
            return self.b.op("scalar", self.weights([1]), scalar_bcst_dims=dims)
        small = [d if self.coin() else 1 for d in dims]
        while small and small[0] == 1 and self.coin():
            del small[0]
        return self.b.multibroadcast(self.weights(small), dims)

    @staticmethod
    def spreads(own: list[int], dims: list[int]) -> bool:
        return (
            DYN not in own
            and len(own) <= len(dims)
            and own != dims
            and all(a in (1, b) for a, b in zip(reversed(own), reversed(dims), strict=False))
        )

    def reduce(self, x: Any, dims: list[int]) -> Any:
        if not dims:
            return None
        axes = self.random.sample(range(len(dims)), self.random.randint(1, min(2, len(dims))))
        if any(dims[a] == DYN for a in axes):
            return None
        y = self.b.op(self.random.choice(REDUCE), x, axes=sorted(axes))
        if self.coin() and DYN not in dims:
            y = self.b.multibroadcast(y, dims)
            return self.b.op(self.random.choice(("add", "sub", "mul")), x, y)
        return y

    def softmax(self, x: Any, dims: list[int]) -> Any:
        axes = [a for a, d in enumerate(dims) if d != DYN]
        if not axes:
            return None
        name = "softmax" if self.coin(0.8) else "logsoftmax"
        return self.b.op(name, x, axis=self.random.choice((axes[-1], axes[0])))

    def norm(self, x: Any, dims: list[int]) -> Any:
        """x / rms(x) * weight + bias along the last axis."""
        if not dims or DYN in dims:
            return None
        b, axis = self.b, len(dims) - 1
        if self.coin():
            x = b.sub(x, b.op("reduce_mean", x, axes=[axis]))
        variance = b.op("reduce_mean", b.mul(x, x), axes=[axis])
        y = b.mul(x, b.rsqrt(b.add(variance, 1e-3)))
        return b.add(b.mul(y, self.weights(dims[-1:])), self.weights(dims[-1:]))

    def dot(self, x: Any, dims: list[int]) -> Any:
        if len(dims) < 2 or len(dims) > 4 or DYN in dims[-2:]:
            return None
        if self.coin(0.25):
            order = [*range(len(dims) - 2), len(dims) - 1, len(dims) - 2]
            return self.scaled(self.b.op("dot", x, self.b.op("transpose", x, permutation=order)))
        w = self.weights([dims[-1], self.random.choice((3, 4, 16))])
        if DYN in dims:
            # the weights' leading dims are those of `x`
            if len(dims) != 3:
                return None
            lead = self.b.op("slice", x, axes=[1, 2], starts=[0, 0], ends=[1, 1])
            wide = self.b.op(
                "multibroadcast", [self.b.literal(np.zeros((1, 1, 1), np.float32)), lead]
            )
            w = self.b.broadcast(self.b.op("unsqueeze", w, axes=[0]), wide)[0]
            return self.scaled(self.b.op("dot", x, w))
        if len(dims) > 2:
            w = self.b.op("multibroadcast", [w], out_lens=[*dims[:-2], *self.b.dims(w)])
        return self.scaled(self.b.op("dot", x, w))

    def scaled(self, x: Any) -> Any:
        return self.b.mul(x, 0.25) if self.coin() else x

    def convolution(self, x: Any, dims: list[int]) -> Any:
        r = self.random
        if len(dims) not in (3, 4) or DYN in dims[1:]:
            return None
        channels, spatial = dims[1], dims[2:]
        group = r.choice([g for g in (1, 1, 2, channels) if channels % g == 0])
        outs = group * r.choice((1, 2, 3))
        kernel = [r.choice((1, min(3, d))) for d in spatial]
        stride = [r.choice((1, 1, 2)) for _ in spatial]
        pads = [r.choice((0, 1)) for _ in spatial]
        padding = pads if self.coin() else pads * 2 if self.coin() else [*pads, *[1] * len(pads)]
        y = self.b.op(
            "convolution", x, self.weights([outs, channels // group, *kernel]),
            padding=padding, stride=stride, dilation=[1] * len(spatial), group=group,
        )  # fmt: skip
        if self.coin() and DYN not in dims:
            bias = self.weights([outs])
            y = self.b.op(
                "add", y, self.b.op("broadcast", bias, axis=1, out_lens=list(self.b.dims(y)))
            )
        return self.b.op("tanh", y)

    def pooling(self, x: Any, dims: list[int]) -> Any:
        r = self.random
        if len(dims) not in (3, 4) or DYN in dims[1:]:
            return None
        spatial = dims[2:]
        lengths = [r.choice((1, min(2, d), d)) for d in spatial]
        padding = [r.choice((0, k // 2)) for k in lengths]
        return self.b.op(
            "pooling", x, mode=r.choice(("max", "average")), lengths=lengths, padding=padding,
            stride=[r.choice((1, 2)) for _ in spatial], dilations=[1] * len(spatial),
            ceil_mode=self.coin(0.2), count_include_pad=self.coin(0.3),
        )  # fmt: skip

    def pooled(self, x: Any, dims: list[int]) -> Any:
        """A pooling that only selects elements."""
        if len(dims) not in (3, 4) or DYN in dims[1:]:
            return None
        ones = [1] * (len(dims) - 2)
        return self.b.op(
            "pooling", x, mode="max", lengths=[min(2, d) for d in dims[2:]],
            padding=[0] * len(ones), stride=ones, dilations=ones,
        )  # fmt: skip

    def move(self, x: Any, dims: list[int]) -> Any:
        name, r, rank = self.random.choice(MOVES), self.random, len(dims)
        if name == "transpose" and rank > 1:
            if rank in (3, 4) and self.coin():
                order = r.choice(([0, *range(2, rank), 1], [0, rank - 1, *range(1, rank - 1)]))
            else:
                order = r.sample(range(rank), rank)
            return None if dims and dims[0] == DYN and order[0] else self.b.op(
                "transpose", x, permutation=order
            )  # fmt: skip
        if DYN in dims:
            return None
        n = int(np.prod(dims))
        if name == "reshape" and n:
            new, left = [], n
            while left > 1 and len(new) < 3:
                new.append(r.choice([d for d in range(1, left + 1) if left % d == 0]))
                left //= new[-1]
            return self.b.op("reshape", x, dims=[*new, left])
        if name == "unsqueeze" and rank < 4:
            return self.b.op("unsqueeze", x, axes=[r.randint(0, rank)])
        if name == "squeeze" and 1 in dims:
            return self.b.op("squeeze", x, axes=[dims.index(1)])
        if not rank:
            return None
        axis = r.randrange(rank)
        if name == "slice":
            low = r.randint(0, dims[axis] - 1)
            high = r.randint(low + 1, dims[axis])
            return self.b.op("slice", x, axes=[axis], starts=[low], ends=[high])
        if name == "concat":
            same = [v for v in self.values if list(self.b.dims(v)) == dims]
            return self.b.op("concat", [x, r.choice(same)], axis=axis)
        if name == "pad":
            pads = [r.choice((0, 0, 1)) for _ in range(2 * rank)]
            return self.b.op("pad", x, pads=pads, mode="constant", value=0.5)
        if name == "gather":
            at = self.numbers.integers(-dims[axis], dims[axis], r.choice(((3,), (2, 2))))
            return self.b.op("gather", x, self.b.literal(at), axis=axis)
        return None
