"""Weights of 4 and 8 bits, with a scale and a zero point for each block of a row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

BLOCK = 32  # columns per scale, as in .gguf's Q4_0, Q4_1 and Q8_0


@dataclass(frozen=True)
class BlockWeights:
    """A matrix of a linear layer: weight = (code - zero) * scale, in the form of MatMulNBits.

    codes: u8 {rows, blocks, block * bits / 8}, the first of two 4-bit codes in the low half.
    scales: f32 {rows, blocks}. zeros: f32 {rows, blocks}; None is half of the codes.
    """

    codes: NDArray[np.uint8]
    scales: NDArray[np.float32]
    zeros: NDArray[np.float32] | None
    columns: int
    bits: Literal[4, 8]
    block: int = BLOCK
    order: NDArray[np.int64] | None = None  # input of each column; None: columns are in order

    @property
    def rows(self) -> int:
        """Return the number of the layer's outputs."""
        return self.codes.shape[0]

    def floats(self) -> NDArray[np.float32]:
        """Return the weights {rows, columns}."""
        codes = self.codes
        if self.bits == 4:
            codes = np.stack([codes & 15, codes >> 4], -1)
        codes = codes.reshape(self.rows, -1, self.block).astype(np.float32)
        zeros = np.float32(1 << (self.bits - 1)) if self.zeros is None else self.zeros[..., None]
        wide = (codes - zeros) * self.scales[..., None]
        wide = wide.reshape(self.rows, -1)[:, : self.columns]
        return wide if self.order is None else wide[:, np.argsort(self.order)]


def rounded(weights: NDArray[np.float32], bits: Literal[4, 8], block: int = BLOCK) -> BlockWeights:
    """Round weights {rows, columns} to codes around each block's own scale.

    8 bits are symmetric. 4 bits span the block from its least to its largest weight, 0 between
    them; zero points are whole codes, so that 0 stays 0.
    """
    rows, columns = weights.shape
    short = -columns % block
    cut = np.pad(weights, ((0, 0), (0, short))).reshape(rows, -1, block)
    zeros = None
    if bits == 8:
        scales = np.abs(cut).max(-1) / 127
        inverse = _inverse(scales)
        codes = np.rint(cut * inverse[..., None]) + 128
    else:
        low, high = np.minimum(cut.min(-1), 0), np.maximum(cut.max(-1), 0)
        scales = (high - low) / 15
        inverse = _inverse(scales)
        zeros = np.rint(-low * inverse).astype(np.float32)
        codes = np.rint(cut * inverse[..., None]) + zeros[..., None]
    whole = np.clip(codes, 0, 2**bits - 1).astype(np.uint8)
    if bits == 4:
        whole = packed(whole)
    return BlockWeights(whole, scales.astype(np.float32), zeros, columns, bits, block)


def packed(codes: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return 4-bit codes two to a byte, the first in the low half."""
    return (codes[..., 0::2] | (codes[..., 1::2] << 4)).astype(np.uint8)


def _inverse(scales: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.divide(1, scales, out=np.zeros_like(scales), where=scales > 0)
