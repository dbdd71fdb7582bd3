"""Plugins: packages from outside that register operators, lowerings, passes and importers.

A package names a module of its own in the entry points of the group `mgx_mlir.plugins`; importing
that module registers what it has. Nothing is looked for before the first context, list of passes
or list of importers is made. MGX_PLUGINS=0 leaves all plugins out. How to write one:
docs/plugins.md.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import importlib.util
import os
import threading
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType

from mgx_mlir.core import forks
from mgx_mlir.core.errors import PluginError

GROUP = "mgx_mlir.plugins"
SWITCH = "MGX_PLUGINS"
# Registered before any plugin, so that a name which is taken already is an error of the plugin.
BUILT_IN = (
    "mgx_mlir.dialects",
    "mgx_mlir.passes",
    "mgx_mlir.passes.lower.families",
    "mgx_mlir.frontends.onnx.ops",
)


@dataclass(frozen=True, order=True)
class Plugin:
    """One entry point: the package that states it, the entry point's name, and its module."""

    package: str
    version: str
    name: str
    module: str

    @property
    def root(self) -> str:
        """The top-level package that the module is in."""
        return self.module.partition(".")[0]

    def __str__(self) -> str:
        return f"plugin '{self.name}' of package '{self.package}' {self.version}"


_lock = forks.lock()
_owner: int | None = None  # the thread that imports the plugins
_done = False
_failure: PluginError | None = None


@functools.cache
def found() -> tuple[Plugin, ...]:
    """List the plugins of the installed packages, sorted; none of them is imported."""
    if os.environ.get(SWITCH) == "0":
        return ()
    from importlib.metadata import entry_points  # slow to load

    out: set[Plugin] = set()
    for point in entry_points(group=GROUP):
        package = point.dist.name if point.dist else point.module
        out.add(Plugin(package, point.dist.version if point.dist else "", point.name, point.value))
    return tuple(sorted(out))


def load() -> None:
    """Import every plugin, once. PluginError, at each call, where one cannot be imported."""
    if not _done:
        _load()
    if _failure is not None:
        raise PluginError(_failure.message, location=_failure.location, notes=_failure.notes)


def _load() -> None:
    global _done, _failure, _owner
    if _owner == threading.get_ident():
        return  # a plugin, or what is registered before it, asks for what is registered
    with _lock:
        if _done:
            return
        _owner = threading.get_ident()
        try:
            plugins = found()
            for name in BUILT_IN if plugins else ():
                built_in = importlib.import_module(name)
                getattr(built_in, "load", lambda: None)()
            for plugin in plugins:
                import_module(plugin.module)
        except PluginError as e:
            _failure = e
        finally:
            _owner = None
        _done = True


def import_module(name: str) -> ModuleType:
    """Import a module that a plugin may have; PluginError with the package where it is one's."""
    plugin = owner(name)
    if plugin is None:
        return importlib.import_module(name)
    try:
        return importlib.import_module(name)
    except (Exception, SystemExit) as e:
        frame = (traceback.extract_tb(e.__traceback__) or [None])[-1]
        raise PluginError(
            f"{plugin} cannot be loaded: {type(e).__name__}: {e}",
            location=f"{frame.filename}:{frame.lineno}" if frame else None,
            notes=[
                f"`pip uninstall {plugin.package}` removes it, "
                f"{SWITCH}=0 in the environment leaves all plugins out"
            ],
        ) from e


def owner(module: str) -> Plugin | None:
    """Return the plugin that a module belongs to, by its top-level package."""
    root = module.partition(".")[0]
    return next((p for p in found() if p.root == root), None)


def facts() -> list[str]:
    """State what programs depend on: each plugin's name and version, and the state of its files.

    The files count by name and content: one that is installed with `pip install -e` changes
    without a new version.
    """
    out: list[str] = []
    for plugin in found():
        out.append(f"plugin {plugin.name}={plugin.module} {plugin.package}={plugin.version}")
        out += _sources(plugin.root)
    return out


def _sources(root: str) -> Iterator[str]:
    """Name each source file of a top-level package, which is not imported."""
    try:
        spec = importlib.util.find_spec(root)
    except (ImportError, ValueError):
        spec = None
    if spec is None:
        return
    folders = list(spec.submodule_search_locations or ())
    files = [os.path.join(at, n) for f in folders for at, _, names in os.walk(f) for n in names]
    for file in files or [spec.origin or ""]:
        if file.endswith(".py"):
            # by content: another environment with the same plugin has the same programs
            with open(file, "rb") as f:
                yield f"{os.path.basename(file)} {hashlib.blake2b(f.read()).hexdigest()}"
