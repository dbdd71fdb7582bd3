"""MIGraphX's layout, byte for byte: hand-made files are read, and written as they were."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest

import mgx_mlir as migraphx
from mgx_mlir.printers.text import program_text
from tests.formats.handmade import (
    ENCODERS,
    as_json,
    as_msgpack,
    calling,
    dynamic_shape,
    file_of,
    literal,
    node,
    parameter,
    ranges,
    several,
    shape,
)
from tests.formats.programs import PROGRAMS

# ---- the worked example: each byte stated here ---------------------------------------------------

S = (b"\x86\xa4type\xaafloat_type\xaasub_shapes\x90\xa4lens\x91\x02\xa7strides\x91\x01"
     b"\xb2dynamic_dimensions\x90\xabdyn_strides\x90")  # fmt: skip
MSGPACK = (
    b"\x85\xa7version\x08\xb0migraphx_version\xa62.16.0\xa7targets\x90\xa8contexts\x90"
    b"\xa7modules\x81\xa4main\x82\xa4name\xa4main\xa5nodes\x94"
    b"\x87\xa6output\xa2@0\xa4name\xa8@literal\xa5shape" + S + b"\xaanormalized\xc2"
    b"\xa7literal\x82\xa5shape" + S + b"\xa4data\x91\xc4\x08\x00\x00\x80\x3f\x00\x00\x00\x40"
    b"\xa8operator\x90\xa6inputs\x90"
    b"\x86\xa6output\xa1x\xa4name\xa6@param\xa5shape" + S + b"\xaanormalized\xc2"
    b"\xa8operator\x81\xa9parameter\xa1x\xa6inputs\x90"
    b"\x86\xa6output\xa2@2\xa4name\xa3add\xa5shape" + S + b"\xaanormalized\xc2"
    b"\xa8operator\x90\xa6inputs\x92\xa1x\xa2@0"
    b"\x86\xa6output\xa2@3\xa4name\xa7@return\xa5shape" + S + b"\xaanormalized\xc2"
    b"\xa8operator\x90\xa6inputs\x91\xa2@2"
)  # fmt: skip
J = ('{"dyn_strides":[],"dynamic_dimensions":[],"lens":[2],"strides":[1],"sub_shapes":[],'
     '"type":"float_type"}')  # fmt: skip
JSON = (
    '{"contexts":[],"migraphx_version":"2.16.0","modules":{"main":{"name":"main","nodes":['
    '{"inputs":[],"literal":{"data":{"bytes":[0,0,128,63,0,0,0,64]},"shape":' + J + "},"
    '"name":"@literal","normalized":false,"operator":{},"output":"@0","shape":' + J + "},"
    '{"inputs":[],"name":"@param","normalized":false,"operator":{"parameter":"x"},"output":"x",'
    '"shape":' + J + "},"
    '{"inputs":["x","@0"],"name":"add","normalized":false,"operator":{},"output":"@2",'
    '"shape":' + J + "},"
    '{"inputs":["@2"],"name":"@return","normalized":false,"operator":{},"output":"@3",'
    '"shape":' + J + '}]}},"targets":[],"version":8}'
)  # fmt: skip


def test_the_worked_example_is_written_so() -> None:
    p = PROGRAMS["worked_example"]()
    assert migraphx.save_buffer(p) == MSGPACK
    assert migraphx.save_buffer(p, "json") == JSON.encode()


@pytest.mark.parametrize("data", [MSGPACK, JSON.encode()])
def test_the_worked_example_is_read(data: bytes) -> None:
    p = migraphx.load_buffer(data)
    assert p == PROGRAMS["worked_example"]()
    assert p.run({"x": np.array([5, 6], "f4")})[0].tolist() == [6, 8]


# ---- other files, through encoders that are not ours ---------------------------------------------

F, H, B, I = shape(), shape("half", (3,)), shape("bool", ()), shape("int64", ())  # noqa: E741
IMAGE, SMALL = shape("float", (1, 2, 8, 8)), shape("float", (1, 2, 4, 4))
TOP = [shape("float", (2, 2)), shape("int64", (2, 2))]
CONVOLUTION = {"padding": [1, 1], "stride": [2, 2], "dilation": [1, 1], "group": 1,
               "padding_mode": 0}  # fmt: skip
POOLING = {"mode": 1, "padding": [0, 0], "padding_mode": 0, "stride": [2, 2], "lengths": [2, 2],
           "dilations": [1, 1], "ceil_mode": False, "count_include_pad": False, "lp_order": 2,
           "dyn_global": False}  # fmt: skip
SCALAR = shape("float", ())
MADE: dict[str, Any] = {
    "enumerations are their numbers": file_of(
        parameter("w", shape("float", (4, 2, 3, 3))),
        parameter("x", IMAGE),
        node("@2", "convolution", shape("float", (1, 4, 4, 4)), ["x", "w"], **CONVOLUTION),
        node("@3", "pooling", shape("float", (1, 4, 2, 2)), ["@2"], **POOLING),
        node("@4", "convert", shape("half", (1, 4, 2, 2)), ["@3"], target_type=1),
        node("@5", "@return", shape("half", (1, 4, 2, 2)), ["@4"]),
    ),
    "a transposed and a broadcast literal": file_of(
        literal("@0", shape("int32", (3, 2), (0, 1)), struct.pack("<2i", 7, -8)),
        literal("@1", shape("float", (2, 3), (1, 2)), struct.pack("<6f", 0, 3, 1, 4, 2, 5)),
        node("@2", "transpose", shape("float", (3, 2)), ["@1"], permutation=[1, 0]),
        node("@3", "@return", several(shape("float", (3, 2)), shape("int32", (3, 2), (0, 1))),
             ["@2", "@0"]),
    ),
    "types of one byte and of two": file_of(
        literal("@0", shape("fp4x2", (2,)), b"\x21\x43"),
        literal("@1", shape("bf16", (2,)), b"\x80\x3f\x00\xc0"),
        literal("@2", shape("fp8e4m3fn", (2,)), b"\x38\xc0"),
        literal("@3", shape("bool", (2,)), b"\x01\x00"),
        literal("@4", shape("half", (2,)), b"\x00\x3c\x00\xc0"),
        literal("@5", shape("int8", (2,)), b"\x21\xfe"),
        node("@6", "unpack_int4", shape("int8", (4,)), ["@5"], axis=-1),
        node("@7", "unpack_fp4", shape("fp8e4m3fn", (4,)), ["@0"], axis=-1),
        node("@8", "@return", several(shape("int8", (4,)), shape("fp8e4m3fn", (4,))),
             ["@6", "@7"]),
    ),
    "a tuple and its elements": file_of(
        parameter("x", shape("float", (2, 5))),
        node("@1", "topk", several(*TOP), ["x"], k=2, axis=1, largest=True),
        node("@2", "get_tuple_elem", TOP[0], ["@1"], index=0),
        node("@3", "get_tuple_elem", TOP[1], ["@1"], index=1),
        node("@4", "@return", several(*TOP), ["@2", "@3"]),
    ),
    "branches that read from outside": file_of(
        parameter("x", F),
        parameter("c", B),
        calling(node("@2", "if", several(F), ["c"]), "then", "else"),
        node("@3", "get_tuple_elem", F, ["@2"], index=0),
        node("@4", "@return", F, ["@3"]),
        **{
            "then": [node("then:@0", "neg", F, ["x"]), node("then:@1", "@return", F, ["then:@0"])],
            "else": [node("else:@0", "@return", F, ["x"])],
        },
    ),
    "a module for each element": file_of(
        parameter("y", F),
        parameter("x", F),
        calling(node("@2", "pointwise", F, ["x", "y"]), "m"),
        node("@3", "@return", F, ["@2"]),
        m=[
            literal("m:@0", SCALAR, struct.pack("<f", 0.5)),
            parameter("x1", SCALAR, "m:"),
            parameter("x0", SCALAR, "m:"),
            node("m:@3", "sub", SCALAR, ["m:x0", "m:x1"]),
            node("m:@4", "mul", SCALAR, ["m:@3", "m:@0"]),
            node("m:@5", "@return", SCALAR, ["m:@4"]),
        ],
    ),
    "a range, a fixed dimension and optimal sizes": file_of(
        parameter("x", ranges("float", (1, 8, 2, 4), (3, 3))),
    ),
    "debug symbols": file_of(
        parameter("x", F),
        {**node("@1", "neg", F, ["x"]), "debug_symbols": ["/a/Neg", "b"]},
        node("@2", "@return", F, ["@1"]),
    ),
    "operators as attributes, null, floats": file_of(
        parameter("r", shape("float", (1, 5, 5))),
        parameter("w", shape("float", (1, 5, 4))),
        parameter("x", shape("float", (3, 2, 4))),
        node("@3", "rnn", shape("float", (3, 1, 2, 5)), ["x", "w", "r"], hidden_size=5,
             actv_func=[{"name": "leaky_relu", "operator": {"alpha": 0.25}},
                        {"name": "tanh", "operator": {}}],
             direction=0, clip=1.5),
        node("@4", "elu", shape("float", (3, 1, 2, 5)), ["@3"], alpha=1e-05),
        node("@5", "unknown:Odd", H, ["@4"], op="Odd"),
        node("@6", "@return", H, ["@5"]),
    ),
    "an empty tensor": file_of(
        literal("@0", shape("float", (0, 3)), b""),
        node("@1", "@return", shape("float", (0, 3)), ["@0"]),
    ),
    "no result": file_of(
        parameter("b", shape("float", (5, 3))),
        parameter("a", shape("float", (4, 5))),
        node("@2", "dot", shape("float", (4, 3)), ["a", "b"]),
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", ENCODERS)
@pytest.mark.parametrize("name", MADE)
def test_files_are_written_as_they_were(name: str, kind: str) -> None:
    data = ENCODERS[kind](MADE[name])
    p = migraphx.load_buffer(data)
    assert migraphx.save_buffer(p, kind) == data
    other = "json" if kind == "msgpack" else "msgpack"
    assert migraphx.save_buffer(p, other) == ENCODERS[other](MADE[name])


def read(name: str) -> migraphx.program:
    return migraphx.load_buffer(as_msgpack(MADE[name]))


def test_what_they_hold() -> None:
    a, b = read("a transposed and a broadcast literal").run({})
    assert a.tolist() == [0, 3, 1, 4, 2, 5]  # {{0, 1, 2}, {3, 4, 5}} turned
    assert b.tolist() == [7, -8, 7, -8, 7, -8]
    ints, floats = read("types of one byte and of two").run({})
    assert ints.tolist() == [1, 2, -2, -1]
    assert floats.tolist() == [0.5, 1, 1.5, 2]
    x = np.array([1, 2], "f4")
    both = read("branches that read from outside")
    assert both.run({"x": x, "c": np.array(True)})[0].tolist() == [-1, -2]
    assert both.run({"x": x, "c": np.array(False)})[0].tolist() == [1, 2]
    assert read("a module for each element").run({"x": x, "y": -x})[0].tolist() == [1, 2]
    dims = read("a range, a fixed dimension and optimal sizes").get_parameter_shapes()["x"]
    assert [(d.min, d.max, d.optimals) for d in dims.dyn_dims()] == [(1, 8, {2, 4}), (3, 3, set())]
    assert "= neg(x) -> float_type, {2}, {1} # /a/Neg, b\n" in repr(read("debug symbols"))


def test_the_text_of_submodules() -> None:
    assert program_text(read("a module for each element").program_ir, version="2.16") == (
        'module: "main"\n'
        "y = @param:y -> float_type, {2}, {1}\n"
        "x = @param:x -> float_type, {2}, {1}\n"
        "@2 = pointwise(x,y), [m] -> float_type, {2}, {1}\n"
        "@3 = @return(@2)\n"
        "\n"
        'module: "m"\n'
        "m:@0 = @literal{0.5} -> float_type, {1}, {0}\n"
        "m:x1 = @param:x1 -> float_type, {1}, {0}\n"
        "m:x0 = @param:x0 -> float_type, {1}, {0}\n"
        "m:@3 = sub(m:x0,m:x1) -> float_type, {1}, {0}\n"
        "m:@4 = mul(m:@3,m:@0) -> float_type, {1}, {0}\n"
        "m:@5 = @return(m:@4)\n"
        "\n"
    )


# ---- what readers accept -------------------------------------------------------------------------


def changed(tree: Any, **nodes: Any) -> Any:
    """A file with other entries in the node of an output (`x`, or `n2` for "@2")."""
    listed = [
        {**n, **nodes.get(n["output"].replace("@", "n"), {})}
        for n in tree["modules"]["main"]["nodes"]
    ]
    return {**tree, "modules": {**tree["modules"], "main": {"name": "main", "nodes": listed}}}


EXAMPLE = file_of(
    literal("@0", F, struct.pack("<2f", 1, 2)),
    parameter("x", F),
    node("@2", "add", F, ["x", "@0"]),
    node("@3", "@return", F, ["@2"]),
)


def test_keys_in_any_order_and_older_versions() -> None:
    def turned(tree: Any) -> Any:
        if isinstance(tree, dict):
            return {k: turned(tree[k]) for k in reversed(tree)}
        return [turned(v) for v in tree] if isinstance(tree, list) else tree

    wanted = PROGRAMS["worked_example"]()
    for version in (5, 6, 7, 8):
        tree = {**EXAMPLE, "version": version}
        if version == 5:  # one target, under another name, and no version of MIGraphX
            tree = {"version": 5, "target": "", "modules": EXAMPLE["modules"]}
        for encode in ENCODERS.values():
            assert migraphx.load_buffer(encode(turned(tree))) == wanted
    for target in ({"version": 5, "target": "gpu"}, {"targets": [{"name": "gpu"}]}):
        with pytest.raises(migraphx.MgxError, match="compiled by MIGraphX for 'gpu'"):
            migraphx.load_buffer(as_json({**EXAMPLE, **target}))


def test_binary_data_bare_and_in_chunks() -> None:
    data = as_msgpack(EXAMPLE)
    whole = b"\xa4data\x91\xc4\x08\x00\x00\x80\x3f\x00\x00\x00\x40"
    assert whole in data
    bare = b"\xa4data\xc4\x08\x00\x00\x80\x3f\x00\x00\x00\x40"
    parts = b"\xa4data\x93\xc4\x03\x00\x00\x80\xc5\x00\x01\x3f\xc6\x00\x00\x00\x04\x00\x00\x00\x40"
    for other in (bare, parts):
        assert migraphx.load_buffer(data.replace(whole, other)) == PROGRAMS["worked_example"]()


def test_long_data_is_written_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mgx_mlir.printers.tree_files.MAX_BIN", 5)
    data = migraphx.save_buffer(PROGRAMS["worked_example"]())
    assert b"\xa4data\x92\xc4\x05\x00\x00\x80\x3f\x00\xc4\x03\x00\x00\x40" in data
    assert migraphx.load_buffer(data) == PROGRAMS["worked_example"]()


@pytest.mark.parametrize("dim", [
    {"range": {"min": 1, "max": 8}, "optimals": [2, 4], "sym": None},
    {"min": 1, "max": 8, "optimals": [4, 2]},
    {"range": None, "optimals": None,
     "sym": {"type": "sym", "name": "n", "min": 1, "max": 8, "optimals": [2, 4]}},
])  # fmt: skip
def test_dimensions_of_each_spelling(dim: Any) -> None:
    three = {"range": None, "optimals": None, "sym": {"type": "int", "value": 3}}
    made = dynamic_shape("float", [dim, three])
    p = migraphx.load_buffer(as_msgpack(file_of(parameter("x", made))))
    first, second = p.get_parameter_shapes()["x"].dyn_dims()
    assert (first.min, first.max, first.optimals) == (1, 8, {2, 4})
    assert second.is_fixed()
    assert first.sym == ("n" if dim.get("sym") else "")
    again = migraphx.load_buffer(migraphx.save_buffer(p))
    assert repr(again.get_parameter_shapes()) == repr(p.get_parameter_shapes())
    assert again.get_parameter_shapes()["x"].dyn_dims()[0].sym == first.sym


def test_attributes_as_writers_have_them() -> None:
    """Missing ones take defaults; numbers come as integers or floats, enums by name too."""
    made = shape("float", (1, 2, 4, 4))
    tree = file_of(
        parameter("x", IMAGE),
        node(
            "@1", "pooling", made, ["x"], mode="max", stride=[2.0, 2], lengths=[2, 2], lp_order=2.0
        ),
        node("@2", "leaky_relu", made, ["@1"], alpha=1),
        {"output": "@3", "name": "softmax", "operator": [], "inputs": ["@2"]},
        node("@4", "round", made, ["@3"]),
    )
    p = migraphx.load_buffer(as_json(tree))
    lines = repr(p).splitlines()
    assert lines[1].startswith("@0 = pooling[mode=max,padding={0, 0},padding_mode=0,stride={2, 2}")
    assert lines[2].startswith("@1 = leaky_relu[alpha=1](@0)")
    assert lines[3].startswith("@2 = softmax[axis=1](@1)")
    assert lines[4].startswith("@3 = nearbyint(@2)")  # older name: round
    old = changed(MADE["no result"], n2={"operator": {"alpha": 1.0, "beta": 0.0}})
    assert repr(migraphx.load_buffer(as_json(old))) == repr(read("no result"))
    with pytest.raises(migraphx.MgxError, match=r"'dot' with beta=0\.5 is not supported"):
        migraphx.load_buffer(as_json(changed(MADE["no result"], n2={"operator": {"beta": 0.5}})))


def test_attributes_of_older_versions() -> None:
    wide = shape("float", (3, 2), (0, 1))
    tree = file_of(
        parameter("x", F),
        node("@1", "multibroadcast", wide, ["x"], output_lens=[3, 2]),
        node("@2", "transpose", shape("float", (2, 3), (1, 0)), ["@1"], dims=[1, 0]),
        node("@3", "broadcast", shape("float", (2, 4), (1, 0)), ["x"], axis=0, dims=[2, 4]),
        parameter("i", shape("float", (1, 2, 8, 8))),
        parameter("w", shape("float", (4, 2, 1, 1))),
        node("@6", "convolution", shape("float", (1, 4, 8, 8)), ["i", "w"],
             use_dynamic_same_auto_pad=False),
        node("@7", "deconvolution", shape("float", (1, 2, 8, 8)), ["@6", "w"]),
    )  # fmt: skip
    p = migraphx.load_buffer(as_msgpack({**tree, "version": 6}))
    names = [i.name() for i in p.get_main_module()]
    assert names[3:] == ["multibroadcast", "transpose", "broadcast", "convolution",
                         "convolution_backwards"]  # fmt: skip
    assert "transpose[permutation={1, 0}](@0) -> float_type, {2, 3}, {1, 0}" in repr(p)


def test_comments_are_passed_over() -> None:
    tree = file_of(parameter("x", F), node("@1", "@comment", F, text="hello"),
                   node("@2", "neg", F, ["x"]))  # fmt: skip
    assert "@0 = neg(x)" in repr(migraphx.load_buffer(as_msgpack(tree)))


def test_padded_operators_of_migraphx() -> None:
    """There nonzero, loop and nonmaxsuppression have results of one size, filled up with 0."""
    body = [
        parameter("v", F, "b:"), parameter("c", B, "b:"), parameter("i", I, "b:"),
        node("b:@3", "add", F, ["b:v", "b:v"]),
        node("b:@4", "@return", several(B, F, F), ["b:c", "b:@3", "b:v"]),
    ]  # fmt: skip
    scans = shape("float", (4, 2))
    tree = file_of(
        literal("@0", B, b"\x01"),
        literal("@1", I, struct.pack("<q", 3)),
        parameter("x", F),
        calling(node("@3", "loop", several(F, scans), ["@1", "@0", "x"], max_iterations=4,
                     scan_output_directions=[]), "b"),
        node("@4", "get_tuple_elem", scans, ["@3"], index=1),
        node("@5", "nonzero", shape("int64", (1, 2)), ["x"]),
        node("@6", "@return", several(scans, shape("int64", (1, 2))), ["@4", "@5"]),
        b=body,
    )  # fmt: skip
    p = migraphx.load_buffer(as_msgpack(tree))
    rows, found = p.run({"x": np.array([0, 1], "f4")})
    assert np.array(rows).tolist() == [[0, 1], [0, 2], [0, 4], [0, 0]]
    assert np.array(found).tolist() == [[1, 0]]
    again = migraphx.load_buffer(migraphx.save_buffer(p))
    assert repr(again) == repr(p)


def test_modules_take_inputs_by_the_names_of_their_parameters() -> None:
    """MIGraphX sorts the names, of both branches together."""

    def module(prefix: str, *names: str) -> list[Any]:
        made = [parameter(n, F, prefix) for n in names]
        first = prefix + names[0]
        return [*made, node(f"{prefix}@9", "@return", F, [first])]

    tree = file_of(
        parameter("p", F), parameter("q", F), parameter("c", B),
        calling(node("@3", "if", several(F), ["c", "p", "q"]), "then", "else"),
        node("@4", "get_tuple_elem", F, ["@3"], index=0),
        node("@5", "@return", F, ["@4"]),
        **{"then": module("then:", "b"), "else": module("else:", "a", "b")},
    )  # fmt: skip
    p = migraphx.load_buffer(as_msgpack(tree))
    feed = {"p": np.array([1, 1], "f4"), "q": np.array([2, 2], "f4")}
    assert p.run({**feed, "c": np.array(True)})[0].tolist() == [2, 2]
    assert p.run({**feed, "c": np.array(False)})[0].tolist() == [1, 1]
    kernel = file_of(
        parameter("q", F), parameter("p", F),
        calling(node("@2", "pointwise", F, ["p", "q"]), "m"),
        m=[parameter("a", SCALAR, "m:"), parameter("b", SCALAR, "m:"),
           node("m:@2", "sub", SCALAR, ["m:a", "m:b"]),
           node("m:@3", "@return", SCALAR, ["m:@2"])],
    )  # fmt: skip
    assert migraphx.load_buffer(as_msgpack(kernel)).run(feed)[0].tolist() == [-1, -1]


def test_floats_in_json() -> None:
    p = migraphx.program()
    m = p.get_main_module()
    x = m.add_parameter("x", migraphx.shape(type="float", lens=[2]))
    for alpha in (1.0, 0.1, 1e-05, 1e15, 1234567890123456.0, -1e15, 1e16, 1e300, float("inf")):
        x = m.add_instruction(migraphx.op("elu", alpha=alpha), [x])
    text = migraphx.save_buffer(p, "json").decode()
    spelled = [part.partition("}")[0] for part in text.split('"alpha":')[1:]]
    assert spelled == ["1.0", "0.1", "1e-05", "1e+15", "1.234567890123456e+15", "-1e+15", "1e+16",
                       "1e+300", '"inf"']  # fmt: skip
    assert repr(migraphx.load_buffer(text.encode())) == repr(p)
