"""The dialect's definition as IRDL text, for other tools' --irdl-file."""

from __future__ import annotations

from mgx_mlir.core import plugins
from mgx_mlir.core.context import new_context
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import Migraphx

_HEAD = """// Every op of the dialect: operands, results and regions. A variadic field is written
// as 64, each with a segment size: `mgx-opt --emit-bytecode` keeps these, its text does not.
"""


def dialect_irdl() -> str:
    """Return the definitions of all operators defined so far, including plugins'."""
    plugins.load()
    with new_context() as context:
        module = ir.Module.parse(Migraphx.emitted(), context)
        return _HEAD + module.operation.get_asm()
