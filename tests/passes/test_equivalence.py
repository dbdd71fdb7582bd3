"""Every pass keeps the values: on the cases of its lit files, and on random graphs."""

import re
from pathlib import Path

import numpy as np
import pytest
from evaluate import CONTEXT, assert_same, before_and_after
from hypothesis import given, settings
from hypothesis import strategies as st

from mgx_mlir.core.build import Builder
from mgx_mlir.core.ir import func, ir
from mgx_mlir.core.literals import WeightStore
from mgx_mlir.core.passes import pass_name
from mgx_mlir.core.pattern import PATTERNS, observing
from mgx_mlir.core.segments import parse_module
from mgx_mlir.passes import PASSES

LIT = Path(__file__).parent.parent.parent / "lit"
# passes that move elements but compute nothing, or compute the same in the same order
EXACT = frozenset(
    (
        "dead_code_elimination", "eliminate_common_subexpression", "eliminate_contiguous",
        "eliminate_convert", "eliminate_identity", "eliminate_pad", "normalize_ops",
        "propagate_constant", "simplify_reshapes",
    )
)  # fmt: skip
OURS = (*sorted(EXACT), "optimize_module", "rewrite_pooling", "simplify_algebra")


def lit_cases():
    for name in OURS:
        for file in sorted((LIT / name).glob("*.mlir")):
            flags = re.findall(r"--(mgx-[a-z-]+)", file.read_text().split("\n", 1)[0])
            chunks = file.read_text().split("// -----")
            for i, chunk in enumerate(chunks):
                yield pytest.param(name, flags, chunk, id=f"{name}/{file.stem}-{i}")


@pytest.mark.parametrize(("name", "flags", "text"), list(lit_cases()))
def test_the_lit_cases_keep_their_values(name, flags, text):
    assert pass_name(flags[0]) == name
    store = WeightStore()
    with store.active(), np.errstate(all="ignore"):
        module = parse_module(text, CONTEXT)
        before, after = before_and_after(module, store, [pass_name(f) for f in flags], seed=1)
    assert_same(before, after, 0 if name in EXACT else 1e-5)


def test_every_pattern_of_these_passes_is_applied_by_its_lit_file():
    for name in OURS:
        for p in getattr(PASSES[name], "patterns", ()):
            text = (LIT / name / f"{p.name}.mlir").read_text()
            store = WeightStore()
            with store.active(), observing() as seen, np.errstate(all="ignore"):
                for chunk in text.split("// -----"):
                    before_and_after(parse_module(chunk, CONTEXT), store, [name], seed=1)
            assert seen.counts[p.name], f"{p.name} is never applied in its own file"
            assert p.name in PATTERNS


# ---- random graphs -------------------------------------------------------------------------------

UNARY = ("relu", "neg", "abs", "tanh", "exp", "sqrt", "recip", "sigmoid", "identity", "contiguous")
BINARY = ("add", "sub", "mul", "div", "max", "min", "pow")
MOVES = ("transpose", "reshape", "unsqueeze", "squeeze", "flatten", "slice", "concat", "broadcast")


class Graphs:
    """Draws a function op by op; every op is valid by construction."""

    def __init__(self, draw, integer, moves_only):
        self.draw, self.integer, self.moves_only = draw, integer, moves_only
        self.b = Builder()
        self.values = []

    def pick(self, choices):
        return self.draw(st.sampled_from(list(choices)))

    def constant(self, dims):
        if self.draw(st.booleans()):
            number = self.pick((0, 1, -1, 2, 3))
            array = np.full(dims, number)
        else:
            array = np.random.default_rng(self.draw(st.integers(0, 99))).integers(1, 5, dims)
        return self.b.literal(array.astype(np.int32 if self.integer else np.float32))

    def other(self, x):
        """An operand for `x`: another value of its dims, or a constant repeated to them."""
        dims = self.b.dims(x)
        same = [v for v in self.values if self.b.dims(v) == dims]
        if self.draw(st.booleans()) and same:
            return self.pick(same)
        small = [d if self.draw(st.booleans()) else 1 for d in dims]
        drop = self.draw(st.integers(0, len(small))) if all(d == 1 for d in small) else 0
        return self.b.multibroadcast(self.constant(small[drop:]), dims)

    def step(self):
        x = self.pick(self.values)
        dims = self.b.dims(x)
        kinds = ["move", "move"] if self.moves_only else ["move", "unary", "binary", "binary"]
        kind = self.pick(kinds)
        if kind == "unary":
            name = self.pick(("neg", "abs", "relu") if self.integer else UNARY)
            if self.integer and name == "relu":
                name = "abs"
            self.values.append(self.b.op(name, x))
        elif kind == "binary":
            name = self.pick(("add", "sub", "mul", "max", "min") if self.integer else BINARY)
            a, b = (x, self.other(x)) if self.draw(st.booleans()) else (self.other(x), x)
            self.values.append(self.b.op(name, a, b))
        else:
            self.values.append(self.move(self.pick(MOVES), x, dims))

    def move(self, name, x, dims):
        rank, n = len(dims), int(np.prod(dims))
        if name == "transpose":
            order = self.draw(st.permutations(range(rank)))
            return self.b.op("transpose", x, permutation=order)
        if name == "reshape":
            new, left = [], n
            while left > 1 and len(new) < 3:
                new.append(self.pick([d for d in range(1, left + 1) if left % d == 0]))
                left //= new[-1]
            return self.b.op("reshape", x, dims=[*new, left])
        if name == "unsqueeze" and rank < 5:
            return self.b.op("unsqueeze", x, axes=[self.draw(st.integers(-rank - 1, rank))])
        if name == "squeeze":
            return self.b.op("squeeze", x, axes=[])
        if name == "flatten":
            return self.b.op("flatten", x, axis=self.draw(st.integers(-rank, rank)))
        if name == "slice" and rank:
            axis = self.draw(st.integers(0, rank - 1))
            low = self.draw(st.integers(0, dims[axis] - 1))
            high = self.draw(st.integers(low + 1, dims[axis]))
            return self.b.op("slice", x, axes=[axis - rank], starts=[low], ends=[high])
        if name == "concat" and rank and n < 200:
            axis = self.draw(st.integers(0, rank - 1))
            same = [v for v in self.values if self.b.dims(v) == dims]
            return self.b.op("concat", [x, self.pick(same)], axis=axis)
        if name == "broadcast" and n < 200:
            wide = [self.pick((1, 2, 3)) if d == 1 else d for d in dims]
            return self.b.op("multibroadcast", [x], out_lens=[self.pick((1, 2)), *wide])
        return self.b.op("identity", x)


@st.composite
def graphs(draw, integer=False, moves_only=False):
    """A module with two arguments and some ten ops, and its weights."""
    store = WeightStore()
    dims = draw(st.lists(st.sampled_from((1, 2, 3, 4)), min_size=0, max_size=4))
    with CONTEXT, ir.Location.unknown(), store.active():
        module = ir.Module.create()
        element = ir.IntegerType.get_signless(32) if integer else ir.F32Type.get()
        kind = ir.RankedTensorType.get(dims, element)
        with ir.InsertionPoint(module.body):
            main = func.FuncOp("main", ([kind, kind], []))
            block = main.add_entry_block()
        with ir.InsertionPoint(block):
            g = Graphs(draw, integer, moves_only)
            g.values = list(block.arguments)
            for _ in range(draw(st.integers(2, 12))):
                g.step()
            last = g.values[-draw(st.integers(1, 3)) :]
            func.ReturnOp(last)
        types = [v.type for v in last]
        main.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get([kind, kind], types))
    return module, store


ALL = ("normalize_ops", "eliminate_identity", "eliminate_contiguous", "optimize_module")


@settings(max_examples=150, deadline=None)
@given(graphs(moves_only=True))
def test_random_views_bit_for_bit(graph):
    module, store = graph
    before, after = before_and_after(module, store, ALL, seed=2)
    assert_same(before, after, 0)


@settings(max_examples=150, deadline=None)
@given(graphs(integer=True))
def test_random_integer_graphs_bit_for_bit(graph):
    module, store = graph
    before, after = before_and_after(module, store, ALL, seed=3)
    assert_same(before, after, 0)


@settings(max_examples=200, deadline=None)
@given(graphs())
def test_random_float_graphs(graph):
    module, store = graph
    # where a value is no number, or tiny or huge, reassociation may change which one it is
    before, after = before_and_after(module, store, ALL, seed=4)
    for a, b in zip(before, after, strict=True):
        tame = np.isfinite(a) & np.isfinite(b) & (np.abs(a) < 1e4)
        if np.abs(a).max(initial=0) < 1e4:
            assert_same([a[tame]], [b[tame]], 1e-3)
