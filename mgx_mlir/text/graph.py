"""The graph of a decoder: transformers' own model, traced with caches that are updated in place.

Attention is replaced by a node that reads and writes caches (GroupQueryAttention), and linear
layers with weights in blocks by MatMulNBits. Weights of 16 bits are kept as such, and widened when
they are multiplied. The rest is transformers' model unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

import torch
from torch import nn

from mgx_mlir.core.errors import UnsupportedModel, UsageError
from mgx_mlir.frontends.objects import first_line, onnx_of_exported
from mgx_mlir.text.blocks import BlockWeights, rounded
from mgx_mlir.text.packages import imported
from mgx_mlir.text.probe import attend_by

_NAME = "mgx_cached"
KEEP = 4  # number of the input of token indices whose logits are wanted; each is given once
# sizes of the trace that no dim of a model has
_EXAMPLE = {"batch": 2, "length": 3, "rows": 16, "kept": 2}
_HALVES = {"bf16": torch.bfloat16, "f16": torch.float16}
_MOST = 1 << 20  # upper bound of a dynamic dim


class Caches:
    """Caches of a trace by layer: inputs and outputs."""

    def __init__(self) -> None:
        self.past: list[tuple[torch.Tensor, torch.Tensor]] = []
        self.present: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
        self.last: Any = None  # i32 {batch}: valid rows - 1
        self.total: Any = None  # i32 {1}: the largest number of rows of a sequence


class CachedModel(nn.Module):
    """A causal language model whose caches are arguments and results."""

    def __init__(self, inner: nn.Module, caches: Caches) -> None:
        super().__init__()
        self.inner, self._caches = inner, caches

    def forward(
        self,
        ids: torch.Tensor,
        positions: torch.Tensor,
        last: torch.Tensor,
        total: torch.Tensor,
        keep: torch.Tensor,
        past: list[torch.Tensor],
    ) -> tuple[torch.Tensor, ...]:
        """Return logits {batch, kept, vocabulary} at the token indices `keep`, and the caches."""
        c = self._caches
        c.past = list(zip(past[0::2], past[1::2], strict=True))
        c.last, c.total, c.present = last, total, {}
        found = self.inner(
            input_ids=ids, position_ids=positions, use_cache=False, logits_to_keep=keep
        )
        present = [cache for layer in sorted(c.present) for cache in c.present[layer]]
        return (found.logits.float(), *present)


class BlockLinear(nn.Module):
    """A linear layer with weights in blocks."""

    def __init__(self, weights: BlockWeights, bias: torch.Tensor | None) -> None:
        super().__init__()
        self._form = {
            "K": weights.columns, "N": weights.rows, "bits": weights.bits,
            "block_size": weights.block, "accuracy_level": 0,
        }  # fmt: skip
        zeros = weights.zeros
        self.register_buffer("codes", torch.from_numpy(weights.codes))
        self.register_buffer("scales", torch.from_numpy(weights.scales.reshape(-1)))
        self.register_buffer(
            "zeros", None if zeros is None else torch.from_numpy(zeros.reshape(-1))
        )
        order = weights.order
        self.register_buffer("order", None if order is None else torch.from_numpy(order))
        self.bias = bias

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Multiply x {.., columns} by the weights, and add the bias."""
        if self.order is not None:
            x = x.index_select(-1, self.order)
        y = torch.onnx.ops.symbolic(
            "com.microsoft::MatMulNBits", (x, self.codes, self.scales, self.zeros), self._form,
            dtype=x.dtype, shape=(*x.shape[:-1], self._form["N"]), version=1,
        )  # fmt: skip
        return y if self.bias is None else y + self.bias


class BlockEmbedding(nn.Module):
    """An embedding table in blocks of 8-bit codes with zero point 128."""

    def __init__(self, weights: BlockWeights) -> None:
        super().__init__()
        self._size, self._block = weights.columns, weights.block
        self.register_buffer("codes", torch.from_numpy(weights.codes.reshape(weights.rows, -1)))
        self.register_buffer("scales", torch.from_numpy(weights.scales))

    @staticmethod
    def takes(weights: BlockWeights) -> bool:
        """Return whether an embedding table can be kept in such blocks."""
        whole = weights.columns == weights.codes[0].size
        return weights.bits == 8 and weights.zeros is None and whole

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Return the rows {.., columns} of indices {..}."""
        return torch.onnx.ops.symbolic(
            "com.microsoft::GatherBlockQuantized", (self.codes, ids, self.scales),
            {"bits": 8, "block_size": self._block, "gather_axis": 0, "quantize_axis": 1},
            dtype=self.scales.dtype, shape=(*ids.shape, self._size), version=1,
        )  # fmt: skip


class HalfLinear(nn.Module):
    """A linear layer with weights of 16 bits, which multiply f32."""

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None) -> None:
        super().__init__()
        self.register_buffer("weight", weight)
        self.bias = bias

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Multiply x {.., columns} by the weights, and add the bias."""
        y = x @ self.weight.to(torch.float32).T
        return y if self.bias is None else y + self.bias


class HalfEmbedding(nn.Module):
    """An embedding table of 16 bits."""

    def __init__(self, table: torch.Tensor) -> None:
        super().__init__()
        self.register_buffer("table", table)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Return the rows {.., columns} of indices {..} in f32."""
        return nn.functional.embedding(ids, self.table).to(torch.float32)


def _attention(caches: Caches) -> Any:
    """Return an attention function for transformers that writes to caches."""

    def attend(
        module: nn.Module,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        attention_mask: Any,
        scaling: float | None = None,
        sliding_window: int | None = None,
        softcap: float | None = None,
        s_aux: torch.Tensor | None = None,
        **more: Any,
    ) -> tuple[torch.Tensor, None]:
        layer: Any = module.layer_idx
        batch, heads, length, size = query.shape
        shared, width = key.shape[1], value.shape[-1]
        scaling = float(size**-0.5 if scaling is None else scaling)
        size = max(size, width)  # zeros behind the shorter ones change no score and no result
        query, key, value = (
            nn.functional.pad(x, (0, size - x.shape[-1])) for x in (query, key, value)
        )
        past_key, past_value = caches.past[layer]
        biased = [n for n, x in more.items() if x is not None and re.search("bias|alibi", n)]
        if attention_mask is not None or biased:
            raise UnsupportedModel("an attention adds a bias or a mask of its own to its scores")
        rows = [x.transpose(1, 2).reshape(batch, length, -1) for x in (query, key, value)]
        form: dict[str, Any] = {"num_heads": heads, "kv_num_heads": shared}
        form["scale"] = scaling
        if sliding_window:
            form["local_window_size"] = int(sliding_window)
        if softcap:
            form["softcap"] = float(softcap)
        inputs = [*rows, past_key, past_value, caches.last, caches.total]
        if s_aux is not None:
            inputs += [None, None, None, None, s_aux]
        out, *present = torch.onnx.ops.symbolic_multi_out(
            "com.microsoft::GroupQueryAttention", inputs, form, dtypes=(query.dtype,) * 3,
            shapes=((batch, length, heads * size), past_key.shape, past_value.shape), version=1,
        )  # fmt: skip
        caches.present[layer] = (present[0], present[1])
        return out.reshape(batch, length, heads, size)[..., :width], None

    return attend


def with_blocks(model: Any, blocks: Mapping[str, BlockWeights]) -> None:
    """Replace the linear layers named in `blocks` by layers with weights in blocks.

    An embedding table that shares such a layer's weights is replaced too.
    """
    table = model.get_input_embeddings()
    shared = table.weight if type(table) is nn.Embedding else None
    for name, weights in blocks.items():
        parent, _, leaf = name.rpartition(".")
        owner = model.get_submodule(parent)
        old = getattr(owner, leaf)
        setattr(owner, leaf, BlockLinear(weights, getattr(old, "bias", None)))
        if old.weight is shared and BlockEmbedding.takes(weights):
            model.set_input_embeddings(BlockEmbedding(weights))


def with_halves(model: Any, kind: Literal["f16", "bf16"] | None) -> None:
    """Keep the weights of linear layers and of the embedding table in 16 bits.

    kind: the type that they are rounded to; None keeps those that a type of 16 bits holds exactly.
    Raises UsageError if a weight is beyond the type's range.
    """
    layers = [(n, m) for n, m in model.named_modules() if isinstance(m, nn.Linear)]
    made: dict[int, torch.Tensor | None] = {}  # layers may share weights

    def half(name: str, weight: torch.Tensor) -> torch.Tensor | None:
        if id(weight) not in made:
            made[id(weight)] = _half(name, weight.detach(), kind)
        return made[id(weight)]

    table = model.get_input_embeddings()
    if type(table) is nn.Embedding and (kept := half("embeddings", table.weight)) is not None:
        model.set_input_embeddings(HalfEmbedding(kept))
    for name, layer in layers:
        kept = half(name, layer.weight)
        if kept is not None:
            parent, _, leaf = name.rpartition(".")
            setattr(model.get_submodule(parent), leaf, HalfLinear(kept, layer.bias))


def _half(
    name: str, weight: torch.Tensor, kind: Literal["f16", "bf16"] | None
) -> torch.Tensor | None:
    """Return a matrix in 16 bits; None without a `kind` where no such type holds it exactly."""
    if kind is None:
        pairs = ((weight.to(t), weight) for t in _HALVES.values())
        return next((kept for kept, wide in pairs if torch.equal(kept.float(), wide)), None)
    return _rounded(name, weight, kind)


def _rounded(name: str, weight: torch.Tensor, kind: Literal["f16", "bf16"]) -> torch.Tensor:
    """Return a tensor in 16 bits. Raises UsageError if a number is beyond the type's range."""
    kept = weight.to(_HALVES[kind])
    if bool((kept.isinf() & weight.isfinite()).any()):
        raise UsageError(
            f"a weight of '{name}' is beyond the range of {kind}",
            notes=["load with 'bf16', which has the range of f32"],
        )
    return kept


def narrow(model: Any, dtype: Literal["f16", "bf16"]) -> None:
    """Round weights, and scales and zero points of blocks, to a type of 16 bits.

    Frequencies of RoPE stay in f32. Raises UsageError if a number is beyond the type's range.
    """
    for name, weight in model.named_parameters():
        if weight.is_floating_point():
            weight.data = _rounded(name, weight.detach(), dtype)
    for name, module in model.named_modules():
        if isinstance(module, BlockLinear | BlockEmbedding):
            for held in ("scales", "zeros"):
                array = getattr(module, held, None)
                if array is not None:
                    setattr(module, held, _rounded(name, array, dtype))
            bias = getattr(module, "bias", None)
            if bias is not None and bias.dtype is torch.float32:
                module.bias = _rounded(name, bias.detach(), dtype)


def fix_frequencies(model: Any, long: bool) -> None:
    """Choose RoPE's frequencies once, which transformers chooses by a batch's longest sequence.

    long: sequences may exceed the original context. "dynamic" ones change beyond the model's limit
    alone.
    """
    rope = imported("transformers").modeling_rope_utils
    for module in model.modules():
        stated = getattr(module, "rope_type", None)
        kinds = stated if isinstance(stated, dict) else {None: stated}
        for layer, kind in kinds.items():
            if kind != "longrope" or not long:
                continue
            own = module.config.rope_parameters
            context = (own if layer is None else own[layer])["original_max_position_embeddings"]
            more = {} if layer is None else {"layer_type": layer}
            found, _ = rope.ROPE_INIT_FUNCTIONS[kind](module.config, seq_len=context + 1, **more)
            name = "inv_freq" if layer is None else f"{layer}_inv_freq"
            module.register_buffer(name, found, persistent=False)
        fixed = {k: "default" if v in ("longrope", "dynamic") else v for k, v in kinds.items()}
        if stated is not None:
            module.rope_type = fixed if isinstance(stated, dict) else fixed[None]


def onnx_of_model(
    model: Any,
    blocks: Mapping[str, BlockWeights],
    shape: tuple[int, int, int],
    halves: Literal["f16", "bf16"] | None = None,
    dtype: Literal["f16", "bf16"] | None = None,
    *,
    long: bool = False,
) -> Any:
    """Return an ONNX model of a step, with inputs ids, positions, last, total, keep, caches.

    shape: layers, heads and elements of the caches, by `cache_shape`. halves: type of 16 bits that
    other weights are rounded to. dtype: type of 16 bits of weights, activations and caches.
    long: as for `fix_frequencies`. Raises UnsupportedModel, UsageError.
    """
    layers, shared, size = shape
    caches = Caches()
    attend_by(model, _NAME, _attention(caches), lambda *_, **__: None)
    fix_frequencies(model, long)
    with_blocks(model, blocks)
    if dtype is None:
        with_halves(model, halves)
    else:
        narrow(model, dtype)
    batch, length, rows = _EXAMPLE["batch"], _EXAMPLE["length"], _EXAMPLE["rows"]
    kind = torch.float32 if dtype is None else _HALVES[dtype]
    past = [torch.zeros(batch, shared, rows, size, dtype=kind) for _ in range(2 * layers)]
    ids, positions = (torch.zeros(batch, length, dtype=torch.int64) for _ in range(2))
    counts = torch.zeros(batch, dtype=torch.int32), torch.zeros(1, dtype=torch.int32)
    keep = torch.zeros(_EXAMPLE["kept"], dtype=torch.int64)
    b, t, r, k = (torch.export.Dim(name, min=1, max=_MOST) for name in _EXAMPLE)
    shapes = ({0: b, 1: t}, {0: b, 1: t}, {0: b}, None, {0: k}, [{0: b, 2: r}] * len(past))
    try:
        with torch.no_grad():
            exported = torch.export.export(
                CachedModel(model, caches).eval(), (ids, positions, *counts, keep, past),
                dynamic_shapes=shapes, strict=False,
            )  # fmt: skip
    except UnsupportedModel:
        raise
    except Exception as e:  # torch and transformers raise exceptions of many kinds
        name = type(model).__name__
        raise UnsupportedModel(f"torch.export cannot export {name}: {first_line(e)}") from e
    return onnx_of_exported(exported)


def names_of_dims(onnx: Any) -> tuple[str, str, str, str]:
    """Return the names of batch, new tokens, kept tokens and rows of a cache of a model that
    `onnx_of_model` made.
    """
    inputs = onnx.model.graph.inputs
    (batch, length), (kept,), rows = inputs[0].shape, inputs[KEEP].shape, inputs[KEEP + 1].shape[2]
    return str(batch), str(length), str(kept), str(rows)


def rounded_blocks(
    model: Any, held: Mapping[str, BlockWeights], bits: Literal[4, 8]
) -> dict[str, BlockWeights]:
    """Return the weights of all linear layers in blocks: stored ones, and the others rounded.

    The logits layer keeps at least 8 bits, because fewer save little and cost the most accuracy.
    """
    head = model.get_output_embeddings()
    found = dict(held)
    for name, layer in model.named_modules():
        if isinstance(layer, nn.Linear) and name not in found:
            array = layer.weight.detach().float().numpy()
            found[name] = rounded(array, 8 if layer is head else bits)
    return found
