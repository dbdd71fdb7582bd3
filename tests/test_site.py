"""The site: it builds without a warning, and every block of its pages runs as written.

The info string of a fence says more than its language: `file=NAME` is a file that the page has
its reader save, `model` a block that wants a model.onnx, `skip` one that makes the environment,
`slow` and `emulator` what those blocks need.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import types
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.support.models import parsed

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = ["tutorial.md", *sorted(f"howto/{p.name}" for p in (DOCS / "howto").glob("*.md"))]
NOTEBOOKS = sorted((DOCS / "notebooks").glob("*.ipynb"))
BLOCK = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FETCHED = re.compile(r'<(?:script|link|img)[^>]*(?:src|href)="(https?://[^"]*)"')
RUN = 240  # seconds that a block may take at most
WORDS = {"skip", "model", "slow", "emulator"}
# pages whose blocks take 20 seconds or more; their commands have tests of their own in tests/driver
LONG = {"howto/wrong-result.md", "howto/slow-kernel.md", "howto/mi300x.md"}


@dataclass(frozen=True)
class Block:
    language: str
    words: frozenset[str]
    file: str
    text: str


def blocks(page: str) -> Iterator[Block]:
    for language, info, text in BLOCK.findall((DOCS / page).read_text()):
        words = info.split()
        files = [w.removeprefix("file=") for w in words if w.startswith("file=")]
        yield Block(language, frozenset(w for w in words if "=" not in w), "".join(files), text)


def needs(page: str) -> set[str]:
    return {w for b in blocks(page) for w in b.words}


def stand_in(path: Path) -> None:
    """The tutorial's model."""
    r = np.random.default_rng(0)
    held = {"w1": r.standard_normal((64, 128)) / 8, "w2": r.standard_normal((128, 10)) / 11}
    model = parsed(
        """(float[batch,64] x) => (float[batch,10] scores) {
        [dense1] a = MatMul (x, w1) [relu1] b = Relu (a) [dense2] c = MatMul (b, w2)
        [softmax] scores = Softmax (c) }""",
        held,
    )
    onnx.save(model, str(path))


def environment(home: Path) -> dict[str, str]:
    """The commands of this environment on the path, a cache of their own, 80 columns."""
    found = {k: v for k, v in os.environ.items() if not k.startswith(("MIGRAPHX_", "MGX_"))}
    kept = {k: v for k, v in os.environ.items() if k == "MGX_EMULATOR_PATH"}
    path = f"{Path(sys.executable).parent}{os.pathsep}{found.get('PATH', '')}"
    return {**found, **kept, "PATH": path, "MGX_CACHE_DIR": str(home / "cache"), "COLUMNS": "80"}


def run_page(
    page: str, home: Path, *, without: set[str], printed: dict[str, str] | None = None
) -> int:
    """Run the blocks of a page in order; blocks of Python share their names. How many ran.

    `printed` gets what each block printed, by its text.
    """
    python: list[str] = []
    count = 0
    shell = shutil.which("bash") or "sh"

    def flush() -> None:
        if python:
            ran([sys.executable, "-c", "\n".join(python)], "\n".join(python))

    def ran(command: list[str], text: str) -> None:
        done = subprocess.run(
            command, cwd=home, env=environment(home), capture_output=True, text=True, timeout=RUN,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{page}\n{text}\n{done.stdout[-2000:]}\n{done.stderr[-3000:]}"
        assert "Traceback" not in done.stderr
        if printed is not None:
            printed[text.strip()] = done.stdout

    for b in blocks(page):
        assert b.words <= WORDS, f"{page}: {b.words - WORDS}"
        if b.words & ({"skip"} | without):
            continue
        if "model" in b.words and not (home / "model.onnx").exists():
            stand_in(home / "model.onnx")
        if b.file:
            (home / b.file).write_text(b.text)
        elif b.language == "python":
            python.append(b.text)
        elif b.language == "sh":
            ran([shell, "-euc", b.text], b.text)
        else:
            raise AssertionError(f"{page}: a block of {b.language} that is no file")
        count += 1
    flush()
    return count


@pytest.mark.parametrize(
    "page", [pytest.param(p, marks=pytest.mark.slow) if p in LONG else p for p in PAGES]
)
def test_the_blocks_of_a_page_run(page: str, tmp_path: Path) -> None:
    wanted = [b for b in blocks(page) if not b.words & {"skip", "slow", "emulator"}]
    printed: dict[str, str] = {}
    run = run_page(page, tmp_path, without={"slow", "emulator"}, printed=printed)
    assert run == len(wanted)
    if page == "tutorial.md":
        [listing] = (out for text, out in printed.items() if text.startswith("mgx-driver run"))
        kernels = listing.partition("\n\n")[0].count("= cpu::")
        counted = re.search(r"become (\w+)\s\*kernels\*", (DOCS / page).read_text())
        assert counted is not None
        assert ["no", "one", "two", "three", "four"][kernels] == counted.group(1)


@pytest.mark.slow
@pytest.mark.parametrize("page", [p for p in PAGES if needs(p) & {"slow", "emulator"}])
def test_the_slow_blocks_of_a_page_run(page: str, tmp_path: Path) -> None:
    """Blocks that need torch or the emulator."""
    assert run_page(page, tmp_path, without=set())


def builder() -> types.ModuleType:
    spec = importlib.util.spec_from_file_location("build_site", DOCS / "build_site.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["build_site"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.skipif(sys.version_info < (3, 11), reason="zensical wants Python 3.11")
def test_the_site_builds_and_its_notebooks_run(tmp_path: Path) -> None:
    """In strict mode: a link to nothing fails it. Each notebook has a plot."""
    done = subprocess.run(
        [sys.executable, str(DOCS / "build_site.py"), "--notebooks", str(tmp_path)],
        env=environment(tmp_path), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    site = tmp_path / "site"
    for page in builder().pages().values():
        assert (site / page).with_suffix(".html").is_file(), page
    for notebook in NOTEBOOKS:
        text = (site / "notebooks" / f"{notebook.stem}.html").read_text()
        assert "<img" in text
        assert [*(site / "notebooks").glob(f"{notebook.stem}-*.png")]
    api = (site / "reference/api.html").read_text()
    assert "Compile a model for a target." in api
    assert "overview.svg" in (site / "index.html").read_text()
    # nothing is fetched from elsewhere
    for page in site.rglob("*.html"):
        loaded = re.findall(
            r'<(?:script|link|img)[^>]*(?:src|href)="(https?://[^"]*)"', page.read_text()
        )
        assert loaded == [], page


def test_notebooks_are_kept_without_results() -> None:
    """Results on a page come from the run that made it."""
    assert len(NOTEBOOKS) >= 2
    for path in NOTEBOOKS:
        for cell in json.loads(path.read_text())["cells"]:
            assert not cell.get("outputs"), path.name
            assert cell.get("execution_count") is None
            for line in "".join(cell["source"]).splitlines():
                assert len(line) <= 120, f"{path.name}: {line}"


def test_links_between_pages_of_the_site() -> None:
    site = builder()
    known = site.pages()
    page = DOCS / "howto" / "own-operator.md"
    text = "[a](../onnx.md#x) [b](../../CONTRIBUTING.md) [c](../../examples/plugin) `[d](e.md)`\n"
    found = site.on_site(text + "```sh\n[f](g.md)\n```\n", page, known)
    assert found.startswith("[a](../onnx.md#x) [b](../contributing.md) c ")
    assert "[f](g.md)" in found
    assert site.on_site("```python file=x.py model\n1\n```\n", page, known).startswith(
        '```python title="x.py"\n'
    )


def test_every_page_is_in_the_menu_once() -> None:
    site = builder()
    names = [*site.pages().values(), *(f"notebooks/{n.stem}.md" for n in NOTEBOOKS)]
    listed = [n for part in site.menu(names) for each in part.values() for n in each]
    assert sorted(listed) == sorted(names)
