# What this project uses of the `func` dialect.

from collections.abc import Sequence

from torch_mlir import ir

class FuncOp(ir.OpView):
    def __init__(
        self,
        name: str,
        type: ir.FunctionType | tuple[Sequence[ir.Type], Sequence[ir.Type]],
        *,
        visibility: str | None = None,
        loc: ir.Location | None = None,
        ip: ir.InsertionPoint | None = None,
    ) -> None: ...
    @property
    def body(self) -> ir.Region: ...
    @property
    def type(self) -> ir.FunctionType: ...
    @property
    def entry_block(self) -> ir.Block: ...
    @property
    def arguments(self) -> ir.BlockArgumentList: ...
    def add_entry_block(self, arg_locs: Sequence[ir.Location] | None = None) -> ir.Block: ...

class ReturnOp(ir.OpView):
    def __init__(
        self,
        operands_: Sequence[ir.Value],
        *,
        loc: ir.Location | None = None,
        ip: ir.InsertionPoint | None = None,
    ) -> None: ...
