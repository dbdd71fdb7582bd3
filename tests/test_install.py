"""Installing: the page's commands, and the lines that errors about missing packages have."""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from mgx_mlir.core import extras

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "install.md"
NAMED = re.compile(r"pip install[^\n`]*\bmgx[-_]mlir(?!-[\d.]+-py3)[\[\s'\"`]")
PAGES = [p for p in ROOT.rglob("*.md") if not {".venv", "build"} & {*p.relative_to(ROOT).parts}]
SOURCES = [p for top in ("mgx_mlir", "benchmarks") for p in (ROOT / top).rglob("*.py")]


def test_nothing_is_installed_by_a_name_that_no_registry_has() -> None:
    """From a folder of wheels alone, by --no-index."""
    found = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path in [*PAGES, *SOURCES]
        for line in path.read_text().splitlines()
        if NAMED.search(line) and "--no-index" not in line
    ]
    assert found == []
    assert NAMED.search("`pip install 'mgx-mlir[torch]'`")
    assert NAMED.search("pip install --no-deps mgx-mlir onnx")
    assert not NAMED.search("pip install --no-deps dist/mgx_mlir-0.1.0-py3-none-any.whl")


def test_an_extra_is_named_by_its_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [
        "numpy>=1.26",
        'torch>=2.6; extra == "torch"',
        'onnxscript >=0.3 ; extra == "torch"',
        'gguf>=0.10; extra == "text"',
        'mgx-mlir[torch]; extra == "text"',
    ]
    monkeypatch.setattr(importlib.metadata, "requires", lambda _: rows)
    assert extras.install_line("torch") == "pip install 'torch>=2.6' 'onnxscript>=0.3'"
    assert extras.install_line("text") == "pip install 'gguf>=0.10' 'torch>=2.6' 'onnxscript>=0.3'"
    # a folder that is not installed has no metadata
    assert extras.install_line("lsp") == "pip install '.[lsp]' (in a clone)"


@pytest.mark.slow
@pytest.mark.skipif(
    not os.environ.get("MGX_TEST_INSTALL"), reason="MGX_TEST_INSTALL=1: it needs a package index"
)
def test_the_blocks_of_the_page_run_in_a_clone(tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", str(ROOT), str(clone)], check=True)
    text = "\n".join(re.findall(r"^```sh clone\n(.*?)^```$", PAGE.read_text(), re.M | re.S))
    assert text.count("pip install") == 5
    text = text.replace("/tmp/mgx-", f"{tmp_path}/mgx-")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("MGX_", "PYTHON"))}
    shell = shutil.which("bash") or "sh"
    done = subprocess.run(
        [shell, "-euc", text], cwd=clone, env={**kept, "MGX_CACHE_DIR": str(tmp_path / "cache")},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.count("verification passed") == 2
