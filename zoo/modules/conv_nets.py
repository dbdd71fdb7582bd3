"""The convolution nets of the benchmark, defined in torch from their papers (no torchvision).

ResNet (He 2015, v1.5 stride placement), MobileNetV2 (Sandler 2018), EfficientNet-B0 (Tan 2019) and
ConvNeXt-T (Liu 2022). Every net takes (N, 3, H, W) float32 and returns (N, classes) float32 logits.
"""

from __future__ import annotations

import math

import torch
from torch import nn


def conv_bn(
    cin: int, cout: int, k: int, stride: int = 1, groups: int = 1, act: nn.Module | None = None
) -> nn.Sequential:
    """Convolution without bias, batch norm, then `act` where one is given."""
    layers: list[nn.Module] = [
        nn.Conv2d(cin, cout, k, stride, k // 2, groups=groups, bias=False),
        nn.BatchNorm2d(cout),
    ]
    if act is not None:
        layers.append(act)
    return nn.Sequential(*layers)


class Bottleneck(nn.Module):
    """1x1 reduce, 3x3 (which carries the stride), 1x1 expand by 4, added to the shortcut."""

    def __init__(self, cin: int, width: int, stride: int) -> None:
        super().__init__()
        cout = 4 * width
        self.body = nn.Sequential(
            conv_bn(cin, width, 1, act=nn.ReLU()),
            conv_bn(width, width, 3, stride, act=nn.ReLU()),
            conv_bn(width, cout, 1),
        )
        same = stride == 1 and cin == cout
        self.shortcut = nn.Identity() if same else conv_bn(cin, cout, 1, stride)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.body(x) + self.shortcut(x))


class ResNet(nn.Module):
    """Bottleneck ResNet; depths (3, 4, 6, 3) and width 64 is ResNet-50."""

    def __init__(
        self, depths: tuple[int, ...] = (3, 4, 6, 3), width: int = 64, classes: int = 1000
    ) -> None:
        super().__init__()
        self.stem = nn.Sequential(conv_bn(3, width, 7, 2, act=nn.ReLU()), nn.MaxPool2d(3, 2, 1))
        blocks: list[nn.Module] = []
        cin = width
        for stage, depth in enumerate(depths):
            for i in range(depth):
                stride = 2 if stage > 0 and i == 0 else 1
                blocks.append(Bottleneck(cin, width << stage, stride))
                cin = 4 * (width << stage)
        self.blocks = nn.Sequential(*blocks)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.head = nn.Linear(cin, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(torch.flatten(self.pool(self.blocks(self.stem(x))), 1))


class InvertedResidual(nn.Module):
    """1x1 expand, depthwise 3x3, linear 1x1 project; residual where shapes allow."""

    def __init__(self, cin: int, cout: int, stride: int, expand: int) -> None:
        super().__init__()
        mid = cin * expand
        layers: list[nn.Module] = []
        if expand != 1:
            layers.append(conv_bn(cin, mid, 1, act=nn.ReLU6()))
        layers.append(conv_bn(mid, mid, 3, stride, groups=mid, act=nn.ReLU6()))
        layers.append(conv_bn(mid, cout, 1))
        self.body = nn.Sequential(*layers)
        self.residual = stride == 1 and cin == cout

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.body(x)
        return x + y if self.residual else y


class MobileNetV2(nn.Module):
    """Table 2 of the paper: (expansion, channels, repeats, first stride)."""

    TABLE = (
        (1, 16, 1, 1),
        (6, 24, 2, 2),
        (6, 32, 3, 2),
        (6, 64, 4, 2),
        (6, 96, 3, 1),
        (6, 160, 3, 2),
        (6, 320, 1, 1),
    )

    def __init__(self, width: float = 1.0, repeat: float = 1.0, classes: int = 1000) -> None:
        super().__init__()

        def scaled(channels: int) -> int:
            return max(8, int(channels * width + 4) // 8 * 8)

        cin = scaled(32)
        layers: list[nn.Module] = [conv_bn(3, cin, 3, 2, act=nn.ReLU6())]
        for expand, channels, repeats, stride in self.TABLE:
            for i in range(math.ceil(repeats * repeat)):
                layers.append(
                    InvertedResidual(cin, scaled(channels), stride if i == 0 else 1, expand)
                )
                cin = scaled(channels)
        last = max(scaled(1280), 64)
        layers.append(conv_bn(cin, last, 1, act=nn.ReLU6()))
        self.features = nn.Sequential(*layers)
        self.head = nn.Sequential(nn.Dropout(0.2), nn.Linear(last, classes))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.features(x).mean([2, 3]))


class SqueezeExcite(nn.Module):
    """Global average, two 1x1 convolutions, sigmoid gate."""

    def __init__(self, channels: int, squeezed: int) -> None:
        super().__init__()
        self.reduce = nn.Conv2d(channels, squeezed, 1)
        self.expand = nn.Conv2d(squeezed, channels, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        gate = nn.functional.adaptive_avg_pool2d(x, 1)
        gate = self.expand(nn.functional.silu(self.reduce(gate)))
        return x * torch.sigmoid(gate)


class MBConv(nn.Module):
    """Inverted residual with squeeze-and-excite and SiLU."""

    def __init__(self, cin: int, cout: int, kernel: int, stride: int, expand: int) -> None:
        super().__init__()
        mid = cin * expand
        layers: list[nn.Module] = []
        if expand != 1:
            layers.append(conv_bn(cin, mid, 1, act=nn.SiLU()))
        layers.append(conv_bn(mid, mid, kernel, stride, groups=mid, act=nn.SiLU()))
        layers.append(SqueezeExcite(mid, max(1, cin // 4)))
        layers.append(conv_bn(mid, cout, 1))
        self.body = nn.Sequential(*layers)
        self.residual = stride == 1 and cin == cout

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.body(x)
        return x + y if self.residual else y


class EfficientNet(nn.Module):
    """Table 1 of the paper (B0): (expansion, channels, repeats, first stride, kernel)."""

    TABLE = (
        (1, 16, 1, 1, 3),
        (6, 24, 2, 2, 3),
        (6, 40, 2, 2, 5),
        (6, 80, 3, 2, 3),
        (6, 112, 3, 1, 5),
        (6, 192, 4, 2, 5),
        (6, 320, 1, 1, 3),
    )

    def __init__(self, width: float = 1.0, repeat: float = 1.0, classes: int = 1000) -> None:
        super().__init__()

        def scaled(channels: int) -> int:
            return max(8, int(channels * width + 4) // 8 * 8)

        cin = scaled(32)
        layers: list[nn.Module] = [conv_bn(3, cin, 3, 2, act=nn.SiLU())]
        for expand, channels, repeats, stride, kernel in self.TABLE:
            for i in range(math.ceil(repeats * repeat)):
                layers.append(
                    MBConv(cin, scaled(channels), kernel, stride if i == 0 else 1, expand)
                )
                cin = scaled(channels)
        last = max(scaled(1280), 64)
        layers.append(conv_bn(cin, last, 1, act=nn.SiLU()))
        self.features = nn.Sequential(*layers)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.head = nn.Sequential(nn.Dropout(0.2), nn.Linear(last, classes))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(torch.flatten(self.pool(self.features(x)), 1))


class LayerNorm2d(nn.LayerNorm):
    """Layer norm over the channels of an (N, C, H, W) tensor."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class ConvNeXtBlock(nn.Module):
    """Depthwise 7x7, layer norm, 4x MLP with exact GELU, layer scale, residual."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.depthwise = nn.Conv2d(dim, dim, 7, padding=3, groups=dim)
        self.norm = nn.LayerNorm(dim, eps=1e-6)
        self.up = nn.Linear(dim, 4 * dim)
        self.down = nn.Linear(4 * dim, dim)
        self.scale = nn.Parameter(torch.full((dim,), 0.3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm(self.depthwise(x).permute(0, 2, 3, 1))
        y = self.down(nn.functional.gelu(self.up(y))) * self.scale
        return x + y.permute(0, 3, 1, 2)


class ConvNeXt(nn.Module):
    """Depths (3, 3, 9, 3) and dims (96, 192, 384, 768) is ConvNeXt-T."""

    def __init__(
        self,
        depths: tuple[int, ...] = (3, 3, 9, 3),
        dims: tuple[int, ...] = (96, 192, 384, 768),
        classes: int = 1000,
    ) -> None:
        super().__init__()
        layers: list[nn.Module] = [nn.Conv2d(3, dims[0], 4, 4), LayerNorm2d(dims[0], eps=1e-6)]
        for stage, (depth, dim) in enumerate(zip(depths, dims, strict=True)):
            if stage:
                layers += [
                    LayerNorm2d(dims[stage - 1], eps=1e-6),
                    nn.Conv2d(dims[stage - 1], dim, 2, 2),
                ]
            layers += [ConvNeXtBlock(dim) for _ in range(depth)]
        self.features = nn.Sequential(*layers)
        self.norm = nn.LayerNorm(dims[-1], eps=1e-6)
        self.head = nn.Linear(dims[-1], classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.norm(self.features(x).mean([2, 3])))
