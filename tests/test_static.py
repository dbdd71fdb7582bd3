"""The type check sees every root, its packages and the bindings' stub; imports have no circle."""

from __future__ import annotations

import graphlib
import json
import shutil
import subprocess
from pathlib import Path

import grimp
import pytest

from tests import conftest
from tests.run import ROOT, STEPS

PLANTED = """
import no_such_package as no_such_package
from torch_mlir import ir
import numpy as np

number: int = "text"
value: ir.Value = ir.Location.unknown()
array: np.ndarray = 1
"""


def test_a_planted_error_is_found_in_every_root(tmp_path: Path) -> None:
    roots = ("mgx_mlir", "dialects", "passes")
    for root in roots:
        (tmp_path / root).mkdir()
        (tmp_path / root / "planted.py").write_text(PLANTED)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    shutil.copytree(ROOT / "typings", tmp_path / "typings")
    command = next(c for c in STEPS["static"] if "pyright" in c)
    done = subprocess.run(
        [*command, "--outputjson"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    found: dict[str, set[str]] = {root: set() for root in roots}
    for row in json.loads(done.stdout)["generalDiagnostics"]:
        found[Path(row["file"]).parent.name].add(f"{row['range']['start']['line']} {row['rule']}")
    expected = {
        "1 reportMissingImports",
        "5 reportAssignmentType",
        "6 reportAssignmentType",
        "7 reportAssignmentType",
    }
    assert found == dict.fromkeys(roots, expected)
    assert done.returncode == 1


def test_no_circle_of_imports_also_inside_functions() -> None:
    graph = grimp.build_graph("mgx_mlir", exclude_type_checking_imports=True)
    imports = {m: graph.find_modules_directly_imported_by(m) for m in graph.modules}
    assert len(imports) > 400
    try:
        graphlib.TopologicalSorter(imports).prepare()
    except graphlib.CycleError as e:
        pytest.fail(f"a circle of imports: {' <- '.join(e.args[1])}")


def test_files_that_are_begun_first_exist() -> None:
    assert [n for n in conftest.LONGEST if not (ROOT / "tests" / n).exists()] == []
