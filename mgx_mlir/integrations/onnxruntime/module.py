"""Functions of onnxruntime's module, and stand-ins for its unsupported classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mgx_mlir
from mgx_mlir.integrations.onnxruntime.errors import refuse
from mgx_mlir.integrations.onnxruntime.options import SessionOptions
from mgx_mlir.integrations.onnxruntime.providers import ALL, available, device

get_available_providers = available
get_device = device


def get_all_providers() -> list[str]:
    """Return all providers that a session can use on some machine."""
    return list(ALL)


def get_version_string() -> str:
    """Return the version of mgx_mlir."""
    return mgx_mlir.__version__


def get_build_info() -> str:
    """Return the name and version of this package."""
    return f"mgx_mlir {mgx_mlir.__version__}, onnxruntime's API over compiled programs"


def get_default_session_options() -> SessionOptions:
    """Return the default options of a session."""
    return SessionOptions()


def get_ep_devices() -> list[Any]:
    """Return nothing: there are no devices of plugin providers."""
    return []


def has_collective_ops() -> bool:
    """Return False: a program runs on one device."""
    return False


def set_seed(seed: int) -> None:
    """Do nothing: a model's random operators have the seeds of its attributes."""


def set_default_logger_severity(severity: int) -> None:
    """Do nothing: nothing is logged."""


def set_default_logger_verbosity(verbosity: int) -> None:
    """Do nothing: nothing is logged."""


def set_default_logger_callback(callback: object, *_: object) -> None:
    """Do nothing: nothing is logged."""


def enable_telemetry_events() -> None:
    """Do nothing: there is no telemetry."""


def disable_telemetry_events() -> None:
    """Do nothing: there is no telemetry."""


def set_global_thread_pool_sizes(intra: int = 0, inter: int = 0, *_: object) -> None:
    """Do nothing: SessionOptions.intra_op_num_threads sets the threads of a run."""


def create_and_register_allocator(*_: object) -> None:
    """Do nothing: memory is planned when a model is compiled."""


def create_and_register_allocator_v2(*_: object) -> None:
    """Do nothing: memory is planned when a model is compiled."""


def preload_dlls(
    cuda: bool = True, cudnn: bool = True, msvc: bool = True, directory: str | None = None
) -> None:
    """Do nothing: HIP is loaded when a GPU is used."""


def print_debug_info() -> None:
    """Print the version and the available devices."""
    print(get_build_info())
    print("providers:", ", ".join(available()))


def register_execution_provider_library(name: str, path: str) -> None:
    """Refuse: there are no plugin providers."""
    raise refuse("register_execution_provider_library")


def unregister_execution_provider_library(name: str) -> None:
    """Refuse: there are no plugin providers."""
    raise refuse("unregister_execution_provider_library")


def refused(name: str) -> type[Any]:
    """Return a stand-in for an unsupported class of onnxruntime; making one raises the error."""

    def init(self: object, *_: object, **__: object) -> None:
        raise refuse(name)

    def attribute(self: type[Any], attribute: str) -> Callable[..., Any]:
        if attribute.startswith("_"):
            raise AttributeError(attribute)
        raise refuse(f"{name}.{attribute}")

    kind = type(f"{name}Meta", (type,), {"__getattr__": attribute})
    return kind(name, (), {"__init__": init, "__doc__": f"Refuse: {name} is not supported."})
