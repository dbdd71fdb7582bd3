"""Modules written by hand in linalg, compiled once per session into a temporary cache."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mgx_mlir.programs.lowered import Lowered
from mgx_mlir.targets.base import CpuTarget, Executable
from mgx_mlir.targets.cache import Cache
from mgx_mlir.targets.child import IreeCompiler

Compile = Callable[[str], Executable]


@pytest.fixture(scope="session")
def build(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Compile]:
    cache = Cache(Path(tmp_path_factory.mktemp("cache")))
    compiler = IreeCompiler(reproducers=Path(tmp_path_factory.mktemp("reproducers")))
    target = CpuTarget(threads=1)

    def compile_text(text: str) -> Executable:
        return target.compile_lowered(Lowered(text.encode()), cache=cache, compiler=compiler)

    yield compile_text
    compiler.close()
