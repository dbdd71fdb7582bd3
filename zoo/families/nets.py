"""Small nets of families that transformers lacks: diffusion UNet, VAE decoder, YOLO, recurrent
taggers, a graph network."""

from __future__ import annotations

import math

import torch
from torch import nn
from torch.nn import functional as F


class ResBlock(nn.Module):
    """GroupNorm, SiLU, convolution, twice; the time embedding is added between."""

    def __init__(self, cin: int, cout: int, embedding: int = 0) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(4, cin), nn.GroupNorm(4, cout)
        self.conv1 = nn.Conv2d(cin, cout, 3, padding=1)
        self.conv2 = nn.Conv2d(cout, cout, 3, padding=1)
        self.time = nn.Linear(embedding, cout) if embedding else None
        self.skip = nn.Conv2d(cin, cout, 1) if cin != cout else nn.Identity()

    def forward(self, x: torch.Tensor, t: torch.Tensor | None = None) -> torch.Tensor:
        y = self.conv1(F.silu(self.norm1(x)))
        if self.time is not None and t is not None:
            y = y + self.time(F.silu(t))[:, :, None, None]
        return self.skip(x) + self.conv2(F.silu(self.norm2(y)))


class SpatialTransformer(nn.Module):
    """Attention over pixels, then from pixels to a context, then a GEGLU."""

    def __init__(self, channels: int, context: int, heads: int = 2) -> None:
        super().__init__()
        self.heads = heads
        self.norm = nn.GroupNorm(4, channels)
        self.norms = nn.ModuleList([nn.LayerNorm(channels) for _ in range(3)])
        self.own = nn.ModuleList([nn.Linear(channels, channels, bias=False) for _ in range(4)])
        self.cross = nn.ModuleList(
            [nn.Linear(c, channels, bias=False) for c in (channels, context, context, channels)]
        )
        self.up, self.down = nn.Linear(channels, 4 * channels), nn.Linear(2 * channels, channels)

    def attend(self, layers: nn.ModuleList, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        q, k, v = layers[0](x), layers[1](y), layers[2](y)
        n, _, c = q.shape
        q, k, v = (a.view(n, -1, self.heads, c // self.heads).transpose(1, 2) for a in (q, k, v))
        out = F.scaled_dot_product_attention(q, k, v)
        return layers[3](out.transpose(1, 2).reshape(n, -1, c))

    def forward(self, x: torch.Tensor, context: torch.Tensor) -> torch.Tensor:
        n, c, h, w = x.shape
        y = self.norm(x).permute(0, 2, 3, 1).reshape(n, h * w, c)
        z = self.norms[0](y)
        y = y + self.attend(self.own, z, z)
        y = y + self.attend(self.cross, self.norms[1](y), context)
        a, gate = self.up(self.norms[2](y)).chunk(2, dim=-1)
        y = y + self.down(a * F.gelu(gate))
        return x + y.reshape(n, h, w, c).permute(0, 3, 1, 2)


class UNet(nn.Module):
    """A denoiser of two resolutions with time embedding, cross attention and skip connections."""

    def __init__(self, width: int = 16, context: int = 24) -> None:
        super().__init__()
        self.width, embedding = width, 4 * width
        self.time = nn.Sequential(
            nn.Linear(width, embedding), nn.SiLU(), nn.Linear(embedding, embedding)
        )
        self.first = nn.Conv2d(4, width, 3, padding=1)
        self.down1 = ResBlock(width, width, embedding)
        self.shrink = nn.Conv2d(width, width, 3, stride=2, padding=1)
        self.down2 = ResBlock(width, 2 * width, embedding)
        self.attend = SpatialTransformer(2 * width, context)
        self.up2 = ResBlock(4 * width, 2 * width, embedding)
        self.grow = nn.Conv2d(2 * width, width, 3, padding=1)
        self.up1 = ResBlock(2 * width, width, embedding)
        self.norm, self.last = nn.GroupNorm(4, width), nn.Conv2d(width, 4, 3, padding=1)

    def forward(
        self, sample: torch.Tensor, timestep: torch.Tensor, context: torch.Tensor
    ) -> torch.Tensor:
        half = self.width // 2
        rates = torch.exp(-math.log(10000) * torch.arange(half, dtype=torch.float32) / half)
        angles = timestep.float()[:, None] * rates[None]
        t = self.time(torch.cat([angles.cos(), angles.sin()], dim=-1))
        a = self.down1(self.first(sample), t)
        c = self.down2(self.shrink(a), t)
        d = self.attend(c, context)
        d = self.up2(torch.cat([d, c], dim=1), t)
        d = self.grow(F.interpolate(d, scale_factor=2.0, mode="nearest"))
        d = self.up1(torch.cat([d, a], dim=1), t)
        return self.last(F.silu(self.norm(d)))


class VaeDecoder(nn.Module):
    """Latents to an image: attention over pixels in the middle, two doublings of the size."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.first = nn.Conv2d(4, width, 3, padding=1)
        self.middle1, self.middle2 = ResBlock(width, width), ResBlock(width, width)
        self.norm = nn.GroupNorm(4, width)
        self.qkv = nn.ModuleList([nn.Conv2d(width, width, 1) for _ in range(4)])
        self.up1, self.up2 = ResBlock(width, width // 2), ResBlock(width // 2, width // 2)
        self.grow1 = nn.Conv2d(width // 2, width // 2, 3, padding=1)
        self.grow2 = nn.Conv2d(width // 2, width // 2, 3, padding=1)
        self.norm_out = nn.GroupNorm(4, width // 2)
        self.last = nn.Conv2d(width // 2, 3, 3, padding=1)

    def forward(self, latent: torch.Tensor) -> torch.Tensor:
        x = self.middle1(self.first(latent))
        n, c, h, w = x.shape
        y = self.norm(x)
        q, k, v = (layer(y).view(n, c, h * w).transpose(1, 2) for layer in self.qkv[:3])
        weights = torch.softmax(torch.bmm(q, k.transpose(1, 2)) * c**-0.5, dim=-1)
        y = torch.bmm(weights, v).transpose(1, 2).reshape(n, c, h, w)
        x = self.middle2(x + self.qkv[3](y))
        x = self.grow1(F.interpolate(self.up1(x), scale_factor=2.0, mode="nearest"))
        x = self.grow2(
            F.interpolate(self.up2(x), scale_factor=2.0, mode="bilinear", align_corners=False)
        )
        return torch.tanh(self.last(F.silu(self.norm_out(x))))


class Yolo(nn.Module):
    """Three strides and the head of a YOLO: boxes by a softmax over bins, anchors from the feature
    maps' sizes. Returns boxes (N, anchors, 4) as y1 x1 y2 x2, scores (N, classes, anchors)."""

    BINS = 8

    def __init__(self, width: int = 8, classes: int = 5) -> None:
        super().__init__()
        self.classes = classes

        def block(cin: int, cout: int) -> nn.Module:
            conv = nn.Conv2d(cin, cout, 3, stride=2, padding=1, bias=False)
            return nn.Sequential(conv, nn.BatchNorm2d(cout), nn.SiLU())

        self.stem = nn.Sequential(block(3, width), block(width, width), block(width, 2 * width))
        self.mid, self.deep = block(2 * width, 4 * width), block(4 * width, 4 * width)
        self.pool = nn.MaxPool2d(5, 1, 2)
        self.squeeze = nn.Conv2d(8 * width, 4 * width, 1)
        self.lateral = nn.Conv2d(8 * width, 4 * width, 1)
        out = 4 * self.BINS + classes
        self.heads = nn.ModuleList([nn.Conv2d(c * width, out, 1) for c in (2, 4, 4)])

    def forward(self, image: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        a = self.stem(image)
        b = self.mid(a)
        c = self.deep(b)
        c = self.squeeze(torch.cat([c, self.pool(c)], dim=1))
        b = self.lateral(torch.cat([b, F.interpolate(c, size=b.shape[-2:], mode="nearest")], 1))
        levels, points, strides = [], [], []
        for x, head, stride in zip((a, b, c), self.heads, (8, 16, 32), strict=True):
            y = head(x)
            n, _, h, w = y.shape
            levels.append(y.view(n, 4 * self.BINS + self.classes, h * w))
            sy = torch.arange(h, dtype=torch.float32) + 0.5
            sx = torch.arange(w, dtype=torch.float32) + 0.5
            grid_y, grid_x = torch.meshgrid(sy, sx, indexing="ij")
            points.append(torch.stack((grid_y, grid_x), -1).view(-1, 2))
            strides.append(torch.full((h * w, 1), float(stride)))
        y, point, stride = torch.cat(levels, 2), torch.cat(points), torch.cat(strides)
        box, scores = y.split((4 * self.BINS, self.classes), 1)
        n, _, anchors = box.shape
        bins = box.view(n, 4, self.BINS, anchors).softmax(2)
        weights = torch.arange(self.BINS, dtype=torch.float32).view(1, 1, -1, 1)
        reach = (bins * weights).sum(2).transpose(1, 2)
        low, high = point - reach[..., :2], point + reach[..., 2:]
        return torch.cat([low, high], -1) * stride, scores.sigmoid()


class Tagger(nn.Module):
    """(tokens, lengths) -> tag scores by two bidirectional layers, packed if so asked."""

    def __init__(self, kind: type[nn.RNNBase], packed: bool) -> None:
        super().__init__()
        self.packed = packed
        self.embedding = nn.Embedding(50, 12)
        self.rnn = kind(12, 10, num_layers=2, bidirectional=True, batch_first=not packed)
        self.head = nn.Linear(20, 6)

    def forward(self, tokens: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        x = self.embedding(tokens)
        if not self.packed:
            inside = torch.arange(tokens.shape[1])[None] < lengths[:, None]
            out, _ = self.rnn(x * inside[..., None].to(x.dtype))
            return self.head(out)
        packed = nn.utils.rnn.pack_padded_sequence(x.transpose(0, 1), lengths)
        out, _ = nn.utils.rnn.pad_packed_sequence(self.rnn(packed)[0])
        return self.head(out).transpose(0, 1)


class GraphNet(nn.Module):
    """(nodes, edges) -> scores: a normalised graph convolution, then attention over neighbours."""

    def __init__(self, width: int = 8, hidden: int = 12) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(width, hidden), nn.Linear(hidden, hidden)
        self.source, self.target = nn.Linear(hidden, 1), nn.Linear(hidden, 1)
        self.head = nn.Linear(hidden, 4)

    def forward(self, nodes: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        source, target = edges[0], edges[1]
        count = nodes.shape[0]
        ones = torch.ones_like(source, dtype=nodes.dtype)
        degree = torch.zeros(count, dtype=nodes.dtype).scatter_add(0, target, ones) + 1
        scale = degree.rsqrt()
        x = self.first(nodes)
        message = x[source] * (scale[source] * scale[target])[:, None]
        index = target[:, None].expand(-1, x.shape[1])
        x = F.relu(torch.zeros_like(x).scatter_add(0, index, message) + x / degree[:, None])
        y = self.second(x)
        score = F.leaky_relu(self.source(y)[source] + self.target(y)[target], 0.2)[:, 0]
        highest = torch.full((count,), -1e9).scatter_reduce(0, target, score, "amax")
        weight = torch.exp(score - highest[target])
        total = torch.zeros(count).scatter_add(0, target, weight)
        weight = weight / (total[target] + 1e-9)
        y = torch.zeros_like(y).scatter_add(0, index, y[source] * weight[:, None])
        return self.head(F.elu(y) + x)
