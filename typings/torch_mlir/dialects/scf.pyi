# What this project uses of the `scf` dialect.

from collections.abc import Sequence

from torch_mlir import ir

class ConditionOp(ir.OpView):
    def __init__(
        self,
        condition: ir.Value,
        args: Sequence[ir.Value],
        *,
        loc: ir.Location | None = None,
        ip: ir.InsertionPoint | None = None,
    ) -> None: ...

class ForOp(ir.OpView):
    def __init__(
        self,
        lower_bound: ir.Value,
        upper_bound: ir.Value,
        step: ir.Value,
        iter_args: ir.Operation | Sequence[ir.Value] | None = None,
        *,
        loc: ir.Location | None = None,
        ip: ir.InsertionPoint | None = None,
    ) -> None: ...
    @property
    def body(self) -> ir.Block: ...
    @property
    def induction_variable(self) -> ir.BlockArgument: ...
    @property
    def inner_iter_args(self) -> Sequence[ir.BlockArgument]: ...

class ForallOp(ir.OpView):
    def __init__(
        self,
        lower_bounds: Sequence[ir.Value | int],
        upper_bounds: Sequence[ir.Value | int],
        steps: Sequence[ir.Value | int],
        shared_outs: ir.Operation | Sequence[ir.Value] | None = None,
        *,
        loc: ir.Location | None = None,
        ip: ir.InsertionPoint | None = None,
    ) -> None: ...
    @property
    def body(self) -> ir.Block: ...

class IfOp(ir.OpView):
    def __init__(
        self,
        cond: ir.Value,
        results_: Sequence[ir.Type] | None = None,
        *,
        has_else: bool = False,
        loc: ir.Location | None = None,
        ip: ir.InsertionPoint | None = None,
    ) -> None: ...
    @property
    def then_block(self) -> ir.Block: ...
    # None without an else
    @property
    def else_block(self) -> ir.Block | None: ...

class InParallelOp(ir.OpView):
    def __init__(
        self,
        loc: ir.Location | None = None,
        ip: ir.InsertionPoint | None = None,
    ) -> None: ...
    @property
    def region(self) -> ir.Region: ...

class YieldOp(ir.OpView):
    def __init__(
        self,
        results_: Sequence[ir.Value],
        *,
        loc: ir.Location | None = None,
        ip: ir.InsertionPoint | None = None,
    ) -> None: ...

class WhileOp(ir.OpView):
    def __init__(
        self,
        results_: Sequence[ir.Type],
        inits: Sequence[ir.Value],
        *,
        loc: ir.Location | None = None,
        ip: ir.InsertionPoint | None = None,
    ) -> None: ...
    @property
    def before(self) -> ir.Region: ...
    @property
    def after(self) -> ir.Region: ...
