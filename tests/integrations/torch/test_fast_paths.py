"""The fast paths of nn.TransformerEncoderLayer and nn.MultiheadAttention, which have operators."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import mgx_mlir.torch
from mgx_mlir.frontends.torch_fast_paths import attention, encoder_layer

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _inference() -> Any:
    torch.manual_seed(6)
    with torch.no_grad():
        yield


def _masks(b: int, n: int, heads: int) -> list[tuple[Any, int | None]]:
    late = torch.ones(n, n).triu(1).bool()
    padding = torch.zeros(b, n).bool()
    padding[-1, -1] = True
    both = (late | padding[:, None, None]).expand(b, heads, n, n)
    return [(None, None), (late, 0), (padding, 1), (both, 2)]


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("use_gelu", [False, True])
def test_a_layer_is_what_the_operator_gives(norm_first: bool, use_gelu: bool) -> None:
    layer = nn.TransformerEncoderLayer(8, 2, 12, batch_first=True).eval()
    own = layer.self_attn
    x = torch.randn(3, 5, 8)
    weights = (layer.norm1.weight, layer.norm1.bias, layer.norm2.weight, layer.norm2.bias,
               layer.linear1.weight, layer.linear1.bias, layer.linear2.weight,
               layer.linear2.bias)  # fmt: skip
    for mask, kind in _masks(3, 5, 2):
        given = (x, 8, 2, own.in_proj_weight, own.in_proj_bias, own.out_proj.weight,
                 own.out_proj.bias, use_gelu, norm_first, 1e-5, *weights, mask, kind)  # fmt: skip
        want = torch.ops.aten._transformer_encoder_layer_fwd(*given)
        torch.testing.assert_close(encoder_layer(*given), want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("average", [False, True])
def test_attention_is_what_the_operator_gives(average: bool) -> None:
    own = nn.MultiheadAttention(8, 2, batch_first=True).eval()
    x = torch.randn(3, 5, 8)
    for mask, kind in _masks(3, 5, 2):
        given = (x, x, x, 8, 2, own.in_proj_weight, own.in_proj_bias, own.out_proj.weight,
                 own.out_proj.bias, mask, True, average, kind)  # fmt: skip
        want = torch.ops.aten._native_multi_head_attention(*given)
        for a, b in zip(attention(*given), want, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-5)


def test_an_encoder_compiles_with_dynamic_dims() -> None:
    layer = nn.TransformerEncoderLayer(8, 2, 12, batch_first=True)
    model = nn.TransformerEncoder(layer, 2).eval()
    compiled = torch.compile(model, backend="mgx", dynamic=True, options={"target": "ref"})
    for b, n in ((5, 7), (2, 3), (4, 9)):
        x = torch.randn(b, n, 8)
        torch.testing.assert_close(compiled(x), model(x), rtol=1e-5, atol=1e-5)


def test_attention_compiles() -> None:
    model = nn.MultiheadAttention(8, 2, batch_first=True).eval()
    x = torch.randn(3, 5, 8)
    run = mgx_mlir.torch.compile(model, (x, x, x), target="ref")
    for a, b in zip(run(x, x, x), model(x, x, x), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-5)
