"""Networks of torch that a GPU is timed on, ours and torch's own compilers' from one definition.

Weights are drawn as torch draws them. `NETWORKS`: by name, the module and the inputs of a call in
f16. Nothing here needs a GPU.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Bottleneck(nn.Module):
    """ResNet's block of three convolutions, the stride in the middle one."""

    def __init__(self, into: int, width: int, stride: int) -> None:
        super().__init__()
        out = 4 * width

        def unit(a: int, b: int, size: int, step: int = 1) -> nn.Sequential:
            conv = nn.Conv2d(a, b, size, step, size // 2, bias=False)
            return nn.Sequential(conv, nn.BatchNorm2d(b))

        self.one, self.two = unit(into, width, 1), unit(width, width, 3, stride)
        self.three = unit(width, out, 1)
        changes = stride != 1 or into != out
        self.side = unit(into, out, 1, stride) if changes else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.two(F.relu(self.one(x))))
        return F.relu(self.three(y) + self.side(x))


class ResNet50(nn.Module):
    """ResNet-50 of 1000 classes."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(),
            nn.MaxPool2d(3, 2, 1),
        )  # fmt: skip
        blocks, into = list[nn.Module](), 64
        for width, count in ((64, 3), (128, 4), (256, 6), (512, 3)):
            for i in range(count):
                blocks.append(Bottleneck(into, width, 2 if i == 0 and width > 64 else 1))
                into = 4 * width
        self.blocks, self.head = nn.Sequential(*blocks), nn.Linear(2048, 1000)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.blocks(self.stem(x)).mean((2, 3)))


class BertLayer(nn.Module):
    """BERT's layer: norms behind the residuals."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads, self.size = heads, width // heads
        self.q, self.k, self.v, self.o = (nn.Linear(width, width) for _ in range(4))
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        b, n, w = x.shape

        def split(y: Tensor) -> Tensor:
            return y.view(b, n, self.heads, self.size).transpose(1, 2)

        q, k, v = split(self.q(x)), split(self.k(x)), split(self.v(x))
        y = F.scaled_dot_product_attention(q, k, v, mask)
        x = self.first(x + self.o(y.transpose(1, 2).reshape(b, n, w)))
        return self.second(x + self.down(F.gelu(self.up(x))))


class Bert(nn.Module):
    """Layers of BERT-base with embeddings and a padding mask."""

    def __init__(self, layers: int = 6, width: int = 768, words: int = 30522) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(512, width)
        self.norm = nn.LayerNorm(width)
        self.layers = nn.ModuleList(BertLayer(width, width // 64) for _ in range(layers))

    def forward(self, ids: Tensor, seen: Tensor) -> Tensor:
        x = self.words(ids) + self.places.weight[: ids.shape[1]]
        x = self.norm(x)
        mask = ((1 - seen[:, None, None].to(x.dtype)) * -10000.0).expand(-1, 1, ids.shape[1], -1)
        for layer in self.layers:
            x = layer(x, mask)
        return x


class LlamaLayer(nn.Module):
    """Llama 3 8B's layer behind `past` tokens: RMSNorm, rotary positions, shared keys, SwiGLU."""

    def __init__(self, width: int = 4096, groups: int = 8, inner: int = 14336) -> None:
        super().__init__()
        self.heads, self.groups, self.size = width // 128, groups, 128
        self.q, self.o = (nn.Linear(width, width, bias=False) for _ in range(2))
        self.k, self.v = (nn.Linear(width, groups * 128, bias=False) for _ in range(2))
        self.gate, self.up = (nn.Linear(width, inner, bias=False) for _ in range(2))
        self.down = nn.Linear(inner, width, bias=False)
        self.first, self.second = (nn.Parameter(torch.ones(width)) for _ in range(2))

    def norm(self, x: Tensor, scale: Tensor) -> Tensor:
        y = x.float()
        return (y * torch.rsqrt(y.square().mean(-1, keepdim=True) + 1e-6)).to(x.dtype) * scale

    def forward(
        self, x: Tensor, cos: Tensor, sin: Tensor, key: Tensor, value: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        b, n, w = x.shape

        def split(y: Tensor, heads: int) -> Tensor:
            return y.view(b, n, heads, self.size).transpose(1, 2)

        def turned(y: Tensor) -> Tensor:
            low, high = y.chunk(2, -1)
            return y * cos + torch.cat((-high, low), -1) * sin

        h = self.norm(x, self.first)
        q = turned(split(self.q(h), self.heads))
        key = torch.cat((key, turned(split(self.k(h), self.groups))), 2)
        value = torch.cat((value, split(self.v(h), self.groups)), 2)
        each = self.heads // self.groups
        k = key[:, :, None].expand(-1, -1, each, -1, -1).reshape(b, self.heads, -1, self.size)
        v = value[:, :, None].expand(-1, -1, each, -1, -1).reshape(b, self.heads, -1, self.size)
        y = F.scaled_dot_product_attention(q, k, v)
        x = x + self.o(y.transpose(1, 2).reshape(b, n, w))
        h = self.norm(x, self.second)
        return x + self.down(F.silu(self.gate(h)) * self.up(h)), key, value


class Chain(nn.Module):
    """Small kernels, each of which waits for the one ahead: what a launch costs."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.count = count

    def forward(self, x: Tensor) -> Tensor:
        for _ in range(self.count):
            x = torch.softmax(x, -1) + x.flip(0)
        return x


def draw_images(count: int) -> Callable[[], tuple[Tensor, ...]]:
    """Return a function that draws images."""
    return lambda: (torch.randn(count, 3, 224, 224, dtype=torch.float16),)


def draw_tokens(count: int, length: int) -> Callable[[], tuple[Tensor, ...]]:
    """Return a function that draws tokens, the last three of a row masked."""

    def draw() -> tuple[Tensor, ...]:
        seen = (torch.arange(length) < length - 3).long().expand(count, -1).contiguous()
        return torch.randint(0, 30522, (count, length)), seen

    return draw


def draw_step(past: int) -> Callable[[], tuple[Tensor, ...]]:
    """Return a function that draws one token behind others."""

    def draw() -> tuple[Tensor, ...]:
        angle = past * 500000.0 ** -(torch.arange(0, 128, 2) / 128)
        turn = torch.cat((angle, angle)).view(1, 1, 1, 128)
        cache = [torch.randn(1, 8, past, 128).half() for _ in range(2)]
        return torch.randn(1, 1, 4096).half(), turn.cos().half(), turn.sin().half(), *cache

    return draw


@dataclass(frozen=True)
class Network:
    """make: the module, in f32. draw: the inputs of a call, in f16. peers: torch's compilers that
    it is timed beside. dynamic: dims that the exported model leaves open, by input and axis."""

    make: Callable[[], nn.Module]
    draw: Callable[[], tuple[Tensor, ...]]
    names: tuple[str, ...]
    peers: tuple[str, ...] = ("eager", "default", "max-autotune")
    dynamic: dict[str, dict[int, str]] = field(default_factory=dict)
    program: str = ""  # name of the compiled program where another network has the same
    bits: int = 16  # bits of a weight
    channels_last: bool = False  # for torch's peers

    def built(self) -> nn.Module:
        """Return the module in f16, with weights of a seed."""
        torch.manual_seed(0)
        return self.make().eval().half()

    def inputs(self) -> tuple[Tensor, ...]:
        """Return the inputs of a call, of a seed."""
        torch.manual_seed(1)
        return self.draw()


_TEXT = {"ids": {0: "b", 1: "n"}, "seen": {0: "b", 1: "n"}}
_STEP = ("x", "cos", "sin", "key", "value")
_PAST = 1023  # tokens ahead of the one that is computed
NETWORKS: dict[str, Network] = {
    "resnet50-1": Network(ResNet50, draw_images(1), ("x",)),
    "resnet50-32": Network(ResNet50, draw_images(32), ("x",), channels_last=True),
    "bert6-1x128": Network(Bert, draw_tokens(1, 128), ("ids", "seen")),
    "bert6-16x384": Network(Bert, draw_tokens(16, 384), ("ids", "seen")),
    "bert6-1x128-dynamic": Network(Bert, draw_tokens(1, 128), ("ids", "seen"), (), _TEXT),
    "bert6-16x384-dynamic": Network(
        Bert, draw_tokens(16, 384), ("ids", "seen"), (), _TEXT, "bert6-1x128-dynamic"
    ),
    "llama-layer-f16": Network(LlamaLayer, draw_step(_PAST), _STEP, ("eager", "default")),
    "llama-layer-int4": Network(LlamaLayer, draw_step(_PAST), _STEP, (), bits=4),
    "chain-1": Network(lambda: Chain(1), lambda: (torch.randn(64, 64).half(),), ("x",), ()),
    "chain-33": Network(lambda: Chain(33), lambda: (torch.randn(64, 64).half(),), ("x",), ()),
    "call-linear": Network(
        lambda: nn.Linear(64, 64), lambda: (torch.randn(4, 64).half(),), ("x",), ()
    ),
}


def export(network: Network, path: str) -> None:
    """Write a network as ONNX, in f16."""
    options: dict[str, Any] = {"opset_version": 17, "input_names": list(network.names)}
    with torch.no_grad():
        torch.onnx.export(
            network.built(), network.inputs(), path, dynamo=False,
            dynamic_axes=network.dynamic or None, **options,
        )  # fmt: skip


def moved_bytes(network: Network, module: nn.Module) -> int:
    """Return the bytes of weights and inputs that a call must read at least."""
    weights = sum(p.numel() for p in module.parameters())
    given = sum(t.numel() * t.element_size() for t in network.inputs())
    scale = 16 / 32 if network.bits == 4 else 0.0  # bits of scales of blocks of 32, a weight
    return math.ceil(weights * (network.bits + scale) / 8) + given
