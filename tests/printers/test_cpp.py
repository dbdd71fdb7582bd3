"""--cpp: the code is C++ that compiles, for every operator and every kind of program."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import mgx_mlir as migraphx
from mgx_mlir.printers.cpp import cpp_text
from tests.formats.programs import PROGRAMS, every_operator, tensor

COMPILER = shutil.which("g++") or shutil.which("clang++")
STUB = Path(__file__).with_name("migraphx_stub.hpp")


def check_syntax(codes: dict[str, str]) -> None:
    """Compile the code of programs, each a function of its own, against the stub."""
    if COMPILER is None:
        pytest.skip("no C++ compiler")
    functions = "".join(f"void {name}() {{\n{code}}}\n" for name, code in codes.items())
    done = subprocess.run(
        [COMPILER, "-std=c++17", "-fsyntax-only", "-Werror=narrowing", "-x", "c++",
         "-include", str(STUB), "-"],
        input=functions, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert not done.returncode, done.stderr[:3000]


def test_programs_compile() -> None:
    check_syntax({name: cpp_text(build().program_ir) for name, build in PROGRAMS.items()})


def test_every_operator_compiles() -> None:
    code = cpp_text(every_operator()[0].program_ir)
    assert code.count("make_op(") + code.count("make_json_op(") > 900
    check_syntax({"all": code})


def test_the_check_sees_errors() -> None:
    with pytest.raises(AssertionError, match="error"):
        check_syntax({"wrong": "migraphx::program p;\nauto x = p.get_main_module()->add(1);\n"})


def test_names_that_are_no_identifiers() -> None:
    p = migraphx.program()
    m = p.get_main_module()
    for name in ("class", "1", 'a "b"\\', "a\nb", "ä:0", "x_1", "p"):
        m.add_parameter(name, tensor("float", 2))
    check_syntax({"names": cpp_text(p.program_ir)})


def test_the_lines() -> None:
    p = migraphx.program()
    m = p.get_main_module()
    dims = [migraphx.shape.dynamic_dimension(1, 4, {2}), migraphx.shape.dynamic_dimension(3, 3)]
    x = m.add_parameter("x", migraphx.shape(type="half", dyn_dims=dims))
    w = m.add_literal(np.array([[1, -2], [3, 4]], "f4").T)
    s = m.add_literal(np.array(3, np.int32))
    then = p.create_module("then")
    then.add_return([w])
    other = p.create_module("else")
    other.add_return([other.add_instruction(migraphx.op("neg"), [w])])
    c = m.add_parameter("c", tensor("bool"))
    y = m.add_instruction(migraphx.op("if"), [c], [then, other])
    m.add_return([x, s, m.add_instruction(migraphx.op("get_tuple_elem", index=0), [y])])
    assert cpp_text(p.program_ir).splitlines() == [
        "migraphx::program p;",
        "migraphx::module_ref mmain = p.get_main_module();",
        'auto x = mmain->add_parameter("x", migraphx::shape{migraphx::shape::half_type, '
        "std::vector<migraphx::shape::dynamic_dimension>{{1, 4, {2}}, {3, 3}}});",
        'auto c = mmain->add_parameter("c", migraphx::shape{migraphx::shape::bool_type});',
        "auto x_1 = mmain->add_literal(migraphx::generate_literal("
        "migraphx::shape{migraphx::shape::float_type, {2, 2}, {1, 2}}, 0));",
        "auto x_0 = mmain->add_literal(migraphx::abs(migraphx::generate_literal("
        "migraphx::shape{migraphx::shape::int32_type}, 1)));",
        'migraphx::module_ref mthen = p.create_module("then");',
        "mthen->add_return({x_1});",
        'migraphx::module_ref melse = p.create_module("else");',
        'auto else_x_0 = melse->add_instruction(migraphx::make_op("neg"), {x_1});',
        "melse->add_return({else_x_0});",
        'auto x_4 = mmain->add_instruction(migraphx::make_op("if"), {c}, {mthen, melse});',
        'auto x_5 = mmain->add_instruction(migraphx::make_json_op("get_tuple_elem", '
        '"{\\"index\\":0}"), {x_4});',
        "mmain->add_return({x, x_0, x_5});",
    ]
