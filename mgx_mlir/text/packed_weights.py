"""Linear layers of GPTQ, AWQ and compressed-tensors folders: codes of 4 and 8 bits, by groups.

A weight is (code - zero) * scale, with a scale and a zero point for each group of inputs. Codes lie
in words of 32 bits. Forms: `pack` of AutoGPTQ's qlinear_cuda_old.py, of AutoAWQ's gemm.py, and of
compressed-tensors' pack_quantized.
"""

# pyright: reportMissingImports=false
from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mgx_mlir.core.errors import FileError, UnsupportedModel
from mgx_mlir.text.blocks import BlockWeights, packed

Tensors = Mapping[str, NDArray[Any]]
_BLOCK = 128  # most columns of a block; larger groups are several blocks of one scale
_LEAST = 16  # fewest columns of a block: MatMulNBits has no smaller ones
_AWQ_ORDER = (0, 2, 4, 6, 1, 3, 5, 7)  # columns of a word's codes, the lowest first
_SUFFIXES = {
    "gptq": ("qweight", "qzeros", "scales", "g_idx"),
    "awq": ("qweight", "qzeros", "scales"),
    "compressed-tensors": ("weight_packed", "weight_scale", "weight_zero_point", "weight_g_idx",
                           "weight_shape"),
}  # fmt: skip
METHODS = tuple(_SUFFIXES)


@dataclass(frozen=True)
class Packing:
    """Form of a folder's codes. group: inputs of a scale; None: all of a row."""

    method: str
    bits: Literal[4, 8]
    group: int | None
    plus_one: bool = False  # stored zero points are 1 less (GPTQ's first form)

    @property
    def suffixes(self) -> tuple[str, ...]:
        """Return the last parts of the names of a layer's tensors."""
        return _SUFFIXES[self.method]


def packing_of(config: object, place: str) -> Packing:
    """Return the form that `quantization_config` states.

    place: file, for errors. Raises UnsupportedModel for another method or form.
    """

    def refused(what: str, *notes: str) -> UnsupportedModel:
        return UnsupportedModel(f"the weights are quantised by {what}", location=place,
                                notes=list(notes))  # fmt: skip

    if not isinstance(config, Mapping):
        raise FileError(f"quantization_config expected an object, got {config!r:.80}",
                        location=place)  # fmt: skip
    method = config.get("quant_method")
    if method not in _SUFFIXES:
        notes = ["AMD Quark writes AWQ's form with --custom_mode awq"] if method == "quark" else []
        raise refused(f"{method!r:.80}, read are {', '.join(METHODS)}", *notes,
                      "or use the model with float weights, which `weights` rounds")  # fmt: skip
    stated = _of_groups(config, refused) if method == "compressed-tensors" else config
    bits = stated.get("bits", stated.get("w_bit", 4))
    if bits not in (4, 8) or (bits == 8 and method == "awq"):
        raise refused(f"{method} to {bits!r:.80} bits, read are 4 bits (and 8, except AWQ's)")
    form = stated.get("version", "gemm")
    if method == "awq" and str(form).lower() != "gemm":
        raise refused(f"AWQ in the form {form!r:.80}, read is 'gemm'")
    group = stated.get("group_size", stated.get("q_group_size", 128))
    if isinstance(group, bool) or not isinstance(group, int) or group == 0 or group < -1:
        raise FileError(f"group_size expected a number of columns, or -1, got {group!r:.80}",
                        location=place)  # fmt: skip
    first = method == "gptq" and stated.get("checkpoint_format", "gptq") != "gptq_v2"
    return Packing(str(method), bits, None if group == -1 else group, first)


def _of_groups(
    config: Mapping[str, Any], refused: Callable[..., UnsupportedModel]
) -> Mapping[str, Any]:
    """Return bits and group size of compressed-tensors, which has them by groups of layers."""
    form, groups = config.get("format"), config.get("config_groups")
    if form != "pack-quantized" or not isinstance(groups, Mapping) or len(groups) != 1:
        raise refused(f"compressed-tensors in the form {form!r:.80}, read is one group of layers "
                      "in the form 'pack-quantized'")  # fmt: skip
    [group] = groups.values()
    own = group.get("weights") if isinstance(group, Mapping) else None
    if not isinstance(own, Mapping) or group.get("input_activations"):
        raise refused("compressed-tensors with activations, read are weights alone")
    kind, strategy = own.get("type"), own.get("strategy")
    if kind != "int" or strategy not in ("group", "channel"):
        raise refused(f"compressed-tensors as {kind!r:.40} by {strategy!r:.40}, read are int by "
                      "group or channel")  # fmt: skip
    size = own.get("group_size") if strategy == "group" else -1
    return {"bits": own.get("num_bits"), "group_size": size}


def layers_of(names: Mapping[str, Any] | set[str], packing: Packing) -> set[str]:
    """Return the names of layers whose codes are among the tensors of these names."""
    end = f".{packing.suffixes[0]}"
    return {name.removesuffix(end) for name in names if name.endswith(end)}


def block_weights(tensors: Tensors, packing: Packing, dims: tuple[int, int]) -> BlockWeights:
    """Return a layer's weights {outputs, inputs}, equal to those of its codes.

    tensors: by the last parts of their names. Raises FileError for missing tensors and wrong dims.
    """
    rows, columns = dims
    unpack = {"gptq": _gptq, "awq": _awq, "compressed-tensors": _compressed}[packing.method]
    group = columns if packing.group is None else packing.group
    if columns % group:
        raise FileError(f"{columns} columns are no multiple of the group of {group}")
    codes, zeros, scales, groups = unpack(tensors, packing, (rows, columns, columns // group))
    if not np.isfinite(scales).all():
        raise FileError("there are scales that are not finite")
    order = None if groups is None else _order(groups, group)
    if order is not None:
        codes = codes[:, order]
    block = math.gcd(group, _BLOCK)
    if block < _LEAST:
        raise UnsupportedModel(f"groups of {group} columns, expected a multiple of {_LEAST}")
    each = group // block
    scales, zeros = (np.repeat(a, each, 1).astype(np.float32) for a in (scales, zeros))
    whole = codes.reshape(rows, -1, block)
    middle = bool((zeros == 1 << (packing.bits - 1)).all())
    return BlockWeights(
        packed(whole) if packing.bits == 4 else np.ascontiguousarray(whole), scales,
        None if middle else zeros, columns, packing.bits, block, order,
    )  # fmt: skip


Parts = tuple[NDArray[np.uint8], NDArray[Any], NDArray[Any], NDArray[Any] | None]


def _gptq(tensors: Tensors, packing: Packing, dims: tuple[int, int, int]) -> Parts:
    """Words hold neighbours of a column of {inputs, outputs}; zero points of a row."""
    rows, columns, groups = dims
    per = 32 // packing.bits
    words = _tensor(tensors, "qweight", (columns // per, rows))
    stored = _tensor(tensors, "qzeros", (groups, rows // per))
    codes = _codes(words.T, packing.bits)
    zeros = _codes(stored, packing.bits).astype(np.float32) + packing.plus_one
    scales = _tensor(tensors, "scales", (groups, rows))
    places = _tensor(tensors, "g_idx", (columns,)) if "g_idx" in tensors else None
    return codes, zeros.T, scales.T, places


def _awq(tensors: Tensors, packing: Packing, dims: tuple[int, int, int]) -> Parts:
    """Words hold columns of {inputs, outputs} in AWQ's order."""
    rows, columns, groups = dims
    back = np.argsort(_AWQ_ORDER)

    def of(name: str, count: int) -> NDArray[np.uint8]:
        found = _codes(_tensor(tensors, name, (count, rows // 8)), packing.bits)
        return found.reshape(count, -1, 8)[..., back].reshape(count, rows)

    scales = _tensor(tensors, "scales", (groups, rows))
    return of("qweight", columns).T, of("qzeros", groups).T.astype(np.float32), scales.T, None


def _compressed(tensors: Tensors, packing: Packing, dims: tuple[int, int, int]) -> Parts:
    """Words hold neighbours of a row of {outputs, inputs}, codes have half of their range added."""
    rows, columns, groups = dims
    per, half = 32 // packing.bits, 1 << (packing.bits - 1)
    codes = _codes(_tensor(tensors, "weight_packed", (rows, -(-columns // per))), packing.bits)
    scales = _tensor(tensors, "weight_scale", (rows, groups))
    zeros = np.full((rows, groups), half, np.float32)
    if "weight_zero_point" in tensors:
        words = _tensor(tensors, "weight_zero_point", (-(-rows // per), groups))
        zeros = _codes(words.T, packing.bits).T[:rows].astype(np.float32)
    places = tensors.get("weight_g_idx")
    if places is not None and (places.shape != (columns,) or (places < 0).all()):
        places = None  # -1: columns are in order
    return codes[:, :columns], zeros, scales, places


def _tensor(tensors: Tensors, name: str, dims: tuple[int, ...]) -> NDArray[Any]:
    found = tensors.get(name)
    if found is None:
        raise FileError(f"'{name}' is missing")
    if found.shape != dims:
        raise FileError(f"'{name}' is {_times(found.shape)}, expected {_times(dims)}")
    return found


def _codes(words: NDArray[Any], bits: int) -> NDArray[np.uint8]:
    """Return the codes {.., columns} of words {.., columns * bits / 32}, the lowest first."""
    if words.dtype not in (np.int32, np.uint32):
        raise FileError(f"codes expected words of 32 bits, got {words.dtype}")
    bytes_ = np.ascontiguousarray(words).view(np.uint8)
    if bits == 8:
        return bytes_
    halves: NDArray[np.uint8] = np.stack([bytes_ & np.uint8(15), bytes_ >> np.uint8(4)], -1)
    return halves.reshape(*words.shape[:-1], -1)


def _order(groups: NDArray[Any], size: int) -> NDArray[np.int64] | None:
    """Return columns by group, None where they lie so: GPTQ may sort columns by activations."""
    order = np.argsort(groups, kind="stable")
    if not np.array_equal(groups[order], np.arange(len(groups)) // size):
        raise FileError(f"'g_idx' expected {size} columns for each group")
    return None if np.array_equal(order, np.arange(len(order))) else order


def _times(dims: tuple[int, ...]) -> str:
    return " x ".join(map(str, dims))
