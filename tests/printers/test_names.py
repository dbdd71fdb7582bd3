"""Names of any characters: no terminal obeys them, no code or file takes two for one."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import unicodedata
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper

import mgx_mlir as migraphx
from mgx_mlir.core.errors import ModelError
from mgx_mlir.core.names import SafeStream, identifier, safe_name, safe_text
from mgx_mlir.printers.cpp import cpp_text
from mgx_mlir.printers.dot import print_dot
from mgx_mlir.printers.netron import netron_model
from mgx_mlir.printers.python import python_text
from mgx_mlir.tools.driver.main import main
from tests.support.models import bytes_of

ESCAPES = "\x1b]0;title\x07", "a\x1b[31mb", "c\x9b2Jd", "e\rf", "g\x08h", "i\u202ej", "k\nl"


def model(first: str, second: str, output: str = "y") -> bytes:
    subtract = helper.make_node("Sub", [first, second], [output], name=f"node {first}")
    inputs = [(n, np.float32, [2]) for n in (first, second)]  # may be one name
    return bytes_of([subtract], inputs, {output: [2]}, opset=18)


def results(p: migraphx.program, names: tuple[str, str]) -> np.ndarray:
    p.compile(migraphx.get_target("ref"))
    a, b = np.float32([5, 7]), np.float32([1, 4])
    return np.asarray(p.run(dict(zip(names, (a, b), strict=True)))[0])


# names that a language may take for one another, or for what the code itself needs
PAIRS = [
    ("\ufb01", "fi"), ("\u00b2", "2"), ("\u00bd", "x"), ("\uff50", "p"), ("x\u0301", "\u1e8b"),
    ("\u212b", "\u00c5"), ("\u1d629", "x"), ("migraphx", "Path"), ("float", "class"),
    ("@0", "@1"), ("main:@0", "@2"), ("main:#output_0", "#output_0"), (" ", "  "), ("a b", "a_b"),
    ("a\0b", "a\nb"), ("\x1b", "\x1b "), ('"', "'"), ("\\", "\\n"), ("x_0", "x-0"), ("-", "+"),
    ("1", "x_1"), ("\u0435", "e"), ("\ud7ff", "\U0001f600"), ("weights", "main"), ("x0", "x:00001"),
]  # fmt: skip


@pytest.mark.parametrize("names", PAIRS, ids=[ascii(p) for p in PAIRS])
def test_names_stay_apart(names: tuple[str, str]) -> None:
    p = migraphx.parse_onnx_buffer(model(*names))
    expected = np.float32([4, 3])
    for form in ("msgpack", "json"):
        again = migraphx.load_buffer(migraphx.save_buffer(p, form))
        assert set(again.get_parameter_shapes()) == set(names)
        np.testing.assert_array_equal(results(again, names), expected)
    for version in ("seed", "2.16"):
        stream = io.StringIO()
        p.print(stream, version=version)
        left = [line.split(" = ")[0] for line in stream.getvalue().splitlines() if " = " in line]
        assert len(set(left)) == len(left)
    code = python_text(p.program_ir)
    space: dict[str, Any] = {}
    exec(compile(code, "script", "exec"), space)
    np.testing.assert_array_equal(results(space["p"], names), expected)
    variables = [line.split()[1] for line in cpp_text(p.program_ir).splitlines() if "auto " in line]
    assert len({unicodedata.normalize("NFKC", v) for v in variables}) == len(variables)
    assert all(v.isascii() for v in variables)
    graph = netron_model(p.program_ir).graph
    made = [v.name for v in graph.input] + [o for n in graph.node for o in n.output]
    assert len(set(made)) == len(made)
    text = io.StringIO()
    print_dot(p.program_ir, text)
    assert text.getvalue().count("fillcolor") == 4


@pytest.mark.parametrize("name", ESCAPES)
def test_nothing_obeys_a_name(name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(model(name, name + "2", "out" + name))
    bad = tmp_path / "bad.onnx"
    bad.write_bytes(model(name, name))
    for command in (
        ["read"], ["read", "--json"], ["read", "--py"], ["read", "--cpp"], ["read", "--graphviz"],
        ["read", "--graphviz", "--brief"], ["read", "--mlir"], ["params"], ["compile", "--ref"],
        ["read", "--debug-symbols"], ["read", "--text-version", "2.16"], ["verify", "--ref"],
        ["perf", "--ref", "-n", "1"], ["run", "--ref", "--fill0", name + "3"],
        ["read", "--input-dim", f"@{name}4", "2"],
    ):  # fmt: skip
        for file in (path, bad):
            main([command[0], str(file), *command[1:]])
            said = capfd.readouterr()
            for text in (said.out, said.err):
                assert safe_text(text) == text, command
                if "\n" in name and name not in "".join(command):
                    assert not any(line.startswith("l") for line in text.splitlines()), command


def test_json_stays_json(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(model("c\x9bd", "e\x1bf"))
    assert main(["read", str(path), "--json"]) == 0
    nodes = json.loads(capfd.readouterr().out)["modules"]["main"]["nodes"]
    assert {n["output"] for n in nodes} >= {"c\x9bd", "e\x1bf"}


def test_diagnostics_of_mgx_opt_and_mgx_reduce(tmp_path: Path) -> None:
    path = tmp_path / "m.mlir"
    path.write_text('"x\x1b[31m.y\x9b"() : () -> ()\n')
    for tool in (
        ["mgx_mlir.tools.opt", str(path)],
        ["mgx_mlir.tools.reduce", str(path), "--test", "true {}"],
    ):
        done = subprocess.run(
            [sys.executable, "-m", *tool], capture_output=True, text=True, check=False
        )
        assert done.returncode == 2
        assert "error" in done.stderr
        assert safe_text(done.stderr) == done.stderr


def test_an_error_shows_what_it_holds() -> None:
    error = ModelError("input 'a\x1b[31m'", location="f\x07", notes=["\u202e"])
    assert str(error) == "f\\x07: error: input 'a\\x1b[31m'\nnote: \\u202e"


def test_safe_text() -> None:
    assert safe_text("tab\tline\nänd 漢字 🙂") == "tab\tline\nänd 漢字 🙂"
    assert safe_text("\x00\x7f\x80\x9f\r\ud800") == "\\x00\\x7f\\x80\\x9f\\x0d\\ud800"
    assert safe_name("a\nb\tc") == "a\\nb\\tc"
    assert identifier("²", set()) == "_"
    assert identifier("1a", {"x_1a"}) == "x_1a_1"
    stream = SafeStream(io.StringIO())
    assert stream.write("\x1b") == 1
    stream.writelines(["a", "\x07"])
    assert stream.getvalue() == "\\x1ba\\x07"
