"""The limits of verify, as options and the environment change them."""

from __future__ import annotations

from collections.abc import Callable

from mgx_mlir.debug.tolerances import Tolerances
from mgx_mlir.tools.driver.arguments import Arguments


def limits_of(args: Arguments) -> Callable[[Tolerances], Tolerances]:
    """Return how the options and the environment change default limits."""
    stated = (args.get("--rms-tol"), args.get("--atol"), args.get("--rtol"))
    return lambda t: t.with_environment().with_limits(*stated)
