"""Fast check of inputs: equality with shapes that passed the full checks before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from mgx_mlir.core import dtypes
from mgx_mlir.programs.signature import Signature

_MOST_SHAPES = 16
Shapes = tuple[tuple[int, ...], ...]


class KnownInputs:
    """Shapes that passed a signature's checks.

    The checks of most signatures depend only on types and shapes. Signatures with bools (any byte),
    packed or emulated types, lists, or numbers that sizes depend on are never cached. Indices and
    divisors are checked in every call.
    """

    def __init__(self, signature: Signature) -> None:
        ports = signature.inputs
        kinds = [dtypes.from_name(p.dtype) for p in ports]
        self._count = len(ports)
        self._types = [(p.name, d.np) for p, d in zip(ports, kinds, strict=True)]
        self._signature = signature
        self._usable = not signature.input_groups and not any(p.element for p in ports)
        self._usable &= not any(d.is_bool for d in kinds)
        self._usable &= not any(rule.reads_values for rule in signature.sizes)
        self._has_rules = bool(signature.values)
        self._passed: set[Shapes] = set()

    def remember(self, arrays: Sequence[np.ndarray]) -> None:
        """Store the shapes of arrays that passed the checks."""
        if self._usable:
            if len(self._passed) >= _MOST_SHAPES:
                self._passed = set()
            self._passed.add(tuple([a.shape for a in arrays]))

    def arrays(self, given: Mapping[str, object]) -> tuple[list[np.ndarray], Shapes] | None:
        """Return the arrays in order and their shapes if the shapes were seen before, else None.

        Errors: RunError for an index that is out of range, or a divisor of 0.
        """
        if not self._passed or len(given) != self._count:
            return None
        found: list[np.ndarray] = []
        for name, kind in self._types:
            a = given.get(name)
            if type(a) is not np.ndarray or a.dtype is not kind:
                return None
            found.append(a)
        shapes = tuple([a.shape for a in found])
        if shapes not in self._passed:
            return None
        if self._has_rules:
            self._signature.check_values(found)
        return found, shapes
