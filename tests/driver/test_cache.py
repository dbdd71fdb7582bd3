"""The compile cache: keyed by content, listed, carried elsewhere, pruned."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import numpy as np
import pytest

import mgx_mlir
from mgx_mlir.targets.cache import Cache
from tests.driver.conftest import Driver

OTHER = """
import sys
from pathlib import Path
# an editable installation finds itself ahead of PYTHONPATH
sys.meta_path[:] = [f for f in sys.meta_path if not type(f).__module__.startswith("_editable")]
import mgx_mlir
print(Path(mgx_mlir.__file__).parent, mgx_mlir.compile(sys.argv[1], "cpu").stats.cached)
"""
GIVEN = np.zeros((1, 1, 28, 28), np.float32)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MGX_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path


def compiled(path: Path) -> bool:
    """Compile; whether it was in the cache."""
    return mgx_mlir.compile(path, "cpu").stats.cached


def test_a_model_in_another_folder_is_warm(home: Path, models: Path) -> None:
    assert not compiled(models / "mnist.onnx")
    (home / "other").mkdir()
    shutil.copy(models / "mnist.onnx", home / "other" / "renamed.onnx")
    assert compiled(home / "other" / "renamed.onnx")
    a, b = (
        mgx_mlir.parse_onnx(str(p)) for p in (models / "mnist.onnx", home / "other/renamed.onnx")
    )
    a.compile(mgx_mlir.get_target("cpu"))
    b.compile(mgx_mlir.get_target("cpu"))
    assert b.compiled.stats.cached


@pytest.mark.parametrize("change", ["", "# another line\n"])
def test_another_installation_of_the_same_sources_is_warm(
    home: Path, models: Path, change: str
) -> None:
    """A second environment, or a rebuilt wheel, has other paths and times."""
    compiled(models / "mnist.onnx")
    package = home / "site" / "mgx_mlir"
    ignore = shutil.ignore_patterns("__pycache__", "build")
    shutil.copytree(Path(mgx_mlir.__file__).parent, package, ignore=ignore)
    for file in package.rglob("*.py"):
        os.utime(file, (1, 1))
    changed = package / "passes" / "rewrite_dot.py"
    changed.write_text(changed.read_text() + change)
    done = subprocess.run(
        [sys.executable, "-c", OTHER, str(models / "mnist.onnx")], capture_output=True, text=True,
        check=True, cwd=home, env=dict(os.environ, PYTHONPATH=str(package.parent)),
    )  # fmt: skip
    assert done.stdout.split() == [str(package), str(not change)]


def test_a_cache_is_carried_elsewhere(
    driver: Driver, home: Path, models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled(models / "mnist.onnx")
    rows = driver("cache", "list").lines
    assert sorted(r.split()[0] for r in rows) == ["module", "pack", "program"]
    assert driver("cache", "export", "-o", home / "c.tar").status == 0
    assert driver("cache", "export", "-o", home / "d.tar").status == 0
    assert (home / "c.tar").read_bytes() == (home / "d.tar").read_bytes()
    monkeypatch.setenv("MGX_CACHE_DIR", str(home / "elsewhere"))
    ran = driver("cache", "import", "-i", home / "c.tar")
    assert (ran.status, ran.lines) == (0, ["added 3 entries, 0 were there already"])
    assert driver("cache", "import", "-i", home / "c.tar").lines == [
        "added 0 entries, 3 were there already"
    ]
    assert compiled(models / "mnist.onnx")
    assert driver("cache", "prune", "--limit", "1").lines[0].startswith("removed 3 entries")
    assert driver("cache", "list").out == ""


def test_what_language_models_keep_is_listed_and_pruned(driver: Driver, home: Path) -> None:
    store = Cache()
    (store.root / "model" / "folder").mkdir(parents=True)
    (store.root / "model" / "folder" / "tokenizer.json").write_text("x" * 2000)
    (store.root / "model" / "key").write_text("{}")
    rows = [r.split() for r in driver("cache", "list").lines]
    assert sorted((r[0], r[1], r[-1]) for r in rows) == [
        ("model", "0.000", "key"), ("model", "0.002", "folder"),
    ]  # fmt: skip
    assert driver("cache", "prune", "--limit", "1").lines == ["removed 2 entries, 0.0 MB"]
    assert list((store.root / "model").iterdir()) == []


def test_what_is_no_archive_is_refused(driver: Driver, home: Path, models: Path) -> None:
    compiled(models / "mnist.onnx")
    driver("cache", "export", "-o", home / "c.tar")
    whole = (home / "c.tar").read_bytes()
    at = whole.index(b"MGXBLOB2") + 9000

    def archive(name: str, kind: bytes = tarfile.REGTYPE) -> bytes:
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w") as f:
            member = tarfile.TarInfo(name)
            member.type, member.linkname = kind, "/etc/passwd"
            f.addfile(member)
        return out.getvalue()

    for data, why in (
        (b"no tar" * 999, "not an archive"),
        (archive("../x"), "is not a cache entry"),
        (archive("module/" + "a" * 40, tarfile.SYMTYPE), "is not a cache entry"),
        (archive("module/" + "a" * 40), "too short"),
        (whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :], "damaged"),
        (whole.replace(b"pack/", b"module/", 1), ""),
    ):
        (home / "bad.tar").write_bytes(data)
        driver("cache", "prune", "--limit", "0")
        ran = driver("cache", "import", "-i", home / "bad.tar")
        assert ran.status == 2
        assert why in ran.err
    assert driver("cache").status == driver("cache", "list", "--limit", "3").status == 2
