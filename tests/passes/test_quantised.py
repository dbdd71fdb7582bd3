"""Quantised programs from capture to the CPU: calibrated, multiplied in 8 bits, weights packed."""

import numpy as np
import pytest
from evaluate import CONTEXT
from pattern_graphs import Graph

import mgx_mlir
from mgx_mlir.core import dtypes, literals
from mgx_mlir.core.ir import ir
from mgx_mlir.programs.interpreter import Interpreter
from mgx_mlir.programs.program_ir import ProgramIR
from mgx_mlir.rewrite.passes import make_pass, run_pipeline
from mgx_mlir.rewrite.pattern import observing, op_names


def run(g: Graph) -> list[np.ndarray]:
    return Interpreter(g.module, g.store).run(g.inputs)


def apply(g: Graph, *steps: str) -> None:
    run_pipeline(g.module.operation, list(steps), store=g.store)


def net(g: Graph):
    """A convolution and a dot, with weights."""
    x = g.argument((2, 3, 6, 6))
    y = g.b.op("convolution", x, g.constant((4, 3, 3, 3)), padding=[1, 1])
    y = g.b.op("reshape", g.b.op("relu", y), dims=[2, 144])
    return g.b.op("dot", y, g.constant((144, 5)))


def test_calibrated_from_captures_to_products_in_8_bits():
    g = Graph(net, 1, CONTEXT)
    (want,) = run(g)
    apply(g, "capture_arguments")
    largest: dict[int, float] = {}

    def look(op: ir.Operation, results: list[np.ndarray]) -> None:
        if op.name == "migraphx.capture":
            largest[op.opview.ins_index] = float(np.abs(results[0]).max())

    Interpreter(g.module, g.store).run(g.inputs, trace=look)
    assert sorted(largest) == [0, 1, 2, 3]
    factors = ",".join(str(127 / largest[i]) for i in sorted(largest))
    apply(g, f"mgx-quantize-8bits{{scales={factors}}}")
    (rounded,) = run(g)
    apply(g, "simplify_qdq")
    names = op_names(g.module.operation)
    assert {"migraphx.quant_dot", "migraphx.quant_convolution"} <= set(names)
    assert not {"migraphx.dot", "migraphx.convolution", "migraphx.capture"} & set(names)
    (quantised,) = run(g)
    # the same roundings, multiplied as integers
    np.testing.assert_allclose(quantised, rounded, rtol=1e-5, atol=1e-5 * np.abs(want).max())
    # 8 bits of each factor of two products that follow each other
    np.testing.assert_allclose(quantised, want, atol=0.02 * np.abs(want).max())


def quantised(g, x, axis, dtype, scale, zero):
    """quantizelinear and dequantizelinear of a value; scales along `axis` where they are many."""
    dims = g.b.dims(x)

    def spread(v):
        if g.b.dims(v):
            return g.b.op("broadcast", v, axis=axis, out_lens=list(dims))
        return g.b.multibroadcast(v, dims)

    s = spread(g.constant(np.shape(scale), value=scale))
    z = spread(g.constant(np.shape(zero), dtype, value=zero))
    return g.b.op("dequantizelinear", g.b.op("quantizelinear", x, s, z), s, z)


def affine_dot(g):
    x = quantised(g, g.argument((2, 5, 32)), None, "ui8", 0.03, 140)
    w = quantised(g, g.constant((32, 8)), 1, "i8", np.linspace(0.02, 0.05, 8), np.arange(8) - 3)
    return g.b.op("dot", x, g.b.multibroadcast(w, (2, 32, 8)))


def affine_convolution(g):
    x = quantised(g, g.argument((2, 3, 7, 6)), None, "i8", 0.04, -9)
    w = quantised(g, g.constant((4, 3, 3, 2)), 0, "ui8", np.linspace(0.02, 0.05, 4), 130)
    return g.b.op("convolution", x, w, padding=[1, 0], stride=[2, 1])


@pytest.mark.parametrize("draw", [affine_dot, affine_convolution])
def test_on_the_cpu_the_integer_products_are_those_of_the_program(draw):
    g = Graph(draw, 1, CONTEXT)
    (want,) = run(g)
    with observing() as seen:
        apply(g, "simplify_qdq")
    assert seen.counts["match_find_quantizable_ops"] == 1
    compiled = mgx_mlir.compile(ProgramIR(CONTEXT, g.module, g.store), "cpu", cache=False)
    (got,) = compiled.run(g.inputs)
    # integer sums are exact: what is left is the rounding of f32
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5 * np.abs(want).max())


def test_weights_of_4_bits_are_stored_packed():
    def draw(g: Graph):
        w = g.constant((8, 16), low=-2, high=1)
        return [g.b.op("dot", g.argument((3, 8)), w), w]

    g = Graph(draw, 1, CONTEXT)
    want, weights = run(g)
    apply(g, "quantize_int4", "optimize_module")
    got, _ = run(g)
    # half a step for each weight
    step = (weights.max() - weights.min()) / 15
    limit = np.abs(g.inputs["x0"]).sum(1, keepdims=True) * step / 2
    assert (np.abs(got - want) <= 1.001 * limit).all()
    assert np.abs(got - want).max() > 0.1 * limit.max(), "nothing was rounded"
    sizes = []

    def look(op: ir.Operation) -> ir.WalkResult:
        if op.name == "migraphx.literal":
            sizes.append(literals.array_of(op).nbytes)
        return ir.WalkResult.ADVANCE

    with g.store.active():
        g.module.operation.walk(look)
    # the weights as they were are a result; those of the dot take half a byte each
    assert sorted(sizes)[-2:] == [8 * 16 // 2, 8 * 16 * 4]


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ("mgx-truncate-float{float-type=float}", "float-type expected a float of 8 or 16 bits"),
        ("mgx-truncate-float{ops=dott}", "unknown operator 'dott'"),
        ("mgx-eliminate-data-type{types=int7}", "unknown type 'int7'"),
        ("mgx-simplify-qdq{products=dott}", "products expected dot and convolution"),
        ("mgx-quantize-8bits{precision=int16}", "precision expected int8, uint8 or an f8 type"),
        ("mgx-quantize-8bits{scales=0}", "scales expected positive, finite numbers"),
    ],
)
def test_options_that_are_wrong(step, message):
    with pytest.raises(mgx_mlir.MgxError, match=message):
        make_pass(step.split("{")[0], [tuple(step.split("{")[1][:-1].split("="))])


def doubled(g: Graph):
    """Thirty sums of a value with itself, between two of 8 bits."""
    dims = (4, 64)
    x = g.argument(dims, "i8", low=-128, high=127)

    def number(n: float):
        return g.b.multibroadcast(g.constant((1,), low=n, high=n), dims)

    y = g.b.op("dequantizelinear", x, number(2.0**-30))
    for _ in range(30):
        y = g.b.op("add", y, y)
    return g.b.op("quantizelinear", y, number(1.0), out_type=dtypes.INT8)


def test_a_table_of_what_reads_a_value_twice_again_and_again():
    """Each op is counted once, not by every way to it, of which there are 2 ** 30."""
    g = Graph(doubled, 3, CONTEXT)
    (want,) = run(g)
    apply(g, "mgx-simplify-qdq{tables=true}")
    assert "migraphx.byte_table" in op_names(g.module.operation)
    assert "migraphx.add" not in op_names(g.module.operation)
    (got,) = run(g)
    np.testing.assert_array_equal(got, want)
    assert np.unique(want).size > 20
