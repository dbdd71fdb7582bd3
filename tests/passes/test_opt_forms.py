"""mgx-opt: what it says of text that does not parse, its forms of output, plugins by option."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from mgx_mlir.core.ir import ir
from mgx_mlir.tools.driver.main import main as driver
from mgx_mlir.tools.opt import main as opt

Run = Callable[..., tuple[int, str, str]]
SOFTMAX = """\
func.func @f(%a: tensor<2xf32>) -> tensor<2xf32> {
  %0 = "migraphx.softmax"(%a) {axis = 0 : i64} : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
"""
PLUGIN = '''
"""A pass and an op in one file."""
from dataclasses import dataclass
from typing import ClassVar

from mgx_mlir.core.ir import ir
from mgx_mlir.dialects.migraphx.pointwise_base import Unary
from mgx_mlir.passes import PASSES
from mgx_mlir.rewrite.passes import Pass


class Twice(Unary, name="{name}_twice"):
    """Compute x + x.

    `%1 = "migraphx.{name}_twice"(%0) : (tensor<4xf32>) -> tensor<4xf32>`
    """

    @staticmethod
    def scalar(b, x):
        return b.add(x, x)

    @staticmethod
    def reference(x):
        return x + x


@PASSES.register
@dataclass(frozen=True)
class Mark(Pass):
    """Name the module."""

    name: ClassVar[str] = "{name}_mark"

    def run(self, module: ir.Operation) -> None:
        module.attributes["{name}.mark"] = ir.UnitAttr.get(module.context)
'''


@pytest.fixture
def run(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Run:
    def call(text: str, *flags: str) -> tuple[int, str, str]:
        (tmp_path / "in.mlir").write_text(text)
        status = opt.main([str(tmp_path / "in.mlir"), *flags])
        found = capfd.readouterr()
        assert "Traceback" not in found.err
        return status, found.out, found.err.replace(str(tmp_path / "in.mlir"), "in.mlir")

    return call


CUSTOM = SOFTMAX.replace("return", "%1 = migraphx.relu %0 : tensor<2xf32>\n  return")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            CUSTOM,
            "in.mlir:3:8: error: expected the generic form of 'migraphx.relu', got the custom",
        ),
        (CUSTOM, 'note: write it as "migraphx.relu"(%'),
        (
            CUSTOM.replace("relu", "rely"),
            "in.mlir:3:8: error: custom op 'migraphx.rely' is unknown",
        ),
        (
            SOFTMAX.replace("i64}", "i64"),
            "in.mlir:2:46: error: expected '}' in attribute dictionary",
        ),
        (SOFTMAX.replace("0 : i64", ""), "in.mlir:2:38: error: expected attribute value"),
        (SOFTMAX.replace(") -> t", ", f32) -> t"), "error: custom op 'func.func' expected SSA"),
        (SOFTMAX[:-2], "error: "),
    ],
    ids=["custom", "the way out", "no op", "brace", "value", "types", "end"],
)
def test_a_parse_error_names_its_place(run: Run, text: str, said: str) -> None:
    status, out, err = run(text)
    assert (status, out) == (2, "")
    assert said in err
    assert "\0" not in err
    first = err.splitlines()[0]
    assert first.startswith("in.mlir:")
    assert all(part.isdecimal() for part in first.split(":")[1:3])


def test_the_place_is_that_of_the_whole_file(run: Run) -> None:
    status, _, err = run(f"{SOFTMAX}// -----\n{CUSTOM}", "--split-input-file")
    assert status == 2
    assert "in.mlir:8:8: error: expected the generic form" in err


def test_the_driver_says_the_same(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "m.mlir"
    path.write_text(CUSTOM)
    assert driver(["read", str(path)]) == 2
    assert f"{path}:3:8: error: expected the generic form" in capfd.readouterr().err


def test_value_users(run: Run) -> None:
    text = """
func.func @f(%a: tensor<2xf32>, %c: i1) -> tensor<2xf32> {
  %0 = "migraphx.relu"(%a) : (tensor<2xf32>) -> tensor<2xf32>
  %1 = "migraphx.add"(%0, %0) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %2 = "migraphx.mul"(%0, %1) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %3 = "migraphx.neg"(%0) : (tensor<2xf32>) -> tensor<2xf32>
  %4 = scf.if %c -> tensor<2xf32> {
    scf.yield %0 : tensor<2xf32>
  } else {
    scf.yield %2 : tensor<2xf32>
  }
  return %4 : tensor<2xf32>
}
"""
    status, out, _ = run(text, "--mlir-print-value-users")
    assert status == 0
    said = [line.partition("  // ")[2] for line in out.splitlines() if "  // " in line]
    assert said == ["users: %1, %2, %3, scf.yield", "user: %2", "user: scf.yield", "unused",
                    "user: func.return"]  # fmt: skip
    assert run(out)[1] == run(text)[1]


def test_bytecode_and_irdl_are_read_by_other_tools(run: Run, tmp_path: Path) -> None:
    text = SOFTMAX.replace(
        "return %0",
        '%1 = "migraphx.concat"(%0, %0) {axis = 0 : i64} : (tensor<2xf32>, tensor<2xf32>) -> '
        "tensor<4xf32>\n  return %0",
    )
    code, dialect = tmp_path / "m.mlirbc", tmp_path / "migraphx.irdl.mlir"
    status, out, err = run(text, "--emit-bytecode", "-o", str(code), "--irdl-file", str(dialect))
    assert (status, out, err) == (0, "", "")
    assert code.read_bytes().startswith(b"ML\xefR")
    with ir.Context() as fresh:
        fresh.allow_unregistered_dialects = True
        assert "migraphx.concat" in str(ir.Module.parse(code.read_bytes()))
    assert dialect.read_text().count("irdl.operation @softmax") == 1
    tool = shutil.which("torch-mlir-opt", path=str(Path(sys.executable).parent))
    assert tool is not None
    command = [tool, f"--irdl-file={dialect}", str(code), "--mlir-print-op-generic"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert '"migraphx.concat"(' in done.stdout
    # the tool verifies: without the dialect the op is unknown
    without = subprocess.run([tool, str(code)], capture_output=True, text=True, check=False)
    assert without.returncode != 0


def test_bytecode_is_for_one_input(run: Run) -> None:
    status, _, err = run(f"{SOFTMAX}// -----\n{SOFTMAX}", "--split-input-file", "--emit-bytecode")
    assert status == 2
    assert "for one input" in err


def test_no_implicit_module(run: Run) -> None:
    status, out, _ = run(SOFTMAX, "--no-implicit-module")
    assert status == 0
    assert out.startswith("func.func @f(")
    status, out, _ = run(f"module {{\n{SOFTMAX}}}", "--no-implicit-module", "--cse")
    assert status == 0
    assert out.startswith("module {")
    status, _, err = run(SOFTMAX, "--no-implicit-module", "--cse")
    assert status == 2
    assert "expected a 'builtin.module' for the pass pipeline, got 'func.func'" in err
    status, _, err = run(SOFTMAX + SOFTMAX.replace("@f", "@g"), "--no-implicit-module")
    assert status == 2
    assert "expected one op at the top" in err


# ---- plugins by option: in processes of their own, as a name can be taken once -------------------


def ran(tool: str, *arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).parent / f"mgx-{tool}"), *map(str, arguments)]
    return subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, check=False,
        env={**os.environ, "MGX_CACHE_DIR": str(cwd / "cache")},
    )  # fmt: skip


def test_a_plugin_by_option(tmp_path: Path) -> None:
    (tmp_path / "of_mine.py").write_text(PLUGIN.replace("{name}", "of_mine"))
    text = SOFTMAX.replace("softmax", "of_mine_twice").replace(" {axis = 0 : i64}", "")
    (tmp_path / "m.mlir").write_text(text)
    for flags in (["--load-pass-plugin=of_mine.py"], ["--load-dialect-plugin", "of_mine.py"]):
        done = ran("opt", "m.mlir", *flags, "--mgx-of-mine-mark", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert "module attributes {of_mine.mark}" in done.stdout
        assert '"migraphx.of_mine_twice"' in done.stdout
    done = ran("driver", "run", "m.mlir", "--cpu", "--fill1", "x0", "--load-plugin", "of_mine.py",
               "--apply-pass", "of_mine_mark", cwd=tmp_path)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "values 2, 2" in done.stderr
    assert ran("opt", "m.mlir", cwd=tmp_path).returncode == 2


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("gone.py", None, "no such file"),
        (
            "broken.py",
            "1 / 0\n",
            "broken.py:1: error: plugin 'broken.py' cannot be loaded: ZeroDiv",
        ),
        ("json.py", "", "the name 'json' is taken"),
        ("no_such_module", None, "cannot be loaded: ModuleNotFoundError"),
    ],
)
def test_plugins_that_cannot_be_loaded(
    tmp_path: Path, name: str, text: str | None, said: str
) -> None:
    (tmp_path / "m.mlir").write_text(SOFTMAX)
    if text is not None:
        (tmp_path / name).write_text(text)
    done = ran("opt", "m.mlir", f"--load-pass-plugin={name}", cwd=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
