"""One block of each model family, in the forms that exporters write, at the widths of real models.

Each function returns a case without values: the oracle is onnxruntime. Weights and inputs are drawn
at a scale that keeps activations near 1, as trained and normalised nets do.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from onnx import TensorProto

from tests.emulator.models import Case, Graph

LARGEST = {np.float32: -3.4028235e38, np.float16: -65504.0}  # added by masks; bf16: f32's


class Block(Graph):
    """Pieces that several families share."""

    def dense(self, x: str, into: int, out: int, bias: bool = True) -> str:
        y = self.op("MatMul", x, self.weight(into, out, scale=1 / math.sqrt(into)))
        return self.op("Add", y, self.weight(out, scale=0.1)) if bias else y

    def gemm(self, x: str, rows: int, into: int, out: int) -> str:
        """GPT-2's Conv1D: flattened, Gemm, and back."""
        flat = self.op("Reshape", x, self.ints(-1, into))
        w = self.weight(into, out, scale=1 / math.sqrt(into))
        y = self.op("Gemm", flat, w, self.weight(out, scale=0.1))
        return self.op("Reshape", y, self.ints(1, rows, out))

    def scales(self, width: int) -> str:
        return self.weight(array=self.rng.uniform(0.5, 1.5, width).astype(self.np))

    def norm(self, x: str, width: int) -> str:
        s, b = self.scales(width), self.weight(width, scale=0.1)
        return self.op("LayerNormalization", x, s, b, axis=-1, epsilon=1e-5)

    def rms_norm(self, x: str, width: int) -> str:
        """Computed in f32 and rounded, as Llama's exports do."""
        x = self.op("Cast", x, to=TensorProto.FLOAT)
        two, tiny = (self.weight(array=np.asarray(v, np.float32)) for v in (2.0, 1e-6))
        mean = self.op("ReduceMean", self.op("Pow", x, two), axes=[-1], keepdims=1)
        root = self.op("Sqrt", self.op("Add", mean, tiny))
        y = self.op("Cast", self.op("Mul", x, self.op("Reciprocal", root)), to=self.kind)
        return self.op("Mul", self.scales(width), y)

    def gelu(self, x: str) -> str:
        erf = self.op("Erf", self.op("Div", x, self.number(math.sqrt(2))))
        y = self.op("Mul", x, self.op("Add", erf, self.number(1)))
        return self.op("Mul", y, self.number(0.5))

    def tanh_gelu(self, x: str) -> str:
        """GPT-2's NewGELU."""
        cube = self.op("Mul", self.op("Pow", x, self.number(3)), self.number(0.044715))
        inner = self.op("Mul", self.op("Add", x, cube), self.number(math.sqrt(2 / math.pi)))
        y = self.op("Add", self.op("Tanh", inner), self.number(1))
        return self.op("Mul", self.op("Mul", x, self.number(0.5)), y)

    def silu(self, x: str) -> str:
        return self.op("Mul", x, self.op("Sigmoid", x))

    def heads(self, x: str, rows: int, heads: int, size: int, columns: bool = False) -> str:
        y = self.op("Reshape", x, self.ints(1, rows, heads, size))
        return self.op("Transpose", y, perm=[0, 2, 3, 1] if columns else [0, 2, 1, 3])

    def attend(
        self, q: str, k: str, v: str, rows: int, width: int, size: int, mask: str = ""
    ) -> str:
        """softmax(q k / sqrt(size) + mask) v, with its heads side by side again."""
        s = self.op("Mul", self.op("MatMul", q, k), self.number(1 / math.sqrt(size)))
        p = self.op("Softmax", self.op("Add", s, mask) if mask else s, axis=-1)
        y = self.op("Transpose", self.op("MatMul", p, v), perm=[0, 2, 1, 3])
        return self.op("Reshape", y, self.ints(1, rows, width))

    def causal(self, rows: int) -> str:
        seen = np.tril(np.ones((1, 1, rows, rows), bool))
        low = LARGEST.get(self.np, -3.3895314e38)
        return self.weight(array=np.where(seen, 0, low).astype(self.np))

    def conv(
        self, x: str, into: int, out: int, size: int, stride: int = 1, dims: int = 2,
        gain: float = 1.0,
    ) -> str:  # fmt: skip
        scale = gain * math.sqrt(1 / (into * size**dims))
        w = self.weight(out, into, *[size] * dims, scale=scale)
        return self.op(
            "Conv", x, w, self.weight(out, scale=0.1), kernel_shape=[size] * dims,
            pads=[size // 2] * 2 * dims, strides=[stride] * dims,
        )  # fmt: skip


def resnet(dtype: str, seed: int, side: int = 56, into: int = 256) -> Case:
    """ResNet-50's first block of its second stage, batch norms folded: 56x56x256 to 28x28x512."""
    g = Block(seed, dtype)
    width, out = into // 2, into * 2
    x = g.op("Relu", g.input("x", 1, into, side, side))
    y = g.op("Relu", g.conv(x, into, width, 1))
    y = g.op("Relu", g.conv(y, width, width, 3, 2))
    y = g.op("Add", g.conv(y, width, out, 1), g.conv(x, into, out, 1, 2))
    return g.case(g.op("Relu", y), 1, out, side // 2, side // 2)


def encoder_layer(g: Block, x: str, rows: int, width: int, heads: int, mask: str = "") -> str:
    """BERT's layer: norms behind the residuals."""
    size = width // heads
    q, k, v = (g.dense(x, width, width) for _ in range(3))
    q, v = g.heads(q, rows, heads, size), g.heads(v, rows, heads, size)
    y = g.attend(q, g.heads(k, rows, heads, size, True), v, rows, width, size, mask)
    x = g.norm(g.op("Add", g.dense(y, width, width), x), width)
    y = g.dense(g.gelu(g.dense(x, width, 4 * width)), 4 * width, width)
    return g.norm(g.op("Add", y, x), width)


def padding_mask(g: Block, rows: int) -> str:
    """An input of ones with zeros at the end, to what scores are added."""
    seen = (np.arange(rows) < rows - 3).astype(np.int64)[None]
    mask = g.op("Unsqueeze", g.given("attention_mask", seen), g.ints(1, 2))
    mask = g.op("Sub", g.number(1), g.op("Cast", mask, to=g.kind))
    return g.op("Mul", mask, g.number(-10000))


def bert(dtype: str, seed: int, rows: int = 128, width: int = 768, heads: int = 12) -> Case:
    """A layer of BERT-base, with padding at the end of the sequence."""
    g = Block(seed, dtype)
    x = g.input("hidden", 1, rows, width)
    y = encoder_layer(g, x, rows, width, heads, padding_mask(g, rows))
    return g.case(y, 1, rows, width)


def decoder_layer(g: Block, x: str, rows: int, width: int, heads: int) -> str:
    """GPT-2's layer: norms ahead, one product for q, k and v, a causal mask."""
    size = width // heads
    y = g.gemm(g.norm(x, width), rows, width, 3 * width)
    q, k, v = g.several("Split", 3, y, g.ints(width, width, width), axis=2)
    q, v = g.heads(q, rows, heads, size), g.heads(v, rows, heads, size)
    k = g.heads(k, rows, heads, size, True)
    y = g.attend(q, k, v, rows, width, size, g.causal(rows))
    x = g.op("Add", g.gemm(y, rows, width, width), x)
    y = g.tanh_gelu(g.gemm(g.norm(x, width), rows, width, 4 * width))
    return g.op("Add", x, g.gemm(y, rows, 4 * width, width))


def gpt2(dtype: str, seed: int, rows: int = 64, width: int = 768, heads: int = 12) -> Case:
    """A layer of GPT-2."""
    g = Block(seed, dtype)
    y = decoder_layer(g, g.input("hidden", 1, rows, width), rows, width, heads)
    return g.case(y, 1, rows, width)


def llama(
    dtype: str, seed: int, rows: int, past: int, width: int, heads: int, groups: int, inner: int
) -> Case:
    """Llama's layer behind `past` tokens: RMSNorm, rotary positions, shared keys, SwiGLU."""
    g = Block(seed, dtype)
    size = width // heads
    x = g.input("hidden", 1, rows, width)
    where = g.given("position_ids", np.arange(past, past + rows)[None].astype(np.int64))
    steps = (10000.0 ** -(np.arange(0, size, 2) / size)).astype(np.float32)
    angle = g.op("Cast", g.op("Unsqueeze", where, g.ints(2)), to=TensorProto.FLOAT)
    angle = g.op("Mul", angle, g.weight(array=steps[None, None]))
    angle = g.op("Unsqueeze", g.op("Concat", angle, angle, axis=-1), g.ints(1))
    cos, sin = (g.op("Cast", g.op(f, angle), to=g.kind) for f in ("Cos", "Sin"))

    def rope(x: str) -> str:
        low = g.op("Slice", x, g.ints(0), g.ints(size // 2), g.ints(3), g.ints(1))
        high = g.op("Slice", x, g.ints(size // 2), g.ints(2**63 - 1), g.ints(3), g.ints(1))
        turned = g.op("Concat", g.op("Neg", high), low, axis=-1)
        return g.op("Add", g.op("Mul", x, cos), g.op("Mul", turned, sin))

    def repeated(x: str) -> str:
        each = heads // groups
        y = g.op("Expand", g.op("Unsqueeze", x, g.ints(2)), g.ints(1, groups, each, total, size))
        return g.op("Reshape", y, g.ints(1, heads, total, size))

    total = past + rows
    y = g.rms_norm(x, width)
    q = rope(g.heads(g.dense(y, width, width, False), rows, heads, size))
    k = rope(g.heads(g.dense(y, width, groups * size, False), rows, groups, size))
    v = g.heads(g.dense(y, width, groups * size, False), rows, groups, size)
    if past:
        k = g.op("Concat", g.input("past_key", 1, groups, past, size), k, axis=2)
        v = g.op("Concat", g.input("past_value", 1, groups, past, size), v, axis=2)
    across = g.op("Transpose", repeated(k), perm=[0, 1, 3, 2])
    mask = g.causal(rows) if not past else ""
    y = g.attend(q, across, repeated(v), rows, width, size, mask)
    x = g.op("Add", x, g.dense(y, width, width, False))
    y = g.rms_norm(x, width)
    gate = g.silu(g.dense(y, width, inner, False))
    y = g.dense(g.op("Mul", gate, g.dense(y, width, inner, False)), inner, width, False)
    g.output(g.op("Add", x, y), 1, rows, width)
    g.output(k, 1, groups, total, size)
    return g.case(v, 1, groups, total, size)


def llama_prefill(dtype: str, seed: int, rows: int = 64, width: int = 768) -> Case:
    """64 tokens at once, 12 heads over 4 pairs of keys and values."""
    return llama(dtype, seed, rows, 0, width, width // 64, width // 192, width * 8 // 3)


def llama_decode(dtype: str, seed: int, past: int = 127, width: int = 1024) -> Case:
    """One token behind 127, 16 heads over 4 pairs of keys and values, TinyLlama's SwiGLU ratio."""
    return llama(dtype, seed, 1, past, width, width // 64, 4, width * 11 // 4)


def vit(dtype: str, seed: int, side: int = 128, width: int = 768, heads: int = 12) -> Case:
    """ViT's patches of 16x16, class token and positions, and its layer: 65 rows."""
    g = Block(seed, dtype)
    patches = (side // 16) ** 2
    image = g.input("image", 1, 3, side, side)
    w, b = g.weight(width, 3, 16, 16, scale=1 / math.sqrt(768)), g.weight(width, scale=0.1)
    x = g.op("Conv", image, w, b, kernel_shape=[16, 16], strides=[16, 16])
    x = g.op("Transpose", g.op("Reshape", x, g.ints(1, width, patches)), perm=[0, 2, 1])
    x = g.op("Concat", g.weight(1, 1, width), x, axis=1)
    rows, size = patches + 1, width // heads
    x = g.op("Add", x, g.weight(1, rows, width, scale=0.3))
    y = g.norm(x, width)
    q, k, v = (g.dense(y, width, width) for _ in range(3))
    q, v = g.heads(q, rows, heads, size), g.heads(v, rows, heads, size)
    y = g.attend(q, g.heads(k, rows, heads, size, True), v, rows, width, size)
    x = g.op("Add", g.dense(y, width, width), x)
    y = g.dense(g.gelu(g.dense(g.norm(x, width), width, 4 * width)), 4 * width, width)
    return g.case(g.op("Add", y, x), 1, rows, width)


def group_norm(g: Block, x: str, channels: int, side: int) -> str:
    """GroupNorm of 32 groups, by InstanceNormalization as exporters write it."""
    flat = g.op("Reshape", x, g.ints(1, 32, -1))
    one, zero = g.weight(array=np.ones(32, g.np)), g.weight(array=np.zeros(32, g.np))
    y = g.op("InstanceNormalization", flat, one, zero, epsilon=1e-5)
    y = g.op("Reshape", y, g.ints(1, channels, side, side))
    s = g.weight(array=g.rng.uniform(0.5, 1.5, (channels, 1, 1)).astype(g.np))
    return g.op("Add", g.op("Mul", y, s), g.weight(channels, 1, 1, scale=0.1))


def unet(dtype: str, seed: int, side: int = 16, width: int = 320, context: int = 77) -> Case:
    """Stable Diffusion's up block: a skip beside the input, a residual block with the step's
    embedding, cross attention to a text, a gated network; then twice and half the size."""
    g = Block(seed, dtype)
    heads, rows = 8, side * side
    size = width // heads
    x, skip = g.input("x", 1, width, side, side), g.input("skip", 1, width, side, side)
    step, text = g.input("step", 1, 4 * width), g.input("text", 1, context, 768)
    x = g.op("Concat", x, skip, axis=1)
    y = g.conv(g.silu(group_norm(g, x, 2 * width, side)), 2 * width, width, 3)
    e = g.op("Unsqueeze", g.dense(g.silu(step), 4 * width, width), g.ints(2, 3))
    y = group_norm(g, g.op("Add", y, e), width, side)
    x = g.op("Add", g.conv(x, 2 * width, width, 1), g.conv(g.silu(y), width, width, 3))
    y = g.conv(group_norm(g, x, width, side), width, width, 1)
    y = g.op("Reshape", g.op("Transpose", y, perm=[0, 2, 3, 1]), g.ints(1, rows, width))
    n = g.norm(y, width)
    q = g.heads(g.dense(n, width, width, False), rows, heads, size)
    k = g.heads(g.dense(text, 768, width, False), context, heads, size, True)
    v = g.heads(g.dense(text, 768, width, False), context, heads, size)
    y = g.op("Add", g.dense(g.attend(q, k, v, rows, width, size), width, width), y)
    both = g.dense(g.norm(y, width), width, 8 * width)
    value, gate = g.several("Split", 2, both, g.ints(4 * width, 4 * width), axis=2)
    y = g.op("Add", g.dense(g.op("Mul", value, g.gelu(gate)), 4 * width, width), y)
    y = g.op("Transpose", g.op("Reshape", y, g.ints(1, side, side, width)), perm=[0, 3, 1, 2])
    x = g.op("Add", g.conv(y, width, width, 1), x)
    twice = g.weight(array=np.asarray([1, 1, 2, 2], np.float32))
    up = g.op(
        "Resize", x, "", twice, mode="nearest", nearest_mode="floor",
        coordinate_transformation_mode="asymmetric",
    )  # fmt: skip
    g.output(g.conv(up, width, width, 3), 1, width, 2 * side, 2 * side)
    return g.case(g.conv(x, width, width, 3, 2), 1, width, side // 2, side // 2)


def whisper_encoder(dtype: str, seed: int, frames: int = 256, width: int = 384) -> Case:
    """Whisper tiny: two convolutions over 80 mel bands, positions, a layer."""
    g = Block(seed, dtype)
    rows, heads = frames // 2, width // 64
    x = g.gelu(g.conv(g.input("mel", 1, 80, frames), 80, width, 3, dims=1))
    x = g.gelu(g.conv(x, width, width, 3, 2, dims=1))
    x = g.op("Add", g.op("Transpose", x, perm=[0, 2, 1]), g.weight(rows, width, scale=0.3))
    n = g.norm(x, width)
    q, v = g.dense(n, width, width), g.dense(n, width, width)
    k = g.heads(g.dense(n, width, width, False), rows, heads, 64, True)
    y = g.attend(g.heads(q, rows, heads, 64), k, g.heads(v, rows, heads, 64), rows, width, 64)
    x = g.op("Add", x, g.dense(y, width, width))
    y = g.dense(g.gelu(g.dense(g.norm(x, width), width, 4 * width)), 4 * width, width)
    return g.case(g.norm(g.op("Add", x, y), width), 1, rows, width)


def whisper_decoder(
    dtype: str, seed: int, rows: int = 16, heard: int = 100, width: int = 384
) -> Case:
    """Whisper tiny: causal attention of 16 tokens, cross attention to what was heard."""
    g = Block(seed, dtype)
    heads = width // 64
    x, states = g.input("hidden", 1, rows, width), g.input("states", 1, heard, width)

    def attention(x: str, other: str, keys: int, mask: str = "") -> str:
        q = g.heads(g.dense(x, width, width), rows, heads, 64)
        k = g.heads(g.dense(other, width, width, False), keys, heads, 64, True)
        v = g.heads(g.dense(other, width, width), keys, heads, 64)
        return g.dense(g.attend(q, k, v, rows, width, 64, mask), width, width)

    n = g.norm(x, width)
    x = g.op("Add", x, attention(n, n, rows, g.causal(rows)))
    x = g.op("Add", x, attention(g.norm(x, width), states, heard))
    y = g.dense(g.gelu(g.dense(g.norm(x, width), width, 4 * width)), 4 * width, width)
    return g.case(g.op("Add", x, y), 1, rows, width)


BLOCKS: dict[str, Callable[[str, int], Case]] = {
    f.__name__: f
    for f in (
        resnet, bert, gpt2, llama_prefill, llama_decode, vit, unet, whisper_encoder,
        whisper_decoder,
    )
}  # fmt: skip
