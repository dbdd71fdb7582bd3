"""Words of docstrings and comments: how they begin, and terms that a stranger does not know."""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent
WORDS = tomllib.loads((ROOT / "tests" / "words.toml").read_text())
FILES = sorted(p for top in ("dialects", "passes") for p in (ROOT / top).rglob("*.py"))
FILES += sorted(
    p
    for p in (ROOT / "mgx_mlir").rglob("*.py")
    if p.relative_to(ROOT).parts[1] not in ("dialects", "passes")  # links to the roots
)


def texts(source: str) -> Iterator[tuple[int, str]]:
    """Each docstring, and each comment with the lines that go on with it, by its line."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text is not None:
                yield node.body[0].lineno, text
    lines, found = source.splitlines(), list[list]()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        line, alone = token.start[0], lines[token.start[0] - 1].lstrip().startswith("#")
        text = token.string.lstrip("#: ")
        if found and alone and found[-1][2] == line - 1:
            found[-1][1] += f" {text}"
            found[-1][2] = line
        else:
            found.append([line, text, line if alone else 0])
    yield from ((line, text) for line, text, _ in found)


@cache
def texts_of(path: Path) -> list[tuple[int, str]]:
    return list(texts(path.read_text()))


# beginning of a comment or a string that may begin badly
CANDIDATE = re.compile(rf"""[#"'][#:\s(]*({"|".join(WORDS["first"])})\b""", re.IGNORECASE)


def begins_badly(text: str) -> bool:
    first = re.match(r"[\s(]*([A-Za-z]+)", text)
    return first is not None and first[1].lower() in WORDS["first"]


EVERYWHERE = FILES + sorted(
    p
    for top in ("benchmarks", "docs", "examples", "findings", "lit", "native", "tests", "zoo")
    for p in (ROOT / top).rglob("*.py")
)

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "benchmarks/README.md"]
PAGES += sorted((ROOT / "docs").rglob("*.md"))
LONGEST = 30  # words of a sentence, or of a part that a semicolon or a colon ends


def sentences(page: str) -> Iterator[str]:
    """The sentences of a page's paragraphs and lists; code and links count as a word each."""
    text = re.sub(r"^```.*?^```$", "", page, flags=re.MULTILINE | re.DOTALL)
    parts: list[list[str]] = [[]]
    for line in text.splitlines():
        if not line.strip() or line.startswith(("#", "|", "<")):
            parts.append([])
        elif re.match(r"\s*(?:[*-]|\d+\.) ", line):
            parts.append([line.strip()])
        else:
            parts[-1].append(line.strip())
    for part in parts:
        plain = re.sub(r"`[^`]*`", "x", " ".join(part))
        plain = re.sub(r"\[[^\]]*\]\([^)]*\)", "x", plain)
        plain = re.sub(r"\bx(?:, x)+\b", "x", plain)  # a list of names is read as one
        yield from re.split(r"(?<=[.!?:;])\**\s+", plain)


def test_sentences_of_pages_are_short() -> None:
    left = dict(WORDS["long-left"])
    found = {
        str(page.relative_to(ROOT)): [
            s for s in sentences(page.read_text()) if len(s.split()) > LONGEST
        ]
        for page in PAGES
    }
    more = {name: long for name, long in found.items() if len(long) > left.get(name, 0)}
    assert not more, f"one sentence, one idea: {more}"
    fewer = {n: len(found.get(n, [])) for n, m in left.items() if len(found.get(n, [])) < m}
    assert not fewer, f"lower the numbers of [long-left] in tests/words.toml: {fewer}"


def test_sentences_of_pages_begin_with_a_subject() -> None:
    first = re.compile(rf"\**({'|'.join(WORDS['page-first'])})\b")
    found = {
        str(page.relative_to(ROOT)): bad
        for page in PAGES
        if (bad := [s for s in sentences(page.read_text()) if first.match(s)])
    }
    assert not found, f"say the noun first: {found}"


@pytest.mark.parametrize("term", WORDS["page-terms"])
def test_terms_of_pages_are_those_of_the_field(term: str) -> None:
    found = {
        str(page.relative_to(ROOT)): m[0]
        for page in PAGES
        if (m := re.search(term, re.sub(r"`[^`]*`", "", page.read_text()), re.IGNORECASE))
    }
    assert found == {}, f"write {WORDS['terms'][term]}"


def test_sentences_are_found() -> None:
    page = f"# One\n* {'word ' * 20}\n  `a b c` {'word ' * 9}end. Short.\n\n```\n{'x ' * 40}\n```\n"
    assert [len(s.split()) for s in sentences(page) if s] == [32, 1]


def test_texts_are_found() -> None:
    source = (
        '"""What a module is."""\nx = 1  # of x\n# one\n# of two lines\ny = "# of no comment"\n'
    )
    found = list(texts(source))
    assert found == [(1, "What a module is."), (2, "of x"), (3, "one of two lines")]
    assert [begins_badly(text) for _, text in found] == [True, True, False]


def test_every_folder_of_python_files_is_read() -> None:
    """A new folder beside the others is in EVERYWHERE, or hidden by git."""
    tops = {p.relative_to(ROOT).parts[0] for p in EVERYWHERE}
    folders = {
        p.name
        for p in ROOT.iterdir()
        if p.is_dir() and not p.name.startswith(".") and p.name not in ("build", "dist", "models")
    }
    assert {f for f in folders - tops if any((ROOT / f).rglob("*.py"))} == set()


def test_docstrings_and_comments_begin_with_a_noun_or_a_verb() -> None:
    left = dict(WORDS["first-left"])
    bad: dict[str, list[str]] = {}
    for path in EVERYWHERE:
        if not CANDIDATE.search(path.read_text()):
            continue  # tokenizing all files takes long
        found = [f"{i}: {t[:70]}" for i, t in texts_of(path) if begins_badly(t)]
        bad[str(path.relative_to(ROOT))] = found
    more = {f: found for f, found in bad.items() if len(found) > left.get(f, 0)}
    assert not more, f"say the noun first: {more}"
    fewer = {f: len(bad.get(f, [])) for f, n in left.items() if len(bad.get(f, [])) < n}
    assert not fewer, f"lower the numbers of [first-left] in tests/words.toml: {fewer}"


@pytest.mark.parametrize("term", WORDS["terms"])
def test_terms_are_those_of_the_field(term: str) -> None:
    kept = WORDS["terms-kept"]
    found = {
        str(path.relative_to(ROOT))
        for path in FILES
        for _, text in texts_of(path)
        if re.search(term, text, re.IGNORECASE)
    }
    new = sorted(f for f in found if term not in kept.get(f, {}))
    assert not new, f"write {WORDS['terms'][term]}: {new}"
    gone = sorted(f for f, terms in kept.items() if term in terms and f not in found)
    assert not gone, f"delete from [terms-kept] of tests/words.toml: {gone}"
