"""Programs to write and read: of every kind of value, attribute and module that files hold."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import mgx_mlir as migraphx
import mgx_mlir.dialects
from mgx_mlir.core.op import OPS

op = migraphx.op
dim = migraphx.shape.dynamic_dimension
Feed = dict[str, np.ndarray]


def tensor(kind: str = "float", *lens: int) -> migraphx.shape:
    return migraphx.shape(type=kind, lens=list(lens)) if lens else migraphx.shape(type=kind)


def worked_example() -> migraphx.program:
    """x + {1, 2}: the program whose files are known byte for byte."""
    p = migraphx.program()
    m = p.get_main_module()
    x = m.add_parameter("x", tensor("float", 2))
    m.add_return([m.add_instruction(op("add"), [x, m.add_literal(np.array([1, 2], "f4"))])])
    return p


def dense() -> migraphx.program:
    """A layer with weights beside the IR."""
    p = migraphx.program()
    m = p.get_main_module()
    x = m.add_parameter("x", tensor("float", 4, 40))
    w = m.add_literal(np.random.default_rng(1).standard_normal((40, 30)).astype("f4"))
    b = m.add_literal(np.linspace(-1, 1, 30, dtype="f4"))
    y = m.add_instruction(op("dot"), [x, w])
    wide = m.add_instruction(op("multibroadcast", out_lens=[4, 30]), [b])
    m.add_return([m.add_instruction(op("relu"), [m.add_instruction(op("add"), [y, wide])])])
    return p


def convolution() -> migraphx.program:
    """Enumerations, lists, booleans and floats as attributes."""
    p = migraphx.program()
    m = p.get_main_module()
    x = m.add_parameter("x", tensor("float", 1, 2, 8, 8))
    w = m.add_literal(np.random.default_rng(2).standard_normal((4, 2, 3, 3)).astype("f4"))
    y = m.add_instruction(op("convolution", padding=[1, 1], stride=[2, 2], group=1), [x, w])
    y = m.add_instruction(op("pooling", mode=op.pooling_mode.max, lengths=[2, 2]), [y])
    y = m.add_instruction(op("leaky_relu", alpha=0.3), [y])
    y = m.add_instruction(op("pad", mode=1, pads=[0, 0, 1, 1, 0, 0, 1, 1]), [y])
    y = m.add_instruction(op("convert", target_type="half"), [y])
    top = m.add_instruction(op("topk", k=2, axis=3, largest=False), [y])
    m.add_return([m.add_instruction(op("get_tuple_elem", index=i), [top]) for i in (0, 1)])
    return p


def recurrent() -> migraphx.program:
    """Operators as attributes, absent inputs, an instruction with two results that is no tuple."""
    p = migraphx.program()
    m = p.get_main_module()
    rng = np.random.default_rng(3)
    x = m.add_parameter("x", tensor("float", 3, 2, 4))
    w = m.add_literal(rng.standard_normal((1, 20, 4)).astype("f4"))
    r = m.add_literal(rng.standard_normal((1, 20, 5)).astype("f4"))
    none = m.add_instruction(op("undefined"), [])
    h = m.add_literal(rng.standard_normal((1, 2, 5)).astype("f4"))
    functions = [op("sigmoid"), op("leaky_relu", alpha=0.3), op("tanh")]
    y = m.add_instruction(
        op("lstm", hidden_size=5, actv_func=functions, clip=0.5), [x, w, r, none, none, h]
    )
    m.add_return([y, m.add_instruction(op("rnn_last_cell_output"), [y])])
    return p


def dynamic() -> migraphx.program:
    """Ranges with and without an upper end, symbols, optimals; results whose sizes are data."""
    p = migraphx.program()
    m = p.get_main_module()
    dims = [dim(1, 8, {2, 4}, sym="batch"), dim(3, 3)]
    x = m.add_parameter("x", migraphx.shape(type="float", dyn_dims=dims))
    n = m.add_parameter("n", migraphx.shape(type="float", dyn_dims=[dim(0, 2**64 - 1), dim(2, 2)]))
    both = m.add_instruction(op("concat", axis=0), [x, x])
    found = m.add_instruction(op("nonzero"), [m.add_instruction(op("flatten", axis=0), [both])])
    m.add_return([both, found, m.add_instruction(op("neg"), [n])])
    return p


def types() -> migraphx.program:
    """A literal of every element type, strided and broadcast ones, packed 4-bit floats."""
    p = migraphx.program()
    m = p.get_main_module()
    for name in ("bool", "half", "float", "double", "uint8", "int8", "uint16", "int16", "int32",
                 "int64", "uint32", "uint64", "fp8e4m3fnuz", "fp8e4m3fn", "fp8e5m2", "bf16",
                 "fp8e5m2fnuz"):  # fmt: skip
        m.add_literal(migraphx.create_argument(tensor(name, 3, 1), [0, 1, 1]))
    turned = migraphx.shape(type="float", lens=[2, 3], strides=[1, 2])
    wide = migraphx.shape(type="half", lens=[4, 2], strides=[0, 1])
    t = m.add_literal(migraphx.create_argument(turned, [1, 2, 3, 4, 5, 6]))
    w = m.add_literal(migraphx.create_argument(wide, [1, 2] * 4))
    y = m.add_parameter("y", migraphx.shape(type="int8", lens=[2, 4], strides=[1, 2]))
    q = m.add_instruction(op("unpack_int4"), [m.add_instruction(op("pack_int4"), [y])])
    f = m.add_parameter("f", migraphx.shape(type="float", lens=[2, 4]))
    packed = m.add_instruction(op("pack_fp4"), [f])
    m.add_return([t, w, q, packed, m.add_instruction(op("unpack_fp4"), [packed])])
    return p


def branches() -> migraphx.program:
    """if, with a kernel's module within one of its branches."""
    p = migraphx.program()
    m = p.get_main_module()
    c = m.add_parameter("c", tensor("bool"))
    x = m.add_parameter("x", tensor("float", 3))
    inner = p.create_module("inner")
    i0, i1 = (inner.add_parameter(n, tensor()) for n in ("x0", "x1"))
    half = inner.add_literal(np.array(0.5, "f4"))
    product = inner.add_instruction(op("mul"), [i0, i1])
    inner.add_return([inner.add_instruction(op("add"), [product, half])])
    then, other = p.create_module("yes"), p.create_module("no")
    then.add_return([then.add_instruction(op("pointwise"), [x, x], [inner])])
    other.add_return([x])
    both = m.add_instruction(op("if"), [c], [then, other])
    m.add_return([m.add_instruction(op("get_tuple_elem", index=0), [both])])
    return p


def loop() -> migraphx.program:
    """loop, whose module reads a value from outside; a carried value and a scan output."""
    p = migraphx.program()
    m = p.get_main_module()
    x = m.add_parameter("x", tensor("float", 2))
    step = m.add_parameter("step", tensor("float", 2))
    n, go = m.add_literal(np.array(3, np.int64)), m.add_literal(np.array(True))
    body = p.create_module("body")
    body.add_parameter("iter", tensor("int64"))
    going = body.add_parameter("cond", tensor("bool"))
    value = body.add_parameter("value", tensor("float", 2))
    following = body.add_instruction(op("add"), [value, step])
    body.add_return([going, following, value])
    made = m.add_instruction(op("loop", max_iterations=3), [n, go, x], [body])
    m.add_return([m.add_instruction(op("get_tuple_elem", index=i), [made]) for i in (0, 1)])
    return p


def selection() -> migraphx.program:
    """select_module of functions for two sizes."""
    p = migraphx.program()
    m = p.get_main_module()
    x = m.add_parameter("x", migraphx.shape(type="float", dyn_dims=[dim(1, 2), dim(3, 3)]))
    modules = []
    for n in (1, 2):
        s = p.create_module(f"dim_{n}")
        a = s.add_parameter("x", tensor("float", n, 3))
        factor = s.add_literal(np.full((n, 3), n, "f4"))
        s.add_return([s.add_instruction(op("mul"), [a, factor])])
        modules.append(s)
    y = m.add_instruction(op("select_module"), [x], modules)
    m.add_return([m.add_instruction(op("get_tuple_elem", index=0), [y])])
    return p


PROGRAMS: dict[str, Callable[[], migraphx.program]] = {
    f.__name__: f
    for f in (worked_example, dense, convolution, recurrent, dynamic, types, branches, loop,
              selection)
}  # fmt: skip


def every_operator() -> tuple[migraphx.program, Feed]:
    """One program that applies every operator to its examples, and its inputs."""
    p = migraphx.program()
    m = p.get_main_module()
    feed: Feed = {}
    results = []
    for name, cls in sorted(OPS.items()):
        for operands, attributes in getattr(cls, "examples", list)():
            args = []
            for operand in operands:
                for array in operand if isinstance(operand, list | tuple) else [operand]:
                    if array is None:
                        args.append(m.add_instruction(op("undefined"), []))
                        continue
                    key = f"{name}{len(feed)}"
                    feed[key] = np.ascontiguousarray(array).reshape(np.shape(array))
                    args.append(m.add_parameter(key, migraphx.argument(feed[key]).get_shape()))
            made = m.add_instruction(op(name, **attributes), args)
            parts = made.shape().sub_shapes()
            results += [
                m.add_instruction(op("get_tuple_elem", index=i), [made]) for i in range(len(parts))
            ] or [made]
    m.add_return(results)
    return p, feed


def feed_of(p: migraphx.program) -> Feed:
    """Inputs for a program; dims that are not known take their least size, or 2."""
    rng = np.random.default_rng(0)
    feed: Feed = {}
    for name, shape in p.get_parameter_shapes().items():
        lens = [max(d.min, min(d.max, 2)) for d in shape.dyn_dims()] or shape.lens()
        scalar = not shape.dynamic() and shape.strides() == [0]
        kind = shape.core.dtype.np
        feed[name] = (3 * rng.standard_normal([] if scalar else lens)).astype(kind)
    return feed
