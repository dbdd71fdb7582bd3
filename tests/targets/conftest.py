"""A compiler and a cache of their own for the tests of the targets."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mgx_mlir.targets.cache import Cache
from mgx_mlir.targets.child import IreeCompiler


@pytest.fixture(scope="session")
def reproducers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(tmp_path_factory.mktemp("reproducers"))


@pytest.fixture(scope="session")
def binary(reproducers: Path) -> Iterator[IreeCompiler]:
    compiler = IreeCompiler(use_worker=False, reproducers=reproducers)
    yield compiler
    compiler.close()


@pytest.fixture(scope="session")
def worker(reproducers: Path) -> Iterator[IreeCompiler]:
    compiler = IreeCompiler(use_worker=True, max_workers=2, reproducers=reproducers)
    yield compiler
    compiler.close()


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")
