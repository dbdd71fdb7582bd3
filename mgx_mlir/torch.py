"""`mgx_mlir.torch`: modules of PyTorch compiled ahead of time. Needs torch.

`torch.compile(model, backend="mgx")` needs no import.
"""

from mgx_mlir.core.errors import UsageError
from mgx_mlir.core.extras import install_line

try:
    import torch as _torch  # noqa: F401
except ImportError:
    raise UsageError("torch is not installed", notes=[install_line("torch")]) from None

from mgx_mlir.integrations.torch.ahead import CompiledModule, compile, load
from mgx_mlir.integrations.torch.counters import counters

__all__ = ["CompiledModule", "compile", "counters", "load"]
