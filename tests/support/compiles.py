"""Compiles of lowered modules, and compiles that a test answers itself, or forbids."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from mgx_mlir.targets.apart import compile_small
from mgx_mlir.targets.child import IreeCompiler, shared_compiler
from mgx_mlir.targets.worker_pool import Pool


def module_of(bytecode: bytes, flags: Sequence[str], timeout: float = 300) -> bytes:
    """Compile a module for this machine's CPU as a small program is, by a worker, and return it.

    timeout: seconds. Errors: CompileFailed.
    """
    compiler = shared_compiler()
    made = compile_small(compiler, bytecode, flags, timeout=timeout)
    return (made or compiler.run(bytecode, tuple(flags), timeout=timeout)).vmfb


def answered_by(monkeypatch: pytest.MonkeyPatch, run: Callable[..., Any]) -> None:
    """Have `run` in place of IreeCompiler.run answer each compile of a whole module.

    Workers, which would compile small modules and kernels, are off.
    """
    monkeypatch.setattr(IreeCompiler, "run", run)
    monkeypatch.setattr(shared_compiler(), "use_worker", False)


def never(*_: Any, **__: Any) -> Any:
    """Fail the test that calls this."""
    raise AssertionError("this is not called")


def forbidden(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail the test at a compile, by iree-compile or by a worker."""
    monkeypatch.setattr(IreeCompiler, "run", never)
    monkeypatch.setattr(Pool, "ask", never)


__all__ = ["answered_by", "forbidden", "module_of", "never"]
