"""Nets of the benchmark that answer for every place of an image, in torch from their papers.

YOLOv8-nano (Ultralytics 2023: C2f blocks, SPPF, a pyramid, decoupled heads with distribution focal
loss) and U-Net (Ronneberger 2015, with padding and batch norm). Both take (N, 3, H, W) float32 with
H and W divisible by 32.
"""

from __future__ import annotations

import torch
from torch import nn

from zoo.modules.conv_nets import conv_bn

BINS = 16  # bins of the distances to a box's four sides
STRIDES = (8, 16, 32)


def conv_silu(cin: int, cout: int, k: int = 1, stride: int = 1) -> nn.Sequential:
    return conv_bn(cin, cout, k, stride, act=nn.SiLU())


class C2f(nn.Module):
    """1x1, then a chain of 3x3 pairs over one half of the channels; all links are concatenated."""

    def __init__(self, cin: int, cout: int, depth: int, *, residual: bool) -> None:
        super().__init__()
        half = cout // 2
        self.residual = residual
        self.entry = conv_silu(cin, cout)
        self.pairs = nn.ModuleList(
            nn.Sequential(conv_silu(half, half, 3), conv_silu(half, half, 3)) for _ in range(depth)
        )
        self.exit = conv_silu((2 + depth) * half, cout)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        links = list(self.entry(x).chunk(2, 1))
        for pair in self.pairs:
            y = pair(links[-1])
            links.append(links[-1] + y if self.residual else y)
        return self.exit(torch.cat(links, 1))


class SPPF(nn.Module):
    """Three 5x5 max pools in a row, concatenated with their input."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.entry = conv_silu(channels, channels // 2)
        self.pool = nn.MaxPool2d(5, 1, 2)
        self.exit = conv_silu(2 * channels, channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        links = [self.entry(x)]
        for _ in range(3):
            links.append(self.pool(links[-1]))
        return self.exit(torch.cat(links, 1))


class Detect(nn.Module):
    """Boxes and class scores of each level; (N, 4 + classes, places)."""

    def __init__(self, widths: tuple[int, int, int], classes: int) -> None:
        super().__init__()
        box, score = max(16, widths[0] // 4, 4 * BINS), max(widths[0], min(classes, 100))
        self.classes = classes
        self.boxes = nn.ModuleList(
            nn.Sequential(conv_silu(w, box, 3), conv_silu(box, box, 3), nn.Conv2d(box, 4 * BINS, 1))
            for w in widths
        )
        self.scores = nn.ModuleList(
            nn.Sequential(
                conv_silu(w, score, 3), conv_silu(score, score, 3), nn.Conv2d(score, classes, 1)
            )
            for w in widths
        )

    def forward(self, levels: list[torch.Tensor]) -> torch.Tensor:
        both = zip(levels, self.boxes, self.scores, strict=True)
        flat = [torch.cat([box(x), score(x)], 1).flatten(2) for x, box, score in both]
        sides, scores = torch.cat(flat, 2).split((4 * BINS, self.classes), 1)
        bins = torch.arange(BINS, dtype=sides.dtype).view(1, 1, BINS, 1)
        distances = (sides.unflatten(1, (4, BINS)).softmax(2) * bins).sum(2)
        centres, strides = self.places(levels)
        low, high = centres - distances[:, :2], centres + distances[:, 2:]
        boxes = torch.cat([(low + high) / 2, high - low], 1) * strides
        return torch.cat([boxes, scores.sigmoid()], 1)

    def places(self, levels: list[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
        centres, strides = [], []
        for x, stride in zip(levels, STRIDES, strict=True):
            rows, columns = x.shape[2:]
            down = torch.arange(rows, dtype=x.dtype).add(0.5).view(-1, 1).expand(rows, columns)
            across = torch.arange(columns, dtype=x.dtype).add(0.5).expand(rows, columns)
            centres.append(torch.stack([across, down]).flatten(1))
            strides.append(torch.full((1, rows * columns), float(stride), dtype=x.dtype))
        return torch.cat(centres, 1), torch.cat(strides, 1)


class YOLOv8(nn.Module):
    """YOLOv8 without NMS; width 16 and depths (1, 2, 2, 1) is the nano model."""

    def __init__(
        self, width: int = 16, depths: tuple[int, ...] = (1, 2, 2, 1), classes: int = 80
    ) -> None:
        super().__init__()
        w = [width, 2 * width, 4 * width, 8 * width, 16 * width]
        stages: list[nn.Module] = [conv_silu(3, w[0], 3, 2)]
        for i, depth in enumerate(depths):
            down = conv_silu(w[i], w[i + 1], 3, 2)
            stages.append(nn.Sequential(down, C2f(w[i + 1], w[i + 1], depth, residual=True)))
        self.stages = nn.ModuleList(stages)
        self.sppf = SPPF(w[4])
        self.up = nn.Upsample(scale_factor=2, mode="nearest")
        self.middle = C2f(w[4] + w[3], w[3], depths[0], residual=False)
        self.fine = C2f(w[3] + w[2], w[2], depths[0], residual=False)
        self.to_middle = conv_silu(w[2], w[2], 3, 2)
        self.back_middle = C2f(w[2] + w[3], w[3], depths[0], residual=False)
        self.to_coarse = conv_silu(w[3], w[3], 3, 2)
        self.back_coarse = C2f(w[3] + w[4], w[4], depths[0], residual=False)
        self.head = Detect((w[2], w[3], w[4]), classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        seen = []
        for stage in self.stages:
            x = stage(x)
            seen.append(x)
        coarse = self.sppf(x)
        middle = self.middle(torch.cat([self.up(coarse), seen[3]], 1))
        fine = self.fine(torch.cat([self.up(middle), seen[2]], 1))
        middle = self.back_middle(torch.cat([self.to_middle(fine), middle], 1))
        coarse = self.back_coarse(torch.cat([self.to_coarse(middle), coarse], 1))
        return self.head([fine, middle, coarse])


class UNet(nn.Module):
    """Two 3x3 convolutions a level, max pools down, transposed convolutions up, links across."""

    def __init__(self, width: int = 32, levels: int = 4, classes: int = 2) -> None:
        super().__init__()
        widths = [width << i for i in range(levels + 1)]
        pairs = zip([3, *widths[:-1]], widths, strict=True)
        self.down = nn.ModuleList(self.twice(cin, cout) for cin, cout in pairs)
        self.pool = nn.MaxPool2d(2)
        self.raise_ = nn.ModuleList(
            nn.ConvTranspose2d(2 * w, w, 2, 2) for w in reversed(widths[:-1])
        )
        self.up = nn.ModuleList(self.twice(2 * w, w) for w in reversed(widths[:-1]))
        self.head = nn.Conv2d(width, classes, 1)

    @staticmethod
    def twice(cin: int, cout: int) -> nn.Sequential:
        return nn.Sequential(
            conv_bn(cin, cout, 3, act=nn.ReLU()), conv_bn(cout, cout, 3, act=nn.ReLU())
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        links = []
        for down in self.down[:-1]:
            links.append(down(x))
            x = self.pool(links[-1])
        x = self.down[-1](x)
        for raise_, up in zip(self.raise_, self.up, strict=True):
            x = up(torch.cat([links.pop(), raise_(x)], 1))
        return self.head(x)
