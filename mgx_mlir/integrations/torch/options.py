"""The options of `torch.compile(..., backend="mgx", options={...})`."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from mgx_mlir.core.errors import UsageError

FALLBACKS = ("error", "eager")


@dataclass(frozen=True)
class TorchOptions:
    """Options of compiling graphs of torch."""

    # target of `mgx_mlir.compile`; None: "gpu" for tensors on a GPU, "cpu" for others
    target: str | None = None
    arch: str | None = None  # architecture, as for `mgx_mlir.compile`
    threads: int | None = None  # CPU threads, as for `mgx_mlir.compile`
    fp16: bool = False  # computation in fp16; inputs and results keep their types
    bf16: bool = False  # computation in bf16; inputs and results keep their types
    exhaustive_tune: bool = False  # tuning, as for `mgx_mlir.compile`
    # unsupported operators: "error" raises, "eager" leaves them to torch and warns
    fallback: str = "error"
    background: bool = False  # eager runs until the graph's program is compiled
    check: bool = False  # first call of a graph is compared with eager; a difference is an error

    @staticmethod
    def of(given: Mapping[str, Any] | None, mode: str | None = None) -> TorchOptions:
        """Return checked options. UsageError for unknown names and wrong values."""
        if mode not in (None, "default"):
            raise UsageError(
                f"backend 'mgx' has no mode '{mode}'", notes=["its options: " + ", ".join(_NAMES)]
            )
        given = dict(given or {})
        for name in given:
            if name not in _NAMES:
                near = difflib.get_close_matches(name, _NAMES, 1)
                hint = f"did you mean '{near[0]}'?" if near else ""
                raise UsageError(
                    f"backend 'mgx' has no option '{name}'",
                    notes=[*([hint] if hint else []), "its options: " + ", ".join(_NAMES)],
                )
        made = TorchOptions(**given)
        if made.fp16 and made.bf16:
            raise UsageError("expected one of fp16 and bf16")
        if made.fallback not in FALLBACKS:
            raise UsageError(
                f"fallback expected {' or '.join(map(repr, FALLBACKS))}, got {made.fallback!r}"
            )
        for name in ("fp16", "bf16", "exhaustive_tune", "background", "check"):
            if not isinstance(getattr(made, name), bool):
                raise UsageError(f"{name} expected True or False, got {getattr(made, name)!r}")
        if made.threads is not None and (not isinstance(made.threads, int) or made.threads < 1):
            raise UsageError(f"threads expected a positive number, got {made.threads!r}")
        return made

    def compile_options(self) -> dict[str, Any]:
        """Return those that are options of `mgx_mlir.compile`, except the target."""
        found: dict[str, Any] = {"threads": self.threads, "exhaustive_tune": self.exhaustive_tune}
        return {**found, "arch": self.arch} if self.arch is not None else found


_NAMES = tuple(f.name for f in fields(TorchOptions))
