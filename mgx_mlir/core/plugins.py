"""Plugins: packages from outside that register operators, lowerings, passes and importers.

A package names a module of its own in the entry points of the group `mgx_mlir.plugins`; importing
that module registers what it has. Plugins are searched for when the first context, list of passes
or list of importers is made. MGX_PLUGINS=0 ignores those of packages; `add` names others.
How to write one: docs/plugins.md.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import importlib.util
import os
import sys
import threading
import traceback
from collections.abc import Iterator
from types import ModuleType

from mgx_mlir.core import forks, interrupts
from mgx_mlir.core.errors import FileError, PluginError
from mgx_mlir.core.records import dataclass

GROUP = "mgx_mlir.plugins"
SWITCH = "MGX_PLUGINS"
# Registered before any plugin, so that a name conflict is the plugin's error.
BUILT_IN = (
    "mgx_mlir.dialects",
    "mgx_mlir.passes",
    "mgx_mlir.passes.lowering.families",
    "mgx_mlir.frontends.onnx.ops",
)


@dataclass(frozen=True, order=True)
class Plugin:
    """One entry point: the package that states it, the entry point's name, and its module."""

    package: str
    version: str
    name: str
    module: str
    file: str = ""

    @property
    def root(self) -> str:
        """The top-level package that the module is in."""
        return self.module.partition(".")[0]

    def __str__(self) -> str:
        if not self.version:
            return f"plugin '{self.package}'"
        return f"plugin '{self.name}' of package '{self.package}' {self.version}"


_lock = forks.lock()
_owner: int | None = None  # the thread that imports the plugins
_done = False
_failure: PluginError | None = None
_given: list[Plugin] = []  # added by `add`


def add(source: str) -> None:
    """Add a plugin that is not an installed package: a Python file, or a module name.

    It is imported with the others, or at once if they are imported already. A file's folder is
    appended to sys.path. Errors: FileError for a missing file, PluginError for one that cannot be
    imported.
    """
    if source.endswith(".py"):
        path = os.path.abspath(source)
        if not os.path.isfile(path):
            raise FileError("no such file", location=source)
        name = os.path.basename(path).removesuffix(".py")
        if any(p.file == path for p in _given):
            return
        spec = None if name in sys.modules else importlib.util.find_spec(name)
        if name in sys.modules or (spec is not None and spec.origin != path):
            raise PluginError(
                f"the name '{name}' is taken by another module", location=source,
                notes=["rename the file"],
            )  # fmt: skip
        plugin = Plugin(source, "", name, name, path)
    else:
        plugin = Plugin(source, "", source, source)
    if plugin in _given:
        return
    _given.append(plugin)
    if _done:
        with interrupts.hold(), interrupts.waiting(_lock):
            _import(plugin)


def all_plugins() -> tuple[Plugin, ...]:
    """List the plugins of the installed packages, sorted, and those added; none is imported."""
    return (*_installed(), *_given)


def added_plugins() -> tuple[Plugin, ...]:
    """List the plugins that `add` named."""
    return tuple(_given)


@functools.cache
def _installed() -> tuple[Plugin, ...]:
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
        return  # called during registration, by a plugin or a module before it
    with interrupts.hold(), interrupts.waiting(_lock):
        if _done:
            return
        _owner = threading.get_ident()
        try:
            plugins = all_plugins()
            for name in BUILT_IN if plugins else ():
                built_in = importlib.import_module(name)
                getattr(built_in, "load", lambda: None)()
            for plugin in plugins:
                _import(plugin)
        except PluginError as e:
            _failure = e
        finally:
            _owner = None
        _done = True


def _import(plugin: Plugin) -> None:
    """Import a plugin's module, from its file if it is one."""
    if plugin.file and plugin.module not in sys.modules:
        spec = importlib.util.spec_from_file_location(plugin.module, plugin.file)
        assert spec is not None
        assert spec.loader is not None
        sys.path.append(os.path.dirname(plugin.file))
        module = importlib.util.module_from_spec(spec)
        sys.modules[plugin.module] = module
        try:
            spec.loader.exec_module(module)
        except (Exception, SystemExit) as e:
            sys.modules.pop(plugin.module, None)
            raise _failed(plugin, e) from e
        return
    import_module(plugin.module)


def _failed(plugin: Plugin, e: BaseException) -> PluginError:
    frame = (traceback.extract_tb(e.__traceback__) or [None])[-1]
    given = plugin in _given
    return PluginError(
        f"{plugin} cannot be loaded: {type(e).__name__}: {e}",
        location=f"{frame.filename}:{frame.lineno}" if frame else None,
        notes=[] if given else [
            f"`pip uninstall {plugin.package}` removes it, "
            f"{SWITCH}=0 in the environment leaves all plugins out"
        ],
    )  # fmt: skip


def import_module(name: str) -> ModuleType:
    """Import a module; PluginError with the package if it is a plugin's."""
    plugin = owner(name)
    if plugin is None:
        return importlib.import_module(name)
    try:
        return importlib.import_module(name)
    except (Exception, SystemExit) as e:
        raise _failed(plugin, e) from e


def owner(module: str) -> Plugin | None:
    """Return the plugin that a module belongs to, by its top-level package."""
    root = module.partition(".")[0]
    return next((p for p in all_plugins() if p.root == root), None)


def facts() -> list[str]:
    """Return the cache key's part of plugins: each one's name and version, and a digest of its
    files.

    A plugin installed with `pip install -e` changes without a new version.
    """
    out: list[str] = []
    for plugin in all_plugins():
        out.append(f"plugin {plugin.name}={plugin.module} {plugin.package}={plugin.version}")
        out += [_state(plugin.file)] if plugin.file else _sources(plugin.root)
    return out


def _sources(root: str) -> Iterator[str]:
    """Yield each source file of a top-level package, without importing it."""
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
            yield _state(file)


def _state(file: str) -> str:
    """Return a digest of a file's content, equal in every environment."""
    with open(file, "rb") as f:
        return f"{os.path.basename(file)} {hashlib.blake2b(f.read()).hexdigest()}"
