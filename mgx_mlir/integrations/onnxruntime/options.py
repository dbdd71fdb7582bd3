"""SessionOptions and RunOptions, and the table of each option's meaning here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mgx_mlir.compiler.run_limits import RunLimits
from mgx_mlir.core.errors import UsageError
from mgx_mlir.integrations.onnxruntime.enums import (
    ExecutionMode,
    ExecutionOrder,
    GraphOptimizationLevel,
)
from mgx_mlir.integrations.onnxruntime.errors import InvalidArgument, refuse
from mgx_mlir.integrations.onnxruntime.values import OrtValue

HONOURED, MEANS_NOTHING, REFUSED = "honoured", "has no effect", "refused"


@dataclass(frozen=True)
class Meaning:
    """Meaning of an onnxruntime name here: one of the three words above, and a sentence."""

    status: str
    text: str
    default: Any = None


def _yes(text: str, default: Any = None) -> Meaning:
    return Meaning(HONOURED, text, default)


def _nothing(text: str, default: Any = None) -> Meaning:
    return Meaning(MEANS_NOTHING, text, default)


def _no(text: str) -> Meaning:
    return Meaning(REFUSED, text)


_BASIC = GraphOptimizationLevel.ORT_ENABLE_BASIC
SESSION_ATTRIBUTES: dict[str, Meaning] = {
    "intra_op_num_threads": _yes("CPU threads of a run; 0: all, or one for a small program", 0),
    "graph_optimization_level": _yes(
        "up to ORT_ENABLE_BASIC, rewrites that change rounding are left out",
        GraphOptimizationLevel.ORT_ENABLE_ALL,
    ),
    "enable_profiling": _yes("times of loading and of runs go to a file: end_profiling", False),
    "profile_file_prefix": _yes("prefix of that file's name", "onnxruntime_profile_"),
    "optimized_model_filepath": _yes(
        "the compiled program is written there: a name that ends in .mxr, or .mlir for its text", ""
    ),
    "inter_op_num_threads": _nothing("kernels run one after another, each on all threads", 0),
    "execution_mode": _nothing(
        "kernels run one after another, each on all threads", ExecutionMode.ORT_SEQUENTIAL
    ),
    "execution_order": _nothing("IREE orders kernels", ExecutionOrder.DEFAULT),
    "enable_cpu_mem_arena": _nothing("memory is planned when the model is compiled", True),
    "enable_mem_pattern": _nothing("memory is planned when the model is compiled", True),
    "enable_mem_reuse": _nothing("memory is planned when the model is compiled", True),
    "use_deterministic_compute": _nothing("runs are deterministic", False),
    "use_per_session_threads": _nothing("sessions share their threads", True),
    "log_severity_level": _nothing("nothing is logged; errors and warnings are raised", -1),
    "log_verbosity_level": _nothing("nothing is logged; errors and warnings are raised", 0),
    "logid": _nothing("nothing is logged; errors and warnings are raised", ""),
}
SESSION_METHODS: dict[str, Meaning] = {
    "add_free_dimension_override_by_name": _yes("the dims of this name get the size"),
    "add_free_dimension_override_by_denotation": _yes("the dims of this denotation get the size"),
    "add_initializer": _yes("the initializer gets the value"),
    "add_external_initializers": _yes("the initializers get the values"),
    "add_session_config_entry": _yes(
        "stored, and returned by get_session_config_entry; keys: see below"
    ),
    "get_session_config_entry": _yes("the entry that was added"),
    "add_provider": _yes("a provider for sessions that name none"),
    "has_providers": _yes("whether add_provider was called"),
    "set_load_cancellation_flag": _nothing("a compile is ended by its time limit alone"),
    "set_provider_selection_policy": _nothing("a GPU is used if one is present"),
    "set_provider_selection_policy_delegate": _nothing("a GPU is used if one is present"),
    "set_ep_context_data_read_func": _nothing("there are no EPContext nodes"),
    "clear_ep_context_data_read_func": _nothing("there are no EPContext nodes"),
    "add_provider_for_devices": _no("there are no devices of plugin providers"),
    "add_external_initializers_from_files_in_memory": _no("external data is read from files"),
    "register_custom_ops_library": _no("operators are written in Python: docs/plugins.md"),
}
RUN_ATTRIBUTES: dict[str, Meaning] = {
    "terminate": _yes(
        "a run with it set ends with Fail: before it begins, or while it runs where the session or "
        "the run has mgx.max_run_seconds",
        False,
    ),
    "only_execute_path_to_fetches": _nothing("the program computes all outputs", False),
    "log_severity_level": _nothing("nothing is logged", -1),
    "log_verbosity_level": _nothing("nothing is logged", 0),
    "logid": _nothing("nothing is logged", ""),
}
RUN_METHODS: dict[str, Meaning] = {
    "add_run_config_entry": _yes(
        "stored, and returned; mgx.max_run_seconds ends a run that takes longer, with Fail"
    ),
    "get_run_config_entry": _yes("the entry that was added"),
    "add_active_adapter": _no("there are no LoRA adapters"),
}
CONFIG_ENTRIES: dict[str, Meaning] = {
    "session.load_model_format": _yes("ONNX; ORT is refused"),
    "session.model_external_initializers_file_folder_path": _yes("the folder of external data"),
    "mgx.max_run_seconds": _yes(
        "a run that takes longer is ended, with Fail; runs are in a process of their own"
    ),
    "mgx.max_run_memory": _yes("a run that needs more bytes, beside the weights, ends with Fail"),
    "mgx.background": _yes(
        "1: the session is made before its model is compiled, and the numpy reference answers"
        " until then"
    ),
    "mgx.sizes": _yes(
        "sizes of a dynamic dim that get a program each, such as batch=1,8,32; other sizes are "
        "padded to the next one where rows are proved to be independent"
    ),
}


class _Options:
    """Attributes named by a table, with the types of their defaults."""

    _attributes: Mapping[str, Meaning] = {}
    __slots__ = ("_entries", "_values")

    def __init__(self) -> None:
        self._values: dict[str, Any] = {n: m.default for n, m in self._attributes.items()}
        self._entries: dict[str, str] = {}

    def __getattr__(self, name: str) -> Any:
        if name in type(self)._attributes:
            return self._values[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("_"):
            object.__setattr__(self, name, value)
            return
        meaning = self._attributes.get(name)
        if meaning is None:
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        kind = type(meaning.default)
        taken = isinstance(value, int | np.integer) if kind is int else isinstance(value, kind)
        if kind is bool:  # onnxruntime takes numbers and None
            taken = hasattr(type(value), "__bool__")
        if kind is str and hasattr(value, "__fspath__"):
            value, taken = value.__fspath__(), True
        if not taken:
            raise TypeError(f"'{name}' expected {kind.__name__}, got {type(value).__name__}")
        self._values[name] = kind(value)

    def __dir__(self) -> list[str]:
        return sorted({*object.__dir__(self), *self._attributes})

    def __getstate__(self) -> dict[str, Any]:
        names = [n for c in type(self).__mro__ for n in getattr(c, "__slots__", ())]
        return {n: getattr(self, n) for n in names}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        for name, value in state.items():
            object.__setattr__(self, name, value)

    def _entry(self, key: str) -> str:
        if key not in self._entries:
            raise RuntimeError(f"{type(self).__name__} has no entry '{key}'")
        return self._entries[key]


class SessionOptions(_Options):
    """Preparation of a session's model. docs/onnxruntime.md has what each option means.

    Errors: AttributeError for an unknown option, TypeError for a value of another type.
    """

    _attributes = SESSION_ATTRIBUTES
    __slots__ = ("_by_denotation", "_by_name", "_initializers", "_providers")

    def __init__(self) -> None:
        super().__init__()
        self._by_name: dict[str, int] = {}
        self._by_denotation: dict[str, int] = {}
        self._initializers: dict[str, np.ndarray] = {}
        self._providers: list[tuple[str, dict[str, str]]] = []

    @classmethod
    def of(cls, given: object) -> SessionOptions:
        """Return options of a session, from ours, None, or onnxruntime's own object.

        Attributes of onnxruntime's object are copied; its sizes of dims, values and entries cannot
        be read. Errors: TypeError for anything else.
        """
        if isinstance(given, SessionOptions):
            return given
        made = cls()
        if given is None:
            return made
        if type(given).__name__ != "SessionOptions":
            raise TypeError(f"expected SessionOptions, got {type(given).__name__}")
        for name, meaning in cls._attributes.items():
            value = getattr(given, name, meaning.default)
            kind = type(meaning.default)
            setattr(made, name, kind(int(value)) if issubclass(kind, int) else kind(value))
        return made

    def add_free_dimension_override_by_name(self, name: str, size: int) -> None:
        """Set the size of all dims of this name."""
        self._by_name[str(name)] = _size(size)

    def add_free_dimension_override_by_denotation(self, denotation: str, size: int) -> None:
        """Set the size of all dims of a denotation, such as "DATA_BATCH"."""
        self._by_denotation[str(denotation)] = _size(size)

    def add_initializer(self, name: str, value: OrtValue) -> None:
        """Replace the value of an initializer."""
        self._initializers[str(name)] = np.array(OrtValue.of(value).numpy())

    def add_external_initializers(self, names: Sequence[str], values: Sequence[OrtValue]) -> None:
        """Replace the values of initializers."""
        if len(names) != len(values):
            raise InvalidArgument(f"expected {len(names)} values, got {len(values)}")
        for name, value in zip(names, values, strict=True):
            self.add_initializer(name, value)

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Set a configuration entry."""
        self._entries[str(key)] = str(value)

    def get_session_config_entry(self, key: str) -> str:
        """Return a configuration entry. Errors: RuntimeError where it was not set."""
        return self._entry(key)

    def add_provider(self, name: str, options: Mapping[str, str]) -> None:
        """Add a provider, for sessions that name none."""
        self._providers.append((name, {str(k): str(v) for k, v in options.items()}))

    def has_providers(self) -> bool:
        """Return whether a provider was added."""
        return bool(self._providers)

    def set_load_cancellation_flag(self, cancel: bool) -> None:
        """Do nothing: a compile is ended by its time limit alone."""

    def set_provider_selection_policy(self, policy: object) -> None:
        """Do nothing: a GPU is used if one is present."""

    def set_provider_selection_policy_delegate(self, delegate: object) -> None:
        """Do nothing: a GPU is used if one is present."""

    def set_ep_context_data_read_func(self, read: object) -> None:
        """Do nothing: there are no EPContext nodes."""

    def clear_ep_context_data_read_func(self) -> None:
        """Do nothing: there are no EPContext nodes."""

    def add_provider_for_devices(self, *_: object) -> None:
        """Refuse: there are no devices of plugin providers."""
        raise refuse("SessionOptions.add_provider_for_devices")

    def add_external_initializers_from_files_in_memory(self, *_: object) -> None:
        """Refuse: external data is read from files."""
        raise refuse("SessionOptions.add_external_initializers_from_files_in_memory")

    def register_custom_ops_library(self, path: str) -> None:
        """Refuse: operators are written in Python."""
        raise refuse(
            "SessionOptions.register_custom_ops_library",
            ["operators of your own are Python: docs/plugins.md"],
        )

    @property
    def _run_limits(self) -> RunLimits | None:
        """Return the limits of each run. Errors: InvalidArgument."""
        return _limits(self._entries, "mgx.max_run_seconds", "mgx.max_run_memory")

    @property
    def _ahead(self) -> dict[str, Any]:
        """Return the options of `compile` that the entries about compile time set.

        Errors: InvalidArgument.
        """
        found: dict[str, Any] = {}
        background = self._entries.get("mgx.background", "0")
        if background not in ("0", "1"):
            raise InvalidArgument(f"'mgx.background' expected 0 or 1, got '{background}'")
        if background == "1":
            found["background"] = True
        if "mgx.sizes" in self._entries:
            found["sizes"] = _sizes_of(self._entries["mgx.sizes"])
        return found

    @property
    def _fast_math(self) -> bool:
        """Return whether rewrites that change rounding may be used."""
        return self._values["graph_optimization_level"] > _BASIC


class RunOptions(_Options):
    """Options of one run. docs/onnxruntime.md has what each option means."""

    _attributes = RUN_ATTRIBUTES
    __slots__ = ()

    def add_run_config_entry(self, key: str, value: str) -> None:
        """Set a configuration entry."""
        self._entries[str(key)] = str(value)

    def get_run_config_entry(self, key: str) -> str:
        """Return a configuration entry. Errors: RuntimeError where it was not set."""
        return self._entry(key)

    @property
    def _run_limits(self) -> RunLimits | None:
        """Return the limits of the run. Errors: InvalidArgument."""
        return _limits(self._entries, "mgx.max_run_seconds")

    def add_active_adapter(self, adapter: object) -> None:
        """Refuse: there are no LoRA adapters."""
        raise refuse("RunOptions.add_active_adapter")


def _limits(entries: Mapping[str, str], *keys: str) -> RunLimits | None:
    found: list[float | None] = [None, None]
    for i, key in enumerate(keys):
        if key in entries:
            try:
                found[i] = float(entries[key])
            except ValueError:
                raise InvalidArgument(f"'{key}' expected a number, got '{entries[key]}'") from None
    try:
        return RunLimits.of(*found)
    except UsageError as e:
        raise InvalidArgument(e.message) from None


def _sizes_of(text: str) -> dict[str, list[int]] | list[int]:
    """Return sizes written as `batch=1,8` or `1,8`. Errors: InvalidArgument."""
    name, _, listed = text.rpartition("=")
    try:
        sizes = [int(n) for n in listed.split(",")]
    except ValueError:
        wanted = "sizes as batch=1,8,32"
        raise InvalidArgument(f"'mgx.sizes' expected {wanted}, got '{text}'") from None
    return {name: sizes} if name else sizes


def _size(size: object) -> int:
    if isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 0:
        raise TypeError(f"expected a size, got {size!r}")
    return int(size)
