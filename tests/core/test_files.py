"""Files are written whole or not at all, and what is no file stays what it is."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from mgx_mlir.core.files import atomic

posix = pytest.mark.skipif(os.name != "posix", reason="pipes and links with names are POSIX's")


def test_a_file_is_replaced_only_when_the_block_ends_well(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    path.write_bytes(b"old")
    with pytest.raises(ZeroDivisionError), atomic(path) as f:
        f.write(b"new" * (1 // 0))
    assert path.read_bytes() == b"old"
    with atomic(path) as f:
        f.write(b"new")
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["a.bin"]


@posix
def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    # run as root, `-o /dev/null` replaced the device by a file
    path, got = tmp_path / "pipe", list[bytes]()
    os.mkfifo(path)
    reader = threading.Thread(target=lambda: got.append(path.read_bytes()))
    reader.start()
    with atomic(path) as f:
        f.write(b"data")
    reader.join()
    assert got == [b"data"]
    assert stat.S_ISFIFO(path.stat().st_mode)
    assert os.listdir(tmp_path) == ["pipe"]


@posix
@pytest.mark.parametrize("there", [True, False])
def test_a_link_stays_and_its_file_is_replaced(tmp_path: Path, *, there: bool) -> None:
    (tmp_path / "folder").mkdir()
    target = tmp_path / "folder" / "target"
    if there:
        target.write_bytes(b"old")
    (tmp_path / "second").symlink_to("folder/target")
    (tmp_path / "link").symlink_to("second")
    with atomic(tmp_path / "link") as f:
        f.write(b"new")
    assert target.read_bytes() == b"new"
    assert [p.is_symlink() for p in (target, tmp_path / "link", tmp_path / "second")] == [0, 1, 1]
    assert os.listdir(tmp_path / "folder") == ["target"]


@posix
def test_links_in_a_ring_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(OSError, match="symbolic links"), atomic(tmp_path / "a"):
        pass
    assert sorted(os.listdir(tmp_path)) == ["a", "b"]


@pytest.mark.skipif(not os.path.exists("/dev/fd/1"), reason="no names for open files")
def test_an_open_file_is_written_to_by_its_descriptor(tmp_path: Path) -> None:
    code = (
        "from mgx_mlir.core.files import atomic\n"
        "with atomic('/dev/fd/1') as f: f.write(b'data')\n"
        "print(' and more', end='', flush=True)"
    )
    with (tmp_path / "out").open("ab") as out:
        out.write(b"before, ")
        out.flush()
        subprocess.run([sys.executable, "-c", code], stdout=out, check=True)
    assert (tmp_path / "out").read_bytes() == b"before, data and more"
    assert os.listdir(tmp_path) == ["out"]
