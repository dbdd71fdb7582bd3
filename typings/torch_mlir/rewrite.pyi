# What this project uses of the MLIR bindings' greedy rewriting.

import enum
from collections.abc import Callable, Sequence
from typing import Any

from torch_mlir.ir import Context, InsertionPoint, Module, Value, _OperationBase

class GreedySimplifyRegionLevel(enum.Enum):
    DISABLED = ...
    NORMAL = ...
    AGGRESSIVE = ...

class GreedyRewriteConfig:
    max_iterations: int
    use_top_down_traversal: bool
    enable_folding: bool
    enable_constant_cse: bool
    region_simplification_level: GreedySimplifyRegionLevel

class FrozenRewritePatternSet: ...

class PatternRewriter:
    @property
    def ip(self) -> InsertionPoint: ...
    def replace_op(self, op: _OperationBase, values: Sequence[Value]) -> None: ...

class RewritePatternSet:
    def __init__(self, context: Context | None = None) -> None: ...
    def add(self, root: Any, fn: Callable[..., Any], benefit: int = 1) -> None: ...
    def freeze(self) -> FrozenRewritePatternSet: ...

def apply_patterns_and_fold_greedily(
    where: Module | _OperationBase,
    patterns: FrozenRewritePatternSet,
    /,
    config: GreedyRewriteConfig | None = None,
) -> None: ...
