"""`import mgx_mlir.backend`: another name of mgx_mlir.integrations.backend."""

from mgx_mlir.integrations.backend import (
    Backend,
    BackendRep,
    is_compatible,
    prepare,
    run,
    run_model,
    run_node,
    set_device,
    supports_device,
)

__all__ = [
    "Backend",
    "BackendRep",
    "is_compatible",
    "prepare",
    "run",
    "run_model",
    "run_node",
    "set_device",
    "supports_device",
]
