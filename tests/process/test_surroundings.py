"""Processes without a home, a temporary folder, a locale, open streams, or docstrings."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.process import threads

ROOT = Path(__file__).resolve().parents[2]
DRIVER = [sys.executable, "-m", "mgx_mlir.tools.driver"]
as_root = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can be another user"
)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "m.onnx"
    path.write_bytes(threads.model(0))
    return path


def environment(cache: Path | None, **more: str) -> dict[str, str]:
    found = {**os.environ, "PYTHONPATH": str(ROOT), **more}
    found.pop("MGX_CACHE_DIR", None)
    return found if cache is None else {**found, "MGX_CACHE_DIR": str(cache)}


def said(done: subprocess.CompletedProcess[str]) -> str:
    """Return the output of a command, which must not report a bug."""
    for text in ("internal error", "Traceback"):
        assert text not in done.stderr, done.stderr
    return done.stderr


# ---- no temporary folder -------------------------------------------------------------------------

NO_TMPDIR = """
import sys, tempfile
import mgx_mlir as mgx
from tests.process import threads
tempfile._candidate_tempdir_list = lambda: ["/nowhere"]
tempfile.tempdir = None
threads.checked(mgx.compile(threads.model(0), "ref").run, 0)
try:
    mgx.compile(threads.model(0), "cpu", cache=sys.argv[1] == "cache")
except mgx.MgxError as e:
    print(e)
"""


@pytest.mark.parametrize("cache", ["cache"])
def test_no_temporary_folder(tmp_path: Path, cache: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", NO_TMPDIR, cache], env=environment(tmp_path), cwd=ROOT,
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    said(done)
    assert "iree-compile cannot be started: no usable temporary directory" in done.stdout.lower()
    assert "TMPDIR" in done.stdout


# ---- no home -------------------------------------------------------------------------------------


NO_HOME = """
import pwd, sys

def unknown(uid):
    raise KeyError(uid)

pwd.getpwuid = unknown
from mgx_mlir.tools.driver.main import main
sys.exit(main(["run", sys.argv[1], "--cpu"]))
"""


@pytest.mark.skipif(os.name != "posix", reason="users have numbers on POSIX alone")
@pytest.mark.parametrize("temporary", [True, False])
def test_a_user_without_a_name_and_a_home(model: Path, tmp_path: Path, temporary: bool) -> None:
    work, place = tmp_path / "work", tmp_path / "tmp"
    work.mkdir()
    place.mkdir()
    around = environment(None, TMPDIR=str(place))
    for name in ("HOME", "USER", "LOGNAME", "XDG_CACHE_HOME"):
        around.pop(name, None)
    if not temporary:
        around["MGX_CACHE_DIR"] = "/proc/nowhere"  # nothing can be made there
    done = subprocess.run(
        [sys.executable, "-c", NO_HOME, str(model)], env=around, cwd=work,
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    said(done)
    assert done.returncode == 0, done.stderr
    assert list(work.iterdir()) == []  # no folder called ~
    if temporary:
        assert (place / f"mgx_mlir-{os.getuid()}").stat().st_mode & 0o777 == 0o700


# ---- locales and paths ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "utf8"),
    [
        (b"m\xff.onnx", False),
        pytest.param(b"m\xff.onnx", True, marks=pytest.mark.slow),
        pytest.param("m\u00e9.onnx".encode(), False, marks=pytest.mark.slow),
        pytest.param(b"m\n.onnx", True, marks=pytest.mark.slow),
    ],
)
def test_paths_of_any_bytes(model: Path, tmp_path: Path, name: bytes, utf8: bool) -> None:
    path = os.fsencode(tmp_path) + b"/" + name
    model.rename(os.fsdecode(path))
    around = environment(tmp_path / "cache")
    if not utf8:
        around |= {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    saved = os.fsencode(tmp_path) + b"/saved\xff.mxr"
    for command in (["compile", path, "--cpu", "-o", saved], ["run", saved], ["read", path]):
        done = subprocess.run(
            [*DRIVER, *command], env=around, cwd=ROOT, capture_output=True, timeout=300, check=False
        )
        assert done.returncode == 0, done.stderr
    done = subprocess.run(
        [*DRIVER, "read", path + b"x\xff.onnx"], env=around, cwd=ROOT, capture_output=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert b"no such file" in done.stderr


# ---- streams that are closed ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "closed",
    [
        "<&- >&- 2>&-",
        pytest.param("<&-", marks=pytest.mark.slow),
        pytest.param("2>&-", marks=pytest.mark.slow),
        pytest.param(">&-", marks=pytest.mark.slow),
    ],
)
def test_closed_streams(model: Path, tmp_path: Path, closed: str) -> None:
    command = f'"$0" -m mgx_mlir.tools.driver run "$1" --cpu {closed}'
    for _ in range(2):  # compiled, and from the cache
        done = subprocess.run(
            ["sh", "-c", command, sys.executable, str(model)], env=environment(tmp_path / "cache"),
            cwd=ROOT, capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip
        said(done)
        assert done.returncode == 0, done.stderr
        assert (">&-" in closed.replace("2>&-", "")) == (done.stdout == "")
    assert model.read_bytes() == threads.model(0)


def test_closed_streams_of_the_other_tools(tmp_path: Path) -> None:
    path = tmp_path / "m.mlir"
    path.write_text("func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n  return %x : "
                    "tensor<2xf32>\n}\n")  # fmt: skip
    for arguments in (str(path), "-"):
        done = subprocess.run(
            ["sh", "-c", '"$0" -m mgx_mlir.tools.opt "$1" <&- 2>&-', sys.executable, arguments],
            env=environment(tmp_path), cwd=ROOT, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0
        assert ("return" in done.stdout) == (arguments != "-")


# ---- a caller that ignores its children ----------------------------------------------------------

IGNORED = """
import signal
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
import mgx_mlir as mgx
from tests.process import threads
for k in range(3):  # the binary, and workers
    threads.checked(mgx.compile(threads.model(k), "cpu", cache=False).run, k)
"""


def test_children_that_are_ignored(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", IGNORED], env=environment(tmp_path), cwd=ROOT,
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


# ---- no docstrings -------------------------------------------------------------------------------


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the system has no full device")
@pytest.mark.parametrize(
    "words",
    [["opt", "--help"], ["reduce", "--help"], ["driver", "--help"], ["driver", "read", "no.mxr"]],
    ids=" ".join,
)
def test_a_full_disk_behind_stdout(tmp_path: Path, words: list[str]) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", f"mgx_mlir.tools.{words[0]}", *words[1:]],
            env=environment(tmp_path), stdout=full, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
    expected = "no such file" if "no.mxr" in words else "no space left on device"
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1), done.stderr
    assert expected in done.stderr


@pytest.mark.parametrize("command", [["run", "--cpu"]])
def test_python_without_docstrings(model: Path, tmp_path: Path, command: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-OO", "-m", "mgx_mlir.tools.driver", *command, str(model)],
        env=environment(tmp_path, PYTHONDONTWRITEBYTECODE="1"), cwd=ROOT,
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    said(done)
    assert done.returncode == 0, done.stderr


# ---- a cache that cannot be written --------------------------------------------------------------


@as_root
def test_a_read_only_cache_is_read(model: Path, tmp_path: Path) -> None:
    """A file system that takes no writes, in a namespace of its own."""
    cache = tmp_path / "cache"
    script = (
        'mount --bind "$2" "$2" && mount -o remount,ro,bind "$2" && '
        'exec "$0" -m mgx_mlir.tools.driver run "$1" --cpu --log-level debug'
    )
    if subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode:
        pytest.skip("no namespace of mounts can be made here")
    run = [*DRIVER, "run", str(model), "--cpu"]
    subprocess.run(run, env=environment(cache), cwd=ROOT, check=True, capture_output=True)
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", script, sys.executable, str(model), str(cache)],
        env=environment(cache), cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if "mount:" in done.stderr:
        pytest.skip("nothing can be mounted here")
    said(done)
    assert done.returncode == 0, done.stderr
    assert "iree" not in done.stderr.lower()
