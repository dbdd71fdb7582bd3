"""The table of lowerings: one function per op class, registered by `@lowers`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias, TypeVar

import numpy as np

from mgx_mlir.core import defined_again
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import Op
from mgx_mlir.passes.lowering.expr import Expr

# The lowered form of an op's results: tensors, expressions, or elements that are kept as host
# scalars.
Results: TypeAlias = ir.Value | Expr | np.ndarray | Sequence[ir.Value | Expr | np.ndarray]
# f(op, ins, e): `op` the migraphx op view (original types and attributes), `ins` a tuple of its
# lowered operands (None for an absent one; a list for a variadic group), `e` the LoweringContext.
Lowering = Callable[..., Results]
F = TypeVar("F", bound=Lowering)
LOWERINGS: dict[str, Lowering] = {}
REFUSED: dict[str, str] = {}
# ops whose lowering takes its operands as expressions, not as tensors
LAZY: set[str] = set()


def lowers(*classes: type[Op], lazy: bool = False) -> Callable[[F], F]:
    """Register a function as the lowering of `classes`; `lazy`: operands come as expressions."""

    def register(f: F) -> F:
        for cls in classes:
            if defined_again.again("lowering", cls.mnemonic, f.__module__):
                LOWERINGS.pop(cls.mnemonic, None)
            if cls.mnemonic in LOWERINGS:
                raise TypeError(f"operator '{cls.mnemonic}' has two lowerings")
            LOWERINGS[cls.mnemonic] = f
            if lazy:
                LAZY.add(cls.mnemonic)
        return f

    return register


def refuses(reason: str, *classes: type[Op]) -> None:
    """Register the reason why `classes` have no lowering, for compile errors; `{name}` is an
    attribute.
    """
    for cls in classes:
        REFUSED[cls.mnemonic] = reason
