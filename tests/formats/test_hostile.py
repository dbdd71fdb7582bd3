"""Files that are wrong or hostile: one error that says what, and never more."""

from __future__ import annotations

import contextlib
import json
import time
from pathlib import Path

import msgpack
import numpy as np
import pytest

import mgx_mlir as migraphx
from mgx_mlir.core.errors import FileError, MgxError
from mgx_mlir.frontends.mxr.decode import decimal_bytes, decode_json, decode_msgpack
from mgx_mlir.printers.tree_files import decimal_text
from tests.formats.fuzz import peak_bytes
from tests.formats.handmade import (
    as_json,
    as_msgpack,
    calling,
    file_of,
    literal,
    node,
    parameter,
    shape,
)

S = shape()
GOOD = file_of(
    literal("@0", S, bytes([0, 0, 128, 63, 0, 0, 0, 64])),
    parameter("x", S),
    node("@2", "add", S, ["x", "@0"]),
    node("@3", "@return", S, ["@2"]),
)
FILE = json.loads(as_json(GOOD))


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
RULE = {"input": "x", "where": "", "terms": [], "column": None}
VALUES = ["{}{", "[3]"] + [
    json.dumps([{**RULE, **wrong}])
    for wrong in (
        {"input": "q"},
        {"terms": [["x", 9, 1]]},
        {"column": 99},
        {"where": 3, "low": "a"},
    )
]
WRONG = [
    ("version", 4, "version is 4, expected 5, 6, 7 or 8"),
    ("version", 9, "version is 9, expected"),
    ("version", "8", "version is '8', expected"),
    ("version", True, "version is True, expected"),
    ("version", ..., "the file has no 'version'"),
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
    (f"{MAIN}.2.inputs", ["x", "@9"], "reads '@9', which does not exist"),
    (f"{MAIN}.2.inputs", ["@2", "x"], "reads '@2', which does not exist"),
    (f"{MAIN}.2.inputs", [1, 2], "expected a string"),
    (f"{MAIN}.2.inputs", ["x"], "expected 2 inputs, got 1"),
    (f"{MAIN}.2.operator", {"axis": 1}, "no attribute 'axis'"),
    (f"{MAIN}.2.output", "x", "two nodes are called 'x'"),
    (f"{MAIN}.2.module_inputs", ["main"], "contains itself"),
    (f"{MAIN}.2.module_inputs", ["other"], "no 'other'"),
    (f"{MAIN}.1.operator", {}, "no 'parameter'"),
    (f"{MAIN}.1.shape", HUGE, "any memory"),
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
    (f"{MAIN}.0.literal.shape", HUGE, "any memory"),
    (f"{MAIN}.0.literal.shape.strides", [2], "expected 12 bytes, got 8"),
    (f"{MAIN}.1.shape", {**S, "lens": [1] * 65, "strides": [1] * 65}, "has 65 dimensions"),
    (f"{MAIN}.1.shape", {**S, "dynamic_dimensions": [{"range": None, "sym": None}]}, "object"),
    (f"{MAIN}.1.shape", {**S, "dynamic_dimensions": [{"range": None, "sym": {"type": "add"}}]},
     "a dimension is the expression 'add'"),
    (f"{MAIN}.1.shape", {**S, "dynamic_dimensions": [{"min": 1, "max": 4, "optimals": [9]}]},
     "optimals outside"),
    (f"{MAIN}.2.operator", {"axis": {"lens": 5, "type": "float_type"}}, "'lens' expected an array"),
    (f"{MAIN}.2.operator", {"a": {"b": 1}}, "fields 'b'"),
    (f"{MAIN}.2.operator", {"a": {"name": "tanh", "operator": {"x": "y"}}}, "expected a number"),
    (f"{MAIN}.2.operator", 3, "'operator' expected an object"),
    (f"{MAIN}.2", node("@2", "convert", S, ["x"], target_type=18), "a storage type"),
    (f"{MAIN}.2", node("@2", "softmax", S, ["x"], axis=1e300), "expected an i64 integer"),
    (f"{MAIN}.2", node("@2", "softmax", S, ["x"], axis=2**63), "expected an i64 integer"),
    (f"{MAIN}.2", node("@2", "reduce_sum", S, ["x"], axes=[2**63]), "expected an array<i64"),
    (f"{MAIN}.2", node("@2", "reduce_sum", S, ["x"], axes=[1e300]), "expected an array<i64"),
    (f"{MAIN}.2", node("@2", "softmax", S, ["x"], axis=1.5), "expected an integer"),
    (f"{MAIN}.2", node("@2", "convert", S, ["x"], target_type=99), "type number 99"),
    (f"{MAIN}.2.debug_symbols", [3], "a debug symbol expected a string"),
    (f"{MAIN}.2.name", "get_tuple_elem", "expected one tuple"),
    (f"{MAIN}.2.name", "if", "expected 2 modules, got 0"),
    (f"{MAIN}.2.name", "@param", "no 'parameter'"),
    (f"{MAIN}.3.name", "add", "expected 2 inputs, got 1"),
    (f"{MAIN}.3.inputs", ["@9"], "does not exist"),
    ("mgx_mlir", {"version": 9}, "has the version 9, expected 1"),
    ("mgx_mlir", 5, "'mgx_mlir' expected an object"),
    ("mgx_mlir", {"outputs": ["a", "b"]}, "'outputs' expected 1 entries, got 2"),
    ("mgx_mlir", {"elements": {"inputs": ["int5"]}}, "unknown type 'int5'"),
    ("mgx_mlir", {"elements": {"inputs": ["int4", "int4"]}}, "expected 1 entries, got 2"),
    *(("mgx_mlir", {"values": v}, "'values' is malformed") for v in VALUES),
    ("mgx_mlir", {"groups": {"inputs": [["x", 10**12]]}}, "'groups' expected 1 tensors"),
    ("mgx_mlir", {"groups": {"inputs": [["x", -7]]}}, "'groups' expected 1 tensors"),
    ("mgx_mlir", {"compiled": 3}, "'compiled' expected an array"),
    ("mgx_mlir", {"compiled": [3]}, "'compiled' expected an object"),
    ("mgx_mlir", {"compiled": [{}]}, "'compiled' has no 'target'"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "value", "message"), WRONG)
def test_wrong_entries(path: str, value: object, message: str) -> None:
    with pytest.raises(FileError) as e:
        migraphx.load_buffer(json.dumps(changed(path, value)).encode())
    assert message in str(e.value)
    assert str(e.value).startswith("<buffer>: error: ")


def test_wrong_encodings(tmp_path: Path) -> None:
    deep = b"\x91" * 100_000 + b"\x90"
    cases = [
        (b"", "empty"),
        (b"\xc1", "tag 0xc1"),
        (b"\xdd\xff\xff\xff\xff", "exceeds the remaining"),
        (b"\xdf\xff\xff\xff\xff\xa1a", "exceeds the remaining"),
        (b"\xc6\xff\xff\xff\xff\x00", "ends early"),
        (b"\xdb\xff\xff\xff\xf0abc", "ends early"),
        (deep, "nest deeper"),
        (b"\x81\x01\x02", "string as key"),
        (b"\x82\xa1a\x01\xa1a\x02", "occurs twice"),
        (b"\x81\xa1\xff\x01", "not UTF-8"),
        (b"\x90\x90", "follow"),
        (b"\x92\xc4\x01a\x05", "a chunk of binary data"),
        (b"\x05", "expected an object"),
        (b"{", "no JSON"),
        (b'{"a":' * 100_000, "nest"),
        (b'{"version": NaN}', "no JSON number"),
        (b'{"a": 1, "a": 2}', "occurs twice"),
        (b"{\xff", "not UTF-8"),
        (b'{"a": "\\ud800"}', "not UTF-8"),
        (b'{"a": ' + b"9" * 5000 + b"}", "no JSON"),
        (b'{"bytes": [256]}', "0 to 255"),
        (b'{"bytes": ["a"]}', "0 to 255"),
        (b"\xc7\x05\x01aaaaa", "tag 0xc7"),
    ]  # fmt: skip
    for data, message in cases:
        with pytest.raises(FileError) as e:
            migraphx.load_buffer(data)
        assert message in str(e.value), data[:20]
    for path in (tmp_path, tmp_path / "none", "/dev/null"):
        with pytest.raises(FileError):
            migraphx.load(path)


def test_truncated_files() -> None:
    good = as_msgpack(GOOD)
    for end in range(len(good)):
        with pytest.raises(FileError):
            migraphx.load_buffer(good[:end])


def test_messages_are_one_short_line() -> None:
    """Whatever names a file has."""
    for name in ("a\nb", "z" * 100_000, "\x1b[31m", "a\0b"):
        for tree in (changed(f"{MAIN}.2.inputs", ["x", name]), changed(f"{MAIN}.2.output", name),
                     changed(f"{MAIN}.2.name", name), changed(f"{MAIN}.2.operator", {name: 1}),
                     changed(f"{MAIN}.2.module_inputs", [name])):  # fmt: skip
            with contextlib.suppress(FileError):
                migraphx.load_buffer(json.dumps(tree).encode())
                continue
            with pytest.raises(FileError) as e:
                migraphx.load_buffer(json.dumps(tree).encode())
            first = str(e.value).splitlines()[0]
            assert first.startswith("<buffer>: error: ")
            assert len(str(e.value)) < 800
            assert first.isprintable(), first


# ---- files that ask for more than they are -------------------------------------------------------


def refused(data: bytes, message: str, *, seconds: float = 5.0, megabytes: float = 200.0) -> None:
    """A file is refused, soon and without much memory."""
    before, start = peak_bytes(), time.process_time()
    with pytest.raises(FileError) as e:
        migraphx.load_buffer(data)
    assert message in str(e.value)
    assert time.process_time() - start < seconds
    assert peak_bytes() - before < megabytes * 1e6


def test_broadcast_data_is_bounded_for_the_whole_file() -> None:
    wide = shape("float", (2**13, 2**10), (0, 0))  # 32 MB from 4 bytes
    literals = [literal(f"@{i}", wide, bytes(4)) for i in range(100)]
    refused(as_msgpack(file_of(*literals)), "broadcast to a size beyond the limit")
    vast = shape("float", (2**39, 2**39), (0, 0))
    refused(as_msgpack(file_of(literal("@0", vast, bytes(4)))), "a size beyond the limit")


def test_lengths_that_are_not_there_take_no_memory() -> None:
    for head in (b"\xdd\x7f\xff\xff\xff", b"\xdf\x7f\xff\xff\xff", b"\xc6\x7f\xff\xff\xff"):
        refused(b"\x81\xa1a" + head * 500, "", megabytes=20)


def test_many_values_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A byte of msgpack may be a value that takes a hundred in memory."""
    refused(b"\xdd\x00\xa0\x00\x00" + b"\x90" * (10 << 20), "8388608 values", megabytes=20)
    refused(b"{" + b"[" * (9 << 20), "more than 2097152 arrays", megabytes=100)
    monkeypatch.setattr("mgx_mlir.frontends.mxr.decode.MAX_VALUES", 5000)
    rows = b"\x81\xa1a\xdc\x04\x00" + (b"\x9f" + b"\x90" * 15) * 1024
    refused(rows, "more than 5000 values", megabytes=20)


def test_modules_are_read_once() -> None:
    """Each names the next twice: read each time, the last would be read 2**40 times."""
    f = shape()
    modules = {}
    for i in range(40):
        listed = [node(f"m{i}:@0", "@return", f, ["x"])]
        if i < 39:
            inner = [calling(node(f"m{i}:@{k}", "if", f, ["c"]), f"m{i + 1}", f"m{i + 1}")
                     for k in (1, 2)]  # fmt: skip
            listed = [*inner, *listed]
        modules[f"m{i}"] = listed
    top = [parameter("x", f), parameter("c", shape("bool", ())),
           calling(node("@2", "if", f, ["c"]), "m0", "m0")]  # fmt: skip
    refused(as_msgpack(file_of(*top, **modules)), "is used twice")


def test_modules_that_nest_too_deep() -> None:
    f, c = shape(), shape("bool", ())
    modules = {}
    for i in range(400):
        found = calling(node(f"m{i}:@0", "run_on_target", f, ["x"]), f"m{i + 1}")
        modules[f"m{i}"] = [parameter("v", f, f"m{i}:"), found]
    modules["m400"] = [parameter("v", f, "m400:")]
    top = [parameter("x", f), parameter("c", c),
           calling(node("@2", "run_on_target", f, ["x"]), "m0")]  # fmt: skip
    refused(as_msgpack(file_of(*top, **modules)), "nests too deep")


def test_many_modules_of_one_size() -> None:
    """Names of the enclosing modules are looked up, not copied into each."""
    f = shape()
    count = 1500
    modules = {f"m{i}": [parameter("v", f, f"m{i}:")] for i in range(count)}
    top = [parameter("x", f)] + [
        calling(node(f"@{i}", "run_on_target", f, ["x"]), f"m{i}") for i in range(count)
    ]
    start = time.process_time()
    p = migraphx.load_buffer(as_msgpack(file_of(*top, **modules)))
    assert len(p.get_main_module()) > count
    assert time.process_time() - start < 30


def test_shapes_that_no_memory_holds_are_only_shapes() -> None:
    """A parameter may be of any size; nothing is made of it until it is run."""
    huge = shape("double", (2**39, 2**20))
    nodes = [parameter("x", huge), node("@1", "neg", huge, ["x"]),
             node("@2", "reduce_sum", huge, ["@1"], axes=[0])]  # fmt: skip
    before = peak_bytes()
    p = migraphx.load_buffer(as_msgpack(file_of(*nodes)))
    assert f"double_type, {{1, {2**20}}}" in repr(p)
    migraphx.save_buffer(p)
    assert peak_bytes() - before < 100e6


def test_argument_files(tmp_path: Path) -> None:
    path = tmp_path / "a"
    s = shape()
    nested: object = {"shape": s, "data": bytes(8)}
    for _ in range(40):
        nested = {"shape": shape("tuple"), "sub": [nested]}
    cases = [
        (nested, "too deep"),
        ({"shape": s, "data": bytes(7)}, "expected 8 bytes, got 7"),
        ({"shape": s}, "has no 'data'"),
        ({"shape": s, "data": 5}, "'data' expected bytes"),
        ({"data": bytes(8)}, "has no 'shape'"),
        ({"shape": {**s, "strides": [2**39]}, "data": bytes(8)}, "expected"),
        (
            {"shape": {**s, "lens": [2**30], "strides": [0]}, "data": bytes(4)},
            "a size beyond the limit",
        ),
        ([1, 2], "expected an object"),
        (3, "expected an object"),
    ]
    for tree, message in cases:
        path.write_bytes(as_msgpack(tree))
        with pytest.raises(FileError, match=message) as e:
            migraphx.argument.load(path)
        assert str(e.value).startswith(f"{path}: error: ")
    path.write_bytes(b"")
    with pytest.raises(FileError, match="the data is empty"):
        migraphx.argument.load(path)


def test_decoders_agree_with_the_libraries() -> None:
    tree = {"a": [1, -1, 2**63, -(2**63), 1.5, None, True, "ä" * 300, {"b": []}], "c": {"d": 300}}
    assert decode_msgpack(msgpack.packb(tree)) == tree
    assert decode_json(json.dumps(tree).encode()) == tree
    assert bytes(decode_msgpack(msgpack.packb([b"ab", b"c"]))) == b"abc"
    assert bytes(decode_msgpack(msgpack.packb(b"ab"))) == b"ab"
    assert issubclass(FileError, MgxError)


def test_weights_beside_a_script(tmp_path: Path) -> None:
    path = tmp_path / "w.npz"
    for data in (b"", b"PK\x03\x04" + bytes(40), b"text"):
        path.write_bytes(data)
        with pytest.raises(FileError, match=r"is not an \.npz of weights"):
            migraphx.load_weights(path)
    np.savez(path, a=np.array([object()], dtype=object))
    with pytest.raises(FileError, match="pickle"):
        migraphx.load_weights(path)
    np.savez_compressed(path, a=np.zeros(20 << 20))
    assert path.stat().st_size < 1 << 20
    before = peak_bytes()
    with pytest.raises(FileError, match="expands to 167772288 bytes"):
        migraphx.load_weights(path)
    assert peak_bytes() - before < 20e6
    with pytest.raises(FileError, match="cannot open"):
        migraphx.load_weights(tmp_path / "none.npz")


def test_long_data_in_json_is_read_as_short_data_is() -> None:
    data = bytes(range(256)) * 3
    for spaced in (False, True):  # with spaces it takes the other way
        text = json.dumps({"bytes": list(data)}, separators=(", " if spaced else ",", ":"))
        assert bytes(decode_json(text.encode())) == data
    for wrong in ("256", "-1", "0001", "", "1.5", "9" * 30, '"a"'):
        for at in ("1,2,", "1," * 300):
            with pytest.raises(FileError):
                decode_json(f'{{"bytes":[{at}{wrong},7]}}'.encode())
    rng = np.random.default_rng(0)
    values = rng.integers(0, 256, 5000, dtype=np.uint8)
    assert decimal_text(values) == ",".join(map(str, values.tolist()))
    assert (decimal_bytes(np.frombuffer(decimal_text(values).encode(), np.uint8)) == values).all()


def test_json_of_weights_is_written_and_read_soon() -> None:
    p = migraphx.program()
    p.get_main_module().add_literal(np.random.default_rng(0).random((1000, 1000), "f4"))
    start = time.process_time()
    data = migraphx.save_buffer(p, "json")
    q = migraphx.load_buffer(data)
    assert time.process_time() - start < 4  # 14 MB; number by number it takes 8
    assert migraphx.save_buffer(q) == migraphx.save_buffer(p)
