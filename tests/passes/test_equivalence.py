"""Every pass keeps the values: on the cases of its lit files, and on random graphs."""

import random
import re
from pathlib import Path

import numpy as np
import pytest
from evaluate import CONTEXT, assert_same, before_and_after, random_inputs

from mgx_mlir.core.errors import MgxError, RunError
from mgx_mlir.core.ir import func, ir
from mgx_mlir.core.literals import WeightStore
from mgx_mlir.core.operand_segments import parse_module
from mgx_mlir.passes import PASSES
from mgx_mlir.passes.pipelines import pipeline
from mgx_mlir.programs.build import Builder
from mgx_mlir.programs.interpreter import Interpreter
from mgx_mlir.rewrite.passes import pipeline_name, run_pipeline
from mgx_mlir.rewrite.pattern import observing

LIT = Path(__file__).parent.parent.parent / "lit"
# passes that move elements but compute nothing, or compute the same in the same order
EXACT = frozenset(
    (
        "auto_contiguous", "dead_code_elimination", "eliminate_common_subexpression",
        "eliminate_contiguous", "eliminate_convert", "eliminate_identity", "eliminate_pad",
        "fuse_concat", "fuse_ops", "fuse_pointwise", "fuse_pointwise_reduce", "fuse_reduce",
        "insert_pad", "normalize_ops", "propagate_constant", "simplify_reshapes",
    )
)  # fmt: skip
# passes that round to 16 bits: two steps of bf16, of the largest element
ROUNDED = {"truncate_float": 2**-7}
# the interpreter does not run lowered programs; their lit files are in lit/lower
# autocast_fp8_pass is for programs that are called with other types
NAMES = [name for name in PASSES if name not in ("lower_to_linalg", "autocast_fp8_pass")]


def flags_of(file):
    """The passes of a lit file's first RUN line, as pipeline elements."""
    run = file.read_text().split("\n", 1)[0]
    found = re.findall(r'--(mgx-[a-z0-9-]+)(?:=(?:"([^"]*)"|(\S+)))?', run)
    found = [(name, quoted or plain) for name, quoted, plain in found]
    return [f"{name}{{{options}}}" if options else name for name, options in found]


def lit_cases():
    for name in NAMES:
        for file in sorted((LIT / name).glob("*.mlir")):
            for i, chunk in enumerate(file.read_text().split("// -----")):
                yield pytest.param(name, flags_of(file), chunk, id=f"{name}/{file.stem}-{i}")


@pytest.mark.parametrize(("name", "flags", "text"), list(lit_cases()))
def test_the_lit_cases_keep_their_values(name, flags, text):
    assert any(flag.startswith(pipeline_name(name)) for flag in flags)
    store = WeightStore()
    module = parse_module(text, CONTEXT)
    with store.active(), np.errstate(all="ignore"):
        try:
            before, after = before_and_after(module, store, flags, seed=1)
        except RunError:  # a size or a requirement that these inputs do not meet stays an error
            run_pipeline(module, flags, store=store)
            with pytest.raises(MgxError):
                Interpreter(module, store).run(random_inputs(module, 1))
            return
    assert_same(before, after, 0 if name in EXACT else ROUNDED.get(name, 1e-5))


def test_every_pass_has_a_lit_file():
    """test_switched_off.py shows that a pattern is applied by the file of its name."""
    assert [name for name in NAMES if not list((LIT / name).glob("*.mlir"))] == []


# ---- random graphs -------------------------------------------------------------------------------

UNARY = ("relu", "neg", "abs", "tanh", "exp", "log", "sqrt", "recip", "sigmoid", "contiguous")
BINARY = ("add", "add", "sub", "mul", "mul", "div", "max", "pow")
MOVES = ("transpose", "reshape", "unsqueeze", "squeeze", "flatten", "slice", "concat", "broadcast")


class Graph:
    """A function of two arguments, built op by op; every op is valid by construction."""

    def __init__(self, seed, integer, moves_only, net=False):
        self.random = random.Random(seed)
        self.integer, self.moves_only, self.net = integer, moves_only, net
        self.store = WeightStore()
        self.b = Builder()
        dims = [self.random.choice((1, 2, 3, 4)) for _ in range(self.random.randint(1, 4))]
        with CONTEXT, ir.Location.unknown(), self.store.active():
            self.module = ir.Module.create()
            element = ir.IntegerType.get_signless(32) if integer else ir.F32Type.get()
            kind = ir.RankedTensorType.get(dims, element)
            with ir.InsertionPoint(self.module.body):
                main = func.FuncOp("main", ([kind, kind], []))
                block = main.add_entry_block()
            with ir.InsertionPoint(block):
                self.values = list(block.arguments)
                for _ in range(self.random.randint(6, 20)):
                    self.step()
                last = self.values[-self.random.randint(1, 3) :]
                func.ReturnOp(last)
            signature = ir.FunctionType.get([kind, kind], [v.type for v in last])
            main.attributes["function_type"] = ir.TypeAttr.get(signature)

    def coin(self):
        return self.random.random() < 0.5

    def constant(self, dims):
        if self.coin():
            array = np.full(dims, self.random.choice((0, 1, -1, 2, 3)))
        else:
            array = np.random.default_rng(self.random.randint(0, 99)).integers(1, 5, dims)
        return self.b.literal(array.astype(np.int32 if self.integer else np.float32))

    def other(self, x):
        """An operand for `x`: another value of its dims, or a constant repeated to them."""
        dims = self.b.dims(x)
        same = [v for v in self.values if self.b.dims(v) == dims]
        if self.random.random() < 0.3:
            return self.random.choice(same)
        small = [d if self.coin() else 1 for d in dims]
        while small and small[0] == 1 and self.coin():
            del small[0]
        return self.b.multibroadcast(self.constant(small), dims)

    def step(self):
        x = self.values[-1] if self.random.random() < 0.8 else self.random.choice(self.values)
        kinds = ("move", "unary", "binary", *(("compute", "compute") if self.net else ()))
        kind = "move" if self.moves_only else self.random.choice(kinds)
        if kind == "unary":
            name = self.random.choice(("neg", "abs") if self.integer else UNARY)
            self.values.append(self.b.op(name, x))
        elif kind == "compute":
            self.values.append(self.compute(x, self.b.dims(x)))
        elif kind == "binary":
            name = self.random.choice(("add", "sub", "mul", "max") if self.integer else BINARY)
            pair = (x, self.other(x)) if self.random.random() < 0.7 else (self.other(x), x)
            self.values.append(self.b.op(name, *pair))
        else:
            self.values.append(self.move(self.random.choice(MOVES), x, self.b.dims(x)))

    def compute(self, x, dims):
        """A dot, a convolution, a pooling, a reduction or a softmax of `x`, with random weights."""
        r, b, rank = self.random, self.b, len(dims)
        rng = np.random.default_rng(r.randint(0, 99))

        def weights(*shape):
            return b.literal(rng.normal(0, 0.7, shape).astype(np.float32))

        kinds = ["reduce_sum", "reduce_mean", "reduce_max", "softmax"] if rank else []
        kinds += ["dot"] * 4 if rank >= 2 else []
        kinds += ["convolution"] * 6 + ["pooling"] * 2 if rank in (3, 4) else []
        name = r.choice(kinds or ["identity"])
        if name == "dot":
            n = r.randint(1, 4)
            w = weights(*dims[:-2], dims[-1], n)
            if rank > 2 and self.coin():
                w = b.multibroadcast(weights(dims[-1], n), (*dims[:-2], dims[-1], n))
            return b.op("dot", x, w)
        if name == "convolution":
            out, channels = r.choice((1, 2, 4)), dims[1]
            depthwise = channels > 1 and self.coin()
            group = channels if depthwise else 1
            kernel = [r.randint(1, min(3, d)) for d in dims[2:]]
            same = len(dims) - 2
            return b.op(
                "convolution",
                x,
                weights(out * group, channels // group, *kernel),
                padding=[r.randint(0, 1) for _ in range(same * r.choice((1, 2)))],
                stride=[r.randint(1, 2) for _ in range(same)],
                dilation=[1] * same,
                group=group,
            )
        if name == "pooling":
            lengths = [d if self.coin() else min(2, d) for d in dims[2:]]
            ones, zeros = [1] * len(lengths), [0] * len(lengths)
            mode = r.choice(("max", "average"))
            window = {"lengths": lengths, "stride": ones, "padding": zeros, "dilations": ones}
            return b.op("pooling", x, mode=mode, **window)
        if name == "softmax":
            return b.op("softmax", x, axis=r.randint(-rank, rank - 1))
        if name == "identity":
            return b.op("identity", x)
        axes = r.sample(range(rank), r.randint(1, rank))
        return b.op(name, x, axes=[a - rank if self.coin() else a for a in axes])

    def move(self, name, x, dims):
        rank, n, r = len(dims), int(np.prod(dims)), self.random
        if name == "transpose":
            return self.b.op("transpose", x, permutation=r.sample(range(rank), rank))
        if name == "reshape":
            new, left = [], n
            while left > 1 and len(new) < 3:
                new.append(r.choice([d for d in range(1, left + 1) if left % d == 0]))
                left //= new[-1]
            return self.b.op("reshape", x, dims=[*new, left])
        if name == "unsqueeze" and rank < 5:
            return self.b.op("unsqueeze", x, axes=[r.randint(-rank - 1, rank)])
        if name == "squeeze":
            return self.b.op("squeeze", x, axes=[])
        if name == "flatten":
            return self.b.op("flatten", x, axis=r.randint(-rank, rank))
        if name == "slice" and rank:
            axis = r.randint(0, rank - 1)
            low = r.randint(0, dims[axis] - 1)
            high = r.randint(low + 1, dims[axis])
            return self.b.op("slice", x, axes=[axis - rank], starts=[low], ends=[high])
        if name == "concat" and rank and n < 200:
            same = [v for v in self.values if self.b.dims(v) == dims]
            return self.b.op("concat", [x, r.choice(same)], axis=r.randint(-rank, rank - 1))
        if name == "broadcast" and n < 200:
            wide = [r.choice((1, 2, 3)) if d == 1 else d for d in dims]
            return self.b.op("multibroadcast", [x], out_lens=[r.choice((1, 2)), *wide])
        return self.b.op("identity", x)


ALL = ("normalize_ops", "eliminate_identity", "eliminate_contiguous", "optimize_module")


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("kind", ["views", "integers"])
def test_random_graphs_bit_for_bit(kind, seed):
    g = Graph(seed, kind == "integers", kind == "views")
    before, after = before_and_after(g.module, g.store, ALL, seed)
    assert_same(before, after, 0)


@pytest.mark.parametrize("seed", range(120))
def test_random_float_graphs(seed):
    g = Graph(seed, False, False)
    before, after = before_and_after(g.module, g.store, ALL, seed)
    for a, b in zip(before, after, strict=True):
        # reassociation may overflow, or lose what cancels: compare where values are tame
        if np.isfinite(a).all() and np.isfinite(b).all() and np.abs(a).max(initial=0) < 1e4:
            assert_same([a], [b], 1e-4)
        else:
            assert a.shape == b.shape


@pytest.mark.parametrize("target", ["cpu", "gpu"])
@pytest.mark.parametrize("seed", range(80))
def test_random_nets_through_the_pipelines_of_the_targets(target, seed):
    g = Graph(seed, False, False, net=True)
    before, after = before_and_after(g.module, g.store, pipeline(target, fast_math=False), seed)
    for a, b in zip(before, after, strict=True):
        if np.isfinite(a).all() and np.isfinite(b).all() and np.abs(a).max(initial=0) < 1e4:
            assert_same([a], [b], 1e-4)
        else:
            assert a.shape == b.shape


def test_random_graphs_are_worth_it():
    with observing() as seen:
        for seed in range(60):
            g = Graph(seed, False, False)
            before_and_after(g.module, g.store, ALL, seed)
    often = {name for name, n in seen.counts.items() if n >= 3}
    assert often >= {
        "find_inner_broadcast",
        "find_nested_shape_transforms",
        "find_add_lit_broadcast",
        "find_unit_ops",
        "find_nop_reshapes",
    }
