"""Attention as one CPU kernel: scores, softmax and weighted sum of 32 queries at a time.

A vector holds one value of 16 queries, so that the softmax's maximum and sum need no work across
lanes. Keys and values are read in place, an element at a time, by the multiplications. Where the
scores of all keys do not fit on the stack, the sums are rescaled as the maximum grows. Few queries
are computed one by one (attention_rows.py), and so are those of a dynamic width that does not fit
on the stack; with dynamic extents the kernel chooses at run time. One query of heads that share
keys and values is computed for several heads together (attention_heads.py). A block has 16 queries
of two to four such heads. bf16 is multiplied in tile registers (attention_tiles.py) or by pairs
(attention_pairs.py).
"""

from __future__ import annotations

from mgx_mlir.core.ir import ir
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.passes.analysis.attention_form import AttentionForm
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.cpu.attention.attention_block import Block
from mgx_mlir.passes.lowering.cpu.attention.attention_heads import (
    SharedHeads,
    heads_of_block,
    heads_together,
)
from mgx_mlir.passes.lowering.cpu.attention.attention_pairs import PairedBlock
from mgx_mlir.passes.lowering.cpu.attention.attention_pairs import takes as takes_pairs
from mgx_mlir.passes.lowering.cpu.attention.attention_rows import rows_one_by_one
from mgx_mlir.passes.lowering.cpu.attention.attention_site import AttentionSite, most_head_elements
from mgx_mlir.passes.lowering.cpu.attention.attention_tiles import QUERIES, TiledBlock, takes
from mgx_mlir.passes.lowering.cpu.frame import workgroup_builder
from mgx_mlir.passes.lowering.cpu.frame.isa import ANY, Isa, current_isa
from mgx_mlir.passes.lowering.cpu.frame.workgroup_builder import (
    WorkgroupBuilder,
)
from mgx_mlir.passes.lowering.named_body import NamedBody

FEW = 8  # from this many on, queries are computed together


def attention(
    e: LoweringContext, form: AttentionForm, body: NamedBody, t: TensorType, *, cached: bool
) -> ir.Value:
    """Return the kernel's result, of the element type of `t`.

    cached: keys and values come from a cache; only rows that a mask lets queries see are read.
    """
    order = list(body.tensors)
    out = [body.index(e, d) for d in form.out.dims]
    queries = body.index(e, form.queries)
    isa = current_isa() or ANY
    tiled = takes(form, isa, cached=cached)
    rounds = e.options.fast_math and e.options.row_bits == 8
    paired = not tiled and takes_pairs(form, isa, rounds=rounds)
    kind = TiledBlock if tiled else PairedBlock if paired else Block
    groups = e.product([body.index(e, d) for d in form.lead])
    heads = heads_together(form, groups)
    together = 1 if tiled else heads_of_block(form, queries, isa)
    rows = QUERIES if tiled else isa.lanes * (isa.attention_tile[1] if together == 1 else 1)
    rows = min(rows, queries) if isinstance(queries, int) else rows

    def build(k: WorkgroupBuilder) -> list[workgroup_builder.ResultTile]:
        inputs = dict(zip(order, k.inputs, strict=True))
        site = AttentionSite(k, inputs, form, body, t, rows, cached=cached, heads=together)
        if heads > 1:
            SharedHeads(site, heads).store()
            return []
        if together > 1:
            _store_heads(site, isa, kind)
            return []
        tile = k.empty(site.sizes, t.dtype)

        def block() -> list[ir.Value]:
            return kind(site, isa).run([tile])

        def few() -> list[ir.Value]:
            assert form.rows is not None
            return [rows_one_by_one(site, form.rows, tile)]

        def fitting() -> list[ir.Value]:
            if isinstance(site.width, int):
                return block()
            return k.when(k.is_less(site.room, site.width), few, block, [tile.type])

        if form.rows is None:
            (found,) = block()
        elif isinstance(queries, int):
            (found,) = few() if queries < FEW else fitting()
        else:
            (found,) = k.when(k.is_less(site.queries, FEW), few, fitting, [tile.type])
        return [site.result(found)]

    # with a dynamic number of queries one or few are computed by each head for itself
    steps = together if isinstance(queries, int) and queries >= FEW else heads
    grid = [(groups, steps), (queries, rows)]
    depth = body.index(e, form.depth)
    if not isinstance(depth, int):
        grid.append((depth, most_head_elements(rows)))
    return workgroup_builder.dispatch(
        [body.tensors[v] for v in order],
        [(out, t.dtype)],
        grid,
        build,
        list(body.sizes.values()),
    )[0]


def _store_heads(site: AttentionSite, isa: Isa, kind: type[Block]) -> None:
    """Compute and store the queries of heads that share keys and values.

    With a dynamic number of queries each head has a group of its own. Few queries are computed
    there, and blocks in the group of the first head.
    """
    k = site.k

    def block() -> list[ir.Value]:
        tiles = [k.empty(site.sizes, site.out.dtype) for _ in range(site.heads)]
        for head, tile in enumerate(kind(site, isa).run(tiles)):
            k.store(site.result(tile, head), 0)
        return []

    def few() -> list[ir.Value]:
        assert site.form.rows is not None
        tile = k.empty(site.sizes, site.out.dtype)
        k.store(site.result(rows_one_by_one(site, site.form.rows, tile)), 0)
        return []

    def first() -> list[ir.Value]:
        leads = k.is_equal(k.rem(site.lead[-1], site.heads), 0)
        return k.when(leads, block, lambda: [], [])

    if isinstance(site.queries, int):
        block()
    else:
        k.when(k.is_less(site.queries, FEW), few, first, [])
