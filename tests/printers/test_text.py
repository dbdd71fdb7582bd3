"""The text form: exact lines, as MIGraphX's documents print them."""

from __future__ import annotations

import io

import numpy as np
import pytest

import mgx_mlir as migraphx
from mgx_mlir.core.dtypes import FLOAT
from mgx_mlir.printers.emit import emit
from mgx_mlir.printers.text import print_parameters, program_text, value_text
from mgx_mlir.programs.layout import Shape
from mgx_mlir.programs.module_shapes import ModuleShapes


def floats(*lens: int) -> migraphx.shape:
    return migraphx.shape(type="float", lens=list(lens))


def dense_net() -> migraphx.program:
    """The network of the driver's documentation, built by hand."""
    p = migraphx.program()
    m = p.get_main_module()
    x = m.add_parameter("x", floats(1, 28, 28))
    w0 = m.add_literal(np.zeros((784, 128), np.float32))
    b0 = m.add_literal(np.zeros(128, np.float32))
    w1 = m.add_literal(np.zeros((128, 10), np.float32))
    b1 = m.add_literal(
        np.array(
            [0.0136018, -0.0839988, 0.0375392, 0.0613085, -0.125795, 0.176185, 0.0761055,
             0.0093384, -0.110057, -0.170587], np.float32,
        )
    )  # fmt: skip
    op = migraphx.op
    r = m.add_instruction(op("reshape", dims=[-1, 784]), [x])
    i0 = m.add_instruction(op("identity"), [w0])
    d0 = m.add_instruction(op("dot"), [r, i0])
    c0 = m.add_instruction(op("broadcast", axis=1, out_lens=[1, 128]), [b0])
    a0 = m.add_instruction(op("relu"), [m.add_instruction(op("add"), [d0, c0])])
    d1 = m.add_instruction(op("dot"), [a0, w1])
    c1 = m.add_instruction(op("broadcast", axis=1, out_lens=[1, 10]), [b1])
    m.add_instruction(op("softmax", axis=1), [m.add_instruction(op("add"), [d1, c1])])
    return p


SEED = """\
@0 = @literal{0.0136018, -0.0839988, 0.0375392, 0.0613085, -0.125795, 0.176185, 0.0761055, \
0.0093384, -0.110057, -0.170587} -> float_type, {10}, {1}
@1 = @literal{ ... } -> float_type, {128, 10}, {10, 1}
@2 = @literal{ ... } -> float_type, {128}, {1}
@3 = @literal{ ... } -> float_type, {784, 128}, {128, 1}
x = @param:x -> float_type, {1, 28, 28}, {784, 28, 1}
@4 = reshape[dims={-1, 784}](x) -> float_type, {1, 784}, {784, 1}
@5 = identity(@3) -> float_type, {784, 128}, {128, 1}
@6 = dot(@4,@5) -> float_type, {1, 128}, {128, 1}
@7 = broadcast[axis=1,out_lens={1, 128},out_dyn_dims={}](@2) -> float_type, {1, 128}, {0, 1}
@8 = add(@6,@7) -> float_type, {1, 128}, {128, 1}
@9 = relu(@8) -> float_type, {1, 128}, {128, 1}
@10 = dot(@9,@1) -> float_type, {1, 10}, {10, 1}
@11 = broadcast[axis=1,out_lens={1, 10},out_dyn_dims={}](@0) -> float_type, {1, 10}, {0, 1}
@12 = add(@10,@11) -> float_type, {1, 10}, {10, 1}
@13 = softmax[axis=1](@12) -> float_type, {1, 10}, {10, 1}
"""


def test_the_documented_network() -> None:
    assert program_text(dense_net().program_ir) == SEED


def test_parameters_are_counted_in_the_newer_form() -> None:
    p = migraphx.program()
    m = p.get_main_module()
    a, b = m.add_parameter("a", floats(4, 5)), m.add_parameter("b", floats(5, 3))
    m.add_instruction(migraphx.op("dot"), [a, b])
    assert program_text(p.program_ir, version="2.16") == (
        'module: "main"\n'
        "b = @param:b -> float_type, {5, 3}, {3, 1}\n"
        "a = @param:a -> float_type, {4, 5}, {5, 1}\n"
        "@2 = dot(a,b) -> float_type, {4, 3}, {3, 1}\n"
        "\n"
    )


def test_tuples_types_enums_and_unset() -> None:
    p = migraphx.program()
    m = p.get_main_module()
    op = migraphx.op
    x = m.add_parameter("x", floats(1, 2, 8, 8))
    pool = m.add_instruction(op("pooling", mode=op.pooling_mode.max, lengths=[2, 2]), [x])
    pad = m.add_instruction(op("pad", mode=1, pads=[0, 0, 1, 1, 0, 0, 1, 1]), [pool])
    half = m.add_instruction(op("convert", target_type="half"), [pad])
    top = m.add_instruction(op("topk", k=2, axis=3), [half])
    index = m.add_instruction(op("get_tuple_elem", index=1), [top])
    depth = m.add_literal(np.array(4, np.int64))
    values = m.add_literal(np.array([0.5, 1e-05], np.float32))
    hot = m.add_instruction(op("onehot", axis=-1), [index, depth, values])
    m.add_return([index, hot])
    lines = repr(p).splitlines()
    assert lines[0] == "@0 = @literal{0.5, 1e-05} -> float_type, {2}, {1}"
    assert lines[1] == "@1 = @literal{4} -> int64_type, {1}, {0}"
    assert lines[3] == (
        "@2 = pooling[mode=max,padding={0, 0},padding_mode=0,stride={1, 1},lengths={2, 2},"
        "dilations={1, 1},ceil_mode=0,count_include_pad=0,lp_order=2,dyn_global=0](x)"
        " -> float_type, {1, 2, 7, 7}, {98, 49, 7, 1}"
    )
    assert "pad[mode=1,pads={0, 0, 1, 1, 0, 0, 1, 1},value=0](@2)" in lines[4]
    assert lines[5].startswith("@4 = convert[target_type=1](@3) -> half_type, ")
    assert lines[6] == (
        "@5 = topk[k=2,axis=3,largest=1](@4) -> "
        "[half_type, {1, 2, 9, 2}, {36, 18, 2, 1}, int64_type, {1, 2, 9, 2}, {36, 18, 2, 1}]"
    )
    assert lines[7].startswith("@6 = get_tuple_elem[index=1](@5) -> int64_type, {1, 2, 9, 2}")
    assert lines[8].startswith("@7 = onehot[axis=-1,depth=nullopt](@6,@1,@0) -> ")
    assert lines[9] == "@8 = @return(@6,@7)"


def test_channels_last_is_shown_only_when_set() -> None:
    p = migraphx.program()
    m = p.get_main_module()
    x = m.add_parameter("x", floats(1, 8, 8, 2))
    w = m.add_parameter("w", floats(3, 3, 2, 4))
    m.add_instruction(migraphx.op("convolution", channels_last=True), [x, w])
    assert "group=1,padding_mode=0,channels_last=1](x,w)" in repr(p)


def test_submodules_are_headed_by_their_names() -> None:
    p = migraphx.program()
    m = p.get_main_module()
    x, y = m.add_parameter("x", floats(2, 3)), m.add_parameter("y", floats(2, 3))
    pw = p.create_module("main:pointwise0")
    a, b = (pw.add_parameter(n, migraphx.shape(type="float")) for n in ("x0", "x1"))
    pw.add_return([pw.add_instruction(migraphx.op("add"), [a, b])])
    m.add_return([m.add_instruction(migraphx.op("pointwise"), [x, y], [pw])])
    assert program_text(p.program_ir, version="2.16") == (
        'module: "main"\n'
        "y = @param:y -> float_type, {2, 3}, {3, 1}\n"
        "x = @param:x -> float_type, {2, 3}, {3, 1}\n"
        "@2 = pointwise(x,y), [main:pointwise0] -> float_type, {2, 3}, {3, 1}\n"
        "@3 = @return(@2)\n"
        "\n"
        'module: "main:pointwise0"\n'
        "main:pointwise0:x1 = @param:x1 -> float_type, {1}, {0}\n"
        "main:pointwise0:x0 = @param:x0 -> float_type, {1}, {0}\n"
        "main:pointwise0:@2 = add(main:pointwise0:x0,main:pointwise0:x1) -> float_type, {1}, {0}\n"
        "main:pointwise0:@3 = @return(main:pointwise0:@2)\n"
        "\n"
    )


def test_dynamic_dims_show_ranges_that_follow_the_arguments() -> None:
    p = migraphx.program()
    m = p.get_main_module()
    dim = migraphx.shape.dynamic_dimension
    x = m.add_parameter("x", migraphx.shape(type="float", dyn_dims=[dim(1, 4, {2}), dim(5, 5)]))
    op = migraphx.op
    both = m.add_instruction(op("concat", axis=0), [x, x])
    flat = m.add_instruction(op("flatten", axis=0), [both])
    found = m.add_instruction(op("nonzero"), [flat])
    m.add_return([flat, found])
    assert repr(p).splitlines() == [
        "x = @param:x -> dynamic, float_type, {[1..4], 5}",
        "@0 = concat[axis=0](x,x) -> dynamic, float_type, {[2..8], 5}",
        "@1 = flatten[axis=0](@0) -> dynamic, float_type, {1, [10..40]}",
        "@2 = nonzero(@1) -> dynamic, int64_type, {2, [0..]}",
        "@3 = @return(@1,@2)",
    ]


def test_views_have_the_strides_of_what_they_show() -> None:
    p = migraphx.program()
    m = p.get_main_module()
    op = migraphx.op
    x = m.add_parameter("x", floats(2, 3, 4))
    t = m.add_instruction(op("transpose", permutation=[2, 0, 1]), [x])
    s = m.add_instruction(op("slice", axes=[0], starts=[1], ends=[3]), [t])
    r = m.add_instruction(op("relu"), [t])
    rs = m.add_instruction(op("relu"), [s])
    q = m.add_instruction(op("squeeze", axes=[]), [m.add_instruction(op("step", axes=[1],
                          steps=[2]), [x])])  # fmt: skip
    assert t.shape().strides() == [1, 12, 4]
    assert s.shape().strides() == [1, 12, 4]
    assert r.shape().strides() == [1, 12, 4]  # packed: the order is kept
    assert rs.shape().strides() == [6, 3, 1]  # not packed: row-major
    assert q.shape().strides() == [12, 8, 1]
    c = m.add_instruction(op("add"), [r, m.add_instruction(op("contiguous"), [t])])
    assert c.shape().standard()


def test_parameters_with_strides_of_their_own() -> None:
    p = migraphx.program()
    m = p.get_main_module()
    m.add_parameter("x", migraphx.shape(type="float", lens=[2, 3], strides=[1, 2]))
    assert repr(p) == "x = @param:x -> float_type, {2, 3}, {1, 2}\n"


def test_debug_symbols_follow_the_line() -> None:
    p = migraphx.program()
    built = p.program_ir
    from mgx_mlir.programs.module_builder import ProgramBuilder

    b = ProgramBuilder.of(built)
    x = b.main.add_parameter("x", Shape.standard(FLOAT, (2,)))
    b.main.add_instruction("relu", {}, [x], symbols=["/act/Relu", "other"])
    program = b.program()
    assert program_text(program).splitlines()[1] == "@0 = relu(x) -> float_type, {2}, {1}"
    shown = program_text(program, symbols=True).splitlines()[1]
    assert shown == "@0 = relu(x) -> float_type, {2}, {1} # /act/Relu, other"


def test_a_compiled_program_names_its_kernels() -> None:
    p = dense_net()
    p.compile(migraphx.get_target("ref"))
    assert "@8 = ref::add(@6,@7) -> float_type, {1, 128}, {128, 1}\n" in repr(p)
    assert "@4 = ref::reshape[dims=" in repr(p)


def test_params_lists_inputs_then_outputs() -> None:
    stream = io.StringIO()
    print_parameters(dense_net().program_ir, stream, outputs=True)
    assert stream.getvalue() == (
        "x: float_type, {1, 28, 28}, {784, 28, 1}\n#output_0: float_type, {1, 10}, {10, 1}\n"
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [(1e-05, "1e-05"), (1.0, "1"), (0.01, "0.01"), (16777216.0, "1.67772e+07"),
     (float("-inf"), "-inf"), (float("nan"), "nan"), (-float("nan"), "-nan"),
     (True, "1"), ([], "{}"), ([1.5, 2], "{1.5, 2}"), (None, "nullopt")],
)  # fmt: skip
def test_attribute_values(value: object, text: str) -> None:
    assert value_text(value) == text


def test_layout_does_not_recurse() -> None:
    p = migraphx.program()
    m = p.get_main_module()
    x = m.add_parameter("x", floats(2, 3))
    for _ in range(3000):
        x = m.add_instruction(migraphx.op("relu"), [x])
    assert ModuleShapes(p.program_ir.module.operation).shape(x.entity()).strides == (3, 1)


def test_graphs() -> None:
    p = dense_net().program_ir
    stream = io.StringIO()
    emit(p, stream, "graphviz")
    graph = stream.getvalue()
    assert graph.startswith("digraph {\n")
    assert graph.count(" -> ") == 14
    assert 'fillcolor="yellowgreen"' in graph
    stream = io.StringIO()
    emit(p, stream, "graphviz", brief=True)
    assert '[label="softmax" style="filled" ' in stream.getvalue()
    with pytest.raises(migraphx.MgxError, match="unknown format"):
        emit(p, stream, "yaml")


def test_modules_stand_in_the_order_in_which_they_are_taken() -> None:
    """Both of a branch ahead of those within them, as MIGraphX lists them; unused ones last."""
    p = migraphx.program()
    m = p.get_main_module()
    op = migraphx.op
    c, x = m.add_parameter("c", migraphx.shape(type="bool")), m.add_parameter("x", floats(2))

    def branch(name: str, inner: list[migraphx.module]) -> migraphx.module:
        made = p.create_module(name)
        if inner:
            made.add_return([made.add_instruction(op("if"), [c], inner)])
        else:
            made.add_return([x])
        return made

    spare = p.create_module("spare")
    spare.add_return([spare.add_parameter("y", floats(3))])
    first = branch("a", [branch("a.then", []), branch("a.else", [])])
    second = branch("b", [branch("b.then", []), branch("b.else", [])])
    m.add_instruction(op("if"), [c], [first, second])
    text = program_text(p.program_ir, version="2.16")
    heads = [line for line in text.splitlines() if line.startswith("module: ")]
    names = ["main", "a", "b", "a.then", "a.else", "b.then", "b.else", "spare"]
    assert heads == [f'module: "{n}"' for n in names]
    assert "spare:y = @param:y -> float_type, {3}, {1}\nspare:@1 = @return(spare:y)\n" in text
    seed = program_text(p.program_ir)
    assert seed.startswith("x = @param:x")
    assert '\n\nmodule: "spare"\nspare:y = @param:y -> float_type, {3}, {1}\nspare:@0' in seed


def test_no_two_modules_have_one_name() -> None:
    """A module that is called as another one would be, and kernels without names of their own."""
    p = migraphx.program()
    m = p.get_main_module()
    x = m.add_parameter("x", floats(2))
    names = ["main:pointwise0", "k", "main:pointwise1"]
    for name in names:
        k = p.create_module(name)
        a = k.add_parameter("x0", migraphx.shape(type="float"))
        k.add_return([k.add_instruction(migraphx.op("neg"), [a])])
        x = m.add_instruction(migraphx.op("pointwise"), [x], [k])
    spare = p.create_module("main:pointwise2")
    spare.add_return([spare.add_parameter("y", floats(2))])
    program = p.program_ir
    body = program.main().regions[0].blocks[0].operations
    del body[0].operation.attributes["migraphx.modules"]  # the state after a pass
    del body[1].operation.attributes["migraphx.modules"]
    heads = [x for x in program_text(program).splitlines() if x.startswith("module: ")]
    assert len(heads) == len(set(heads)) == 4
    assert migraphx.load_buffer(migraphx.save_buffer(p)) == p


def test_packed_floats_and_strided_literals() -> None:
    p = migraphx.program()
    m = p.get_main_module()
    x = m.add_literal(np.arange(6, dtype="f4").reshape(3, 2).T)
    packed = m.add_instruction(migraphx.op("pack_fp4", axis=0), [x])
    turned = m.add_instruction(migraphx.op("transpose", permutation=[1, 0]), [packed])
    m.add_instruction(migraphx.op("unpack_fp4"), [turned])
    assert repr(p).splitlines() == [
        "@0 = @literal{0, 2, 4, 1, 3, 5} -> float_type, {2, 3}, {1, 2}",
        "@1 = pack_fp4[axis=0](@0) -> fp4x2_type, {1, 3}, {3, 1}",
        "@2 = transpose[permutation={1, 0}](@1) -> fp4x2_type, {3, 1}, {1, 3}",
        "@3 = unpack_fp4[axis=-1](@2) -> fp8e4m3fn_type, {3, 2}, {2, 1}",
    ]
