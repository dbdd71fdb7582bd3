"""A cache of programs for each run of the tests, and a process that every test leaves as it was."""

from __future__ import annotations

import gc
import os
import random
import shutil
import sys
import tempfile
import warnings
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from mgx_mlir.targets import emulator
from mgx_mlir.targets.worker import SINGLE, VERIFY

CACHE = "MGX_CACHE_DIR"
PLUGINS = "MGX_PLUGINS"
SHUFFLE = "MGX_TEST_SHUFFLE"
# The compiler's own passes are verified over every operator, every family of kernels, and models.
# Elsewhere, numbers of the same kernels are compared: that saves a fifth of each compile.
VERIFIED = (
    "families",
    "lowering/test_conformance.py",
    "lowering/test_kernel_families.py",
    "targets",
)
# The files that take longest, begun first: one of them begun last would leave the other cores idle.
LONGEST = (
    "lowering/test_conformance.py",
    "onnx_backend/test_report.py",
    "passes/test_kernels.py",
    "families/test_families.py",
    "frontends/tf/test_ops.py",
    "sizes/test_invalid.py",
    "frontends/test_onnx_draws.py",
    "emulator/test_attention.py",
    "frontends/test_contrib_gqa.py",
    "frontends/test_contrib_attention.py",
    "lowering/test_vector_conv.py",
)
_OWN = "PYTEST_CURRENT_TEST"  # pytest's own, which changes


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--op NAME`: tests/lowering/test_conformance.py runs one operator alone."""
    parser.addoption("--op", metavar="NAME", help="operators that test_conformance.py runs: a,b")


def pytest_configure(config: pytest.Config) -> None:
    """Hide the caches of other runs and of the user: the processes of this run share
    one cache. Nor are plugins that are installed: the tests are of this tree."""
    if hasattr(config, "workerinput"):
        return  # a process of a run that has its cache
    folder = tempfile.mkdtemp(prefix="mgx-tests-")
    names = [CACHE, PLUGINS, SINGLE, VERIFY]
    before = {name: os.environ[name] for name in names if name in os.environ}
    os.environ.update({CACHE: folder, PLUGINS: "0"})
    os.environ.setdefault(SINGLE, "1")  # the processes of a run take all cores
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # onnxruntime's, from its import on

    def put_back() -> None:
        _put_back(before, names)
        shutil.rmtree(folder, ignore_errors=True)

    config.add_cleanup(put_back)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """MGX_COMPILE_VERIFY=1: every compile verifies; else those of VERIFIED do."""
    before = os.environ.get(VERIFY)
    path = item.path.relative_to(Path(__file__).parent)
    os.environ[VERIFY] = before or str(int(any(path.is_relative_to(v) for v in VERIFIED)))
    try:
        return (yield)
    finally:
        _put_back({VERIFY: before} if before else {}, [VERIFY])


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect without garbage collections, and leave what is collected out of later ones.

    Half a million objects live until the end of a run: each full collection would visit them.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_unconfigure() -> None:
    """Give the collector what was collected: at its end a process frees it."""
    gc.unfreeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with LONGEST. MGX_TEST_SHUFFLE=SEED: any order of the files, and the tests of each."""
    seed = os.environ.get(SHUFFLE)
    if not seed:
        longest = {Path(__file__).parent / name: at for at, name in enumerate(LONGEST)}
        items.sort(key=lambda item: longest.get(item.path, len(longest)))
        return
    draws = random.Random(seed)
    files: dict[str, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(str(item.path), []).append(item)
    order = sorted(files)
    draws.shuffle(order)
    for name in order:
        draws.shuffle(files[name])
    items[:] = [item for name in order for item in files[name]]


def _put_back(before: dict[str, str], names: list[str]) -> None:
    for name in names:
        if name in before:
            os.environ[name] = before[name]
        else:
            os.environ.pop(name, None)


@pytest.fixture(autouse=True)
def _leaves_nothing() -> Iterator[None]:
    """Take back what a test changed of the environment, the folder and the import path, and say so.

    No other test can depend on it then, in whatever order they run.
    """
    before, folder, path = dict(os.environ), os.getcwd(), list(sys.path)
    emulated = emulator._active
    yield
    emulator._active = emulated  # a process asks for it for good
    now = dict(os.environ)
    changed = sorted(
        k for k in before.keys() | now.keys() if before.get(k) != now.get(k) and k != _OWN
    )
    left = [f"the variables {', '.join(changed)}"] if changed else []
    _put_back(before, changed)
    try:
        moved = os.getcwd() != folder
    except OSError:  # already removed
        moved = True
    if moved:
        os.chdir(folder)
        left.append("the working folder")
    if sys.path != path:
        sys.path[:] = path
        left.append("the import path")
    if left:
        warnings.warn(f"the test changed {' and '.join(left)}; taken back", stacklevel=2)
