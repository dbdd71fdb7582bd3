"""Nets of our own for benchmarks/torch_modules.py: convolutions, recurrences, graphs, diffusion."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class ConvBlock(nn.Sequential):
    """Convolution, batch norm, activation."""

    def __init__(
        self, i: int, o: int, k: int = 3, stride: int = 1, groups: int = 1, act: Any = nn.ReLU
    ) -> None:
        super().__init__(
            nn.Conv2d(i, o, k, stride, k // 2, groups=groups, bias=False), nn.BatchNorm2d(o), act()
        )


class Residual(nn.Module):
    """ResNet's basic block; with `groups` RegNet's."""

    def __init__(self, i: int, o: int, stride: int, groups: int = 1) -> None:
        super().__init__()
        self.a, self.b = ConvBlock(i, o, 3, stride), ConvBlock(o, o, 3, 1, groups, nn.Identity)
        self.down = ConvBlock(i, o, 1, stride, act=nn.Identity) if stride > 1 or i != o else None

    def forward(self, x: Tensor) -> Tensor:
        y = self.b(self.a(x))
        return F.relu(y + (x if self.down is None else self.down(x)))


class SqueezeExcite(nn.Module):
    """EfficientNet's gate of channels."""

    def __init__(self, n: int) -> None:
        super().__init__()
        self.a, self.b = nn.Conv2d(n, n // 4, 1), nn.Conv2d(n // 4, n, 1)

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.sigmoid(self.b(F.silu(self.a(x.mean((2, 3), keepdim=True)))))


class Inverted(nn.Module):
    """MobileNet's and EfficientNet's inverted bottleneck."""

    def __init__(self, n: int, gate: bool) -> None:
        super().__init__()
        act = nn.SiLU if gate else nn.Hardswish
        self.body = nn.Sequential(
            ConvBlock(n, 4 * n, 1, act=act), ConvBlock(4 * n, 4 * n, 5, groups=4 * n, act=act),
            SqueezeExcite(4 * n) if gate else nn.Identity(),
            ConvBlock(4 * n, n, 1, act=nn.Identity),
        )  # fmt: skip

    def forward(self, x: Tensor) -> Tensor:
        return x + self.body(x)


def pooled(*body: nn.Module, width: int, classes: int = 10) -> nn.Module:
    return nn.Sequential(*body, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, classes))


def resnet() -> nn.Module:
    return pooled(ConvBlock(3, 16, 7, 2), nn.MaxPool2d(3, 2, 1), Residual(16, 16, 1),
                  Residual(16, 32, 2), width=32)  # fmt: skip


def regnet() -> nn.Module:
    return pooled(ConvBlock(3, 16, 3, 2), Residual(16, 32, 2, 4), Residual(32, 32, 1, 4), width=32)


def efficientnet() -> nn.Module:
    return pooled(ConvBlock(3, 16, 3, 2, act=nn.SiLU), Inverted(16, True), Inverted(16, True),
                  width=16)  # fmt: skip


def mobilenet() -> nn.Module:
    return pooled(ConvBlock(3, 16, 3, 2, act=nn.Hardswish), Inverted(16, False), width=16)


class DenseNet(nn.Module):
    """Every layer sees all earlier ones."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(ConvBlock(3 + 8 * i, 8) for i in range(4))
        self.head = nn.Linear(35, 10)

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = torch.cat([x, layer(x)], 1)
        return self.head(F.adaptive_avg_pool2d(x, 1).flatten(1))


class ConvNext(nn.Module):
    """Depthwise convolution, layer norm over channels, two products."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.conv = nn.Conv2d(3, 16, 4, 4), nn.Conv2d(16, 16, 7, padding=3, groups=16)
        self.norm, self.a, self.b = nn.LayerNorm(16, 1e-6), nn.Linear(16, 64), nn.Linear(64, 16)
        self.scale = nn.Parameter(torch.full((16,), 0.1))

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        y = self.conv(x).permute(0, 2, 3, 1)
        y = self.b(F.gelu(self.a(self.norm(y)))) * self.scale
        return (x + y.permute(0, 3, 1, 2)).mean((2, 3))


class UNet(nn.Module):
    """Segmentation: down, up with skips, bilinear and transposed."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.c = ConvBlock(3, 8), ConvBlock(8, 16), ConvBlock(16, 32)
        self.up = nn.ConvTranspose2d(32, 16, 2, 2)
        self.d, self.e, self.head = ConvBlock(32, 16), ConvBlock(24, 8), nn.Conv2d(8, 4, 1)

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        a = self.a(x)
        b = self.b(F.max_pool2d(a, 2))
        c = self.c(F.max_pool2d(b, 2))
        d = self.d(torch.cat([self.up(c), b], 1))
        up = F.interpolate(d, scale_factor=2.0, mode="bilinear", align_corners=False)
        y = self.head(self.e(torch.cat([up, a], 1)))
        return {"logits": y, "labels": y.argmax(1)}


class AutoEncoder(nn.Module):
    """Image to code and back."""

    def __init__(self) -> None:
        super().__init__()
        self.encode = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.ELU(), nn.Conv2d(8, 16, 3, 2, 1))
        self.decode = nn.Sequential(
            nn.ConvTranspose2d(16, 8, 4, 2, 1), nn.ELU(), nn.ConvTranspose2d(8, 3, 4, 2, 1),
            nn.Sigmoid(),
        )  # fmt: skip

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        code = self.encode(x)
        return self.decode(code), code


class DiffusionBlock(nn.Module):
    """A block of a diffusion model: time embedding, group norms, attention with a text."""

    def __init__(self) -> None:
        super().__init__()
        self.time = nn.Sequential(nn.Linear(32, 64), nn.SiLU(), nn.Linear(64, 32))
        self.n1, self.c1 = nn.GroupNorm(4, 32), nn.Conv2d(32, 32, 3, padding=1)
        self.n2, self.c2 = nn.GroupNorm(4, 32), nn.Conv2d(32, 32, 3, padding=1)
        self.norm, self.attend = nn.LayerNorm(32), nn.MultiheadAttention(
            32, 4, batch_first=True, kdim=24, vdim=24
        )  # fmt: skip

    def forward(self, x: Tensor, steps: Tensor, text: Tensor) -> Tensor:
        half = torch.exp(-torch.arange(16, device=x.device) * (9.2 / 16))
        angle = steps[:, None].float() * half[None]
        t = self.time(torch.cat([angle.sin(), angle.cos()], -1))
        h = self.c1(F.silu(self.n1(x))) + t[:, :, None, None]
        h = x + self.c2(F.silu(self.n2(h)))
        b, c, height, width = h.shape
        tokens = h.flatten(2).transpose(1, 2)
        tokens = tokens + self.attend(self.norm(tokens), text, text, need_weights=False)[0]
        return tokens.transpose(1, 2).reshape(b, c, height, width)


class Tagger(nn.Module):
    """Tokens to tags, with an LSTM or a GRU in both directions."""

    def __init__(self, cell: type[nn.Module], layers: int = 1) -> None:
        super().__init__()
        self.embed = nn.Embedding(100, 16)
        self.rnn: Any = cell(16, 12, num_layers=layers, bidirectional=True, batch_first=True)
        self.head = nn.Linear(24, 7)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(self.rnn(self.embed(tokens))[0]).log_softmax(-1)


class Seq2Seq(nn.Module):
    """GRU whose last state starts another one; the attention is Luong's."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(50, 16)
        self.encode, self.decode = (
            nn.GRU(16, 16, batch_first=True),
            nn.GRU(16, 16, batch_first=True),
        )
        self.head = nn.Linear(32, 50)

    def forward(self, source: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        states, last = self.encode(self.embed(source))
        found, last = self.decode(self.embed(target), last)
        context = torch.softmax(found @ states.transpose(1, 2), -1) @ states
        return self.head(torch.cat([found, context], -1)), last


class GraphNet(nn.Module):
    """Messages along edges, summed at their targets; the mean of the nodes of each graph."""

    def __init__(self) -> None:
        super().__init__()
        self.message, self.update, self.head = nn.Linear(16, 16), nn.Linear(24, 8), nn.Linear(8, 3)

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        source, target = edges[0], edges[1]
        m = F.relu(self.message(torch.cat([x[source], x[target]], -1)))
        total = torch.zeros(x.shape[0], 16, dtype=x.dtype).index_add_(0, target, m)
        return self.head(F.relu(self.update(torch.cat([x, total], -1))))


class AttentionGraph(nn.Module):
    """Graph attention: a softmax over the edges into each node, with scatter."""

    def __init__(self) -> None:
        super().__init__()
        self.value, self.score = nn.Linear(8, 8), nn.Linear(16, 1)

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        v = self.value(x)
        s = F.leaky_relu(self.score(torch.cat([v[edges[0]], v[edges[1]]], -1)), 0.2).squeeze(-1)
        top = torch.full((x.shape[0],), -1e9).scatter_reduce(0, edges[1], s, "amax")
        w = torch.exp(s - top[edges[1]])
        total = torch.zeros(x.shape[0]).scatter_add(0, edges[1], w)
        m = v[edges[0]] * (w / (total[edges[1]] + 1e-9)).unsqueeze(-1)
        return torch.zeros_like(v).index_add(0, edges[1], m)


class Cached(nn.Module):
    """One attention layer that keeps keys and values in buffers and writes at a position."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(32, 96), nn.Linear(32, 32)
        self.register_buffer("keys", torch.zeros(2, 4, 16, 8))
        self.register_buffer("values", torch.zeros(2, 4, 16, 8))

    def forward(self, x: Tensor, position: Tensor) -> Tensor:
        b, n, _ = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, 4, 8).permute(2, 0, 3, 1, 4)
        self.keys.index_copy_(2, position, k)
        self.values.index_copy_(2, position, v)
        mask = torch.arange(16)[None, :] <= position[:, None]
        y = F.scaled_dot_product_attention(q, self.keys, self.values, attn_mask=mask)
        return self.out(y.transpose(1, 2).reshape(b, n, 32))


class GrowingCache(nn.Module):
    """One attention layer that is given past keys and values and gives longer ones."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(32, 96), nn.Linear(32, 32)

    def forward(
        self, x: Tensor, past: tuple[Tensor, Tensor]
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        b, n, _ = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, 4, 8).permute(2, 0, 3, 1, 4)
        k, v = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)
        y = F.scaled_dot_product_attention(q, k, v)
        return self.out(y.transpose(1, 2).reshape(b, n, 32)), (k, v)


class PositionStep(nn.Module):
    """A step at a position given as a Python number."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.a = nn.Embedding(64, 16), nn.Linear(16, 16)

    def forward(self, x: Tensor, start: int) -> Tensor:
        places = torch.arange(x.shape[1]) + start
        return self.a(x + self.table(places)[None])


class Mlp(nn.Module):
    """Tabular: numbers and categories."""

    def __init__(self) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(n, 4) for n in (10, 20, 30))
        self.body = nn.Sequential(
            nn.Linear(20, 32), nn.PReLU(), nn.BatchNorm1d(32), nn.Linear(32, 2), nn.Softplus()
        )

    def forward(self, batch: dict[str, Tensor]) -> Tensor:
        rows = [t(batch["categories"][:, i]) for i, t in enumerate(self.tables)]
        return self.body(torch.cat([batch["numbers"], *rows], -1))


class DotInteraction(nn.Module):
    """DLRM: products of pairs of features, the lower triangle of them."""

    def __init__(self) -> None:
        super().__init__()
        self.bottom, self.table = nn.Linear(13, 16), nn.EmbeddingBag(100, 16, mode="sum")
        self.top = nn.Linear(16 + 3, 1)

    def forward(self, dense: Tensor, ids: Tensor, more: Tensor) -> Tensor:
        d = F.relu(self.bottom(dense))
        z = torch.stack([d, self.table(ids), self.table(more)], 1)
        pairs = z @ z.transpose(1, 2)
        i, j = torch.tril_indices(3, 3, -1)
        return torch.sigmoid(self.top(torch.cat([d, pairs[:, i, j]], -1))).squeeze(-1)


class WaveNet(nn.Module):
    """Dilated causal convolutions of one dimension."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.ModuleList(nn.Conv1d(8, 16, 2, dilation=2**i) for i in range(3))
        self.first, self.last = nn.Conv1d(1, 8, 1), nn.Conv1d(8, 4, 1)

    def forward(self, x: Tensor) -> Tensor:
        x, skip = self.first(x), torch.zeros((), dtype=x.dtype)
        for i, conv in enumerate(self.inner):
            a, b = conv(F.pad(x, (2**i, 0))).chunk(2, 1)
            y = torch.tanh(a) * torch.sigmoid(b)
            x, skip = x + y, skip + y
        return self.last(F.relu(skip))


class Mixer(nn.Module):
    """MLP-Mixer: products over tokens, then over channels."""

    def __init__(self) -> None:
        super().__init__()
        self.patch = nn.Conv2d(3, 16, 8, 8)
        self.n1, self.n2 = nn.LayerNorm(16), nn.LayerNorm(16)
        self.tokens = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16))
        self.channels = nn.Sequential(nn.Linear(16, 32), nn.GELU("tanh"), nn.Linear(32, 16))

    def forward(self, x: Tensor) -> Tensor:
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = x + self.tokens(self.n1(x).transpose(1, 2)).transpose(1, 2)
        return (x + self.channels(self.n2(x))).mean(1)


class Experts(nn.Module):
    """A mixture of experts: every expert on every token, weighted by the best two."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(16, 4)
        self.up, self.down = nn.Parameter(torch.randn(4, 16, 32) / 4), nn.Parameter(
            torch.randn(4, 32, 16) / 6
        )  # fmt: skip

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        best, index = self.gate(x).softmax(-1).topk(2)
        w = torch.zeros(*x.shape[:-1], 4).scatter(-1, index, best)
        y = torch.einsum(
            "bte,bteh->bth",
            w,
            torch.einsum(
                "bteh,ehd->bted", F.silu(torch.einsum("btd,edh->bteh", x, self.up)), self.down
            ),
        )
        return y, index


class StyleConv(nn.Module):
    """StyleGAN's modulated convolution, with noise off."""

    def __init__(self) -> None:
        super().__init__()
        self.weight, self.style = nn.Parameter(torch.randn(8, 8, 3, 3)), nn.Linear(16, 8)

    def forward(self, x: Tensor, w: Tensor) -> Tensor:
        s = self.style(w)[:, None, :, None, None] + 1
        kernel = self.weight[None] * s
        kernel = kernel * torch.rsqrt(kernel.square().sum((2, 3, 4), keepdim=True) + 1e-8)
        b, c, h, width = x.shape
        y = F.conv2d(
            x.reshape(1, b * c, h, width), kernel.reshape(b * 8, 8, 3, 3), padding=1, groups=2
        )
        return F.leaky_relu(y.reshape(b, 8, h, width), 0.2)


class PixelShuffle(nn.Module):
    """Super resolution."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, 16, 5, padding=2), nn.Tanh(), nn.Conv2d(16, 4, 3, padding=1)
        )

    def forward(self, x: Tensor) -> Tensor:
        return F.pixel_shuffle(self.body(x), 2).clamp(0, 1)


class Spectrogram(nn.Module):
    """Frames, a window, the power of their spectrum, mel filters."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("window", torch.hann_window(32))
        self.mel = nn.Linear(17, 8, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        z = torch.stft(x, 32, 16, window=self.window, return_complex=True)
        power = torch.view_as_real(z).square().sum(-1).transpose(1, 2)
        return torch.log1p(self.mel(power).abs())


class Detector(nn.Module):
    """Boxes and scores on a grid, the best 10 of them."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = (
            nn.Sequential(ConvBlock(3, 8, 3, 2), ConvBlock(8, 16, 3, 2)),
            nn.Conv2d(16, 7, 1),
        )

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        y = self.head(self.body(x)).permute(0, 2, 3, 1)
        h, w = y.shape[1:3]
        gy, gx = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
        centre = torch.sigmoid(y[..., :2]) + torch.stack([gx, gy], -1)
        flat = torch.cat([centre, y[..., 2:4].exp()], -1).flatten(1, 2)
        scores = y[..., 4:].sigmoid().amax(-1).flatten(1)
        best, index = scores.topk(10)
        return {"scores": best, "boxes": flat.gather(1, index[..., None].expand(-1, -1, 4))}
