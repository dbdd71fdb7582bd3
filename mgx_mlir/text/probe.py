"""A run of a model before it is traced: shapes of its caches, and whether its attention fits them.

A cache gives each token those before it, or a window of them. Masks of other forms and positions
that do not count from 0 would change results without an error, and are refused here.
"""

# pyright: reportMissingImports=false
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from mgx_mlir.core.errors import UnsupportedModel
from mgx_mlir.frontends.objects import first_line
from mgx_mlir.text.packages import imported

_NAME = "mgx_probed"
_TOKENS = 4
_FAR = 1 << 18  # tokens; windows beyond this are none
_PLACES = (0, 1, 2, 3, 100, 1000, 4095, 4096, 8192, 100_003, _FAR)  # tokens whose masks are read


def attend_by(model: Any, name: str, attention: Any, mask: Any) -> None:
    """Have a model compute attention and masks by functions of ours, under a name."""
    transformers = imported("transformers")
    transformers.AttentionInterface.register(name, attention)
    transformers.AttentionMaskInterface.register(name, mask)
    model.config.get_text_config()._attn_implementation = name
    model.config._attn_implementation = name


def cache_shape(model: Any) -> tuple[int, int, int]:
    """Return layers, heads of keys and values, and elements of a head, by running a model.

    Raises UnsupportedModel for a model that such caches do not fit.
    """
    probe = _Probe()
    attend_by(model, _NAME, probe.attend, probe.mask)
    size = int(model.config.get_text_config().vocab_size)
    ids = (torch.arange(_TOKENS) + size // 2)[None] % size
    own = type(model).__name__
    try:
        with torch.no_grad():
            stated = model(input_ids=ids, position_ids=torch.arange(_TOKENS)[None],
                           use_cache=False).logits  # fmt: skip
            shapes, probe.shapes = probe.shapes, {}
            free = model(input_ids=ids, use_cache=False).logits
    except UnsupportedModel:
        raise
    except Exception as e:  # models raise exceptions of many kinds
        raise UnsupportedModel(f"{own} fails on {_TOKENS} tokens: {first_line(e)}") from e
    layers = int(model.config.get_text_config().num_hidden_layers)
    if not shapes:
        raise UnsupportedModel(
            f"{own} computes no attention by transformers' AttentionInterface, which caches need"
        )
    if sorted(shapes) != list(range(layers)):
        raise UnsupportedModel(
            f"{layers - len(shapes)} of {layers} layers have no attention over a cache"
        )
    if len(set(shapes.values())) > 1:
        (a, b), *_ = ((f"{h} of {n}", f"{k} of {m}") for h, n in shapes.values()
                      for k, m in shapes.values() if (h, n) != (k, m))  # fmt: skip
        raise UnsupportedModel(f"layers have heads of several shapes: {a} elements, and {b}")
    if free.isnan().any():
        notes = ["a number of the config or of the weights is wrong"]
        raise UnsupportedModel(f"{own} gives NaN for {_TOKENS} tokens", notes=notes)
    stated, free = (x[free.isfinite()] for x in (stated, free))  # tokens may be ruled out
    if not torch.allclose(stated, free, rtol=0, atol=1e-4 * float(free.abs().max())):
        raise UnsupportedModel(f"{own} numbers the positions of tokens otherwise than 0, 1, 2")
    return (layers, *shapes[0])


class _Probe:
    """Attention and masks of transformers, which notes what each layer has."""

    def __init__(self) -> None:
        self.shapes: dict[int, tuple[int, int]] = {}  # heads and elements by layer
        self._masks: list[tuple[Any, int]] = []  # masks with their windows

    def mask(self, **how: Any) -> Any:
        """Return transformers' mask. Raises UnsupportedModel unless caches have its form."""
        window = window_of(how["mask_function"])
        made = imported("transformers").masking_utils.eager_mask(**how)
        self._masks.append((made, window))
        return made

    def attend(
        self,
        module: nn.Module,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        attention_mask: Any,
        **how: Any,
    ) -> Any:
        """Return transformers' attention. Raises UnsupportedModel for other windows than masks
        have.
        """
        layer: Any = getattr(module, "layer_idx", None)
        if layer is None or layer in self.shapes:
            raise UnsupportedModel("an attention of the model has no layer number")
        self.shapes[layer] = key.shape[1], max(key.shape[-1], value.shape[-1])
        given = how.get("sliding_window") or _FAR + 1
        for mask, window in self._masks:
            if mask is attention_mask and min(given, _FAR + 1) != window:
                said = (f"{n} tokens" if n <= _FAR else "all tokens" for n in (given, window))
                raise UnsupportedModel("an attention sees {}, and its mask {}".format(*said))
        by = imported("transformers").modeling_utils.ALL_ATTENTION_FUNCTIONS["sdpa"]
        return by(module, query, key, value, attention_mask, scaling=how.get("scaling"))


def window_of(mask: Callable[..., Any]) -> int:
    """Return how many tokens, itself included, a token sees by a mask of transformers.

    More than `_FAR` are all. Raises UnsupportedModel unless these are the last ones.
    """
    zero = torch.tensor(0)
    window = 0
    for at in reversed(_PLACES):
        others = torch.arange(at + 2)  # one is behind the token
        try:
            seen = mask(zero, zero, torch.tensor(at), others).expand(at + 2)
        except IndexError:  # masks by content know the probe's tokens alone
            raise UnsupportedModel("an attention sees tokens by their content") from None
        window = window or int(seen.sum())
        if not torch.equal(seen, (others <= at) & (others > at - window)):
            raise UnsupportedModel(
                f"an attention lets token {at} see others than the last ones up to itself",
                notes=["read are models whose tokens see those before them, or a window of them"],
            )
    return window
