"""Random programs for the patterns of simplify_dyn_ops, and for the pass as a whole."""

import numpy as np
from pattern_graphs import case

from mgx_mlir.core.ir import func, ir
from mgx_mlir.core.shapes import DYN, TensorType

DTYPES = ("f32", "f32", "f16", "i32", "bool")


def numbers(g, values, open_share=0.15, kind=None):
    """A list of integers as a constant: a literal, or an expression of some. Near miss: an
    argument, of just these numbers."""
    values = [int(v) for v in values]
    kind = kind or g.pick("i64", "i64", "i32")
    if g.coin(open_share):
        x = g.argument((len(values),), kind)
        g.inputs[f"x{len(g.inputs) - 1}"] = np.array(values, g.b.dtype(x).np)
        return x
    if g.coin(0.3) and len(values) > 1:
        parts = [g.constant((1,), kind, value=v) for v in values]
        return g.b.op("concat", parts, axis=0)
    return g.constant((len(values),), kind, value=values)


def tensor(g, dims, dtype=None):
    """An argument; in some draws one of its extents is dynamic (and at run time what is asked)."""
    dynamic_axis = g.random.randrange(len(dims)) if dims and g.coin(0.15) else None
    x = g.argument([DYN if i == dynamic_axis else d for i, d in enumerate(dims)], dtype or "f32")
    name = f"x{len(g.inputs) - 1}"
    g.inputs[name] = np.resize(g.inputs[name], dims)
    return x


@case("find_static_dimensions_of")
def find_static_dimensions_of(g):
    dims = g.dims(g.random.randint(0, 4), low=0)
    x = tensor(g, dims, g.pick(*DTYPES))
    start = g.random.randint(0, len(dims))
    end = g.random.randint(start, len(dims))
    return g.b.op("dimensions_of", x, start=start, end=end)


@case("find_broadcast_with_dims_static")
def find_broadcast_with_dims_static(g):
    """Both ways: extents of 1 in the list give way too."""
    dims = [g.pick(1, 1, 3, 2) for _ in range(g.random.randint(0, 3))]
    out = [d if d != 1 and g.coin(0.8) else (g.pick(1, 2, 3, 0) if d == 1 else 1) for d in dims]
    out = [*g.dims(g.random.randint(0, 2), high=3), *out]
    x = tensor(g, dims, g.pick(*DTYPES)) if g.coin(0.1) else g.argument(dims, g.pick(*DTYPES))
    return g.b.op("broadcast_with_dims", x, numbers(g, out))


@case("find_static_2in_broadcasts")
def find_static_2in_broadcasts(g):
    dims = g.dims(g.random.randint(1, 3), high=3)
    kind = g.pick(*DTYPES)
    if g.coin(0.3):
        axis, more = g.random.randint(0, 1), g.dims(1)
        out = (*more[:axis], *dims, *more[axis:])
        if g.coin(0.2):
            return g.b.op("broadcast", g.argument(dims, kind), axis=axis, out_lens=out)
        axis = axis if len(out) > len(dims) else 0
        return g.b.op("broadcast", g.argument(dims, kind), tensor(g, out), axis=axis)
    x = g.argument([d if g.coin(0.6) else 1 for d in dims], kind)
    refs = [tensor(g, [*g.dims(g.pick(0, 1), high=2), *dims])]
    if g.coin(0.3):
        refs.append(g.argument((1,), "i32"))
    return g.b.op("multibroadcast", [x, *refs])


@case("find_static_broadcast_for_dot")
def find_static_broadcast_for_dot(g):
    batch = g.dims(g.random.randint(0, 2), high=3)
    own = [d if g.coin() else 1 for d in batch][g.random.randint(0, len(batch)) :]
    x = g.argument((*own, *g.dims(2)), g.pick(*DTYPES))
    return g.b.op("broadcast_for_dot", x, tensor(g, (*batch, *g.dims(2))))


@case("find_const_alloc_reshapes")
def find_const_alloc_reshapes(g):
    """Extents, 0 for the operand's own and -1 for what is left."""
    dims = g.dims(g.random.randint(1, 4), high=4)
    out = list(dims)
    if g.coin(0.6):
        at = g.random.randint(0, len(dims))
        out.insert(at, 1)
    elif len(dims) > 1:
        out[-2:] = [dims[-1] * dims[-2]]
    if g.coin():
        out[g.random.randrange(len(out))] = -1
    if out[0] == dims[0] and g.coin(0.3):
        out[0] = 0
    x = g.argument((DYN, *dims[1:]) if out[0] in (0, -1) and g.coin(0.2) else dims, g.pick(*DTYPES))
    if DYN in g.b.dims(x) and (-1 not in out or len(out) != len(dims)):
        out = [0, -1]  # whatever the extent is
    return g.b.op("reshape", x, numbers(g, out))


@case("find_resize_static")
def find_resize_static(g):
    dims = g.dims(g.random.randint(1, 3), high=4)
    x = tensor(g, dims)
    mode = g.pick("nearest", "linear", "cubic")
    if g.coin(0.6):
        target = numbers(g, [g.random.randint(-1, 5) for _ in dims])
    else:
        scales = [g.pick(0.5, 1.0, 1.5, 2.0, 0.7) for _ in dims]
        target = g.constant((len(dims),), value=scales)
    return g.b.op("resize", x, target, mode=mode, nearest_mode=g.pick("floor", "round_prefer_ceil"))


def open_slice(g, which):
    """A slice whose `which` (of starts, ends, axes) are operands."""
    dims = g.dims(g.random.randint(1, 3))
    x = tensor(g, dims, g.pick(*DTYPES))
    axes = g.random.sample(range(len(dims)), g.random.randint(1, len(dims)))
    values = {
        "starts": [g.random.randint(-dims[a], dims[a]) for a in axes],
        "ends": [g.pick(g.random.randint(-dims[a], dims[a]), 2**31 - 1) for a in axes],
        "axes": [a - len(dims) if g.coin(0.3) else a for a in axes],
    }
    operands = [numbers(g, values[n]) if n in which else None for n in ("starts", "ends", "axes")]
    stated = {n: v for n, v in values.items() if n not in which}
    return g.b.op("slice", x, *operands, **stated)


@case("find_const_2in_slice")
def find_const_2in_slice(g):
    return open_slice(g, g.pick(("starts",), ("ends",), ("axes",), ("starts", "ends")))


@case("find_const_3in_slice")
def find_const_3in_slice(g):
    pairs = (("starts", "ends"), ("ends", "axes"), ("starts", "axes"), ("starts",))
    return open_slice(g, g.pick(*pairs))


@case("find_const_4in_slice", fires=0.4)
def find_const_4in_slice(g):
    return open_slice(g, ("starts", "ends", "axes") if g.coin(0.9) else ("ends",))


@case("find_const_alloc_fill")
def find_const_alloc_fill(g):
    kind = g.pick(*DTYPES)
    value = g.constant(g.pick((), (1,), (1, 1)), kind)
    if g.coin(0.1):
        value = g.argument((1,), kind)
    dims = g.dims(g.random.randint(0, 3), low=0)
    if g.coin(0.3):
        return g.b.op("fill", value, g.argument(dims, kind))
    if g.coin(0.3):
        return g.b.op("fill", value, g.b.op("allocate", shape=TensorType(g.b.dtype(value), dims)))
    buffer = g.b.op("allocate", numbers(g, dims), buf_type=g.b.dtype(value))
    return g.b.op("fill", value, buffer)


@case("find_static_onehot")
def find_static_onehot(g):
    dims = g.dims(g.random.randint(0, 3), low=0)
    indices = tensor(g, dims, g.pick("i32", "i64"))
    values = g.argument((2,), g.pick(*DTYPES))
    axis = g.random.randint(-len(dims) - 1, len(dims))
    if g.coin(0.1):
        return g.b.op("onehot", indices, None, values, axis=axis, depth=3)
    return g.b.op("onehot", indices, numbers(g, [g.random.randint(0, 4)]), values, axis=axis)


@case("simplify_select_module_output_shape")
def simplify_select_module_output_shape(g):
    """Functions of the sizes 1 to 5; what they return agrees in some extents, or in none."""
    width, kind = g.random.randint(2, 4), g.pick("halves", "joined", "same")
    names = []
    for n in range(1, 6):
        dims = {"halves": (n, 1), "joined": (n * width,), "same": (n, width)}[kind]
        t, out = (
            ir.RankedTensorType.get(d, g.b.dtype(g.constant(())).ir_type())
            for d in ((n, width), dims)
        )
        with ir.InsertionPoint.at_block_begin(g.module.body):
            f = func.FuncOp(f"size_{n}", ([t], [out]), visibility="private")
        block = f.add_entry_block()
        with ir.InsertionPoint(block):
            x = g.b.op("neg", block.arguments[0])
            if kind == "halves":
                x = g.b.op("reduce_max", x, axes=[1])
            elif kind == "joined":
                x = g.b.op("reshape", x, dims=[-1])
            func.ReturnOp([x])
        names.append(f"size_{n}")
    x = g.argument((DYN, width))
    rank = 1 if kind == "joined" else 2
    stated = [TensorType(g.b.dtype(x), (DYN,) * rank)]
    return g.b.op("select_module", [x], results=stated, callees=names)


@case("simplify_dyn_ops", fires=0.7)
def simplify_dyn_ops(g):
    """Types follow what is found out: an Expand to the dims of another tensor, then more."""
    rows, columns = g.dims(2, low=2)
    x, y = g.argument((1, columns)), g.argument((rows, 1))
    if g.coin(0.2):
        y = g.argument((DYN, 1))
    dims = g.b.op("dimensions_of", y, start=0, end=1)
    wide = g.b.op(
        "broadcast_with_dims", x, g.b.op("concat", [dims, numbers(g, [1], kind="i64")], axis=0)
    )
    flat = g.b.op("reshape", wide, g.b.op("dimensions_of", g.b.op("neg", wide), start=0, end=2))
    return [g.b.op("abs", flat), g.b.op("slice", wide, None, numbers(g, [2]), axes=[0], starts=[0])]
