# What this project uses of the bindings' `irdl`: definitions of dialects that are loaded.

from torch_mlir import ir

def load_dialects(module: ir.Module) -> None: ...
