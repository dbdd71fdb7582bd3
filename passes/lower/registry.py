"""The table of lowerings: one function per op class, registered by `@lowers`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mgx_mlir.core.op import Op

# f(op, ins, e): `op` the migraphx op view (original types and attributes), `ins` its lowered
# operands (None for an absent one; a list for a variadic group), `e` the Emitter. Returns the
# lowered result, or a list of them.
Lowering = Callable[[Any, Any, Any], Any]
LOWERINGS: dict[str, Lowering] = {}
REFUSED: dict[str, str] = {}
# ops whose lowering takes its operands as expressions, not as tensors
LAZY: set[str] = set()


def lowers(*classes: type[Op], lazy: bool = False) -> Callable[[Lowering], Lowering]:
    """Register a function as the lowering of `classes`; `lazy`: operands come as expressions."""

    def register(f: Lowering) -> Lowering:
        for cls in classes:
            if cls.mnemonic in LOWERINGS:
                raise TypeError(f"operator '{cls.mnemonic}' has two lowerings")
            LOWERINGS[cls.mnemonic] = f
            if lazy:
                LAZY.add(cls.mnemonic)
        return f

    return register


def refuses(reason: str, *classes: type[Op]) -> None:
    """State why `classes` have no lowering: the compile error says it, `{name}` an attribute."""
    for cls in classes:
        REFUSED[cls.mnemonic] = reason
