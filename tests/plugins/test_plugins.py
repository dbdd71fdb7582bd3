"""Packages from outside: the example plugin, and plugins that are broken."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.plugins.install import ROOT, fake_package, fresh_environment, run, wheel_of

ROLLS = """
func.func @main(%x: tensor<2x?xf32>) -> tensor<2x?xf32> {
  %0 = "migraphx.roll"(%x) {axis = 1 : i64, shift = 2 : i64} : (tensor<2x?xf32>) -> tensor<2x?xf32>
  %1 = "migraphx.roll"(%0) {axis = 1 : i64, shift = 3 : i64} : (tensor<2x?xf32>) -> tensor<2x?xf32>
  return %1 : tensor<2x?xf32>
}
"""


def opt(python: Path | str, *arguments: str, **variables: str) -> subprocess.CompletedProcess[Any]:
    return run(python, "-m", "mgx_mlir.tools.opt.main", *arguments, **variables)


# ---- the example ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of a fresh environment that the example is installed into."""
    folder = tmp_path_factory.mktemp("plugins")
    made = fresh_environment(folder / "venv")
    wheel = wheel_of(ROOT / "examples" / "plugin", folder)
    done = run(made, "-m", "pip", "install", "-q", "--no-deps", "--no-index", str(wheel))
    assert done.returncode == 0, done.stderr
    return made


def test_the_pass_of_the_example_is_listed(python: Path) -> None:
    assert "--mgx-merge-rolls" in opt(python, "--help").stdout
    assert "find_nested_roll: roll(roll(x, a), b)" in opt(python, "--list-passes").stdout
    assert (
        "plugin 'example' of package 'mgx-example-plugin' 0.1.0" in opt(python, "--version").stdout
    )
    listed = run(python, "-m", "mgx_mlir.tools.driver.main", "op", "--list").stdout.split()
    assert {"roll", "cpu::roll"} <= {*listed}
    assert "merge-rolls" not in opt(python, "--help", MGX_PLUGINS="0").stdout
    refused = opt(python, "--mgx-merge-rolls", MGX_PLUGINS="0")
    assert "unknown option '--mgx-merge-rolls'" in refused.stderr


def test_the_pass_of_the_example_runs(python: Path, tmp_path: Path) -> None:
    file = tmp_path / "rolls.mlir"
    file.write_text(ROLLS)
    pipeline = "builtin.module(mgx-merge-rolls{max-iterations=4},mgx-dead-code-elimination)"
    for how in (["--mgx-merge-rolls"], [f"--pass-pipeline={pipeline}"]):
        done = opt(python, str(file), *how)
        assert done.returncode == 0, done.stderr
        assert re.findall(r"shift = (\d+)", done.stdout) == ["5"]
    off = opt(python, str(file), "--mgx-merge-rolls", "--disable-pattern=find_nested_roll")
    assert re.findall(r"shift = (\d+)", off.stdout) == ["2", "3"]


def test_a_model_with_the_operator_of_the_example(python: Path, tmp_path: Path) -> None:
    """Results are numpy's; the program is looked up until the plugin changes."""
    script = str(ROOT / "tests" / "plugins" / "drive.py")
    for cached in ("False", "True"):
        done = run(python, script, MGX_CACHE_DIR=str(tmp_path))
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip() == cached
    where = run(python, "-c", "import mgx_example; print(mgx_example.__file__)").stdout.strip()
    source = Path(where).with_name("lowerings.py")
    source.write_text(source.read_text() + "\n# another version of it\n")
    assert run(python, script, MGX_CACHE_DIR=str(tmp_path)).stdout.strip() == "False"
    off = run(python, script, MGX_CACHE_DIR=str(tmp_path), MGX_PLUGINS="0")
    assert "org.example.Roll" in off.stderr.replace("::", ".")


def test_the_document_shows_the_entry_point_of_the_example() -> None:
    [shown] = re.findall(
        r"```toml\n(.*?)```", (ROOT / "docs" / "plugins.md").read_text(), re.DOTALL
    )
    assert shown in (ROOT / "examples" / "plugin" / "pyproject.toml").read_text()


# ---- discovery -----------------------------------------------------------------------------------


def test_nothing_is_looked_for_on_import() -> None:
    code = (
        "import mgx_mlir, mgx_mlir.dialects, mgx_mlir.passes\n"
        "from mgx_mlir.core import context, plugins\n"
        "assert not plugins._installed.cache_info().misses\n"
        "context.new_context()\n"
        "assert plugins._installed.cache_info().misses == 1\n"
    )
    done = run(sys.executable, "-c", code)
    assert done.returncode == 0, done.stderr


SLOW = """
import time
time.sleep(0.3)
from mgx_mlir.core.op import Op, Operand, Result
class Late(Op, name="late"):
    input: Operand
    out: Result
"""


def test_every_thread_waits_for_the_plugins(tmp_path: Path) -> None:
    """The first one imports them, once; a context of the others has their operators too."""
    where = fake_package(tmp_path, "slow-thing", {"slow.py": SLOW})
    code = (
        "from concurrent.futures import ThreadPoolExecutor\n"
        "from mgx_mlir.core.context import new_context\n"
        "def known(_):\n"
        "    return new_context().is_registered_operation('migraphx.late')\n"
        "with ThreadPoolExecutor(6) as pool:\n"
        "    print(set(pool.map(known, range(6))))\n"
    )
    done = run(sys.executable, "-c", code, PYTHONPATH=where)
    assert done.stdout.strip() == "{True}", done.stderr


TOOLCHAIN = "from mgx_mlir.targets.toolchain import toolchain; print(toolchain())"


def test_cache_keys_hold_versions_and_sources(tmp_path: Path) -> None:
    """The module is not imported for that."""
    sources = {"quiet.py": "raise ImportError('it was imported')"}
    seen = []
    for i, (version, text) in enumerate([("1.0", ""), ("1.1", ""), ("1.1", "# edited")]):
        where = fake_package(
            tmp_path / str(i), "quiet", {"quiet.py": sources["quiet.py"] + text}, version
        )
        for switch in ("1", "0"):
            done = run(sys.executable, "-c", TOOLCHAIN, PYTHONPATH=where, MGX_PLUGINS=switch)
            assert done.returncode == 0, done.stderr
            seen.append(done.stdout)
    assert len(set(seen[::2])) == 3
    assert len(set(seen[1::2])) == 1


# ---- broken plugins ------------------------------------------------------------------------------

PASS = "from mgx_mlir.passes import PASSES\nPASSES.declare('broken', ['no_such'])\n"
ADD = "from mgx_mlir.core.op import Op\nclass Mine(Op, name='add'):\n    pass\n"
RELU = (
    "from mgx_mlir.frontends.onnx import onnx_op\n"
    "@onnx_op('Relu', since=1)\ndef relu(b, node, x):\n    return x\n"
)
BROKEN = {
    "a module that it needs": ({"broken.py": "import no_such_module"}, "ModuleNotFoundError"),
    "a syntax error": ({"broken.py": "def f(:"}, "SyntaxError"),
    "the end of the process": ({"broken.py": "raise SystemExit(0)"}, "SystemExit"),
    "an operator that is taken": ({"broken.py": ADD}, "operator 'add' is defined twice"),
    "an importer that is taken": ({"broken.py": RELU}, "registered twice"),
    "a pass that is taken": ({"broken.py": PASS.replace("no_such", "fuse_ops")}, "declared twice"),
    "a pass without module": ({"broken/__init__.py": PASS}, "No module named 'broken.no_such'"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_plugin_is_named(what: str, tmp_path: Path) -> None:
    sources, said = BROKEN[what]
    where = fake_package(tmp_path, "broken-thing", sources, "2.5")
    done = opt(sys.executable, "--help", PYTHONPATH=where)
    assert done.returncode == 2, done.stdout
    first, *notes = done.stderr.strip().splitlines()
    assert "plugin 'fake' of package 'broken-thing' 2.5 cannot be loaded: " in first
    assert said in first
    assert "pip uninstall broken-thing" in notes[0]
    assert opt(sys.executable, "--help", PYTHONPATH=where, MGX_PLUGINS="0").returncode == 0


def test_a_broken_plugin_stays_an_error(tmp_path: Path) -> None:
    """Parts that it registered before it failed are not taken for the whole plugin."""
    where = fake_package(tmp_path, "broken-thing", {"broken.py": "1 / 0"})
    code = (
        "from mgx_mlir.core.context import new_context\n"
        "from mgx_mlir.core.errors import PluginError\n"
        "for _ in range(2):\n"
        "    try:\n        new_context()\n"
        "    except PluginError as e:\n        print(e.message)\n"
    )
    done = run(sys.executable, "-c", code, PYTHONPATH=where)
    assert done.stdout.count("ZeroDivisionError: division by zero") == 2, done.stderr
