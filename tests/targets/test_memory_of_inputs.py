"""Kernels that name memory of an input, by each way to a compiled module."""

from __future__ import annotations

import platform
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mgx_mlir.core import dtypes
from mgx_mlir.core.ir import ir
from mgx_mlir.passes.lowering.cpu.frame.isa import isa_of
from mgx_mlir.passes.lowering.cpu.frame.workgroup_builder import (
    Index,
    ResultTile,
    WorkgroupBuilder,
    dispatch,
)
from mgx_mlir.passes.lowering.iree import iree_ops
from mgx_mlir.targets import apart, worker, worker_kernels
from mgx_mlir.targets.child import IreeCompiler
from mgx_mlir.targets.flags import cpu_ladder
from tests.lowering.programs import Programs
from tests.lowering.vector_kernels import bytecode

pytestmark = pytest.mark.skipif(isa_of("host") is None, reason="no vector kernels for this host")

ROWS, LANES = 64, 16
FLAGS = cpu_ladder()[0].flags


def _doubled() -> bytes:
    """Return a module that adds rows to themselves, and asks for rows far past the end."""

    def body(k: WorkgroupBuilder) -> list[ResultTile]:
        def one(i: Index, carried: list[ir.Value]) -> list[ir.Value]:
            k.prefetch(k.inputs[0], [k.add(i, 1 << 20), 0])
            v = k.read(k.inputs[0], [i, 0], LANES)
            return [k.write(k.fma(v, k.splat(1, LANES), v), carried[0], [i, 0])]

        made = k.loop(0, ROWS, 1, [k.empty((ROWS, LANES))], one)
        return [ResultTile(made[0], (0, 0), (ROWS, LANES))]

    def build(x: ir.Value) -> list[ir.Value]:
        return dispatch([x], [((ROWS, LANES), dtypes.FLOAT)], [(ROWS, ROWS)], body)

    return bytecode(build, [np.ones((ROWS, LANES), np.float32)], [False])


def _small(source: bytes) -> bytes:
    made = apart.compile_small(IreeCompiler(use_worker=True), source, FLAGS)
    assert made is not None
    return made.vmfb


WAYS: dict[str, Callable[[bytes], bytes]] = {
    "binary": lambda source: IreeCompiler(use_worker=False).compile(source, FLAGS),
    "worker": lambda source: IreeCompiler(use_worker=True).compile(source, FLAGS),
    "small": _small,
}


def test_the_name_of_the_address_space() -> None:
    """The lowering and the worker, which import nothing of each other, name it alike."""
    assert iree_ops.INPUT == worker_kernels.INPUT == worker.INPUT.decode()


@pytest.mark.parametrize("way", WAYS)
def test_rows_past_the_end_are_asked_for(way: str) -> None:
    """The input is read where it lies: IREE would refuse a copy of it on the stack."""
    from iree import runtime as rt

    module = rt.load_vm_flatbuffer(WAYS[way](_doubled()), driver="local-sync")
    x = np.arange(ROWS * LANES, dtype=np.float32).reshape(ROWS, LANES)
    assert np.array_equal(module.main(x).to_host(), x + x)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="kernels are for x86-64")
def test_kernels_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row by 4-bit weights on Zen 5, whose kernel is compiled beside its host function."""
    monkeypatch.setattr(apart, "SMALL", 0)
    made, rng = Programs(), np.random.default_rng(0)
    codes = rng.integers(0, 256, (256, 528), dtype=np.uint8)
    scales = rng.normal(0, 1, (16, 528)).astype(np.float32)

    def build(b: Any, x: Any) -> Any:
        return b.op("blocked_dot", x, *map(b.literal, (codes, scales)), block_size=32)

    made.add(build, [np.ones((1, 512), np.float32)], np.zeros((1, 528)))
    source = made.lowered("fuse_pointwise_reduce", arch="znver5").bytecode
    assert worker.INPUT in source
    flags = cpu_ladder(cpu="znver5")[0].flags
    found = apart.compile_apart(IreeCompiler(use_worker=True), source, flags)
    assert found is not None
    assert found.via == "workers"
