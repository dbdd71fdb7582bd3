"""Imports that no signal or fork interrupts, and that can be repeated after a failure.

Modules are imported at first use, most of them in the first compile. A C++ module whose import was
interrupted cannot be imported again in the process. A child forked during an import would wait for
ever for the importing thread's lock.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable, Generator, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from mgx_mlir.core import forks, interrupts

_failed: set[str] = set()  # modules whose execution has ended with an exception


class _Guarded:
    """A step of a module's import that neither a signal nor a fork interrupts."""

    def __init__(self, step: Callable[..., Any]) -> None:
        self._step = step

    def __call__(self, of: ModuleType | ModuleSpec) -> Any:
        name = of.__name__ if isinstance(of, ModuleType) else of.name
        if not _is_guarded(name):  # a loader may load other packages too
            return self._step(of)
        forks.usable()
        with interrupts.later(), forks.loading():
            try:
                with _registering_again() if name in _failed else contextlib.nullcontext():
                    found = self._step(of)
                if isinstance(of, ModuleType):
                    # executed completely: `forks` checks this
                    of.__spec__._initializing = False  # type: ignore[union-attr]
                return found
            except BaseException:
                _failed.add(name)
                raise


def _is_guarded(name: str) -> bool:
    return name.partition(".")[0] in forks.PACKAGES


def _guard_steps(loader: object) -> None:
    """Guard the steps of any loader: an editable install's, an archive's, a hook's."""
    # built-in loaders are classes, shared by all modules
    if loader is None or isinstance(loader, type):
        return
    for name in ("create_module", "exec_module"):
        step: Any = getattr(loader, name, None)
        if step is not None and not isinstance(step, _Guarded):
            with contextlib.suppress(AttributeError):  # a loader with __slots__
                setattr(loader, name, _Guarded(step))


@contextlib.contextmanager
def _registering_again() -> Generator[None]:
    """Let the bindings' modules register again what a failed import registered."""
    bindings: Any = sys.modules.get("torch_mlir._mlir_libs._mlir")
    ir: Any = sys.modules.get("torch_mlir.ir")
    if bindings is None:
        yield
        return

    def dialect(cls: type) -> type:
        bindings.globals._register_dialect_impl(vars(cls)["DIALECT_NAMESPACE"], cls, replace=True)
        return cls

    replaced: list[tuple[Any, str, Any]] = [(bindings, "register_dialect", dialect)]
    for name in ("register_operation", "register_op_adaptor", "register_value_caster"):
        if hasattr(bindings, name):
            made = functools.partial(getattr(bindings, name), replace=True)
            replaced.append((bindings, name, made))
    if hasattr(ir, "register_attribute_builder"):
        register = ir.register_attribute_builder

        def builder(kind: str, **_: bool) -> Any:
            return register(kind, replace=True)

        replaced.append((ir, "register_attribute_builder", builder))
    before = [(module, name, getattr(module, name)) for module, name, _ in replaced]
    for module, name, made in replaced:
        setattr(module, name, made)
    try:
        yield
    finally:
        for module, name, found in before:
            setattr(module, name, found)


class _Finder:
    """A finder that asks the other finders, and guards the imports of our packages."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not _is_guarded(name):
            return None
        for finder in sys.meta_path:
            find = None if isinstance(finder, _Finder) else getattr(finder, "find_spec", None)
            spec = None if find is None else find(name, path, target)
            if spec is None:
                continue
            _guard_steps(spec.loader)
            return spec
        return None


def guard() -> None:
    """Guard imports from now on."""
    if not any(type(finder).__name__ == _Finder.__name__ for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
