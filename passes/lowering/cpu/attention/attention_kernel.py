"""The kernel rule of attention on CPUs."""

from __future__ import annotations

from mgx_mlir.core.dynamic_dims import UndecidedError
from mgx_mlir.core.ir import ir
from mgx_mlir.core.records import dataclass
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.fused import Group
from mgx_mlir.passes.analysis.access_maps import Unreadable
from mgx_mlir.passes.analysis.attention_form import CACHED, TAGS, AttentionForm, attention_form
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.cpu.attention.attention import attention
from mgx_mlir.passes.lowering.cpu.frame.sites import KernelSite
from mgx_mlir.passes.lowering.named_body import NamedBody, operand_tensors
from mgx_mlir.passes.lowering.select import KernelRule, Refusal


@dataclass(frozen=True)
class _Plan:
    """An attention, read from a body with named dims."""

    named: NamedBody
    form: AttentionForm


def match(e: LoweringContext, site: KernelSite) -> _Plan | Refusal:
    """Take a group that fuse_attention made, whose dynamic dims its operands determine."""
    if site.op.opview.tag not in TAGS:
        return Refusal("it is not a group for attention")
    named = NamedBody(e, site.op, site.body, operand_tensors(e, site.op, site.body))
    try:
        form = attention_form(named.block)
        named.check_sizes()
        for d in (*form.out.dims, *form.lead, form.queries, form.keys, form.width, form.depth):
            named.index(e, d)
    except (Unreadable, UndecidedError) as error:
        named.forget()
        return Refusal(str(error) or "its operands are not read by index maps")
    return _Plan(named, form)


def build(e: LoweringContext, site: KernelSite, plan: _Plan) -> list[ir.Value]:
    """Build scores, softmax and weighted sums as one dispatch."""
    cached = site.op.opview.tag == CACHED
    try:
        t = TensorType.of(site.op.results[0])
        return [attention(e, plan.form, plan.named, t, cached=cached)]
    finally:
        plan.named.forget()


RULE = KernelRule("attention", (Group,), match, build)
