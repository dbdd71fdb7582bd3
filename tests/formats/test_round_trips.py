"""Everything that a program holds comes back from a file: equal text, equal numbers."""

from __future__ import annotations

import io
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from onnx import parser

import mgx_mlir as migraphx
from mgx_mlir.core.ir import ir
from mgx_mlir.core.subbyte_types import ELEMENT
from mgx_mlir.frontends.onnx.importer import parse_onnx_buffer
from mgx_mlir.printers.text import program_text
from mgx_mlir.printers.value_tree import print_binary, print_json
from mgx_mlir.programs.groups import TensorGroup, set_groups
from mgx_mlir.programs.program_ir import NAME
from mgx_mlir.programs.signature import Signature
from tests.formats import models
from tests.formats.programs import PROGRAMS, every_operator, feed_of, tensor

op = migraphx.op
KINDS = ("msgpack", "json")


def check_same(p: migraphx.program, q: migraphx.program) -> None:
    for version in ("seed", "2.16"):
        a, b = (program_text(x.program_ir, version=version).splitlines() for x in (p, q))
        for one, other in zip(a, b, strict=True):
            assert one == other
    assert q.get_parameter_names() == p.get_parameter_names()
    assert repr(q.get_parameter_shapes()) == repr(p.get_parameter_shapes())
    assert Signature.of(q.program_ir.main()) == Signature.of(p.program_ir.main())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_come_back(name: str, kind: str) -> None:
    p = PROGRAMS[name]()
    data = migraphx.save_buffer(p, kind)
    q = migraphx.load_buffer(data)
    check_same(p, q)
    assert migraphx.save_buffer(q, kind) == data
    feed = feed_of(p)
    assert models.results(q, feed) == models.results(p, feed)


def check_both(p: migraphx.program, feed: dict[str, np.ndarray]) -> None:
    """A program comes back from both encodings, with the results that it had."""
    data = migraphx.save_buffer(p)
    q = migraphx.load_buffer(data)
    check_same(p, q)
    assert models.results(q, feed) == models.results(p, feed)
    # files that are bitwise equal have the same results
    assert migraphx.save_buffer(q) == data
    assert migraphx.save_buffer(migraphx.load_buffer(migraphx.save_buffer(p, "json"))) == data


def test_every_operator_comes_back() -> None:
    p, feed = every_operator()
    assert repr(p).count(" = ") > 3000
    names = {i.name() for i in p.get_main_module()}
    assert len({n for n in names if not n.startswith("@")}) > 135
    check_both(p, feed)


@pytest.mark.parametrize("name", models.NAMES)
def test_models_come_back(name: str) -> None:
    check_both(*models.model(name))


def test_a_file_without_our_entry_is_migraphxs_own() -> None:
    """The entry stands where MIGraphX's format lacks something, and nowhere else."""
    with_entry = [n for n, f in PROGRAMS.items() if b"mgx_mlir" in migraphx.save_buffer(f())]
    assert with_entry == ["dynamic", "loop", "selection"]


def test_what_inputs_and_outputs_are_to_a_user_comes_back() -> None:
    p = migraphx.program()
    m = p.get_main_module()
    a, b = (m.add_parameter(n, tensor("int8", 2)) for n in ("list[0]", "list[1]"))
    m.add_return([m.add_instruction(op("add"), [a, b]), a, b])
    main = p.program_ir.main()
    with p.program_ir.ctx:
        rows = [{NAME: ir.StringAttr.get(f"out{i}")} for i in range(3)]
        rows[0][ELEMENT] = ir.StringAttr.get("int4")
        main.attributes["res_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get(r) for r in rows])
        groups = [TensorGroup("sum"), TensorGroup("both", 2), TensorGroup("none", None)]
        set_groups(main, [TensorGroup("list", 2)], groups)
    wanted = Signature.of(main)
    assert wanted.outputs[0].element == "int4"
    for kind in KINDS:
        q = migraphx.load_buffer(migraphx.save_buffer(p, kind))
        check_same(p, q)
        assert Signature.of(q.program_ir.main()) == wanted
        x = np.array([1, 2], np.int8)
        assert [type(v) for v in q.run({"list": [x, x]})] == [migraphx.argument, list, type(None)]


def test_what_values_of_inputs_must_be_comes_back() -> None:
    """Inputs in another order than their names: a file has them by name."""
    text = """<ir_version: 10, opset_import: ["": 18]> g (float[t,2,2] z, float[1,3,2] w,
      float[1,3,3] r, int32[2] a) => (float[t,1,2,3] y) { y = RNN<hidden_size=3>(z,w,r,,a) }"""
    p = parse_onnx_buffer(parser.parse_model(text).SerializeToString())
    rules = Signature.of(p.main()).values
    assert [(r.what, r.terms) for r in rules] == [("sequence_lens", ((0, 0, 1),))]
    for write, stream in ((print_binary, io.BytesIO()), (print_json, io.StringIO())):
        write(p, stream)
        saved = stream.getvalue()
        data = saved if isinstance(saved, bytes) else saved.encode()
        assert Signature.of(migraphx.load_buffer(data).program_ir.main()).values == rules


def test_a_dim_that_is_dynamic_stays_dynamic() -> None:
    p = migraphx.program()
    m = p.get_main_module()
    ends = [m.add_literal(np.array(v)) for v in (0, 12, 1)]
    top = m.add_instruction(op("max"), [ends[1], ends[2]])
    y = m.add_instruction(op("dynamic_range"), [ends[0], top, ends[2]])
    m.add_return([m.add_instruction(op("neg"), [y])])
    assert "neg(@4) -> dynamic, int64_type, {12}" in repr(p)
    q = migraphx.load_buffer(migraphx.save_buffer(p))
    check_same(p, q)
    assert q.run({})[0].tolist() == [-i for i in range(12)]


def test_dims_that_inference_leaves_dynamic_come_back() -> None:
    """Stated by an importer that knew more: no dim of the program is dynamic."""
    p = migraphx.program()
    m = p.get_main_module()
    ends = [m.add_parameter(n, tensor("int64")) for n in ("a", "b", "c")]
    m.add_return([m.add_instruction(op("dynamic_range"), ends, shapes=[tensor("int64", 5)])])
    assert "-> int64_type, {5}, {1}" in repr(p)
    for kind in KINDS:
        check_same(p, migraphx.load_buffer(migraphx.save_buffer(p, kind)))


def test_kernels_of_many_inputs() -> None:
    """More than ten parameters: their names are in the order in which MIGraphX sorts them."""
    p = migraphx.program()
    m = p.get_main_module()
    xs = [m.add_parameter(f"p{i}", tensor("float", 2)) for i in range(12)]
    body = p.create_module("kernel")
    inner = [body.add_parameter(f"x{i}", tensor()) for i in range(12)]
    total = inner[0]
    for i, x in enumerate(inner[1:], 1):
        total = body.add_instruction(op("sub" if i == 10 else "add"), [total, x])
    body.add_return([total])
    m.add_return([m.add_instruction(op("pointwise"), xs, [body])])
    assert "kernel:x:00010 = @param:x:00010" in repr(p)
    q = migraphx.load_buffer(migraphx.save_buffer(p))
    check_same(p, q)
    feed = {f"p{i}": np.array([i, 1], "f4") for i in range(12)}
    assert q.run(feed)[0].tolist() == [66 - 2 * 10, 10]


def test_files_are_told_apart_and_read_by_compile(tmp_path: Path) -> None:
    p = PROGRAMS["worked_example"]()
    for suffix, kind in (("mxr", "msgpack"), ("json", "json")):
        path = tmp_path / f"p.{suffix}"
        migraphx.save(p, path, format=kind)
        check_same(p, migraphx.load(path))
        c = migraphx.compile(path, target="ref")
        assert c.run({"x": np.array([5, 6], "f4")})[0].tolist() == [6, 8]


def test_saving_is_all_or_nothing(tmp_path: Path) -> None:
    p = PROGRAMS["worked_example"]()
    with pytest.raises(migraphx.MgxError, match="cannot write"):
        migraphx.save(p, tmp_path / "no" / "p.mxr")
    with pytest.raises(migraphx.MgxError, match="unknown format 'yaml'"):
        migraphx.save(p, tmp_path / "p.mxr", format="yaml")
    with pytest.raises(migraphx.MgxError, match="unknown format 'yaml'"):
        migraphx.save_buffer(p, "yaml")
    with pytest.raises(migraphx.MgxError, match="expected a program"):
        migraphx.save("text", tmp_path / "p.mxr")  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


# ---- arguments -----------------------------------------------------------------------------------


@pytest.mark.parametrize("array", [
    np.arange(6, dtype="f4").reshape(2, 3), np.arange(6, dtype="i8").reshape(2, 3).T,
    np.broadcast_to(np.arange(3, dtype="f2"), (4, 3)), np.array(1.5), np.array([True, False]),
    np.zeros((0, 3), "u1"), np.arange(6).astype(ml_dtypes.float8_e5m2).reshape(2, 3).T,
    np.arange(6).astype(ml_dtypes.bfloat16).reshape(2, 3).T,
], ids=["plain", "turned", "broadcast", "scalar", "bools", "empty", "fp8", "bf16"])  # fmt: skip
def test_argument_files(tmp_path: Path, array: np.ndarray) -> None:
    path = tmp_path / "a.mxa"
    migraphx.argument.save(migraphx.argument(array), path)
    back = migraphx.argument.load(path)
    assert back == migraphx.argument(array)
    assert path.read_bytes().startswith(b"\x82\xa5shape\x86\xa4type")


def test_argument_files_by_hand(tmp_path: Path) -> None:
    from tests.formats.handmade import as_msgpack, several, shape

    data = np.array([1, 2, 3, 4], "f4").tobytes()
    turned = shape("float", (2, 2), (1, 2))
    path = tmp_path / "a"
    path.write_bytes(as_msgpack({"shape": turned, "data": data}))
    assert np.array(migraphx.argument.load(path)).tolist() == [[1, 3], [2, 4]]
    source = np.array([[1, 3], [2, 4]], "f4").T.copy().T  # in the same order
    migraphx.argument.save(migraphx.argument(source), path)
    assert path.read_bytes() == as_msgpack({"shape": turned, "data": data})
    inner = {"shape": several(shape()), "sub": [{"shape": shape(), "data": data[:8]}]}
    whole = {"shape": several(several(shape()), shape("float", ())),
             "sub": [inner, {"shape": shape("float", ()), "data": data[8:12]}]}  # fmt: skip
    path.write_bytes(as_msgpack(whole))
    found = migraphx.argument.load(path)
    assert repr(found) == "[[{1, 2}], {3}]"
    migraphx.argument.save(found, path)
    assert path.read_bytes() == as_msgpack(whole)
