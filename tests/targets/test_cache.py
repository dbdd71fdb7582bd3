"""The compile cache: hits, damage, concurrency, eviction, keys, mapped parameters."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from mgx_mlir.core.errors import FileError, UsageError
from mgx_mlir.core.literals import is_aligned
from mgx_mlir.targets import cache as cache_file
from mgx_mlir.targets import locks
from mgx_mlir.targets.cache import Cache, default_cache, digest, parse_size
from mgx_mlir.targets.container import Container, write_container
from tests.targets.modules import add

KEY = "ab" * 20


def arrays() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {
        "w": rng.standard_normal((100, 50)).astype(np.float32),
        "b": np.array([True, False, True]),
        "h": np.arange(7).astype(ml_dtypes.bfloat16),
        "f8": np.arange(5).astype(ml_dtypes.float8_e4m3fn),
        "u": np.arange(3, dtype=np.uint16),
        "scalar": np.array(2.5),
        "empty": np.zeros((0, 4), np.int64),
        "strided": np.arange(20, dtype=np.int32).reshape(4, 5).T,
    }


def same(a: np.ndarray, b: np.ndarray) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def test_container_round_trip(tmp_path: Path) -> None:
    path = tmp_path / "c"
    write_container(path, {**arrays(), "text": b"hello"}, {"n": [1, 2]})
    c = Container(path)
    c.verify()
    assert c.meta == {"n": [1, 2]}
    assert c.blob("text").tobytes() == b"hello"
    back = c.arrays()
    assert list(back) == list(arrays())
    for name, want in arrays().items():
        assert same(back[name], want), name
        assert is_aligned(back[name])
        assert not back[name].flags.writeable
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(FileError, match="no blob 'x'"):
        c.blob("x")


def test_arrays_outlive_the_container_and_its_file(tmp_path: Path) -> None:
    path = tmp_path / "c"
    write_container(path, arrays())
    w = Container(path).array("w")
    path.unlink()
    assert same(w, arrays()["w"])


def test_every_kind_of_damage_is_a_file_error(tmp_path: Path) -> None:
    path = tmp_path / "c"
    write_container(path, arrays(), {"n": 1})
    good = path.read_bytes()
    last = Container(path)._rows["strided"]["offset"] + 4096
    spots = [0, 9, 17, 30, 200, 4096, last, last + 79]
    cuts = [0, 5, 19, 100, 4095, 4097, last + 70]
    bad = [good[:i] + bytes([good[i] ^ 0x55]) + good[i + 1 :] for i in spots]
    bad += [good[:i] for i in cuts] + [os.urandom(5000)]
    for data in bad:
        path.write_bytes(data)
        with pytest.raises(FileError):
            Container(path).verify()


def test_a_write_that_fails_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(TypeError):
        write_container(tmp_path / "c", {"a": b"x"}, {"bad": object()})
    assert list(tmp_path.iterdir()) == []


def test_modules(cache: Cache) -> None:
    assert cache.get_module(KEY) is None
    cache.put_module(KEY, b"v" * 1000, {"flags": ["-a"], "seconds": 1.5})
    found = cache.get_module(KEY)
    assert found is not None
    assert found.vmfb.tobytes() == b"v" * 1000
    assert is_aligned(found.vmfb)
    assert found.record == {"flags": ["-a"], "seconds": 1.5}


@pytest.mark.parametrize("where", ["header", "blob", "cut", "empty"])
def test_a_damaged_entry_is_removed_and_is_a_miss(
    cache: Cache, where: str, caplog: pytest.LogCaptureFixture
) -> None:
    cache.put_module(KEY, b"v" * 1000, {"n": 1})
    path = cache.path("module", KEY)
    data = bytearray(path.read_bytes())
    if where == "header":
        data[25] ^= 1
    elif where == "blob":
        data[4100] ^= 1
    path.write_bytes(b"" if where == "empty" else data[:3000] if where == "cut" else data)
    assert cache.get_module(KEY) is None
    assert "a damaged cache entry is removed" in caplog.text
    assert not path.exists()
    cache.put_module(KEY, b"w" * 10, {})
    assert cache.get_module(KEY) is not None


def test_programs_share_packs_and_map_them(cache: Cache) -> None:
    cache.put_module("m1", b"one" * 100, {})
    cache.put_module("m2", b"two" * 100, {})
    cache.put_program("p1", {"x": 1}, {"main": "m1"}, arrays())
    cache.put_program("p2", {"x": 2}, {"main": "m2", "batch8": "m1"}, arrays())
    assert len(list((cache.root / "pack").glob("*/*[!l]"))) == 1
    one, two = cache.get_program("p1"), cache.get_program("p2")
    assert one is not None
    assert two is not None
    assert (one.manifest, two.manifest) == ({"x": 1}, {"x": 2})
    assert set(two.modules) == {"main", "batch8"}
    assert all(same(one.params[k], v) for k, v in arrays().items())
    assert all(is_aligned(v) for v in two.params.values())
    cache.remove("module", "m1")
    assert cache.get_program("p1") is None


def test_a_program_without_parameters(cache: Cache) -> None:
    cache.put_module("m", b"v" * 100, {})
    cache.put_program("p", {}, {"main": "m"}, {})
    found = cache.get_program("p")
    assert found is not None
    assert found.params == {}


def test_a_pack_changed_on_disk_is_noticed(cache: Cache) -> None:
    cache.put_module("m", b"v" * 100, {})
    cache.put_program("p", {}, {"main": "m"}, arrays())
    (path,) = (p for p in (cache.root / "pack").glob("*/*") if p.suffix != ".seal")
    assert cache.get_program("p") is not None
    with open(path, "r+b") as f:
        f.seek(4096 + 40)
        f.write(b"\xff")
    assert cache.get_program("p") is None
    assert not path.exists()


def test_a_pack_whose_seal_is_gone_is_verified_and_sealed_again(cache: Cache) -> None:
    cache.put_module("m", b"v" * 100, {})
    cache.put_program("p", {}, {"main": "m"}, arrays())
    (seal,) = (cache.root / "pack").glob("*/*.seal")
    seal.unlink()
    assert cache.get_program("p") is not None
    assert seal.exists()


def test_the_least_recently_used_go_first(cache: Cache) -> None:
    for i in range(5):
        cache.put_module(f"k{i}", bytes(20_000), {"i": i})
        seal = cache.path("module", f"k{i}")
        os.utime(Cache._seal_path(seal), (1000 + i, 1000 + i))
    assert cache.get_module("k0") is not None  # used: now the newest
    size = cache.size()
    cache.limit = size * 3 // 5
    assert cache.evict() == 2
    left = [i for i in range(5) if cache.path("module", f"k{i}").exists()]
    assert left == [0, 3, 4]
    cache.limit = 0
    cache.evict()
    assert cache.size() == 0


def test_writing_evicts_by_itself(tmp_path: Path) -> None:
    cache = Cache(tmp_path, limit=100_000)
    for i in range(20):
        cache.put_module(f"k{i}", bytes(20_000), {})
    assert cache.size() <= 100_000 + 30_000


def test_leavings_of_killed_writers_are_swept(cache: Cache) -> None:
    cache.put_module(KEY, b"v" * 100, {})
    old = cache.path("module", KEY).with_name(f".{KEY}.dead")
    new = cache.path("module", KEY).with_name(f".{KEY}.live")
    for p in (old, new):
        p.write_bytes(b"x")
    os.utime(old, (1, 1))
    cache.evict()
    assert not old.exists()
    assert new.exists()


def test_locks_of_killed_holders_are_swept_and_held_ones_stay(cache: Cache) -> None:
    with cache.lock("module", KEY):
        held, left = cache.root / "locks" / f"module-{KEY}", cache.root / "locks" / "module-dead"
        left.write_bytes(b"12 -")
        cache.evict()
        assert held.exists()
        assert not left.exists()


def test_clear(cache: Cache) -> None:
    cache.put_module(KEY, b"v", {})
    cache.clear()
    assert cache.get_module(KEY) is None


def test_a_cache_that_cannot_be_written_only_warns(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    cache = Cache(blocked)
    cache.put_module(KEY, b"v", {})
    assert "cannot write" in caplog.text
    with cache.lock("module", KEY):
        pass
    assert cache.get_module(KEY) is None


def test_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MGX_CACHE_DIR", str(tmp_path / "here"))
    monkeypatch.setenv("MGX_CACHE_LIMIT", "2.5M")
    found = default_cache()
    assert found is not None
    assert (found.root.parent, found.limit) == (tmp_path / "here", 2_500_000)
    for off in ("0", "off", "FALSE"):
        monkeypatch.setenv("MGX_CACHE", off)
        assert default_cache() is None
    monkeypatch.setenv("MGX_CACHE", "1")
    monkeypatch.setenv("MGX_CACHE_LIMIT", "lots")
    with pytest.raises(UsageError, match="'lots' is not a size"):
        default_cache()
    assert (parse_size("10G"), parse_size("500 mb"), parse_size("7")) == (10**10, 5 * 10**8, 7)


def test_digests_keep_parts_apart(cache: Cache) -> None:
    assert digest("ab", "c") != digest("a", "bc")
    assert digest(b"a") == digest("a")
    a = np.arange(6).reshape(2, 3)
    assert digest(a) == digest(a.copy())
    assert digest(a.T) == digest(np.ascontiguousarray(a.T)) != digest(a)
    assert digest(np.zeros((0, 3))) == digest(b"")
    assert cache.program_key(["f"], {"a": 1, "b": 2}) == cache.program_key(["f"], {"b": 2, "a": 1})
    assert cache.program_key(["f"], {"a": 1}) != cache.program_key(["f"], {"a": 2})
    assert cache.program_key(["f"], {}) != cache.program_key(["g"], {})


def test_file_digests_are_remembered_and_never_stale(
    cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tmp_path / "model.onnx"
    model.write_bytes(b"weights" * 1000)
    os.utime(model, (1, 1))
    time.sleep(0.06)  # until the clock has gone on
    first = cache.file_digest(model)
    monkeypatch.setattr(cache_file, "hash_file", lambda p: pytest.fail("hashed again"))
    assert cache.file_digest(model) == first
    monkeypatch.undo()
    with open(model, "r+b") as f:
        f.write(b"W")
    os.utime(model, (1, 1))  # same size, same time: the inode's change time tells
    assert cache.file_digest(model) != first
    fresh = tmp_path / "fresh"
    for text in ("aaaa", "bbbb", "cccc"):  # written and read within one tick of the clock
        fresh.write_text(text)
        assert cache.file_digest(fresh) == cache_file.hash_file(fresh)
    with pytest.raises(FileError, match="cannot read"):
        cache.file_digest(tmp_path / "none")


def test_the_lock_excludes_threads(cache: Cache) -> None:
    inside: list[int] = []
    worst: list[int] = []

    def work() -> None:
        for _ in range(20):
            with cache.lock("module", KEY):
                inside.append(1)
                worst.append(len(inside))
                time.sleep(0.0005)
                inside.pop()

    pool = [threading.Thread(target=work) for _ in range(4)]
    for t in pool:
        t.start()
    for t in pool:
        t.join()
    assert len(worst) == 80
    assert max(worst) == 1
    assert list((cache.root / "locks").iterdir()) == []


RACE = """
import sys, time
from pathlib import Path
from mgx_mlir.targets.base import CpuTarget
from mgx_mlir.targets.cache import Cache
from mgx_mlir.targets.child import IreeCompiler
from mgx_mlir.programs.lowered import Lowered
root, texts = Path(sys.argv[1]), sys.argv[2:]
compiler = IreeCompiler(use_worker=False)
compiled = 0
for text in texts:
    made = CpuTarget().compile_lowered(Lowered(text.encode()), compiler=compiler, cache=Cache(root))
    compiled += not made.cached
    assert len(made.vmfb) > 1000
print(compiled)
"""


def test_concurrent_processes_compile_once(tmp_path: Path) -> None:
    texts = [add(n) for n in (11, 12)]
    command = [sys.executable, "-c", RACE, str(tmp_path), *texts]
    pool = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    outs = [p.communicate(timeout=100) for p in pool]
    assert [p.returncode for p in pool] == [0] * 4, outs
    assert sum(int(out) for out, _ in outs) == len(texts)


def test_a_holder_that_dies_frees_its_lock(tmp_path: Path) -> None:
    code = (
        "import os, sys, signal\nfrom pathlib import Path\n"
        "from mgx_mlir.targets.cache import Cache\n"
        f"with Cache(Path(sys.argv[1])).lock('module', '{KEY}'):\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    done = threading.Event()

    def take() -> None:
        with Cache(tmp_path).lock("module", KEY):
            done.set()

    threading.Thread(target=take, daemon=True).start()
    assert done.wait(10)


def test_a_file_system_without_locks_only_warns(
    cache: Cache, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(fd: int) -> bool:
        raise OSError(95, "not supported")

    monkeypatch.setattr(locks, "_try", refuse)
    with cache.lock("module", KEY):
        pass
    assert "cannot lock" in caplog.text


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="no /proc")
def test_small_modules_hold_no_descriptors(cache: Cache) -> None:
    """Descriptors of the cache's own files: other files may be opened and closed meanwhile."""
    for i in range(20):
        cache.put_module(f"k{i}", bytes(10_000), {})
    held = [cache.get_module(f"k{i}") for i in range(20)]
    assert opened_in(cache.root) == []
    assert all(held)
    with open(next(p for p in cache.root.rglob("*") if p.is_file()), "rb") as f:
        assert opened_in(cache.root) == [f.name]


def opened_in(folder: Path) -> list[str]:
    """The files of a folder that this process has open."""
    found = []
    for fd in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):  # the listing's own is gone by now
            found.append(os.readlink(f"/proc/self/fd/{fd}"))
    return [name for name in found if name.startswith(str(folder.resolve()) + os.sep)]


def test_a_large_program_is_there_in_no_time(tmp_path: Path) -> None:
    """128 MB of parameters: mapped, not read, not copied."""
    cache = Cache(tmp_path)
    params = {f"w{i}": np.full((1024, 4096), i, np.float32) for i in range(8)}
    cache.put_module("m", b"v" * 100_000, {})
    cache.put_program("p", {}, {"main": "m"}, params)
    best = 1.0
    for _ in range(3):
        start = time.thread_time()  # other load on the machine does not count
        found = Cache(tmp_path).get_program("p")
        best = min(best, time.thread_time() - start)
    assert found is not None
    assert best < 0.05
    assert all(is_aligned(a) for a in found.params.values())
    assert found.params["w5"][3, 3] == 5
