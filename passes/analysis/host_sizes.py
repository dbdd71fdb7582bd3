"""Small integer tensors that sizes depend on: the host reads their elements once, when made.

Ops from there to the sizes run on the host, rather than in kernels that the host would wait for.
"""

from __future__ import annotations

from collections.abc import Iterable

from mgx_mlir.core import dtypes
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import is_a, mnemonic
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.passes.analysis.control_flow import CONTROL, SCALARS, host_results, stays_on_host

# operands that determine sizes of results
_SIZES = {
    "broadcast_with_dims": ("dims",),
    "reshape": ("dims_tensor",),
    "slice": ("input_starts", "input_ends"),
    "topk": ("count",),
    "allocate": ("dims",),
    "resize": ("target",),
    "dynamic_range": ("start", "limit", "delta"),
}
_TYPES = (dtypes.INT32, dtypes.INT64)  # other types have no arithmetic on the host


def host_sizes(block: ir.Block, held: Iterable[ir.Value] = ()) -> set[ir.Value]:
    """Return the values of a block that the host reads, as sizes depend only on them.

    held: outer values that are host scalars. If an op that works only on tensors is between a value
    and the sizes, its result is read instead.
    """
    host = set(held)
    found: set[ir.Value] = set()
    memo: dict[ir.Value, set[ir.Value] | None] = {}
    for view in block.operations:
        op = view.operation
        if is_a(op, CONTROL):
            host |= host_results(op, host.__contains__)
        elif stays_on_host(op, host.__contains__):
            host.update(op.results)
        for name in _SIZES.get(mnemonic(op), ()):
            size = getattr(op.opview, name)
            if size is not None:
                found |= _sources(size, block, host, memo) or set()
    return found


def _sources(
    v: ir.Value, block: ir.Block, host: set[ir.Value], memo: dict[ir.Value, set[ir.Value] | None]
) -> set[ir.Value] | None:
    """Return the values that the host must read to compute a value; None where it cannot."""
    if v in host:
        return set()
    if v not in memo:
        memo[v] = _read_for(v, block, host, memo)
    return memo[v]


def _read_for(
    v: ir.Value, block: ir.Block, host: set[ir.Value], memo: dict[ir.Value, set[ir.Value] | None]
) -> set[ir.Value] | None:
    t = TensorType.of(v)
    if not t.is_known or not any(t.dtype is kind for kind in _TYPES):
        return None
    owner = v.owner
    if not isinstance(owner, ir.Block) and stays_on_host(owner.operation, lambda _: True):
        parts = [_sources(x, block, host, memo) for x in owner.operation.operands]
        if all(p is not None for p in parts):
            return {s for p in parts for s in p or ()}
    inside = owner == block if isinstance(owner, ir.Block) else owner.operation.block == block
    return {v} if inside and t.elements <= SCALARS else None
