"""Definitions that an import makes again because an exception ended it the first time."""

from __future__ import annotations

import sys
from collections.abc import Hashable
from typing import Any

_homes: dict[Hashable, Any] = {}  # the module object that a definition was made in, by its key


def again(registry: str, key: Hashable, module: str) -> bool:
    """Note that a module defines `key`; say whether an earlier execution of it did so before.

    A module whose import fails is taken out of `sys.modules`, and the next import executes it as
    a new one. What the first execution registered is replaced then; for a second definition in one
    execution, or in another module, this is False.
    """
    here = sys.modules.get(module)
    before = _homes.get((registry, key))
    same = before is not None and here is not None and before is not here
    same = same and before.__name__ == here.__name__  # type: ignore[union-attr]
    if before is None or same:
        _homes[registry, key] = here
    return same
