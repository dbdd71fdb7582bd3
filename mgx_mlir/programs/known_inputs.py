"""The check of inputs like those of an earlier call: no more than that they are alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from mgx_mlir.core import dtypes
from mgx_mlir.programs.signature import Signature


class KnownInputs:
    """Remembers the shapes that a signature's checks let pass last.

    The checks depend on types and shapes alone, but for bools (of any byte), types that another
    one holds, indices and lists: inputs of such signatures are never known.
    """

    def __init__(self, signature: Signature) -> None:
        ports = signature.inputs
        plain = not signature.input_groups and not signature.values
        kinds = [dtypes.from_name(p.dtype) for p in ports]
        self._count = len(ports)
        self._names = [p.name for p in ports]
        self._types = [d.np for d in kinds]
        self._usable = plain and not any(p.element for p in ports)
        self._usable &= not any(d.is_bool for d in kinds)
        self._expected: list[tuple[str, np.dtype, tuple[int, ...]]] | None = None

    def remember(self, arrays: Sequence[np.ndarray]) -> None:
        """Note the shapes of arrays that passed the checks."""
        if self._usable:
            shapes = (a.shape for a in arrays)
            self._expected = list(zip(self._names, self._types, shapes, strict=True))

    def arrays(self, given: Mapping[str, object]) -> list[np.ndarray] | None:
        """Return the arrays in order where they are like those of last time, else None."""
        expected = self._expected
        if expected is None or len(given) != self._count:
            return None
        found: list[np.ndarray] = []
        for name, kind, shape in expected:
            a = given.get(name)
            if type(a) is not np.ndarray or a.dtype is not kind or a.shape != shape:
                return None
            found.append(a)
        return found
