"""The recipes of CONTRIBUTING.md, done as they stand there, in a copy of the tree.

A sample whose first line is a comment with a path is that file. A diff replaces or adds lines of
a file. The commands of the recipes are run, and pass.
"""

from __future__ import annotations

import inspect
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from mgx_mlir.core import attrs
from mgx_mlir.core.op import OPS
from mgx_mlir.core.scalar import ScalarBuilder
from mgx_mlir.frontends.onnx.importer import Node
from mgx_mlir.frontends.tf.node import Node as TfNode
from mgx_mlir.passes.lowering import index
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.cpu.frame.workgroup_builder import WorkgroupBuilder
from mgx_mlir.passes.lowering.cpu.nest.nest import Line, Tile
from mgx_mlir.rewrite.pattern import Rewriter
from tests.plugins.install import ROOT, fresh_environment

TEXT = (ROOT / "CONTRIBUTING.md").read_text()
RECIPES = [
    "Add an operator", "Add a rewrite", "Add an ONNX operator", "Add a TensorFlow operator",
    "Add a kernel rule", "Add a hazard",
]  # fmt: skip
COPIED = [
    "benchmarks", "dialects", "docs", "lit", "mgx_mlir", "passes", "pyproject.toml", "tests", "zoo",
]  # fmt: skip
TOOLS = {
    "lit": "from lit.main import main\nmain()\n",
    "mgx-opt": "import sys\nfrom mgx_mlir.tools.opt.main import main\nsys.exit(main())\n",
}


def section(title: str) -> str:
    """The text of a section."""
    return TEXT.split(f"\n## {title}\n")[1].split("\n## ")[0]


def fences(text: str, language: str = "") -> list[str]:
    """The blocks of a language."""
    found = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [block for own, block in found if own == language]


def samples() -> dict[str, str]:
    """The files of the recipes by their path."""
    found = {}
    for language, mark in (("python", "#"), ("mlir", "//")):
        for block in fences(TEXT, language):
            first, _, rest = block.partition("\n")
            assert first.startswith(f"{mark} "), f"expected a comment with a path, got: {first}"
            found[first.removeprefix(f"{mark} ")] = rest
    return found


def patched(text: str, diff: str) -> str:
    """A text in which the lines that a diff shows as they are become those that it shows as new."""
    lines = diff.splitlines()
    old, new = (
        "".join(f"{line[1:]}\n" for line in lines if line[:1] in (" ", mark)) for mark in "-+"
    )
    assert old, f"expected a line as it is:\n{diff}"
    assert text.count(old) == 1, f"expected the lines once:\n{old}"
    return text.replace(old, new)


def commands(title: str) -> list[str]:
    """The commands of a recipe without their comments."""
    lines = "".join(fences(section(title))).splitlines()
    found = [re.sub(r"\s+# .*", "", line) for line in lines]
    assert all(c.split()[0] in ("python", *TOOLS) for c in found), f"no command: {found}"
    return found


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the tree with the samples in it, and an environment, `.venv`, that is of it."""
    root = tmp_path_factory.mktemp("recipes") / "tree"
    root.mkdir()
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "Output", ".*")
            shutil.copytree(source, root / name, symlinks=True, ignore=ignored)
        else:
            shutil.copy(source, root / name)
    for path, text in samples().items():
        assert not (root / path).exists(), f"{path} is there already"
        (root / path).parent.mkdir(exist_ok=True)
        (root / path).write_text(text)
    for diff in fences(TEXT, "diff"):
        first, _, rest = diff.partition("\n")
        path = root / first.removeprefix("--- ")
        path.write_text(patched(path.read_text(), rest))
    python = fresh_environment(root / ".venv", root, pip=False)
    for name, text in TOOLS.items():
        tool = python.with_name(name)
        tool.write_text(f"#!{python}\n{text}")
        tool.chmod(0o755)
    return root


def shell(tree: Path, command: str) -> subprocess.CompletedProcess[str]:
    """Run a command line in the copy."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST", "MGX_TEST"))}
    environment |= {
        "PATH": f"{tree / '.venv' / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(tree),
        "PYTEST_ADDOPTS": "-p no:cacheprovider",
    }
    return subprocess.run(
        command, shell=True, cwd=tree, env=environment, text=True, timeout=600,
        capture_output=True,
    )  # fmt: skip


def test_the_copy_is_what_is_run(tree: Path) -> None:
    """Without this the samples would be checked against nothing."""
    done = shell(tree, "python -c 'import mgx_mlir; print(mgx_mlir.__file__)'")
    assert Path(done.stdout.strip()).is_relative_to(tree), done.stderr
    assert "--mgx-merge-rolls" in shell(tree, "mgx-opt --help").stdout


# two recipes that have the same command have it in the same copy
EVERY = list(dict.fromkeys(command for title in RECIPES for command in commands(title)))


@pytest.mark.parametrize("command", EVERY)
def test_the_commands_of_a_recipe(command: str, tree: Path) -> None:
    done = shell(tree, command.replace("FILE", "lit/dialect/forms.mlir"))
    assert done.returncode == 0, f"{command}\n{done.stdout[-4000:]}\n{done.stderr[-2000:]}"


def test_the_samples_are_as_the_tree_is(tree: Path) -> None:
    """Formatted, and without what ruff refuses."""
    files = " ".join(p for p in samples() if p.endswith(".py"))
    for command in ("ruff check", "ruff format --check --diff"):
        done = shell(tree, f"python -m {command} {files}")
        assert done.returncode == 0, done.stdout + done.stderr


def test_every_recipe_has_commands_and_files() -> None:
    assert all(commands(title) for title in RECIPES)
    assert {Path(p).parts[0] for p in samples()} == {
        "benchmarks", "dialects", "passes", "lit", "tests", "mgx_mlir"
    }  # fmt: skip


def names_of(title: str, prefix: str) -> set[str]:
    """The names behind `prefix.` in the tables of a recipe; a word after it is one of it too."""
    rows = [line for line in section(title).splitlines() if line.startswith("|")]
    cells = [c for row in rows for c in re.findall(r"`([^`]+)`", row)]
    found = set()
    for cell in cells:
        if cell.startswith(f"{prefix}."):
            found.update(re.findall(r"\w+", cell.removeprefix(f"{prefix}.").partition("(")[0]))
    return found


@pytest.mark.parametrize(
    ("title", "prefix", "holder"),
    [
        ("Add an operator", "e", LoweringContext),
        ("Add an operator", "index", index),
        ("Add an operator", "attr", attrs),
        ("Add a rewrite", "rw", Rewriter),
        ("Add an ONNX operator", "node", Node),
        ("Add a TensorFlow operator", "node", TfNode),
        ("Add a loop nest on CPUs", "k", WorkgroupBuilder),
        ("Add a loop nest on CPUs", "row", Line),
        ("Add a loop nest on CPUs", "tile", Tile),
    ],
)
def test_the_tables_name_what_is_there(title: str, prefix: str, holder: Any) -> None:
    names = names_of(title, prefix)
    assert names
    source, fields = inspect.getsource(holder), inspect.get_annotations(holder)
    unknown = [
        n
        for n in names
        if not hasattr(holder, n)
        and n not in fields
        and not re.search(rf"self\.{n}\b.* = ", source)
    ]
    assert not [n for n in unknown if n not in OPS]  # builders make ops


def test_the_table_of_scalars_names_what_is_there() -> None:
    table = section("Add an operator").split("| of `b` | |\n|---|---|\n")[1].split("\n\n")[0]
    cells = re.findall(r"`([^`]+)`", "\n".join(r.split(" | ")[0] for r in table.splitlines()))
    names = {w for c in cells for w in re.findall(r"\w+", c.removeprefix("b.").partition("(")[0])}
    assert len(names) > 30
    assert not [n for n in names if not hasattr(ScalarBuilder, n)]
