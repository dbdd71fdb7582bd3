"""Operands that must be known when the model is read."""

from __future__ import annotations

from typing import Any

import numpy as np

from mgx_mlir.frontends.problems import NotSupported


class KnownOperands:
    """What the nodes of both frontends say about constant operands; `importer` has the builder."""

    importer: Any

    def const(self, value: Any, what: str) -> np.ndarray:
        """The array of an operand. NotSupported where it is computed at run time."""
        found = self.importer.builder.const(value)
        if found is None:
            raise NotSupported(f"'{what}' is computed at run time")
        return found

    def ints(self, value: Any, what: str) -> list[int]:
        """A constant integer operand as a list."""
        return [int(x) for x in self.const(value, what).reshape(-1)]
