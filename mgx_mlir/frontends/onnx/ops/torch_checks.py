"""Importers of torch value checks: assertions, and limits of indices."""

from __future__ import annotations

from mgx_mlir.core.errors import ModelError
from mgx_mlir.frontends.bounds import Dim, Sum, all_true, within
from mgx_mlir.frontends.helpers import compare, require
from mgx_mlir.frontends.onnx.node import Node
from mgx_mlir.frontends.onnx.registry import onnx_op
from mgx_mlir.frontends.values import Value
from mgx_mlir.programs.build import Builder

DOMAIN = "mgx_mlir.torch"


@onnx_op("Require", domain=DOMAIN)
def require_condition(
    b: Builder, node: Node, x: Value, condition: Value, *, expected: str = ""
) -> Value:
    """Import Require: return x; the run fails unless the condition holds."""
    if not b.dtype(condition).is_bool:
        condition = b.not_(compare(b, "equal", condition, 0))
    b.operator = ""  # no operator of the model causes this error
    return require(b, x, all_true(b, condition), f"the model's assertion to hold: {expected}")


@onnx_op("Within", domain=DOMAIN)
def within_limits(
    b: Builder,
    node: Node,
    x: Value,
    of: Value | None = None,
    below: Value | None = None,
    *,
    dim: int = 0,
    low: int = 0,
    wraps: int = 0,
    what: str = "indices",
    operator: str = "",
) -> Value:
    """Import Within: return x; its elements lie in [low, n), or in [-n, n) if they wrap.

    n: the extent of `of` along `dim`, or the number `below`; without both there is no limit.
    """
    limit: Dim | Sum | None = None
    if of is not None:
        limit = Dim(of, dim, f"dim {dim}")
    elif below is not None:
        limit = Sum(0, ((below, -1, 1),), "their number")
    if wraps and limit is None:
        raise ModelError("expected a limit for indices that count from the end")
    b.operator = operator  # name for messages
    return within(b, x, what, None if wraps else low, limit)
