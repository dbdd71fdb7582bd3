# What this project uses of the `ml_program` dialect.

from torch_mlir import ir

class GlobalOp(ir.OpView):
    def __init__(
        self,
        sym_name: str | ir.StringAttr,
        type_: ir.Type | ir.TypeAttr,
        *,
        is_mutable: bool | None = None,
        value: ir.Attribute | None = None,
        sym_visibility: str | ir.StringAttr | None = None,
        loc: ir.Location | None = None,
        ip: ir.InsertionPoint | None = None,
    ) -> None: ...

class GlobalLoadConstOp(ir.OpView):
    def __init__(
        self,
        result: ir.Type,
        global_: str | ir.FlatSymbolRefAttr,
        *,
        loc: ir.Location | None = None,
        ip: ir.InsertionPoint | None = None,
    ) -> None: ...
