"""com.microsoft: mixtures of experts, with weights in floats or in 2, 4 and 8 bits.

Every expert computes every token, and the router's weights select. With k of n experts this is n /
k times the arithmetic of gathered weights, but the matmuls have static sizes, and no weights are
copied.
"""

from __future__ import annotations

import numpy as np

from mgx_mlir.core.dtypes import FLOAT, UINT8, DType
from mgx_mlir.core.errors import ModelError
from mgx_mlir.core.records import dataclass
from mgx_mlir.core.shapes import DYN
from mgx_mlir.frontends.extents import extents, reshaped, spread
from mgx_mlir.frontends.helpers import (
    arange,
    compare,
    convert,
    known_extent,
    number,
    reshape,
    same_extent,
    slice_,
    squeeze,
    static_dims,
    transpose,
    unsqueeze,
    wide,
)
from mgx_mlir.frontends.onnx.node import Node
from mgx_mlir.frontends.onnx.ops.activation import gelu_tanh
from mgx_mlir.frontends.onnx.ops.contrib_nbits import expanded, unpacked
from mgx_mlir.frontends.onnx.registry import onnx_op
from mgx_mlir.frontends.problems import NotSupported
from mgx_mlir.frontends.signatures import Attributes
from mgx_mlir.frontends.values import Outputs, Value
from mgx_mlir.programs.build import Builder

MS = "com.microsoft"


_GATED = ("swiglu", "geglu")


@dataclass(frozen=True)
class Form:
    """Attributes that define what an expert computes."""

    activation: str
    alpha: float
    beta: float
    fusion: int
    limit: float | None
    limit_after: bool = False  # the limit applies to the activated gate instead of the gate


def _routed(
    b: Builder,
    router: Value,
    mix: Value | None,
    weights: Value,
    k: int,
    normalize: int,
    kind: DType,
) -> Value:
    """Return {tokens, experts}: the weight of each expert for a token, 0 for all but the k best.

    Among equal scores the last experts are chosen, as in onnxruntime 1.32 for MoE and QMoE. The
    softmax runs over all experts; with `normalize` the k weights are scaled to sum to 1. With
    `mix`, that tensor has the weights.
    """
    experts = static_dims(b, weights, "weights of experts")[0]
    if not 1 <= k <= experts:
        raise ModelError(f"k {k} does not fit {experts} experts")
    router = known_extent(b, router, 1, experts, "router_probs")
    scores = convert(b, router, kind)
    chosen = _among_best(b, scores, k, last=True)
    weights = b.softmax(scores, axis=1) if mix is None else convert(b, mix, kind)
    picked = b.where(chosen, weights, 0)
    return b.div(picked, b.reduce_sum(picked, axes=[1])) if normalize else picked


def _limit_after(activation: str, after: int) -> bool:
    if after not in (0, 1) or (after and activation != "swiglu"):
        raise ModelError(f"swiglu_limit_after_activation {after} does not fit {activation}")
    return bool(after)


def _swiglu(b: Builder, gate: Value, line: Value, f: Form) -> Value:
    if f.limit is not None:
        gate = gate if f.limit_after else b.min(gate, f.limit)
        line = b.clip(line, number(b, -f.limit, line), number(b, f.limit, line))
    gate = b.mul(gate, b.sigmoid(b.mul(gate, f.alpha)))
    if f.limit is not None and f.limit_after:
        gate = b.min(gate, f.limit)
    return b.mul(gate, b.add(line, f.beta))


def _geglu(b: Builder, gate: Value, line: Value) -> Value:
    return b.mul(gelu_tanh(b, gate), line)


def _activated(b: Builder, x: Value, f: Form) -> Value:
    if f.activation == "relu":
        return b.relu(x)
    if f.activation == "relu2":
        positive = b.relu(x)
        return b.mul(positive, positive)
    if f.activation == "gelu":
        return gelu_tanh(b, x)
    if f.activation == "silu":
        return b.mul(x, b.sigmoid(x))
    if f.activation == "identity":
        return x
    raise NotSupported(f"activation_type {f.activation}")


def _expert(b: Builder, x: Value, w: Value, bias: Value | None) -> Value:
    """Multiply {experts, tokens, inputs} by {experts, outputs, inputs}, and add {experts,
    outputs}.
    """
    y = b.dot(x, transpose(b, w, [0, 2, 1]))
    return y if bias is None else b.add(y, unsqueeze(b, convert(b, bias, b.dtype(y)), [1]))


def _mixture(
    b: Builder,
    x: Value,
    picked: Value,
    fc1: tuple[Value, Value | None],
    fc2: tuple[Value, Value | None],
    fc3: tuple[Value, Value | None] | None,
    f: Form,
) -> Value:
    dtype, kind = b.dtype(x), b.dtype(fc1[0])
    experts, _, hidden = b.dims(fc1[0])
    x = known_extent(b, x, len(b.dims(x)) - 1, hidden, "an input")
    dims = extents(b, x)
    rows = b.reshape(convert(b, x, kind), dims=[1, -1, hidden])
    picked = same_extent(b, picked, 0, rows, 1, "a row of router_probs for each token")
    tokens = extents(b, rows)[1]
    rows = spread(b, rows, [experts, tokens, hidden])
    y = _expert(b, rows, *fc1)
    if f.activation in _GATED:
        width = b.dims(y)[2]
        if f.fusion == 1:
            pairs = reshaped(b, y, [experts, tokens, width // 2, 2])
            parts = [squeeze(b, slice_(b, pairs, [3], [i], [i + 1]), [3]) for i in (0, 1)]
        elif f.fusion == 2:
            parts = [slice_(b, y, [2], [s], [s + width // 2]) for s in (0, width // 2)]
        elif f.activation == "swiglu" and fc3 is not None:
            parts = [y, _expert(b, rows, *fc3)]
        else:
            want = "fc3_experts_weights" if f.activation == "swiglu" else "swiglu_fusion 1 or 2"
            raise ModelError(f"expected {want} with {f.activation} that is not fused")
        gate, line = parts
        y = _swiglu(b, gate, line, f) if f.activation == "swiglu" else _geglu(b, gate, line)
    else:
        y = _activated(b, y, f)
        if fc3 is not None:
            y = b.mul(y, _expert(b, rows, *fc3))
    y = _expert(b, y, *fc2)  # {experts, tokens, hidden}
    weight = unsqueeze(b, transpose(b, picked, [1, 0]), [2])
    total = squeeze(b, b.reduce_sum(b.mul(y, weight), axes=[0]), [0])
    return convert(b, reshaped(b, total, dims), dtype)


@dataclass(frozen=True)
class MoeAttributes(Attributes):
    """Attributes that choose experts for tokens, and define what the experts compute."""

    activation_alpha: float = 1.0
    activation_beta: float = 0.0
    activation_type: str = "relu"
    k: int = 1
    normalize_routing_weights: int = 0
    swiglu_fusion: int = 0
    swiglu_limit: float | None = None
    swiglu_limit_after_activation: int = 0
    use_sparse_mixer: int = 0

    def form(self) -> Form:
        """Return what the experts compute."""
        after = _limit_after(self.activation_type, self.swiglu_limit_after_activation)
        return Form(
            self.activation_type, self.activation_alpha, self.activation_beta, self.swiglu_fusion,
            self.swiglu_limit, after,
        )  # fmt: skip


@onnx_op("MoE", domain=MS)
def moe(
    b: Builder,
    node: Node,
    x: Value,
    router: Value,
    fc1: Value,
    fc1_bias: Value | None = None,
    fc2: Value | None = None,
    fc2_bias: Value | None = None,
    fc3: Value | None = None,
    fc3_bias: Value | None = None,
    *,
    experts: MoeAttributes,
) -> Value:
    """Import MoE: route each row to its best experts and sum their results."""
    if experts.use_sparse_mixer:
        raise NotSupported("use_sparse_mixer")
    if fc2 is None:
        raise ModelError("expected input 'fc2_experts_weights'")
    kind = wide(b.dtype(x))
    picked = _routed(b, router, None, fc1, experts.k, experts.normalize_routing_weights, kind)
    third = None if fc3 is None else (convert(b, fc3, kind), fc3_bias)
    first, second = (convert(b, fc1, kind), fc1_bias), (convert(b, fc2, kind), fc2_bias)
    return _mixture(b, x, picked, first, second, third, experts.form())


def _weights(
    b: Builder, packed: Value, scales: Value | None, zeros: Value | None, bits: int, kind: DType
) -> Value:
    """Dequantise {experts, rows, columns} from bytes; scales per row, or per block of a row."""
    if scales is None:
        raise ModelError("expected the scales of the experts' weights")
    if b.dtype(packed) is not UINT8:
        raise NotSupported(f"weights of {b.dtype(packed)}")
    codes = unpacked(b, packed, bits)
    experts, rows, columns = b.dims(codes)
    if len(b.dims(scales)) == 2:
        scales = unsqueeze(b, scales, [2])
        if zeros is not None:  # packed along the rows
            zeros = unsqueeze(b, slice_(b, unpacked(b, zeros, bits), [1], [0], [rows]), [2])
        blocks = 1
    else:
        blocks = b.dims(scales)[2]
        if zeros is not None:
            zeros = slice_(b, unpacked(b, zeros, bits), [2], [0], [blocks])
    if DYN in (experts, rows, columns, blocks) or columns % blocks:
        raise ModelError(f"scales of {blocks} blocks do not fit {columns} columns")
    codes = reshape(b, codes, [experts, rows, blocks, columns // blocks])
    middle = 1 << (bits - 1)
    full = expanded(b, codes, scales, middle if zeros is None else zeros, kind)
    return reshape(b, full, [experts, rows, columns])


@onnx_op("QMoE", domain=MS)
def qmoe(
    b: Builder,
    node: Node,
    x: Value,
    router: Value,
    fc1: Value,
    fc1_scales: Value | None = None,
    fc1_bias: Value | None = None,
    fc2: Value | None = None,
    fc2_scales: Value | None = None,
    fc2_bias: Value | None = None,
    fc3: Value | None = None,
    fc3_scales: Value | None = None,
    fc3_bias: Value | None = None,
    fc1_zeros: Value | None = None,
    fc2_zeros: Value | None = None,
    fc3_zeros: Value | None = None,
    router_weights: Value | None = None,
    fc1_global_scale: Value | None = None,
    fc2_global_scale: Value | None = None,
    fc1_act_scale: Value | None = None,
    fc2_act_scale: Value | None = None,
    fc1_act_block_scale: Value | None = None,
    fc2_act_block_scale: Value | None = None,
    *,
    accuracy_level: int = 0,
    experts: MoeAttributes,
    block_size: int = 0,
    expert_weight_bits: int = 4,
    fc1_expert_weight_bits: int | None = None,
    fc2_expert_weight_bits: int | None = None,
    fc3_expert_weight_bits: int | None = None,
    quant_type: str = "int",
    weights_prepacked: int = -1,
) -> Value:
    """Import QMoE: MoE with weights of 4 or 8 bits."""
    if experts.use_sparse_mixer:
        raise NotSupported("use_sparse_mixer")
    if quant_type != "int":
        raise NotSupported(f"quant_type {quant_type}")
    others = (fc1_global_scale, fc2_global_scale, fc1_act_scale, fc2_act_scale)
    if any(v is not None for v in (*others, fc1_act_block_scale, fc2_act_block_scale)):
        raise NotSupported("global and activation scales")
    if weights_prepacked == 1:
        raise NotSupported("weights_prepacked")
    if fc2 is None:
        raise ModelError("expected input 'fc2_experts_weights'")
    kind = wide(b.dtype(x))
    # onnxruntime's weights are a softmax over the chosen k, whatever the attribute says
    normalize = 1 if router_weights is None else experts.normalize_routing_weights
    picked = _routed(b, router, router_weights, fc1, experts.k, normalize, kind)

    def bits(own: int | None) -> int:
        return expert_weight_bits if own is None else own

    one = _weights(b, fc1, fc1_scales, fc1_zeros, bits(fc1_expert_weight_bits), kind)
    two = _weights(b, fc2, fc2_scales, fc2_zeros, bits(fc2_expert_weight_bits), kind)
    third = None
    if fc3 is not None:
        own = bits(fc3_expert_weight_bits)
        third = (_weights(b, fc3, fc3_scales, fc3_zeros, own, kind), fc3_bias)
    return _mixture(b, x, picked, (one, fc1_bias), (two, fc2_bias), third, experts.form())


@onnx_op("MoEGroupRouter", domain=MS)
def moe_group_router(
    b: Builder,
    node: Node,
    logits: Value,
    expert_bias: Value,
    projection_weight: Value | None = None,
    *,
    group_topk: int = 2,
    n_group: int = 1,
    router_sentinel: float = -10000.0,
    top_k: int,
    topk_group: int = 1,
) -> Outputs:
    """Import MoeGroupRouter: the log of the chosen experts' sigmoids, `router_sentinel` for the
    others.

    Experts are chosen by sigmoid plus bias: first the groups whose `group_topk` best experts have
    the largest sum, then the best experts of these groups. Outputs 1 and 2 are all sums and all
    sigmoids.
    """
    all_scores = node.wants(1) or node.wants(2)
    if all_scores and (node.wants(0) or n_group != 1 or topk_group != 1):
        raise ModelError("expected one group, and no router_probs, with selection_scores")
    if projection_weight is not None and not all_scores:
        raise ModelError("expected selection_scores with projection_weight")
    dtype, experts = b.dtype(logits), b.dims(expert_bias)[0]
    width = b.dims(logits)[-1]
    if DYN in (experts, width):
        raise NotSupported("dynamic experts")
    rows = convert(b, b.reshape(logits, dims=[-1, width]), FLOAT)
    if projection_weight is not None:
        rows = b.dot(rows, transpose(b, convert(b, projection_weight, FLOAT), [1, 0]))
    scores = b.sigmoid(rows)
    choice = b.add(scores, expert_bias)
    if all_scores:
        return None, choice, scores
    if n_group < 1 or experts % n_group or not 1 <= topk_group <= n_group or group_topk < 1:
        raise ModelError(f"{topk_group} of {n_group} groups do not fit {experts} experts")
    size = experts // n_group
    if not 1 <= top_k <= topk_group * size:
        raise ModelError(f"top_k {top_k} does not fit {topk_group} groups of {size} experts")
    if topk_group < n_group:
        groups = b.reshape(choice, dims=[-1, n_group, size])
        best, _ = b.topk(groups, k=min(group_topk, size), axis=2, largest=True)
        sums = squeeze(b, b.reduce_sum(best, axes=[2]), [2])
        kept = unsqueeze(b, _among_best(b, sums, topk_group), [2])
        groups = b.where(kept, groups, number(b, -np.inf, groups))
        choice = b.reshape(groups, dims=[-1, experts])
    chosen = _among_best(b, choice, top_k)
    logs = b.log(b.max(scores, 1e-20))
    return convert(b, b.where(chosen, logs, number(b, router_sentinel, logs)), dtype), None, None


def _among_best(b: Builder, x: Value, k: int, last: bool = False) -> Value:
    """Return whether a number is among the k largest of its row, {rows, columns}.

    Among equal numbers the first columns count, or the last.
    """
    columns = b.dims(x)[1]
    if last:
        x = b.reverse(x, axes=[1])
    _, places = b.topk(x, k=k, axis=1, largest=True)
    own = arange(b, columns, b.dtype(places))
    if last:
        own = b.sub(number(b, columns - 1, own), own)
    hits = convert(b, b.equal(unsqueeze(b, places, [2]), own), UINT8)  # {rows, k, columns}
    return compare(b, "greater", squeeze(b, b.reduce_max(hits, axes=[1]), [1]), 0)
