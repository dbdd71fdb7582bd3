"""The documents as a whole: widths of lines, links, paths, hazards, the life of a model."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests import written

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    ROOT / "benchmarks/README.md",
    *sorted(DOCS.rglob("*.md")),
]
# CONTRIBUTING.md names the files that its recipes make; test_contributing.py follows them
STATING = [page for page in PAGES if page.name != "CONTRIBUTING.md"]
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]
WIDTH = 120
HAZARDS = DOCS / "iree-hazards.md"

# a path from the root of the repository; what follows a placeholder such as `<pass>` is left out
TOPS = "benchmarks|dialects|docs|examples|lit|mgx_mlir|native|passes|tests"
PATH = re.compile(rf"(?<![\w./-])(?:{TOPS})/[\w./-]*\w")
SOURCE = re.compile(r"`([\w./-]*\w\.(?:py|cpp|h|inc|mlir|toml))`")
MODULE = re.compile(r"python -m ((?:benchmarks|mgx_mlir|tests)[\w.]*)")
DEFINED = re.compile(r"`([\w.]+)`\s+(?:in|of)\s+`([\w./-]+\.py)`")
LINK = re.compile(r"\]\(([^)\s]+)\)")
# made by the commands of the page; files of a reader's own
MADE = {"models/light_resnet50.onnx"}
OWN = {"build.py", "m.mlir", "net.py", "make_model.py", "once.py"}


@cache
def file_names() -> frozenset[str]:
    """The names of all files that git knows."""
    done = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return frozenset(Path(name).name for name in done.stdout.split("\0"))


def prose(page: Path) -> str:
    """A page without its blocks of code."""
    return re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)


@cache
def anchors(page: Path) -> frozenset[str]:
    """The anchors that GitHub makes of a page's headings."""
    heads = re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE)
    return frozenset(re.sub(r"[^\w -]", "", h).strip().lower().replace(" ", "-") for h in heads)


def long_lines(text: str) -> Iterator[str]:
    """The lines that are wider than a page may be, but for rows of tables."""
    for i, line in enumerate(text.splitlines(), 1):
        if len(line) > WIDTH and not line.lstrip().startswith("|"):
            yield f"line {i} has {len(line)} columns: {line[:60]} .."


def missing_paths(page: Path) -> Iterator[str]:
    """The paths and modules that a page names and that are not there."""
    text = page.read_text()
    for m in PATH.finditer(text):
        if not (ROOT / m[0]).exists() and m[0] not in MADE:
            yield m[0]
    for m in SOURCE.finditer(text):
        top = m[1].split("/")[0]
        if "/" in m[1] and not re.fullmatch(TOPS, top) and not (ROOT / m[1]).exists():
            yield f"{m[1]}: write the path from the root of the repository"
        if "/" not in m[1] and m[1] not in file_names() | OWN and not m[1].startswith("."):
            yield m[1]
    for m in MODULE.finditer(text):
        path = ROOT / m[1].replace(".", "/")
        if not (path.with_suffix(".py").exists() or (path / "__init__.py").exists()):
            yield f"python -m {m[1]}"


def missing_names(page: Path) -> Iterator[str]:
    """The names that a page says are in a file and that the file does not have."""
    for name, path in DEFINED.findall(page.read_text()):
        found = (ROOT / path).read_text() if (ROOT / path).exists() else ""
        if not re.search(rf"\b{re.escape(name.rpartition('.')[2])}\b", found):
            yield f"{name} in {path}"


def broken_links(page: Path) -> Iterator[str]:
    """The links of a page to files or headings that are not there."""
    for target in LINK.findall(prose(page)):
        if "://" in target:
            continue
        name, _, anchor = target.partition("#")
        other = (page.parent / name).resolve() if name else page
        if not other.exists():
            yield target
        elif anchor and other.suffix == ".md" and anchor not in anchors(other):
            yield f"{target}: no such heading"


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_lines_are_not_too_wide(page: Path) -> None:
    assert [*long_lines(page.read_text())] == []


@pytest.mark.parametrize("page", STATING, ids=lambda p: str(p.relative_to(ROOT)))
def test_paths_exist(page: Path) -> None:
    assert [*missing_paths(page)] == []


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_names_are_in_their_files(page: Path) -> None:
    assert [*missing_names(page)] == []


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_links_lead_somewhere(page: Path) -> None:
    assert [*broken_links(page)] == []


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_links_say_where_they_lead(page: Path) -> None:
    """Links say a title or a part of the sentence, and no file's name."""
    assert re.findall(r"\[[\w./-]+\.(?:md|ipynb)\]\([^)]*\)", prose(page)) == []


def test_a_change_is_one_line_of_the_changelog() -> None:
    lines = (ROOT / "CHANGELOG.md").read_text().splitlines()
    begin = lines.index("## 0.1.0 (unreleased)")
    text = [line for line in lines[begin + 1 :] if line]
    assert [line for line in text if not line.startswith(("* ", "### "))] == []
    assert [line for line in text if line.startswith("* ") and not line.endswith(".")] == []
    groups = [line for line in text if line.startswith("### ")]
    assert text[0] in groups
    assert len(groups) == len(set(groups))


@cache
def functions_of_tests() -> frozenset[str]:
    names = re.compile(r"^ *def (test_\w+)", re.MULTILINE)
    return frozenset(
        n for p in (ROOT / "tests").rglob("*.py") for n in names.findall(p.read_text())
    )


@pytest.mark.parametrize(
    "page",
    [DOCS / f"{name}.md" for name in ("gpu-kernels", "kernels", "performance")],
    ids=lambda p: p.name,
)
def test_a_principle_is_short_and_held_by_a_test(page: Path) -> None:
    """A bullet has three lines at most and, if it says who holds it, names tests that there are."""
    text = prose(page).partition("\n## Forms\n")[0].partition("\n## Where we lose\n")[0]
    found = re.findall(r"^\* (?:.|\n(?!\n|\*|#))*", text, re.MULTILINE)
    assert found
    for each in found:
        assert each.count("\n") <= 3, each
        held = " ".join(each.split()).partition("Held by ")[2]
        names = re.findall(r"`([^`]+)`", held)
        assert names or "nvidia-kernels.md" in each, f"{each}: no test holds it"
        for name in names:
            assert name in functions_of_tests() or (ROOT / name).exists(), name


def test_faults_are_seen(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# A page\n" + "word " * 30 + "\n| " + "cell " * 30 + "|\n"
        "`core/gone.py` `gone.py` `mgx_mlir/gone.py` `lit/<pass>/x.mlir` `build.py`\n"
        "`prose` in `tests/test_docs.py`, `gone_by_now` in `tests/run.py`\n"
        "`python -m tests.gone` [here](#a-page) [there](#nowhere) [away](gone.md)\n"
    )
    assert len([*long_lines(page.read_text())]) == 1
    assert sorted(missing_paths(page)) == [
        "core/gone.py: write the path from the root of the repository",
        "gone.py",
        "mgx_mlir/gone.py",
        "python -m tests.gone",
    ]
    assert [*missing_names(page)] == ["gone_by_now in tests/run.py"]
    assert [*broken_links(page)] == ["#nowhere: no such heading", "gone.md"]


def test_every_page_is_in_the_index() -> None:
    index = DOCS / "index.md"
    linked = {(DOCS / t.partition("#")[0]).resolve() for t in LINK.findall(index.read_text())}
    assert {p for p in DOCS.glob("*.md") if p != index} <= linked
    assert {*(DOCS / "data").glob("*.md")} <= linked


def test_every_decision_is_listed_and_whole() -> None:
    pages = sorted((DOCS / "design").glob("[0-9]*.md"))
    listed = re.findall(r"\((\d\d-[\w-]+\.md)\)", (DOCS / "design/README.md").read_text())
    assert [p.name for p in pages] == listed
    for page in pages:
        heads = re.findall(r"^## (.*)$", page.read_text(), re.MULTILINE)
        assert heads == ["Context", "Decision", "Price", "Reconsider when"], page.name


def test_the_layers_are_those_of_import_linter() -> None:
    linter = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    layers = " > ".join(linter["contracts"][0]["layers"]).replace("mgx_mlir.", "")
    [block] = re.findall(
        r"## Layers\n.*?```text\n(.*?)```", (DOCS / "architecture.md").read_text(), re.DOTALL
    )
    assert block.split() == layers.split()


def test_every_room_is_described() -> None:
    text = (DOCS / "architecture.md").read_text()
    rooms = {
        p.parent for p in (ROOT / "mgx_mlir").glob("*/__init__.py") if not p.parent.is_symlink()
    }
    rooms |= {ROOT / "dialects", ROOT / "passes", ROOT / "passes/analysis"}
    rooms.add(ROOT / "passes/lowering")
    assert [
        r for r in map(str, sorted(p.relative_to(ROOT) for p in rooms)) if f"`{r}`" not in text
    ] == []


def rows(page: str) -> list[list[str]]:
    """The rows of six cells with a number in the third: opsets, or counts of models."""
    lines = (DOCS / page).read_text().splitlines()
    cells = [[c.strip() for c in line.split("|")[1:-1]] for line in lines]
    return [row for row in cells if len(row) == 6 and row[2].isdigit()]


def test_the_summary_of_families_is_that_of_the_rows() -> None:
    found: dict[str, list[list[str]]] = {}
    for row in rows("data/model-families.md"):
        found.setdefault(row[0], []).append(row)
    for name, exporters, models, dims, error, seconds in rows("families.md"):
        of = found.pop(name)
        times = [float(r[5]) for r in of]
        assert exporters == ", ".join(dict.fromkeys(r[1] for r in of)), name
        assert models == str(len(of)), name
        assert dims == ", ".join(sorted({r[3] for r in of})), name
        assert float(error) == max(float(r[4]) for r in of), name
        assert seconds == f"{min(times):g} to {max(times):g}", name
    assert found == {}


def hazards() -> dict[int, str]:
    """The entries of the page of hazards by their numbers."""
    parts = re.split(r"^## Hazard (\d+)$", HAZARDS.read_text(), flags=re.MULTILINE)
    return dict(zip(map(int, parts[1::2]), parts[2::2], strict=True))


def test_hazards_are_whole() -> None:
    found = hazards()
    assert [*found] == [*range(1, len(found) + 1)]
    for number, text in found.items():
        for field in ("Symptom", "Versions: ", "Our form: ", "Gone when: ", "Pinned by: "):
            assert f"\n* {field}" in text, f"hazard {number} has no '{field}'"
        pinned = text.partition("\n* Pinned by: ")[2]
        assert re.match(r"`(lit|tests)/|nothing; it is a matter of speed", pinned), number
    table = HAZARDS.read_text().partition("## Hazard 1\n")[0]
    assert {*map(int, re.findall(r"#hazard-(\d+)", table))} == {*found}


def test_the_code_names_hazards_that_there_are() -> None:
    found = hazards()
    named = {
        int(number)
        for folder in ("mgx_mlir", "passes", "dialects", "tests")
        for path in (ROOT / folder).rglob("*.py")
        for number in re.findall(r"iree-hazards\.md,? hazard (\d+)", path.read_text())
    }
    assert named <= {*found}


def test_the_life_of_a_model_is_what_is_printed() -> None:
    page = (DOCS / "life-of-a-model.md").read_text()
    now = written.script("life_of_a_model").text()
    assert page == now, "python docs/life_of_a_model.py writes it anew"
