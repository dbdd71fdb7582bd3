"""Random programs for the patterns of inline_module."""

import numpy as np
from pattern_graphs import case

from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import OPS
from mgx_mlir.core.shapes import TensorType


def flag(g, known):
    return g.constant(g.pick((), (1,)), "bool") if known else g.argument((), "bool")


@case("inline_if", fires=0.4)
def inline_if(g):
    """Branches that read captured values and arguments, one inside of the other, a used result."""
    x, y = g.argument(g.dims(2)), g.argument(g.dims(2))
    cond = flag(g, g.coin(0.8))
    same = g.coin(0.8)
    t = TensorType.of(x)
    ends = [g.random.randint(1, d) for d in t.dims] if not same else list(t.dims)
    other = t.with_dims(a if a == b else -(2**63) for a, b in zip(t.dims, ends, strict=True))
    made = OPS["if"](cond, [x], results=[t if same else other, TensorType.of(y)]).operation
    for k, region in enumerate(made.regions):
        block = region.blocks.append(x.type, arg_locs=None)
        with ir.InsertionPoint(block):
            a = g.b.op(g.pick("neg", "abs"), block.arguments[0])
            if k and not same:
                a = g.b.op("slice", a, axes=[0, 1], starts=[0, 0], ends=ends)
            OPS["yield"]([a, g.b.op(g.pick("relu", "abs"), y)])
    return [g.b.op("neg", made.results[0]), g.maybe_used(made.results[1])]


@case("inline_loop", fires=0.3)
def inline_loop(g):
    dims, scan = g.dims(2), g.dims(1)
    x, y = g.argument(dims), g.argument(scan)
    times = g.random.randint(-1, 2)
    known = g.coin(0.8)
    count = g.constant((), "i64", value=times) if known else g.argument((), "i64", low=0, high=2)
    going = flag(g, g.coin(0.8))
    padded = g.coin()
    most = g.random.randint(0, 3)
    rows = most if padded else max(times, 0) if known and g.coin(0.8) else -(2**63)
    t = TensorType.of(x)
    off = known and np.size(going) and times <= 0
    if not padded and rows > 0 and not off:
        going = g.constant((), "bool", value=True)
    made = OPS["loop"](
        count, going, [x], results=[t, TensorType.of(y).with_dims((rows, *scan))],
        max_iterations=most, padded=padded, scan_output_directions=g.pick([], [0], [1]),
    ).operation  # fmt: skip
    block = made.regions[0].blocks.append(
        TensorType.of(count).mlir(), going.type, x.type, arg_locs=None
    )
    with ir.InsertionPoint(block):
        number = g.b.op("convert", block.arguments[0], target_type=t.dtype)
        v = g.b.op("add", block.arguments[2], g.b.multibroadcast(number, dims))
        end = g.b.op("not", block.arguments[1]) if g.coin() else block.arguments[1]
        OPS["yield"]([end, v, g.b.op("neg", y)])
    return [g.maybe_used(r) for r in made.results]
