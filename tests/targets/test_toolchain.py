"""The digest of what makes cache entries, and the memo that spares reading all sources."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mgx_mlir.core import files, plugins
from mgx_mlir.targets import toolchain as file
from mgx_mlir.targets.toolchain import toolchain


@pytest.fixture(autouse=True)
def own_state(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No digest is kept in the process, and no file counts as young unless a test says so."""
    monkeypatch.setattr(file, "is_young", lambda _: False)
    file.facts.cache_clear()
    yield
    file.facts.cache_clear()


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    found = tmp_path / "sources"
    found.mkdir()
    (found / "a.py").write_text("x = 1")
    (found / "gfx942.json").write_text("1")
    monkeypatch.setattr(file, "SOURCES", found)
    return found


def again(kept: Path | None = None) -> str:
    file.facts.cache_clear()
    return toolchain(kept)


@pytest.mark.parametrize("name", ["a.py", "gfx942.json"])
@pytest.mark.parametrize("is_kept", [False, True])
def test_an_edited_source_changes_it(
    name: str, is_kept: bool, sources: Path, tmp_path: Path
) -> None:
    """Code, and tables that code reads: the clocks by which tiles are chosen."""
    kept = tmp_path / "kept" if is_kept else None
    seen = set()
    for text in ("x = 1", "x = 22", "x = 33"):  # the last two have one size
        (sources / name).write_text(text)
        seen |= {again(kept), again(kept)}
    assert len(seen) == 3
    (sources / "new.py").write_text("")
    assert again(kept) not in seen


def test_the_memo_spares_reading(
    sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = again()
    assert again(tmp_path / "kept") == whole
    monkeypatch.setattr(file, "_read", lambda: pytest.fail("all sources were read"))
    assert again(tmp_path / "kept") == whole
    times = (sources / "a.py").stat()
    (sources / "a.py").write_text("x = 2")
    os.utime(sources / "a.py", ns=(times.st_atime_ns, times.st_mtime_ns))  # times of a copy
    with pytest.raises(pytest.fail.Exception):
        again(tmp_path / "kept")


def test_versions_of_packages_that_trace_are_kept_too(
    sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A load of a text model has them in its key, and importlib.metadata takes 2.6 MB."""
    again(tmp_path / "kept")
    file.facts.cache_clear()
    monkeypatch.setattr(file, "_read", lambda: pytest.fail("all sources were read"))
    found = file.tracers(tmp_path / "kept")
    assert [row.partition("=")[0] for row in found] == list(file.TRACERS)
    assert all(row.partition("=")[2] for row in found)


def test_a_young_source_is_not_believed(
    sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second change of a young file may keep its size and times."""
    monkeypatch.setattr(file, "is_young", files.is_young)
    (sources / "a.py").write_text("x = 3")
    again(tmp_path / "kept")
    assert not list((tmp_path / "kept").glob("*"))
    time.sleep(0.1)
    again(tmp_path / "kept")
    assert list((tmp_path / "kept").glob("*"))


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"identity": 1, "digest": "0"}'])
def test_a_damaged_memo_is_made_again(damage: bytes, sources: Path, tmp_path: Path) -> None:
    whole = again(tmp_path / "kept")
    (memo,) = (tmp_path / "kept").iterdir()
    memo.write_bytes(damage)
    assert again(tmp_path / "kept") == whole
    assert memo.read_bytes() != damage


def test_another_version_of_a_package_changes_it(
    sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where an installer replaces the metadata in a folder of the same name."""
    kept, place = tmp_path / "kept", tmp_path / "site"
    (place / "onnx-1.dist-info").mkdir(parents=True)
    stated = place / "onnx-1.dist-info" / "METADATA"
    monkeypatch.syspath_prepend(str(place))
    seen = []
    for version in ("1.0", "1.1"):
        stated.write_text(f"Metadata-Version: 2.1\nName: onnx\nVersion: {version}\n")
        seen += [again(kept), again(kept)]
    assert seen[0] == seen[1] != seen[2] == seen[3]


def test_a_plugin_of_a_command_line_is_read_each_time(
    sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugin = tmp_path / "mine.py"
    plugin.write_text("")
    given = plugins.Plugin("mine.py", "", "mine", "mine", str(plugin))
    monkeypatch.setattr(plugins, "_given", [given])
    first = again(tmp_path / "kept")
    plugin.write_text("# edited")
    assert again(tmp_path / "kept") != first
    assert not (tmp_path / "kept").exists()


def test_it_is_the_same_in_two_processes(tmp_path: Path) -> None:
    code = (
        "import pathlib, sys; from mgx_mlir.targets.toolchain import toolchain;"
        "print(toolchain(pathlib.Path(sys.argv[1])), 'importlib.metadata' in sys.modules)"
    )
    time.sleep(0.1)  # the tests' own files are old enough
    rows = [
        subprocess.run(
            [sys.executable, "-c", code, str(tmp_path / "kept")],
            capture_output=True, text=True, check=True, timeout=60,
        ).stdout.split()
        for _ in range(2)
    ]  # fmt: skip
    assert rows[0][0] == rows[1][0]
    assert (rows[0][1], rows[1][1]) == ("True", "False")
