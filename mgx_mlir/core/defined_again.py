"""Definitions that are repeated because an exception ended their module's first import."""

from __future__ import annotations

import sys
from collections.abc import Hashable
from typing import Any

_homes: dict[Hashable, Any] = {}  # module objects by the key of a definition in them


def again(registry: str, key: Hashable, module: str) -> bool:
    """Record that a module defines `key`; return whether an earlier execution of it did.

    A module whose import fails is taken out of `sys.modules`, and the next import executes it as
    a new one. Then the first execution's registrations are replaced. Return False for a second
    definition in one execution, or in another module.
    """
    here = sys.modules.get(module)
    before = _homes.get((registry, key))
    same = before is not None and here is not None and before is not here
    same = same and before.__name__ == here.__name__  # type: ignore[union-attr]
    if before is None or same:
        _homes[registry, key] = here
    return same
