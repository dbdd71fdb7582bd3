"""The emulator builds itself: once, into the cache, with a stand-in for the compiler."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from mgx_mlir.core.errors import TargetError
from mgx_mlir.targets import emulator, emulator_build

ROOT = Path(__file__).resolve().parents[2]
# writes what -o names, and a line for each call; fails where the folder says so
COMPILER = """\
#!/bin/sh
here=$(dirname "$0")
if [ "$1" = --version ]; then echo "stand-in $(cat "$here/version" 2>/dev/null)"; exit 0; fi
echo x >> "$here/calls"
if [ -e "$here/fails" ]; then echo "x.cpp:1: error: on purpose" >&2; exit 1; fi
sleep 0.01
while [ $# -gt 0 ]; do
  if [ "$1" = -o ]; then echo made > "$2"; fi
  shift
done
"""


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the stand-in, which is the compiler; nothing is built yet."""
    folder = tmp_path / "tools"
    folder.mkdir()
    script = folder / "compiler"
    script.write_text(COMPILER)
    script.chmod(0o755)
    monkeypatch.setenv("CXX", str(script))
    monkeypatch.setenv("MGX_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv(emulator.PATH_VARIABLE, raising=False)
    monkeypatch.delenv(emulator_build.SWITCH, raising=False)
    monkeypatch.setattr(emulator, "find_library", lambda: None)
    monkeypatch.setattr(emulator, "_active", False)
    return folder


def calls(tools: Path) -> int:
    found = tools / "calls"
    return len(found.read_text().splitlines()) if found.exists() else 0


FILES = len([*(ROOT / "native/src").rglob("*.cpp")])


def test_it_is_built_once(tools: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = emulator.activate()
    assert emulator.active()
    assert (folder / emulator.LIBRARY).read_text() == "made\n"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert sorted(p.name for p in folder.iterdir()) == [emulator.LIBRARY, "lock"]
    assert calls(tools) == FILES + 1
    assert "Building the emulator of AMD GPUs, once" in capsys.readouterr().err
    assert emulator.activate() == folder
    assert calls(tools) == FILES + 1
    assert capsys.readouterr().err == ""
    # another compiler is another build
    (tools / "version").write_text("2")
    assert emulator.activate() != folder


def test_processes_that_ask_at_once_build_once(tools: Path) -> None:
    code = (
        "from mgx_mlir.targets import emulator\n"
        "emulator.find_library = lambda: None\n"
        "print(emulator.activate())\n"
    )
    started = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    said = {p.communicate(timeout=120)[0] for p in started}
    assert [p.returncode for p in started] == [0] * 4
    assert len(said) == 1
    assert calls(tools) == FILES + 1


def test_a_compiler_that_fails(tools: Path) -> None:
    (tools / "fails").touch()
    with pytest.raises(TargetError, match="cannot be built") as e:
        emulator.activate()
    assert [*e.value.notes] == ["x.cpp:1: error: on purpose"]
    assert not emulator.active()
    [folder] = (tools.parent / "cache/emulator").iterdir()
    assert sorted(p.name for p in folder.iterdir()) == ["lock", "objects"]
    (tools / "fails").unlink()
    # an object of a build that was cut off is taken, one that was half written is not
    (folder / "objects" / "hip-device.o").write_text("made")
    (folder / "objects" / "hip-system.part").write_text("ma")
    before = calls(tools)
    assert emulator.activate() == folder
    assert calls(tools) - before == FILES
    assert sorted(p.name for p in folder.iterdir()) == [emulator.LIBRARY, "lock"]


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"CXX": "/nonexistent/c++"}, "'/nonexistent/c++', which CXX names, is not found"),
        ({"CXX": "", "PATH": ""}, "a C++17 compiler is not found"),
        ({"MGX_EMULATOR_BUILD": "0"}, "the emulator is not built"),
        ({"MGX_EMULATOR_PATH": "/nonexistent"}, "the emulator is not built"),
    ],
)
def test_what_is_missing_is_named(
    tools: Path, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], said: str
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(TargetError, match=r"^the emulator is not built") as e:
        emulator.activate()
    assert said in e.value.message
    if "CXX" in variables:
        assert "install the package g++" in e.value.notes[0]
    assert calls(tools) == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a file to another user")
def test_a_library_of_another_user_is_not_taken(tools: Path) -> None:
    folder = emulator.activate()
    os.chown(folder / emulator.LIBRARY, 1234, 1234)
    with pytest.raises(TargetError, match="cannot be built"):
        emulator.activate()


def test_the_wheel_holds_the_sources(tmp_path: Path) -> None:
    """The wheel is pure Python: it needs no C++ compiler, and suits any machine."""
    pytest.importorskip("scikit_build_core")
    from scikit_build_core.build import build_wheel

    shutil.copytree(ROOT, tmp_path / "tree", symlinks=True, ignore=shutil.ignore_patterns(
        ".git", ".venv", "models", "build", "*.pyc", "tests",
    ))  # fmt: skip
    before = Path.cwd()
    os.chdir(tmp_path / "tree")
    try:
        name = build_wheel(str(tmp_path))
    finally:
        os.chdir(before)
    assert name.endswith("-none-any.whl")
    names = zipfile.ZipFile(tmp_path / name).namelist()
    held = [n for n in names if n.startswith("mgx_mlir/native/")]
    assert sum(n.endswith(".cpp") and "/src/" in n for n in held) == FILES
    assert any(n.endswith("isa/gfx9.inc") for n in held)


@pytest.mark.slow
def test_it_is_built_and_runs(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mgx_mlir.tools.driver", "verify", "--gpu", "--arch", "gfx942",
               "--emulate", "--test"]  # fmt: skip
    environment = {**os.environ, "MGX_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "verification passed: gpu and ref agree" in done.stdout
