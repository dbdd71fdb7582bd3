"""Small nets of torch's own layers for held_out_nets.py, and parts of models of transformers."""

from __future__ import annotations

from itertools import pairwise

import torch
import torch.nn.functional as F
import transformers as hf
from torch import Tensor, nn


class SuperPoint(nn.Module):
    """Scores and descriptors of key points, dense: without the choice, whose number varies."""

    def __init__(self) -> None:
        super().__init__()
        made = hf.SuperPointForKeypointDetection(
            hf.SuperPointConfig(encoder_hidden_sizes=[8, 8, 16, 16], decoder_hidden_size=16,
                                keypoint_decoder_dim=65, descriptor_decoder_dim=16)
        )  # fmt: skip
        self.encoder, self.points = made.encoder, made.keypoint_decoder
        self.descriptors = made.descriptor_decoder

    def forward(self, pixel_values: Tensor) -> tuple[Tensor, Tensor]:
        x = self.encoder(pixel_values)[0]
        return self.points._get_pixel_scores(x), F.normalize(
            self.descriptors.conv_descriptor_b(
                self.descriptors.relu(self.descriptors.conv_descriptor_a(x))
            )
        )


class Encodec(nn.Module):
    """Sound through convolutions and LSTMs to fewer frames, and back."""

    def __init__(self) -> None:
        super().__init__()
        self.model = hf.EncodecModel(
            hf.EncodecConfig(num_filters=4, upsampling_ratios=[4, 2], hidden_size=8,
                             codebook_size=16, codebook_dim=8, num_lstm_layers=1,
                             norm_type="time_group_norm", kernel_size=3, last_kernel_size=3)
        )  # fmt: skip

    def forward(self, waves: Tensor) -> tuple[Tensor, Tensor]:
        code = self.model.encoder(waves)
        return code, self.model.decoder(code)


class Dac(nn.Module):
    """Sound by convolutions with sine activations to vectors of a code book, and back."""

    def __init__(self) -> None:
        super().__init__()
        self.model = hf.DacModel(
            hf.DacConfig(encoder_hidden_size=4, downsampling_ratios=[2, 4],
                         decoder_hidden_size=16, upsampling_ratios=[4, 2], n_codebooks=2,
                         codebook_size=16, codebook_dim=4)
        )  # fmt: skip

    def forward(self, waves: Tensor) -> tuple[Tensor, Tensor]:
        code = self.model.encoder(waves)
        return code, self.model.decoder(code)


class MoonshineEncoder(nn.Module):
    """Speech by three convolutions and rotary attention."""

    def __init__(self) -> None:
        super().__init__()
        self.model = hf.MoonshineModel(
            hf.MoonshineConfig(vocab_size=100, hidden_size=32, intermediate_size=64,
                               encoder_num_hidden_layers=1, decoder_num_hidden_layers=1,
                               encoder_num_attention_heads=4, decoder_num_attention_heads=4,
                               encoder_num_key_value_heads=4, decoder_num_key_value_heads=4)
        ).encoder  # fmt: skip

    def forward(self, waves: Tensor) -> Tensor:
        return self.model(waves).last_hidden_state


class ConvLstm(nn.Module):
    """An LSTM whose products are convolutions, over frames."""

    def __init__(self, cin: int = 2, width: int = 6) -> None:
        super().__init__()
        self.width = width
        self.gates = nn.Conv2d(cin + width, 4 * width, 3, padding=1)
        self.peep = nn.Parameter(torch.randn(3, width, 1, 1))
        self.last = nn.Conv2d(width, 1, 1)

    def forward(self, frames: Tensor) -> tuple[Tensor, Tensor]:
        b, steps, _, height, width = frames.shape
        h = frames.new_zeros(b, self.width, height, width)
        c = torch.zeros_like(h)
        for t in range(steps):
            i, f, o, g = self.gates(torch.cat([frames[:, t], h], 1)).chunk(4, 1)
            c = torch.sigmoid(f + self.peep[0] * c) * c + torch.sigmoid(
                i + self.peep[1] * c
            ) * torch.tanh(g)
            h = torch.sigmoid(o + self.peep[2] * c) * torch.tanh(c)
        return self.last(h), c


class StackedGru(nn.Module):
    """Two bidirectional GRUs, an LSTM of one way with a projection, attention over time."""

    def __init__(self) -> None:
        super().__init__()
        self.gru = nn.GRU(12, 10, 2, batch_first=True, bidirectional=True)
        self.lstm = nn.LSTM(20, 16, batch_first=True)
        self.score, self.out = nn.Linear(16, 1), nn.Linear(16, 5)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        h, last = self.gru(x)
        h, _ = self.lstm(h)
        weight = torch.softmax(self.score(torch.tanh(h)), 1)
        return self.out((weight * h).sum(1)), last


class Block2d(nn.Module):
    def __init__(self, cin: int, cout: int) -> None:
        super().__init__()
        self.norm, self.conv = nn.GroupNorm(2, cin), nn.Conv2d(cin, cout, 3, padding=1)
        self.gate = nn.Conv2d(cout, cout, 1)

    def forward(self, x: Tensor) -> Tensor:
        y = self.conv(F.silu(self.norm(x)))
        return y * torch.sigmoid(self.gate(y.mean((2, 3), keepdim=True)))


class AttentionUNet(nn.Module):
    """A U-Net whose skips are gated, with transposed convolutions of three kinds."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.a, self.b = nn.Conv2d(3, 8, 3, padding=1), Block2d(8, 8), Block2d(8, 16)
        self.down = nn.Conv2d(8, 8, 4, 2, 1)
        self.lower = nn.Conv2d(16, 16, 3, 2, 1)
        self.middle = Block2d(16, 16)
        self.up = nn.ConvTranspose2d(16, 16, 4, 2, 1)
        self.up2 = nn.ConvTranspose2d(32, 8, 3, 2, 1, output_padding=1)
        self.gate, self.theta = nn.Conv2d(16, 8, 1), nn.Conv2d(16, 8, 1, bias=False)
        self.psi, self.last = nn.Conv2d(8, 1, 1), nn.ConvTranspose2d(16, 4, 2, dilation=2)

    def forward(self, image: Tensor) -> Tensor:
        a = self.a(self.first(image))
        b = self.b(self.down(a))
        up = self.up(self.middle(self.lower(b)))
        b = b * torch.sigmoid(self.psi(F.relu(self.gate(up) + self.theta(b))))
        return self.last(torch.cat([a, self.up2(torch.cat([up, b], 1))], 1))


class VolumeNet(nn.Module):
    """A V-Net: volumes down and up by strides, and pools of two kinds."""

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Conv3d(1, 4, (3, 1, 5), padding=(1, 0, 2))
        self.b = nn.Conv3d(4, 8, 2, 2)
        self.c = nn.Conv3d(8, 8, 3, padding=2, dilation=2, groups=4)
        self.norm, self.act = nn.InstanceNorm3d(8, affine=True), nn.PReLU(8)
        self.up = nn.ConvTranspose3d(8, 4, 2, 2)
        self.last = nn.Conv3d(8, 3, 1)

    def forward(self, volume: Tensor) -> tuple[Tensor, Tensor]:
        a = self.a(volume)
        x = self.act(self.norm(self.c(self.b(a))))
        pooled = F.max_pool3d(x, 3, 2, 1) + F.adaptive_avg_pool3d(x, 1)
        return torch.softmax(self.last(torch.cat([a, self.up(x)], 1)), 1), pooled


class TemporalConvs(nn.Module):
    """Causal dilated convolutions with weight norm, each with a shortcut; a transposed one last."""

    def __init__(self) -> None:
        super().__init__()
        wide = [6, 12, 12, 10]
        self.convs = nn.ModuleList(
            nn.utils.parametrizations.weight_norm(nn.Conv1d(a, b, 3, dilation=2**n))
            for n, (a, b) in enumerate(pairwise(wide))
        )
        self.short = nn.ModuleList(nn.Conv1d(a, b, 1) for a, b in pairwise(wide))
        self.up = nn.ConvTranspose1d(10, 4, 5, 3, 1)

    def forward(self, x: Tensor) -> Tensor:
        for n, (conv, short) in enumerate(zip(self.convs, self.short, strict=True)):
            x = F.gelu(conv(F.pad(x, (2 * 2**n, 0)))) + short(x)
        return self.up(x)


class DepthwiseNet(nn.Module):
    """Depthwise convolutions of large kernels, channel shuffles, norms over groups."""

    def __init__(self, width: int = 12) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, width, 4, 4)
        self.large = nn.Conv2d(width, width, 7, padding=3, groups=width)
        self.wide = nn.Conv2d(width, width, (1, 11), padding=(0, 5), groups=width)
        self.tall = nn.Conv2d(width, 2 * width, (11, 1), padding=(5, 0), groups=width)
        self.norm = nn.GroupNorm(3, 2 * width)
        self.mixed = nn.Conv2d(2 * width, width, 1, groups=3)
        self.head = nn.Linear(width, 7)

    def forward(self, image: Tensor) -> Tensor:
        x = self.stem(image)
        x = x + F.hardswish(self.large(x))
        y = self.norm(self.tall(self.wide(x)))
        b, c, height, width = y.shape
        y = y.reshape(b, 3, c // 3, height, width).transpose(1, 2).reshape(b, c, height, width)
        x = x + self.mixed(F.mish(y))
        return self.head(F.lp_pool2d(x, 2.0, 6).flatten(1))


class GraphSage(nn.Module):
    """Messages along edges, summed, the largest of them, and normed by degree."""

    def __init__(self) -> None:
        super().__init__()
        self.own, self.mean, self.most = nn.Linear(8, 16), nn.Linear(8, 16), nn.Linear(8, 16)
        self.last = nn.Linear(16, 3)

    def forward(self, nodes: Tensor, edges: Tensor) -> Tensor:
        source, target = edges[0], edges[1]
        sent = nodes[source]
        degree = torch.zeros_like(nodes[:, 0]).scatter_add(0, target, torch.ones_like(sent[:, 0]))
        total = torch.zeros_like(nodes).index_add(0, target, sent)
        most = torch.full_like(nodes, -4.0).scatter_reduce(
            0, target[:, None].expand_as(sent), sent, "amax"
        )
        mean = total / degree.clamp(min=1)[:, None]
        x = F.relu(self.own(nodes) + self.mean(mean) + self.most(most))
        return F.log_softmax(self.last(F.normalize(x, dim=-1)), -1)


class PointNet(nn.Module):
    """Points by shared layers; neighbours by distance; a turn that is computed."""

    def __init__(self) -> None:
        super().__init__()
        self.turn, self.a, self.b = nn.Linear(12, 9), nn.Linear(3, 12), nn.Linear(6, 16)
        self.last = nn.Linear(16, 4)

    def forward(self, points: Tensor) -> tuple[Tensor, Tensor]:
        turn = self.turn(F.relu(self.a(points)).amax(1)).reshape(-1, 3, 3)
        x = points @ (turn + torch.eye(3))
        distance = torch.cdist(x, x, compute_mode="donot_use_mm_for_euclid_dist")
        near = distance.topk(4, largest=False).indices
        b, n, k = near.shape
        beside = torch.gather(x, 1, near.reshape(b, n * k, 1).expand(-1, -1, 3)).reshape(b, n, k, 3)
        edge = torch.cat([beside - x[:, :, None], x[:, :, None].expand_as(beside)], -1)
        return self.last(F.leaky_relu(self.b(edge), 0.2).amax(2)), distance.amin((1, 2))


class PixelCnn(nn.Module):
    """Masked convolutions with gates of two halves."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(1, 16, 5, padding=2)
        self.second, self.last = nn.Conv2d(8, 16, 3, padding=1), nn.Conv2d(8, 9, 1)
        self.register_buffer("before", torch.ones(5, 5).reshape(-1).cumsum(0).le(12).reshape(5, 5))
        self.register_buffer("upto", torch.ones(3, 3).reshape(-1).cumsum(0).le(5).reshape(3, 3))

    def forward(self, image: Tensor) -> Tensor:
        x = F.conv2d(image, self.first.weight * self.before, self.first.bias, padding=2)
        x = F.glu(x, 1)
        x = x + F.glu(F.conv2d(x, self.second.weight * self.upto, self.second.bias, padding=1), 1)
        return F.log_softmax(self.last(F.elu(x)), 1)


class NeuralField(nn.Module):
    """Sines of frequencies, layers of sines, and light gathered along a ray."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("frequencies", 2.0 ** torch.arange(5))
        self.a, self.b, self.last = nn.Linear(33, 24), nn.Linear(57, 24), nn.Linear(24, 4)

    def forward(self, at: Tensor) -> tuple[Tensor, Tensor]:
        turned = (at[..., None] * self.frequencies).flatten(-2)
        code = torch.cat([at, turned.sin(), turned.cos()], -1)
        x = torch.sin(3 * self.a(code))
        colour, density = self.last(torch.sin(self.b(torch.cat([x, code], -1)))).split([3, 1], -1)
        kept = torch.exp(-F.softplus(density).cumsum(1))
        before = torch.cat([torch.ones_like(kept[:, :1]), kept[:, :-1]], 1)
        weight = before - kept
        return (weight * colour.sigmoid()).sum(1), weight.squeeze(-1)


class CouplingFlow(nn.Module):
    """A flow of affine couplings and a solved triangular mix, with its log-determinant."""

    def __init__(self) -> None:
        super().__init__()
        self.nets = nn.ModuleList(
            nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 8)) for _ in range(3)
        )
        self.mix = nn.Parameter(torch.randn(8, 8) * 0.3)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        total = torch.zeros_like(x[:, 0])
        for net in self.nets:
            a, b = x[:, ::2], x[:, 1::2]
            scale, shift = net(a).chunk(2, -1)
            scale = torch.tanh(scale)
            x = torch.stack([a, b * scale.exp() + shift], -1).flatten(1).flip(1)
            total = total + scale.sum(-1)
            x = x @ (torch.tril(self.mix, -1) + torch.eye(8)).T
        return x, total - 0.5 * x.pow(2).sum(-1)


class Capsules(nn.Module):
    """Capsules whose votes are routed by agreement in three rounds."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 8, 5, 2)
        self.capsules = nn.Conv2d(8, 12, 3, 2)
        self.votes = nn.Parameter(torch.randn(1, 12, 5, 8, 4) * 0.3)

    @staticmethod
    def squashed(x: Tensor) -> Tensor:
        norm = x.pow(2).sum(-1, keepdim=True)
        return norm / (1 + norm) * x / (norm + 1e-6).sqrt()

    def forward(self, image: Tensor) -> Tensor:
        x = self.capsules(F.relu(self.conv(image)))
        x = self.squashed(x.reshape(x.shape[0], 12, -1)[..., :4])
        votes = torch.einsum("bid,ijed->bije", x, self.votes[0].expand(12, 5, 8, 4))
        logits = torch.zeros_like(votes[..., 0])
        for _ in range(3):
            out = self.squashed((torch.softmax(logits, 2)[..., None] * votes).sum(1))
            logits = logits + (votes * out[:, None]).sum(-1)
        return out.norm(dim=-1)


class HyperConv(nn.Module):
    """Convolutions whose kernels are computed from the image."""

    def __init__(self) -> None:
        super().__init__()
        self.encode = nn.Conv2d(3, 6, 3, 2, 1)
        self.kernels, self.shift = nn.Linear(6, 4 * 6 * 9), nn.Linear(6, 4)

    def forward(self, image: Tensor) -> Tensor:
        x = F.relu(self.encode(image))
        code = x.mean((2, 3))
        kernel = self.kernels(code).reshape(4, 6, 3, 3)
        y = F.conv2d(x, kernel / kernel.norm(), self.shift(code)[0], padding=1)
        return F.pixel_shuffle(y, 2)


class SlotAttention(nn.Module):
    """Slots compete for features, and are updated by a GRU's cell."""

    def __init__(self) -> None:
        super().__init__()
        self.slots = nn.Parameter(torch.randn(1, 3, 16))
        self.keys, self.values = nn.Linear(16, 16, bias=False), nn.Linear(16, 16, bias=False)
        self.queries, self.norm, self.cell = nn.Linear(16, 16), nn.LayerNorm(16), nn.GRUCell(16, 16)

    def forward(self, features: Tensor) -> tuple[Tensor, Tensor]:
        x = self.norm(features)
        k, v = self.keys(x), self.values(x)
        slots = self.slots.expand(x.shape[0], -1, -1)
        share = k
        for _ in range(2):
            q = self.queries(self.norm(slots))
            share = torch.softmax(torch.einsum("bnd,bsd->bns", k, q) / 4, -1) + 1e-6
            update = torch.einsum("bns,bnd->bsd", share / share.sum(1, keepdim=True), v)
            slots = self.cell(update.flatten(0, 1), slots.flatten(0, 1)).reshape(slots.shape)
        return slots, share


class VectorQuantiser(nn.Module):
    """An encoder whose features are the nearest of a code book, and a decoder."""

    def __init__(self) -> None:
        super().__init__()
        self.encode = nn.Sequential(nn.Conv2d(3, 8, 4, 2, 1), nn.ReLU(), nn.Conv2d(8, 6, 3, 1, 1))
        self.book = nn.Parameter(torch.randn(11, 6))
        self.decode = nn.Sequential(
            nn.Conv2d(6, 8, 3, padding=1, padding_mode="reflect"), nn.SELU(),
            nn.Upsample(scale_factor=2, mode="bilinear"), nn.Conv2d(8, 3, 5, padding=2),
        )  # fmt: skip

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor]:
        x = self.encode(image).permute(0, 2, 3, 1)
        distance = x.pow(2).sum(-1, keepdim=True) - 2 * x @ self.book.T + self.book.pow(2).sum(-1)
        code = distance.argmin(-1)
        return self.decode(F.embedding(code, self.book).permute(0, 3, 1, 2)), code


class KeyPoints(nn.Module):
    """Heat maps, where their mass lies, and the image read there, between its pixels."""

    def __init__(self) -> None:
        super().__init__()
        self.heat = nn.Sequential(nn.Conv2d(3, 8, 3, 1, 1), nn.BatchNorm2d(8), nn.ReLU6(),
                                  nn.Conv2d(8, 5, 1))  # fmt: skip
        self.register_buffer("line", torch.linspace(-1, 1, 16))

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor]:
        heat = torch.softmax(self.heat(image).flatten(2), -1).reshape(-1, 5, 16, 16)
        at = torch.stack([(heat.sum(2) * self.line).sum(-1), (heat.sum(3) * self.line).sum(-1)], -1)
        read = F.grid_sample(image, at[:, :, None], align_corners=False)
        return at, read.squeeze(-1)
