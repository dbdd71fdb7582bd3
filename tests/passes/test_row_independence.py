"""Rows of a batch: what is proved, what is refused, and that a proof is never wrong."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import onnx
import pytest

import mgx_mlir
from mgx_mlir.core.errors import MgxError
from mgx_mlir.core.ir import func, ir
from mgx_mlir.core.literals import WeightStore
from mgx_mlir.core.op import OPS, Op
from mgx_mlir.core.shapes import DYN
from mgx_mlir.passes.analysis.row_independence import Mixed, RowProof, has_rule, prove
from mgx_mlir.programs.program_ir import ProgramIR
from mgx_mlir.programs.signature import Signature
from tests.support.ops import CONTEXT, Built, flat, type_of

# ops whose rows are proved in at least one of their examples
PROVED = {
    "add", "where", "convert", "transpose", "reshape", "squeeze", "unsqueeze", "flatten", "dot",
    "quant_dot", "convolution", "convolution_backwards", "quant_convolution", "pooling", "softmax",
    "logsoftmax", "reduce_sum", "argmax", "slice", "step", "reverse", "prefix_scan_sum", "pad",
    "concat", "gather", "topk", "broadcast", "multibroadcast", "broadcast_for_dot", "identity",
    "contiguous", "quantizelinear", "dequantizelinear", "resize", "rnn", "gru", "lstm",
    "rnn_last_hs_output", "rnn_last_cell_output", "rnn_var_sl_last_output",
    "rnn_var_sl_shift_output", "rnn_var_sl_shift_sequence",
}  # fmt: skip


def batches(arrays: list[np.ndarray]) -> Iterator[list[tuple[int, int]]]:
    """Yield dims that may be a batch: one of one operand, or the same one of several."""
    for i, a in enumerate(arrays):
        yield from ([(i, d)] for d in range(a.ndim) if a.shape[d])
    for d in range(max((a.ndim for a in arrays), default=0)):
        same = [i for i, a in enumerate(arrays) if a.ndim > d and a.shape[d] > 1]
        if len(same) > 1 and len({arrays[i].shape[d] for i in same}) == 1:
            yield [(i, d) for i in same]
    # one extent at different axes
    for n in {n for a in arrays for n in a.shape if n > 1}:
        first = {i: a.shape.index(n) for i, a in enumerate(arrays) if n in a.shape}
        if len(set(first.values())) > 1:
            yield list(first.items())


def grouped(args: Any, values: Sequence[Any]) -> list[Any]:
    """Return values in the groups of operands that an example has."""
    left = iter(values)
    return [
        None if g is None else [next(left) for _ in g] if isinstance(g, list) else next(left)
        for g in args
    ]


def program_of(cls: type[Op], args: Any, attributes: Any, batch: Any) -> ProgramIR:
    """Return a program of one op whose operands have a dynamic batch."""
    types = []
    for i, a in enumerate(flat(args)):
        own = {d for j, d in batch if j == i}
        types.append(type_of(a).with_dims(DYN if d in own else n for d, n in enumerate(a.shape)))
    built = Built(cls, grouped(args, types), attributes)
    with CONTEXT, ir.Location.unknown():
        [main] = built.module.body.operations
        block = main.regions[0].blocks[0]
        list(block.operations)[-1].operation.erase()
        results = list(built.op.results)
        with ir.InsertionPoint(block):
            func.ReturnOp(results)
        given = [a.type for a in block.arguments]
        kind = ir.FunctionType.get(given, [r.type for r in results])
        main.attributes["function_type"] = ir.TypeAttr.get(kind)
    return ProgramIR(CONTEXT, built.module, WeightStore())


def taken(a: np.ndarray, rows: list[int], axis: int, each: int) -> np.ndarray:
    """Return some rows of an array, each of which has some elements of the axis."""
    return np.take(a, [r * each + k for r in rows for k in range(each)], axis)


@pytest.mark.parametrize("name", sorted(n for n, c in OPS.items() if has_rule(c) and n in PROVED))
def test_proved_rows_are_those_of_other_batches(name: str) -> None:
    """Run an op on a batch and on some rows of it: numpy says whether rows depend on others."""
    cls, proved = OPS[name], 0
    examples: Any = cls
    for args, attributes in examples.examples()[:12]:
        arrays = flat(args)
        for batch in batches(arrays):
            try:
                found = prove(program_of(cls, args, attributes, batch), batch)
            except (Mixed, MgxError):
                continue
            i, d = batch[0]
            rows = [arrays[i].shape[d] - 1, 0, 0]
            axes = dict(batch)
            some = [taken(a, rows, axes[i], 1) if i in axes else a for i, a in enumerate(arrays)]
            both = (args, grouped(args, some))
            whole, part = (Built(cls, g, attributes).evaluate() for g in both)
            for w, p, place in zip(whole, part, found.results, strict=True):
                assert place is not None
                np.testing.assert_allclose(p, taken(w, rows, *place), rtol=1e-5, atol=1e-6)
            proved += 1
    assert proved


def proof_of(body: str, inputs: str = "float[n,4] x", output: str = "float[n,4] y") -> RowProof:
    text = f'<ir_version: 8, opset_import: ["" : 18]> g ({inputs}) => ({output}) {{ {body} }}'
    read = mgx_mlir.read_model(onnx.parser.parse_model(text).SerializeToString())
    ports = Signature.of(read.main()).inputs
    batch = [(i, d) for i, p in enumerate(ports) for d, r in enumerate(p.ranges) if r.symbol == "n"]
    return prove(read, batch)


ATTENTION = """
s0 = Constant<value_ints=[0, 0, 2, 2]>()
a = Reshape(x, s0)
q = Transpose<perm=[0, 2, 1, 3]>(a)
k = Transpose<perm=[0, 2, 3, 1]>(a)
s = MatMul(q, k)
p = Softmax<axis=-1>(s)
o = MatMul(p, q)
t = Transpose<perm=[0, 2, 1, 3]>(o)
d = Shape(x)
y = Reshape(t, d)
"""
FLAT = """
s0 = Constant<value_ints=[-1, 4]>()
f = Reshape(x, s0)
w = Constant<value_floats=[1., 2., 3., 4.]>()
g = Mul(f, w)
y = Reshape(g, s0)
"""


# a mask by the number of each row, as exporters write it
NUMBERED = """
zero = Constant<value_int=0>() one = Constant<value_int=1>()
s = Shape<end=1>(x)
n = Squeeze(s)
r = Range(zero, n, one)
last = Constant<value_ints=[1]>()
u = Unsqueeze(r, last)
two = Constant<value_ints=[2]>()
shape = Concat<axis=0>(s, last)
k = Expand(two, shape)
i = Concat<axis=1>(u, k)
y = GatherND(x, i)
"""


@pytest.mark.parametrize(
    ("body", "inputs", "output", "result"),
    [
        (ATTENTION, "float[n,3,4] x", "float[n,3,4] y", (0, 1)),
        (FLAT, "float[n,3,4] x", "float[m,4] y", (0, 3)),
        ("y = Add(x, z)", "float[n,4] x, float[4] z", "float[n,4] y", (0, 1)),
        ("y = Transpose<perm=[1,0]>(x)", "float[n,4] x", "float[4,n] y", (1, 1)),
        (NUMBERED, "float[n,4] x", "float[n] y", (0, 1)),
    ],
)
def test_proofs(body: str, inputs: str, output: str, result: tuple[int, int]) -> None:
    assert proof_of(body, inputs, output).results == (result,)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("y = Softmax<axis=0>(x)", "softmax: it works along the batch"),
        ("m = ReduceMean<keepdims=1>(x) y = Sub(x, m)", "reduce_mean: it works along the batch"),
        ("t = Transpose<perm=[1,0]>(x) y = MatMul(x, t)", "number of rows is in several dims"),
        (
            "t = Transpose<perm=[1,0]>(x) p = MatMul(t, x) y = MatMul(x, p)",
            "dot: its result combines",
        ),
        # a mean over the batch may be written as a division by its size
        ("s = Shape<end=1>(x) c = Cast<to=1>(s) y = Div(x, c)", "repeats the number of rows"),
        ("q, s, z = DynamicQuantizeLinear(x) y = DequantizeLinear(q, s, z)", "reduce"),
        ("i = Constant<value_int=0>() y = CumSum(x, i)", "works along the batch"),
        (
            "k = Constant<value_ints=[1]>() y, n = TopK<axis=0>(x, k)",
            "topk: its result combines all",
        ),
        (NUMBERED.replace("Range(zero, n, one)", "Range(one, n, one)"), "no multiple of"),
        (NUMBERED.replace("Concat<axis=1>(u, k)", "Concat<axis=1>(k, u)"), "by indices"),
        (
            NUMBERED.replace("(r, last)", "(r, last) v = Neg(u)").replace("(u, k)", "(v, k)"),
            "by ind",
        ),
        ("y = RandomNormalLike(x)", "dynamic_range: "),
        ("i = NonZero(x) y = Cast<to=1>(i)", "nonzero"),
        ("y = Concat<axis=0>(x, x)", "concat: it works along the batch"),
    ],
)
def test_rows_that_depend_on_others_are_refused(body: str, why: str) -> None:
    with pytest.raises(Mixed, match=why):
        proof_of(body, output="float[a,b] y")


def test_an_input_with_a_batch_of_its_own_name_is_refused() -> None:
    """A sum of x of n rows and z of m: one of them may be 1 in a run, and m is not padded."""
    with pytest.raises(Mixed):
        proof_of("y = Add(x, z)", "float[n,4] x, float[m,4] z", "float[a,4] y")


@pytest.mark.parametrize("body", [NUMBERED, ATTENTION, FLAT])
def test_rows_that_are_added_change_no_others(body: str) -> None:
    """The reference runs a proved program on a batch, and on one with more rows behind it."""
    dims = "n,4" if body is NUMBERED else "n,3,4"
    rank = {NUMBERED: "a", ATTENTION: "a,b,c", FLAT: "a,b"}[body]
    proof = proof_of(body, f"float[{dims}] x", f"float[{rank}] y")
    text = f"float[{dims}] x) => (float[{rank}] y"
    text = f'<ir_version: 8, opset_import: ["" : 18]> g ({text}) {{ {body} }}'
    program = mgx_mlir.compile(onnx.parser.parse_model(text).SerializeToString(), "ref")
    x = np.random.default_rng(0).standard_normal((5, 4) if body is NUMBERED else (5, 3, 4))
    whole, part = (program.run({"x": x[:n].astype(np.float32)})[0] for n in (5, 3))
    assert proof.results[0] is not None
    np.testing.assert_array_equal(taken(whole, [0, 1, 2], *proof.results[0]), part)
