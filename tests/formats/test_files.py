"""Programs in files: what is written, that all of it comes back, and hostile files."""

from __future__ import annotations

import contextlib
import json
import random

import msgpack
import numpy as np
import pytest

import mgx_mlir as migraphx
import mgx_mlir.dialects
from mgx_mlir.core.errors import FileError, MgxError
from mgx_mlir.core.op import OPS
from mgx_mlir.frontends.mxr.decode import decode_json, decode_msgpack

op = migraphx.op


def small() -> migraphx.program:
    p = migraphx.program()
    m = p.get_main_module()
    x = m.add_parameter("x", migraphx.shape(type="float", lens=[2]))
    m.add_return([m.add_instruction(op("add"), [x, m.add_literal(np.array([1, 2], "f4"))])])
    return p


S = {"type": "float_type", "sub_shapes": [], "lens": [2], "strides": [1],
     "dynamic_dimensions": [], "dyn_strides": []}  # fmt: skip
NODES = [
    {"output": "@0", "name": "@literal", "shape": S, "normalized": False,
     "literal": {"shape": S, "data": {"bytes": [0, 0, 128, 63, 0, 0, 0, 64]}},
     "operator": {}, "inputs": []},
    {"output": "x", "name": "@param", "shape": S, "normalized": False,
     "operator": {"parameter": "x"}, "inputs": []},
    {"output": "@2", "name": "add", "shape": S, "normalized": False, "operator": {},
     "inputs": ["x", "@0"]},
    {"output": "@3", "name": "@return", "shape": S, "normalized": False, "operator": {},
     "inputs": ["@2"]},
]  # fmt: skip
FILE = {"version": 8, "migraphx_version": "2.16.0", "targets": [], "contexts": [],
        "modules": {"main": {"name": "main", "nodes": NODES}}}  # fmt: skip


def test_json_is_that_of_the_format() -> None:
    text = migraphx.save_buffer(small(), "json").decode()
    assert json.loads(text) == FILE
    assert text == json.dumps(json.loads(text), sort_keys=True, separators=(",", ":"))


def test_msgpack_is_that_of_the_format() -> None:
    data = migraphx.save_buffer(small())
    start = (b"\x85\xa7version\x08\xb0migraphx_version\xa62.16.0\xa7targets\x90\xa8contexts\x90"
             b"\xa7modules\x81\xa4main\x82\xa4name\xa4main\xa5nodes\x94")  # fmt: skip
    assert data.startswith(start)
    assert b"\xa4data\x91\xc4\x08\x00\x00\x80?\x00\x00\x00@\xa8operator\x90" in data
    found = msgpack.unpackb(data)
    assert found["modules"]["main"]["nodes"][0]["literal"]["data"] == [
        bytes(NODES[0]["literal"]["data"]["bytes"])
    ]  # type: ignore[index]
    assert found["modules"]["main"]["nodes"][2]["operator"] == []
    assert list(found["modules"]["main"]["nodes"][0]) == [
        "output", "name", "shape", "normalized", "literal", "operator", "inputs",
    ]  # fmt: skip


def test_a_file_of_the_format_is_read() -> None:
    for data in (json.dumps(FILE).encode(), packed(FILE)):
        p = migraphx.load_buffer(data)
        assert p == small()
        assert p.run({"x": np.array([5, 6], "f4")})[0].tolist() == [6, 8]


def packed(tree: object, **options: object) -> bytes:
    def convert(v: object) -> object:
        if isinstance(v, dict):
            if list(v) == ["bytes"] and isinstance(v["bytes"], list):
                return [bytes(v["bytes"])]
            return {k: convert(x) for k, x in v.items()} or []
        return [convert(x) for x in v] if isinstance(v, list) else v

    return msgpack.packb(convert(tree), **options)  # type: ignore[return-value]


def every_operator() -> tuple[migraphx.program, dict[str, np.ndarray]]:
    """One program that applies every operator to its examples."""
    p = migraphx.program()
    m = p.get_main_module()
    feed: dict[str, np.ndarray] = {}
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


def test_every_operator_comes_back() -> None:
    p, feed = every_operator()
    text = repr(p)
    assert text.count(" = ") > 3000
    for kind in ("msgpack", "json"):
        back = migraphx.load_buffer(migraphx.save_buffer(p, kind))
        for a, b in zip(repr(back).splitlines(), text.splitlines(), strict=True):
            assert a == b
    deterministic = [
        i.name() for i in p.get_main_module() if not i.name().startswith(("@", "random", "multi"))
    ]
    assert len(set(deterministic)) > 100
    for a, b in zip(p.run(feed), back.run(feed), strict=True):
        assert np.array(a).tobytes() == np.array(b).tobytes()


def test_types_strides_symbols_and_names_come_back(tmp_path) -> None:
    from mgx_mlir.core.layout import Shape
    from mgx_mlir.core.module_builder import ProgramBuilder
    from mgx_mlir.core.signature import DimRange

    dim = migraphx.shape.dynamic_dimension
    p = migraphx.program()
    m = p.get_main_module()
    x = m.add_parameter("x", migraphx.shape(type="float", dyn_dims=[dim(1, 4, {2}), dim(3, 3)]))
    y = m.add_parameter("y", migraphx.shape(type="half", lens=[2, 3], strides=[1, 2]))
    b = m.add_parameter("b", migraphx.shape(type="bool"))
    for t in ("bf16", "fp8e4m3fn", "fp8e5m2fnuz", "uint64", "bool"):
        s = migraphx.shape(type=t, lens=[3, 1])
        m.add_literal(migraphx.create_argument(s, [0, 1, 1]))
    big = np.random.default_rng(0).standard_normal((70, 90)).astype("f4")
    w = m.add_literal(big)
    m.add_return([x, m.add_instruction(op("transpose", permutation=[1, 0]), [y]), b, w])
    built = ProgramBuilder.of(p.program_ir)
    z = built.main.add_parameter("z", Shape.standard(
        x.shape().core.dtype, [DimRange(0, None, (), "batch"), 2]))  # fmt: skip
    built.main.replace_return([z, w.entity()])
    p = migraphx.program(built)
    for kind in ("msgpack", "json"):
        migraphx.save(p, tmp_path / "p", format=kind)
        q = migraphx.load(tmp_path / "p")
        assert repr(q) == repr(p)
        assert q.get_parameter_names() == p.get_parameter_names()
        assert q.get_parameter_shapes() == p.get_parameter_shapes()
        assert q.get_parameter_shapes()["z"].dyn_dims()[0].sym == "batch"
        assert q.get_parameter_shapes()["x"].dyn_dims()[0].optimals == {2}
        literal = next(i for i in q.get_main_module() if i.name() == "@literal")
        assert np.array_equal(np.array(literal.get_literal()), big)


def test_submodules_come_back() -> None:
    p = migraphx.program()
    m = p.get_main_module()
    c = m.add_parameter("c", migraphx.shape(type="bool"))
    x = m.add_parameter("x", migraphx.shape(type="float", lens=[3]))
    inner = p.create_module("inner")
    i0, i1 = (inner.add_parameter(n, migraphx.shape(type="float")) for n in ("x0", "x1"))
    inner.add_return([inner.add_instruction(op("mul"), [i0, i1])])
    then, other = p.create_module("yes"), p.create_module("no")
    then.add_return([then.add_instruction(op("pointwise"), [x, x], [inner])])
    other.add_return([x])
    both = m.add_instruction(op("if"), [c], [then, other])
    m.add_return([m.add_instruction(op("get_tuple_elem", index=0), [both])])
    for kind in ("msgpack", "json"):
        q = migraphx.load_buffer(migraphx.save_buffer(p, kind))
        assert repr(q) == repr(p)
        for flag, want in ((True, [1, 4, 9]), (False, [1, 2, 3])):
            feed = {"c": np.array(flag), "x": np.array([1, 2, 3], "f4")}
            assert q.run(feed)[0].tolist() == want


def test_select_module_comes_back() -> None:
    dim = migraphx.shape.dynamic_dimension
    p = migraphx.program()
    m = p.get_main_module()
    x = m.add_parameter("x", migraphx.shape(type="float", dyn_dims=[dim(1, 2), dim(3, 3)]))
    modules = []
    for n in (1, 2):
        s = p.create_module(f"dim_{n}")
        a = s.add_parameter("x", migraphx.shape(type="float", lens=[n, 3]))
        factor = s.add_literal(np.full((n, 3), n, "f4"))
        s.add_return([s.add_instruction(op("mul"), [a, factor])])
        modules.append(s)
    y = m.add_instruction(op("select_module"), [x], modules)
    m.add_return([m.add_instruction(op("get_tuple_elem", index=0), [y])])
    q = migraphx.load_buffer(migraphx.save_buffer(p))
    assert repr(q) == repr(p)
    for n in (1, 2):
        assert q.run({"x": np.ones((n, 3), "f4")})[0].tolist() == [n] * 3 * n


def test_a_dim_that_is_dynamic_stays_dynamic() -> None:
    p = migraphx.program()
    m = p.get_main_module()
    ends = [m.add_literal(np.array(v)) for v in (0, 12, 1)]
    top = m.add_instruction(op("max"), [ends[1], ends[2]])
    y = m.add_instruction(op("dynamic_range"), [ends[0], top, ends[2]])
    m.add_return([m.add_instruction(op("neg"), [y])])
    assert "neg(@4) -> dynamic, int64_type, {12}" in repr(p)
    q = migraphx.load_buffer(migraphx.save_buffer(p))
    assert repr(q) == repr(p)
    assert q.run({})[0].tolist() == [-i for i in range(12)]


def test_compile_reads_files(tmp_path) -> None:
    for suffix, kind in (("mxr", "msgpack"), ("json", "json")):
        path = tmp_path / f"p.{suffix}"
        migraphx.save(small(), path, format=kind)
        c = migraphx.compile(path, target="ref")
        assert c.run({"x": np.array([5, 6], "f4")})[0].tolist() == [6, 8]


def test_debug_symbols_come_back() -> None:
    tree = json.loads(json.dumps(FILE))
    tree["modules"]["main"]["nodes"][2]["debug_symbols"] = ["a", "b"]
    tree["modules"]["main"]["nodes"][0]["debug_symbols"] = ["weight"]
    p = migraphx.load_buffer(json.dumps(tree).encode())
    assert "-> float_type, {2}, {1} # a, b\n" in repr(p)
    assert "-> float_type, {2}, {1} # weight\n" in repr(p)
    assert repr(migraphx.load_buffer(migraphx.save_buffer(p))) == repr(p)


@pytest.mark.parametrize("name", ["ref", "cpu"])
def test_compiled_programs_come_back(tmp_path, name: str) -> None:
    p = migraphx.program()
    m = p.get_main_module()
    x = m.add_parameter("x", migraphx.shape(type="float", lens=[4, 40]))
    w = m.add_literal(np.random.default_rng(1).standard_normal((40, 30)).astype("f4"))
    m.add_return([m.add_instruction(op("relu"), [m.add_instruction(op("dot"), [x, w])])])
    text = repr(p)
    p.compile(migraphx.get_target(name))
    path = tmp_path / "c.mxr"
    migraphx.save(p, path)
    q = migraphx.load(path)
    assert q.is_compiled()
    assert repr(q) == repr(p)
    data = np.random.default_rng(2).standard_normal((4, 40)).astype("f4")
    assert q.run({"x": data})[0] == p.run({"x": data})[0]
    plain = migraphx.load(path, compiled=False)
    assert not plain.is_compiled()
    assert repr(plain) == text
    if name == "cpu":
        # the weights are in the file once
        code = len(memoryview(p.compiled.executable.vmfb))
        assert path.stat().st_size < 40 * 30 * 4 * 1.5 + code + 20000
        raw = bytearray(path.read_bytes())
        at = raw.rindex(b"vmfb") + 2000
        raw[at] ^= 1
        (tmp_path / "bad.mxr").write_bytes(raw)
        with pytest.raises(FileError, match="checksum"):
            migraphx.load(tmp_path / "bad.mxr")
        assert not migraphx.load(tmp_path / "bad.mxr", compiled=False).is_compiled()


def test_saving_is_all_or_nothing(tmp_path) -> None:
    with pytest.raises(FileError, match="cannot write"):
        migraphx.save(small(), tmp_path / "no" / "p.mxr")
    with pytest.raises(FileError, match="unknown format 'yaml'"):
        migraphx.save(small(), tmp_path / "p.mxr", format="yaml")
    assert list(tmp_path.iterdir()) == []


# ---- hostile files -----------------------------------------------------------------------------


def changed(path: str, value: object) -> dict:
    """FILE with one entry replaced (or removed: ...)."""
    tree = json.loads(json.dumps(FILE))
    at = tree
    *front, last = [int(k) if k.isdigit() else k for k in path.split(".")]
    for key in front:
        at = at[key]
    if value is ...:
        del at[last]
    else:
        at[last] = value
    return tree


MAIN = "modules.main.nodes"
HUGE = {**S, "lens": [2**62], "strides": [1]}
WRONG = [
    ("version", 4, "version is 4, expected 5, 6, 7 or 8"),
    ("version", 9, "version is 9, expected"),
    ("version", "8", "version is '8', expected"),
    ("version", True, "version is True, expected"),
    ("version", ..., "version is None"),
    ("modules", ..., "no 'modules'"),
    ("modules.main", ..., "no 'main'"),
    ("modules", [1], "'modules' expected an object"),
    ("targets", [{"name": "gpu"}], "compiled by MIGraphX for 'gpu'"),
    (f"{MAIN}", "text", "expected an array"),
    (f"{MAIN}.2", 5, "expected an object"),
    (f"{MAIN}.2.name", 5, "expected a string"),
    (f"{MAIN}.2.name", "nothing_like_it", "unknown operator"),
    (f"{MAIN}.2.name", "literal", "unknown operator"),
    (f"{MAIN}.2.name", "softmax", "expected 1 inputs, got 2"),
    (f"{MAIN}.2.inputs", ["x", "@9"], "reads '@9', which is not there"),
    (f"{MAIN}.2.inputs", ["@2", "x"], "reads '@2', which is not there"),
    (f"{MAIN}.2.inputs", [1, 2], "expected a string"),
    (f"{MAIN}.2.inputs", ["x"], "expected 2 inputs, got 1"),
    (f"{MAIN}.2.operator", {"axis": 1}, "no attribute 'axis'"),
    (f"{MAIN}.2.output", "x", "two nodes are called 'x'"),
    (f"{MAIN}.2.module_inputs", ["main"], "contains itself"),
    (f"{MAIN}.2.module_inputs", ["other"], "no 'other'"),
    (f"{MAIN}.1.operator", {}, "no 'parameter'"),
    (f"{MAIN}.1.shape", HUGE, "no memory holds"),
    (f"{MAIN}.1.shape.type", "complex", "unknown type 'complex'"),
    (f"{MAIN}.1.shape.strides", [1, 1], "1 lens and 2 strides"),
    (f"{MAIN}.1.shape.lens", [-2], "expected a size"),
    (f"{MAIN}.1.shape.lens", [3], "equal dims"),
    (f"{MAIN}.1.shape", {**S, "type": "tuple_type", "sub_shapes": [S]}, "expected a tensor"),
    (f"{MAIN}.1.shape", {**S, "dynamic_dimensions": [{"range": {"min": 3, "max": 1}}]}, "range"),
    (f"{MAIN}.0.literal", ..., "no 'literal'"),
    (f"{MAIN}.0.literal.data", {"bytes": [1, 2]}, "expected 8 bytes, got 2"),
    (f"{MAIN}.0.literal.data", {"bytes": [1, 999]}, "0 to 255"),
    (f"{MAIN}.0.literal.data", "text", "expected bytes"),
    (f"{MAIN}.0.literal.shape", HUGE, "no memory holds"),
    (f"{MAIN}.3.inputs", ["@9"], "not there"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "value", "message"), WRONG)
def test_wrong_entries(path: str, value: object, message: str) -> None:
    with pytest.raises(FileError) as e:
        migraphx.load_buffer(json.dumps(changed(path, value)).encode())
    assert message in str(e.value)
    assert str(e.value).startswith("<buffer>: error: ")


def test_wrong_encodings(tmp_path) -> None:
    deep = b"\x91" * 100_000 + b"\x90"
    cases = [
        (b"", "empty"),
        (b"\xc1", "tag 0xc1"),
        (b"\xdd\xff\xff\xff\xff", "does not fit"),
        (b"\xdf\xff\xff\xff\xff\xa1a", "does not fit"),
        (b"\xc6\xff\xff\xff\xff\x00", "ends early"),
        (b"\xdb\xff\xff\xff\xf0abc", "ends early"),
        (deep, "nest deeper"),
        (b"\x81\x01\x02", "string as key"),
        (b"\x82\xa1a\x01\xa1a\x02", "occurs twice"),
        (b"\x81\xa1\xff\x01", "not UTF-8"),
        (b"\x90\x90", "follow"),
        (b"\x92\xc4\x01a\x05", "a chunk that is none"),
        (b"\x05", "expected an object"),
        (b"{", "no JSON"),
        (b'{"a":' * 100_000, "nest"),
        (b'{"version": NaN}', "no JSON number"),
        (b'{"a": 1, "a": 2}', "occurs twice"),
        (b"{\xff", "not UTF-8"),
    ]  # fmt: skip
    for data, message in cases:
        with pytest.raises(FileError) as e:
            migraphx.load_buffer(data)
        assert message in str(e.value), data[:20]
    for path in (tmp_path, tmp_path / "none", "/dev/null"):
        with pytest.raises(FileError):
            migraphx.load(path)


def test_truncated_and_damaged_files_never_end_in_a_traceback() -> None:
    good = packed(FILE)
    for end in range(len(good)):
        with pytest.raises(FileError):
            migraphx.load_buffer(good[:end])
    rng = random.Random(5)
    for _ in range(150):
        data = bytearray(good)
        for _ in range(rng.randint(1, 4)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        # what is no error is a file that is still good, with other numbers in it
        with contextlib.suppress(FileError):
            migraphx.load_buffer(bytes(data))


def test_decoders_agree_with_the_libraries() -> None:
    tree = {"a": [1, -1, 2**63, -(2**63), 1.5, None, True, "ä" * 300, {"b": []}], "c": {"d": 300}}
    assert decode_msgpack(msgpack.packb(tree)) == tree
    assert decode_json(json.dumps(tree).encode()) == tree
    assert bytes(decode_msgpack(msgpack.packb([b"ab", b"c"]))) == b"abc"
    assert bytes(decode_msgpack(msgpack.packb(b"ab"))) == b"ab"
    assert issubclass(FileError, MgxError)
