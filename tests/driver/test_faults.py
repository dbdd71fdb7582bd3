"""Every command on files that cannot be read: one line, exit status 2."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from examples import mnist
from tests.driver.conftest import Driver, Ran

NOBODY = 65534
# (options, the name of the file that is wrong) of every place that takes a file
PLACES = {
    "params": ("params", "{}"),
    "read": ("read", "{}"),
    "read --trim": ("read", "{}", "--trim", "1", "--mlir"),
    "compile": ("compile", "--cpu", "{}"),
    "run": ("run", "--ref", "{}"),
    "report": ("report", "--cpu", "{}"),
    "perf": ("perf", "--ref", "{}"),
    "time": ("time", "--ref", "{}"),
    "verify": ("verify", "--cpu", "{}"),
    "verify --against": ("verify", "--cpu", "{model}", "--against", "{}"),
    "verify -i": ("verify", "--cpu", "{}", "-i"),
    "verify --compiled-model": ("verify", "{model}", "--compiled-model", "{}"),
    "verify --json": ("verify", "--cpu", "{}", "--json"),
    "perf --json": ("perf", "--ref", "{}", "--json"),
    "perf --compare": ("perf", "--ref", "{model}", "--compare", "{}"),
    "--load-arg": ("perf", "--ref", "{model}", "--load-arg", "@x", "{}"),
}
ROCTX = ("roctx", "--ref", "{}")


def kinds(folder: Path, suffix: str) -> Iterator[Path]:
    (folder / f"empty{suffix}").write_bytes(b"")
    (folder / f"noise{suffix}").write_bytes(bytes(range(256)) * 40)
    (folder / f"text{suffix}").write_text("this is no such file\n")
    (folder / f"folder{suffix}").mkdir()
    os.mkfifo(folder / f"pipe{suffix}")
    yield from sorted(folder.iterdir())
    yield folder / f"missing{suffix}"


def suffixes(place: str) -> tuple[str, ...]:
    if place.endswith("--compare"):
        return (".json",)
    if place.endswith("--load-arg"):
        return (".npy", ".npz", ".pb", ".arg")
    if place.endswith("--compiled-model"):
        return (".mxr",)
    return (".onnx", ".mxr", ".mlir", ".json", ".pb", ".py", ".odd")


def run(driver: Driver, place: str, model: Path, path: Path) -> Ran:
    words = [w.format(path, model=model) for w in PLACES[place]]
    return driver(*words)


def said(ran: Ran) -> list[str]:
    progress = (
        "Target: ", "Compiling ...", "Reading: ", "note: ", "Allocating ", "Compiled in",
        "Compiled: loaded",
    )  # fmt: skip
    return [line for line in ran.errors if not line.startswith(progress)]


@pytest.mark.parametrize("place", PLACES)
def test_wrong_files(driver: Driver, models: Path, tmp_path: Path, place: str) -> None:
    for suffix in suffixes(place):
        folder = tmp_path / suffix[1:]
        folder.mkdir()
        for path in kinds(folder, suffix):
            ran = run(driver, place, models / "wider.onnx", path)
            assert ran.status == 2, path
            found = said(ran)
            assert len(found) == 1, found
            assert found[0].startswith(f"{path}"), found
            assert ": error: " in found[0]


CUTS = 9


@pytest.mark.parametrize("suffix", [".onnx", ".pb", ".mxr", ".json", ".mlir", ".py"])
def test_truncated_files(driver: Driver, tmp_path: Path, suffix: str) -> None:
    pb, model = mnist.write(tmp_path)
    whole = {".onnx": model, ".pb": pb}.get(suffix, tmp_path / f"whole{suffix}")
    if not whole.exists():
        form = ("--trim", 1, "--trim-size", 3)  # small, so that cuts are everywhere
        assert driver("read", model, *form, "-o", whole).status == 0
    data = whole.read_bytes()
    cut = tmp_path / f"cut{suffix}"
    for i in range(CUTS):
        cut.write_bytes(data[: len(data) * (2 * i + 1) // (2 * CUTS)])
        ran = driver("read", cut)
        # a file cut at the end of a statement is a smaller script, or module
        if suffix in (".py", ".mlir") and ran.status == 0:
            continue
        assert (ran.status, ran.out) == (2, ""), i
        found = said(ran)
        assert len(found) == 1, found
        assert found[0].startswith(f"{cut}"), found


def test_roctx_says_what_is_missing(driver: Driver, tmp_path: Path) -> None:
    ran = driver(*(w.format(tmp_path / "no.onnx") for w in ROCTX))
    assert ran.status == 2
    assert len(said(ran)) == 1


@contextmanager
def as_nobody() -> Iterator[None]:
    """Without root's rights, in this process: what is imported already stays."""
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that everyone may look into; pytest's own are closed."""
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        yield Path(name)


@pytest.mark.skipif(not hasattr(os, "seteuid"), reason="there are no permissions to take away")
@pytest.mark.parametrize("place", PLACES)
def test_no_permission(driver: Driver, models: Path, open_folder: Path, place: str) -> None:
    path, model = open_folder / f"secret{suffixes(place)[0]}", open_folder / "model.onnx"
    shutil.copy(models / "wider.onnx", model)
    model.chmod(0o644)
    path.write_bytes(b"x")
    assert run(driver, place, model, path).status == 2  # imports all dependencies
    path.chmod(0)
    if os.geteuid() == 0:
        with as_nobody():
            ran = run(driver, place, model, path)
    else:
        ran = run(driver, place, model, path)
    assert ran.status == 2
    found = said(ran)
    assert len(found) == 1, found
    assert found[0].startswith(f"{path}: error: ")
    assert "permi" in found[0]
