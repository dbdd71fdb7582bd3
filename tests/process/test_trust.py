"""Code is run that this user or root has written, and no other's: the cache, and saved programs."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import mgx_mlir as mgx
from mgx_mlir.core.errors import FileError
from mgx_mlir.targets import background
from mgx_mlir.targets import cache as cache_file
from mgx_mlir.targets.cache import Cache, default_cache
from tests.process.threads import checked, model

ROOT = Path(__file__).resolve().parents[2]
KEY, OTHER = "ab" * 20, "cd" * 20
NOBODY = 65534

posix = pytest.mark.skipif(os.name != "posix", reason="files have owners on POSIX alone")
as_root = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give files away"
)


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


@pytest.fixture
def user() -> Iterator[Callable[[int], None]]:
    """Be another user for a while."""
    yield os.seteuid
    os.seteuid(0)


def give(folder: Path, owner: int) -> None:
    for path in [folder, *folder.rglob("*")]:
        os.chown(path, owner, owner)


# ---- the cache -----------------------------------------------------------------------------------


@posix
def test_folders_and_files_of_the_cache_are_private(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        cache = Cache(tmp_path / "above" / "cache")
        cache.put_program("p", {}, {"main": KEY}, {})
        cache.put_module(KEY, b"v" * 5000, {})
        (tmp_path / "m").write_bytes(b"model")
        os.utime(tmp_path / "m", (1, 1))
        cache.file_digest(tmp_path / "m")
        with cache.lock("module", KEY):
            found = [tmp_path / "above", *(tmp_path / "above").rglob("*")]
            modes = {p: p.stat().st_mode for p in found}
    finally:
        os.umask(before)
    assert {stat.S_IMODE(m) for m in modes.values() if stat.S_ISDIR(m)} == {0o700}
    assert {stat.S_IMODE(m) for m in modes.values() if stat.S_ISREG(m)} == {0o600}
    assert len(modes) > 10


@posix
def test_a_folder_that_others_could_enter_is_closed(tmp_path: Path) -> None:
    Cache(tmp_path).put_module(KEY, b"v", {})
    (tmp_path / "v3").chmod(0o775)
    assert Cache(tmp_path).get_module(KEY) is not None
    assert stat.S_IMODE((tmp_path / "v3").stat().st_mode) == 0o700


@as_root
def test_the_folder_of_another_user_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("MGX_CACHE_DIR", str(tmp_path / "cache"))
    assert not mgx.compile(model(0), "cpu").stats.cached
    background.settle()
    give(tmp_path / "cache", NOBODY)
    before = sorted((tmp_path / "cache").rglob("*"))
    for _ in range(2):
        c = mgx.compile(model(0), "cpu")
        assert not c.stats.cached
        checked(c.run, 0)
    assert default_cache() is None
    assert caplog.text.count(f"it belongs to user {NOBODY}") == 1
    assert sorted((tmp_path / "cache").rglob("*")) == before


@as_root
@pytest.mark.parametrize("what", ["entry", "key", "seal"])
def test_the_file_of_another_user_is_not_used(cache: Cache, what: str) -> None:
    cache.put_program("p" * 40, {}, {"main": KEY}, {"w": np.ones(9000)})
    cache.put_module(KEY, b"v", {})
    assert cache.get_program("p" * 40) is not None
    if what == "entry":
        os.chown(cache.path("module", KEY), NOBODY, NOBODY)
    elif what == "key":
        os.chown(cache.root / "key", NOBODY, NOBODY)
    else:  # verified anew
        for path in cache.root.rglob("*.seal"):
            os.chown(path, NOBODY, NOBODY)
    found = Cache(cache.root.parent).get_program("p" * 40)
    assert (found is not None) == (what == "seal")


@as_root
@pytest.mark.usefixtures("user")
def test_a_cache_of_roots_is_read_by_all(
    tmp_path: Path, user: Callable[[int], None], caplog: pytest.LogCaptureFixture
) -> None:
    for folder in reversed([tmp_path, *tmp_path.parents[:-2]]):
        folder.chmod(folder.stat().st_mode | 0o755)
    cache = Cache(tmp_path / "cache")
    cache.put_module(KEY, b"v" * 100, {"n": 1})
    cache.put_module(OTHER, b"w" * 100, {})
    for path in [tmp_path / "cache", *(tmp_path / "cache").rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
    cache.path("module", OTHER).chmod(0o666)
    (cache.root / "key").chmod(0o600)
    user(NOBODY)
    theirs = Cache(tmp_path / "cache")
    assert theirs.standing == "root's"
    found = theirs.get_module(KEY)
    assert found is not None
    assert found.record == {"n": 1}
    assert theirs.get_module(OTHER) is None  # anybody may have written it
    with theirs.lock("module", KEY):
        theirs.put_module(KEY, b"other", {})
    found = theirs.get_module(KEY)
    assert found is not None
    assert len(found.vmfb) == 100


def test_an_entry_under_the_key_of_another(cache: Cache) -> None:
    cache.put_module(KEY, b"v", {})
    cache.put_module(OTHER, b"w", {})
    shutil.copy(cache.path("module", OTHER), cache.path("module", KEY))
    assert cache.get_module(KEY) is None


def test_an_entry_of_another_key_of_the_user(cache: Cache, tmp_path: Path) -> None:
    other = Cache(tmp_path / "other")
    other.put_module(KEY, b"w", {})
    cache.put_module(OTHER, b"v", {})
    (cache.path("module", KEY)).parent.mkdir(parents=True)
    shutil.copy(other.path("module", KEY), cache.path("module", KEY))
    assert cache.get_module(KEY) is None


def test_code_with_a_crc_that_fits(cache: Cache) -> None:
    """The signed digest rejects code with a valid crc."""
    import zlib

    cache.put_module(KEY, b"v" * 64, {})
    path = cache.path("module", KEY)
    data = bytearray(path.read_bytes())
    wanted = zlib.crc32(b"v" * 64)
    forged = forge(b"w" * 60, wanted)
    assert zlib.crc32(forged) == wanted
    at = data.rindex(b"v" * 64)
    data[at : at + 64] = forged
    path.write_bytes(data)
    assert cache.get_module(KEY) is None


def forge(head: bytes, wanted: int) -> bytes:
    """`head` and four bytes, with a crc of one's choice: the crc is linear in those bytes."""
    import zlib

    base = zlib.crc32(head + bytes(4))
    rows = [(1 << i, zlib.crc32(head + (1 << i).to_bytes(4, "little")) ^ base) for i in range(32)]
    tail, left = 0, base ^ wanted
    for bit in range(32):  # Gauss: the rows span all 32 bits
        pivot = next(r for r in rows if r[1] >> bit & 1)
        rows = [(r[0] ^ pivot[0], r[1] ^ pivot[1]) if r is not pivot and r[1] >> bit & 1 else r
                for r in rows]  # fmt: skip
        if left >> bit & 1:
            tail, left = tail ^ pivot[0], left ^ pivot[1]
        rows = [r for r in rows if r != pivot]
    return head + tail.to_bytes(4, "little")


@posix
def test_a_link_in_the_place_of_an_entry(cache: Cache, tmp_path: Path) -> None:
    cache.put_module(KEY, b"v", {})
    path = cache.path("module", KEY)
    path.rename(tmp_path / "moved")
    path.symlink_to(tmp_path / "moved")
    assert cache.get_module(KEY) is None


def test_a_key_that_others_could_read_is_replaced(cache: Cache) -> None:
    cache.put_module(KEY, b"v", {})
    key = (cache.root / "key").read_bytes()
    (cache.root / "key").chmod(0o644)
    again = Cache(cache.root.parent)
    assert again.get_module(KEY) is None
    again.put_module(KEY, b"v", {})
    assert again.get_module(KEY) is not None
    assert (cache.root / "key").read_bytes() != key


@pytest.mark.parametrize("damage", [b"", b"short", bytes(100)])
def test_a_damaged_key_is_replaced(cache: Cache, damage: bytes) -> None:
    cache.put_module(KEY, b"v", {})
    (cache.root / "key").write_bytes(damage)
    again = Cache(cache.root.parent)
    assert again.get_module(KEY) is None
    again.put_module(KEY, b"v", {})
    assert Cache(cache.root.parent).get_module(KEY) is not None


def test_processes_agree_on_a_key(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path\n"
        "from mgx_mlir.targets.cache import Cache\n"
        "Cache(Path(sys.argv[1])).put_module(sys.argv[2], b'v', {})\n"
    )
    pool = [
        subprocess.Popen([sys.executable, "-c", code, str(tmp_path), f"{i}" * 40], cwd=ROOT)
        for i in range(4)
    ]
    assert [p.wait(100) for p in pool] == [0] * 4
    assert all(Cache(tmp_path).get_module(f"{i}" * 40) for i in range(4))


def test_an_older_cache_is_removed(tmp_path: Path) -> None:
    for older in ("v1", "v2"):
        (tmp_path / older / "module").mkdir(parents=True)
    Cache(tmp_path).put_module(KEY, b"v", {})
    assert [p.name for p in tmp_path.iterdir()] == ["v3"]
    assert cache_file._LAYOUT == "v3"


# ---- saved programs ------------------------------------------------------------------------------


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    p = mgx.parse_onnx_buffer(model(1))
    p.compile("cpu")
    mgx.save(p, tmp_path / "m.mxr")
    return tmp_path / "m.mxr"


def load_and_run(path: Path, **options: bool) -> bool:
    p = mgx.load(path, **options)
    checked(p.run, 1)
    return p.is_compiled()


@as_root
def test_code_in_the_file_of_another_user(saved: Path) -> None:
    assert load_and_run(saved)
    os.chown(saved, NOBODY, NOBODY)
    with pytest.raises(FileError, match=rf"machine code.*belongs to user {NOBODY}"):
        mgx.load(saved)
    assert load_and_run(saved, trust_code=True)
    assert not load_and_run(saved, compiled=False)


@posix
def test_code_in_a_file_that_all_may_write(saved: Path) -> None:
    saved.chmod(0o666)
    with pytest.raises(FileError, match="every user may write to it"):
        mgx.load(saved)
    saved.chmod(0o664)
    assert load_and_run(saved)


@as_root
def test_another_users_program_without_code(tmp_path: Path) -> None:
    mgx.save(mgx.parse_onnx_buffer(model(1)), tmp_path / "m.mxr")
    os.chown(tmp_path / "m.mxr", NOBODY, NOBODY)
    assert not load_and_run(tmp_path / "m.mxr")


def test_code_that_is_not_trusted(saved: Path) -> None:
    with pytest.raises(FileError, match="machine code"):
        mgx.load(saved, trust_code=False)
    data = saved.read_bytes()
    assert mgx.load_buffer(data).is_compiled()
    with pytest.raises(FileError, match="machine code"):
        mgx.load_buffer(data, trust_code=False)


@as_root
def test_the_driver_asks(saved: Path) -> None:
    os.chown(saved, NOBODY, NOBODY)

    def drive(*options: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "mgx_mlir.tools.driver", *options]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    done = drive("run", str(saved))
    assert done.returncode == 2
    assert f"belongs to user {NOBODY}" in done.stderr
    assert "--trust-code" in done.stderr
    assert drive("run", str(saved), "--trust-code").returncode == 0
    assert drive("params", str(saved)).returncode == 0
