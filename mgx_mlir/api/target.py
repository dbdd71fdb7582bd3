"""`target`: where a program is compiled for."""

from __future__ import annotations

from typing import Any

from mgx_mlir.api.argument import argument
from mgx_mlir.api.data import fill_argument
from mgx_mlir.api.device import allocate_gpu, context, from_gpu, to_gpu
from mgx_mlir.api.shape import shape
from mgx_mlir.core.errors import TargetError, UsageError

TARGETS = ("ref", "cpu", "gpu")


class target:
    """Target of a compile: `ref`, `cpu` or `gpu`, with the options of compile(), and
    for a gpu `device_id`, which of several devices it runs on."""

    def __init__(self, name: str, **options: Any) -> None:
        if name not in TARGETS:
            raise TargetError(
                f"unknown target '{name}'", notes=[f"expected one of {', '.join(TARGETS)}"]
            )
        self._name, self.options = name, options

    def name(self) -> str:
        """Return the target's name."""
        return self._name

    def get_context(self) -> context:
        """Return the GPU that programs of this target run on. UsageError for other targets."""
        if self._name != "gpu":
            raise UsageError(f"target {self._name} has no device context")
        emulate = True if self.options.get("emulate") else None
        return context(self.options.get("device_id", 0), emulate)

    def copy_to(self, arg: argument) -> argument:
        """Copy an argument to the target's memory; on a host return it as it is."""
        if not self._is_gpu:
            return arg
        at = self.get_context()
        return to_gpu(arg, device_id=at.device_id, emulate=at.emulate)

    def copy_from(self, arg: argument) -> argument:
        """Copy an argument to host memory."""
        return from_gpu(arg)

    def allocate(self, s: shape) -> argument:
        """Allocate an argument in the target's memory; not initialised on a GPU, 0 on a host."""
        if self._is_gpu:
            at = self.get_context()
            return allocate_gpu(s, device_id=at.device_id, emulate=at.emulate)
        return fill_argument(s, 0)

    @property
    def _is_gpu(self) -> bool:
        return self._name == "gpu"

    def __repr__(self) -> str:
        return f"target({self._name})"


def get_target(name: str, **options: Any) -> target:
    """Return the target of a name. Errors: TargetError for an unknown name."""
    return target(name, **options)
