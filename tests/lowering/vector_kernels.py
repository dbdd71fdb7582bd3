"""Builds, compiles and runs a vector kernel by itself."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mgx_mlir.core import dtypes
from mgx_mlir.core.context import new_context
from mgx_mlir.core.ir import func, ir
from mgx_mlir.core.shapes import DYN
from mgx_mlir.passes.lowering.scalar import signless
from mgx_mlir.targets.flags import cpu_ladder
from tests.support.compiles import module_of


def bytecode(
    build: Callable[..., Sequence[ir.Value]],
    arrays: Sequence[np.ndarray],
    is_dynamic: Sequence[bool],
) -> bytes:
    """A module whose @main is `build(*arguments)`; is_dynamic: whether all dims of each are."""
    ctx = new_context()
    ctx.allow_unregistered_dialects = True
    with ctx, ir.Location.unknown():
        module = ir.Module.create()
        types = [
            ir.RankedTensorType.get(
                [DYN] * a.ndim if some else a.shape, signless(dtypes.from_numpy(a.dtype))
            )
            for a, some in zip(arrays, is_dynamic, strict=True)
        ]
        with ir.InsertionPoint(module.body):
            main = func.FuncOp("main", (types, []))
        with ir.InsertionPoint(main.add_entry_block()):
            found = list(build(*main.arguments))
            func.ReturnOp(found)
        main.attributes["function_type"] = ir.TypeAttr.get(
            ir.FunctionType.get(types, [v.type for v in found])
        )
        module.operation.verify()
        buffer = io.BytesIO()
        module.operation.write_bytecode(buffer)
    return buffer.getvalue()


def compiled(
    build: Callable[..., Sequence[ir.Value]],
    arrays: Sequence[np.ndarray],
    *,
    fixed: bool = True,
    is_dynamic: Sequence[bool] = (),
    **flags: Any,
) -> bytes:
    """The code of such a module; not `fixed`: all dims are dynamic."""
    made = bytecode(build, arrays, list(is_dynamic) or [not fixed] * len(arrays))
    return module_of(made, cpu_ladder(**flags)[0].flags)


def run(
    build: Callable[..., Sequence[ir.Value]],
    arrays: Sequence[np.ndarray],
    threads: int = 1,
    *,
    is_dynamic: Sequence[bool] = (),
) -> list[np.ndarray]:
    """The results of `build`'s kernel for `arrays`."""
    from iree import runtime as rt

    module = rt.load_vm_flatbuffer(
        compiled(build, arrays, is_dynamic=is_dynamic),
        driver="local-sync" if threads == 1 else "local-task",
    )
    found = module.main(*arrays)
    return [f.to_host() for f in (found if isinstance(found, tuple | list) else [found])]
