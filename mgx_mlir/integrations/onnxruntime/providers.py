"""Execution providers: the available ones, and a session's choice."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mgx_mlir.integrations.onnxruntime.gpu_options import MEANINGS, is_on
from mgx_mlir.integrations.onnxruntime.options import MEANS_NOTHING
from mgx_mlir.targets.devices import gpu_devices

CPU = "CPUExecutionProvider"
GPUS = ("MIGraphXExecutionProvider", "ROCMExecutionProvider")
ALL = [*GPUS, CPU]
Provider = str | tuple[str, Mapping[Any, Any]]

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Chosen:
    """Providers of a session in order, with their options and the resulting target."""

    options: dict[str, dict[str, str]] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """Names in order of precedence; the CPU's is last."""
        return list(self.options)

    @property
    def target(self) -> str:
        """Target of the first provider."""
        return "gpu" if self.names[0] in GPUS else "cpu"

    @property
    def first(self) -> dict[str, str]:
        """Options of the first provider."""
        return self.options[self.names[0]]


def available() -> list[str]:
    """Return the providers that can be used here: those of AMD GPUs if one is present."""
    return list(ALL) if gpu_devices() else [CPU]


def device() -> str:
    """Return "GPU" if one is present, else "CPU"."""
    return "GPU" if gpu_devices() else "CPU"


def chosen(
    providers: Sequence[Provider] | None, options: Sequence[Mapping[Any, Any]] | None
) -> Chosen:
    """Return the providers that a session uses.

    None stands for all available ones. Unknown providers and absent GPUs are dropped with a
    warning; the CPU follows at the end. Raises ValueError for other values than names and tuples of
    a name and a mapping.
    """
    if providers is None:
        return Chosen({name: {} for name in available()})
    found: dict[str, dict[str, str]] = {}
    here = available()
    for name, given in _pairs(providers, options):
        emulated = name in GPUS and is_on(given.get("emulate"))
        if name not in here and not emulated:
            warnings.warn(
                f"provider '{name}' is not available, expected one of {', '.join(here)}",
                stacklevel=4,
            )
            continue
        if name in found:
            warnings.warn(f"provider '{name}' is given twice, the second is ignored", stacklevel=4)
            continue
        _note_unused(name, given)
        found[name] = dict(given)
    found.setdefault(CPU, {})
    return Chosen(found)


def _note_unused(name: str, given: Mapping[str, str]) -> None:
    """Warn of options that a GPU's provider never has; log those without effect here.

    onnxruntime ignores unknown options of the CPU's provider without a word.
    """
    unknown = [k for k in given if k not in MEANINGS] if name in GPUS else []
    if unknown:
        known = ", ".join(MEANINGS)
        warnings.warn(
            f"unknown options of '{name}': {', '.join(unknown)}; it has {known}", stacklevel=5
        )
    idle = [
        k
        for k in given
        if name not in GPUS or (k in MEANINGS and MEANINGS[k].status == MEANS_NOTHING)
    ]
    if idle:
        log.info("options of '%s' without effect: %s", name, ", ".join(idle))


def _pairs(
    providers: Sequence[Provider], options: Sequence[Mapping[Any, Any]] | None
) -> list[tuple[str, dict[str, str]]]:
    if not isinstance(providers, Sequence) or isinstance(providers, str):
        raise ValueError(f"'providers' expected a list of names, got {providers!r}")
    if options is not None:
        if isinstance(options, str | Mapping) or not isinstance(options, Sequence):
            raise ValueError("'provider_options' expected a list of mappings")
        if len(options) != len(providers):
            raise ValueError(
                f"'provider_options' expected {len(providers)} mappings, got {len(options)}"
            )
        if not all(isinstance(p, str) for p in providers):
            raise ValueError("'providers' expected names alone where 'provider_options' is given")
        providers = [(str(p), o) for p, o in zip(providers, options, strict=True)]
    found: list[tuple[str, dict[str, str]]] = []
    for p in providers:
        if isinstance(p, str):
            found.append((p, {}))
        elif isinstance(p, tuple) and len(p) == 2 and isinstance(p[1], Mapping):
            found.append((str(p[0]), {str(k): str(v) for k, v in p[1].items()}))
        else:
            raise ValueError(f"'providers' expected names or (name, options), got {p!r}")
    return found
