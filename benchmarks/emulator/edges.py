"""Inputs whose edges matter, and a comparison that sees a single wrong element.

A norm over a whole result hides one wrong lane, and inputs from one distribution leave limits,
masks and special values of a kernel unused. Weights and inputs are drawn by each of three seeds:
0  the normal distribution
1  lines of widely different sizes; of a softmax, half of the lines have one element far above
2  as 1, and lines of zeros, of one number, of NaN, of infinities, and with single such elements,
   where a program keeps lines apart; of a softmax, half of the lines are masked by -inf; attention
   has queries that agree with one key
The last norm's results are by seed 1 partly beyond the largest number of f16, by seed 2 infinite.
BERT's gelu gets wide numbers by seed 1, some of them enormous, and its results stay apart: each is
a part of one column (`revealing`). By seed 2 some columns of the product are 0, and convolutions
compute with small integers in units of the smallest denormal: no sum rounds in f32, and a single
unit where there should be 0 shows (`in_units`).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from onnx import ModelProto, TensorProto, numpy_helper

from tests.emulator.blocks import BLOCKS, Block
from tests.emulator.models import Case, Graph
from tests.emulator.oracle import LIMITS, wanted

SEEDS = (0, 1, 2)
# octaves by which lines differ: as many as leave the wanted values of a program well-conditioned
OCTAVES = {"gemm": 12, "softmax": 14, "layernorm": 12, "attention": 2, "resnet": 4, "bert": 2}
# the scale of a norm, as a share of the largest number of f16: bert's results are rounded before
ENLARGED = {"layernorm": 0.9, "bert": 0.35}
# inputs whose lines are independent of each other: the program reads or reduces along them
APART = {"gemm": "x", "softmax": "x", "layernorm": "x", "attention": "q"}
# in units of the limit of their type's norm: attention rounds scaled queries and weights to it
LOOSER = {"attention-f16": 2.0}
# limit of a line's deviation where all ops are f32; the largest that was measured is 2.5e-6
SHARPER = 0.4
LEAST_LINE = 32
LARGEST = 65504.0  # largest f16; sums of the largest f32 overflow
BORDER = 2e-3
# standard deviation of a gelu's operands; factor by which a polynomial of them overflows
WIDER = 2.5
ENORMOUS = {"f32": 1e20, "f16": 3e4}


def gemm(dtype: str, seed: int) -> Case:
    g = Graph(seed, dtype)
    x, w, b = g.input("x", 128, 768), g.weight(768, 3072, scale=0.05), g.weight(3072)
    y = g.op("Relu", g.op("Add", g.op("MatMul", x, w), b))
    return g.case(y, 128, 3072)


def softmax(dtype: str, seed: int) -> Case:
    g = Graph(seed, dtype)
    return g.case(g.op("Softmax", g.input("x", 12, 128, 128), axis=-1), 12, 128, 128)


def layernorm(dtype: str, seed: int) -> Case:
    g = Graph(seed, dtype)
    x, s, b = g.input("x", 128, 768), g.weight(768), g.weight(768)
    return g.case(g.op("LayerNormalization", x, s, b, axis=-1, epsilon=1e-5), 128, 768)


def attention(dtype: str, seed: int) -> Case:
    g = Block(seed, dtype)
    q, k, v = (g.input(n, 1, 12, 128, 64) for n in "qkv")
    turned = g.op("Transpose", k, perm=[0, 1, 3, 2])
    return g.case(g.attend(q, turned, v, 128, 768, 64), 1, 128, 768)


# kernels of BERT-base by themselves, a block of ResNet-50, a layer of BERT-base: sizes as they are
PROGRAMS: dict[str, Callable[[str, int], Case]] = {
    f.__name__: f for f in (gemm, softmax, layernorm, attention)
} | {n: BLOCKS[n] for n in ("resnet", "bert")}


# programs whose instructions are damaged: each in f16, and in f32 for faults that f16 rounds away
SUBJECTS = tuple(f"{name}-{dtype}" for dtype in ("f16", "f32") for name in PROGRAMS)


def parted(subject: str) -> tuple[str, str]:
    """The program and the type of a subject."""
    name, _, dtype = subject.partition("-")
    return name, dtype


def limit(subject: str) -> float:
    """Return the largest allowed `deviation` of a subject's results from the expected ones."""
    dtype = parted(subject)[1]
    return LIMITS[dtype] * (SHARPER if dtype == "f32" else LOOSER.get(subject, 1.0))


def edged(name: str, dtype: str, seed: int) -> Case:
    """One of the programs with weights, inputs and wanted values by a seed."""
    plain = PROGRAMS[name](dtype, 1 + seed)
    without_cancelling(plain.model)
    case = Case(plain.model, drawn(name, plain.inputs, seed), None)
    if name in ENLARGED and seed and dtype == "f16":
        share = ENLARGED[name]
        case.model = enlarged(plain.model, share) if seed == 1 else overflowing(plain.model)
    if name == "bert" and seed == 1:
        case.model = revealing(case.model, ENORMOUS[dtype])
    if name == "gemm" and seed == 2:
        without_columns(case.model)
    if name == "resnet" and seed == 2:
        in_units(case)
    case.wanted = [softmax_of(case.inputs["x"])] if name == "softmax" else wanted(case)
    return case


def softmax_of(x: np.ndarray) -> np.ndarray:
    """In float64, which has what f32 rounds to 0."""
    wide = x.astype(np.float64)
    with np.errstate(invalid="ignore"):  # lines of NaN or -inf alone warn
        powers = np.exp(wide - wide.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def without_cancelling(model: ModelProto) -> None:
    """Make biases of convolutions positive: whether two are added beforehand, and so what code is
    made, depends on whether they cancel, and a mutant is run with the weights of every seed."""
    biases = {n.input[2] for n in model.graph.node if n.op_type == "Conv" and len(n.input) > 2}
    for weight in model.graph.initializer:
        if weight.name in biases:
            value = np.abs(numpy_helper.to_array(weight))
            weight.CopyFrom(numpy_helper.from_array(value, weight.name))


def enlarged(model: ModelProto, share: float) -> ModelProto:
    """With the scale of its norm so large that f16 holds most results, but not all."""
    value = np.full(norm_weight(model, 1).dims[0], share * LARGEST, np.float16)
    value[::3] *= -1
    return with_weight(model, 1, value)


def overflowing(model: ModelProto) -> ModelProto:
    """With a bias of its norm that is infinite in places."""
    value = numpy_helper.to_array(norm_weight(model, 2)).copy()
    kept = value[::32].copy()
    value[::2], value[1::2] = np.inf, -np.inf
    value[::32] = kept
    return with_weight(model, 2, value)


def revealing(model: ModelProto, enormous: float) -> ModelProto:
    """With a network around its gelu in which no mistake of one element is lost in a sum.

    What the gelu is given is wide, so that both halves of the error function count. An eighth of
    it, anywhere, is enormous, of both signs, where a function without its guards gives no number;
    the product behind has zeros for these. Each other result has a weight in one column alone.
    """
    changed = ModelProto()
    changed.CopyFrom(model)
    makers = {n.output[0]: n for n in changed.graph.node}
    weights = {w.name: w for w in changed.graph.initializer}
    readers = {n.input[0]: n for n in changed.graph.node}
    (erf,) = (n for n in changed.graph.node if n.op_type == "Erf")
    biased = makers[makers[erf.input[0]].input[0]]
    into, bias = weights[makers[biased.input[0]].input[1]], weights[biased.input[1]]
    behind = readers[erf.output[0]]
    while behind.op_type != "MatMul":
        behind = next(n for n in changed.graph.node if behind.output[0] in n.input)
    out = weights[behind.input[1]]

    rng = np.random.default_rng(1)
    hidden, width = out.dims
    order = rng.permutation(hidden)
    far = order[: hidden // 8]
    value = numpy_helper.to_array(bias).copy()
    value[far] = enormous
    value[far[::2]] *= -1
    apart = np.zeros((hidden, width), value.dtype)
    apart[order, np.arange(hidden) % width] = rng.choice([-2.0, 2.0], hidden)
    apart[far] = 0
    wide = numpy_helper.to_array(into) * value.dtype.type(WIDER)
    for weight, array in ((bias, value), (into, wide), (out, apart)):
        weight.CopyFrom(numpy_helper.from_array(array, weight.name))
    return changed


def without_columns(model: ModelProto) -> None:
    """A quarter of the columns, anywhere, are 0: a sum's start that is a denormal is seen there."""
    none = np.random.default_rng(2).random(model.graph.initializer[0].dims[-1]) < 0.25
    for weight in model.graph.initializer:
        value = numpy_helper.to_array(weight).copy()
        value[..., none] = 0
        weight.CopyFrom(numpy_helper.from_array(value, weight.name))


def in_units(case: Case) -> None:
    """Inputs and biases are small integers in units of the smallest denormal, weights -1, 0, 1."""
    rng = np.random.default_rng(2)
    for name, x in case.inputs.items():
        unit = np.finfo(x.dtype).smallest_subnormal
        case.inputs[name] = rng.integers(-4, 5, x.shape).astype(x.dtype) * unit
    for weight in case.model.graph.initializer:
        value = numpy_helper.to_array(weight)
        if value.ndim > 1:
            value = rng.choice(np.asarray([-1, 0, 0, 1], value.dtype), value.shape)
        else:
            unit = np.finfo(value.dtype).smallest_subnormal
            value = rng.integers(0, 5, value.shape).astype(value.dtype) * unit
        weight.CopyFrom(numpy_helper.from_array(value, weight.name))


def norm_weight(model: ModelProto, place: int) -> TensorProto:
    *_, name = (n.input[place] for n in model.graph.node if n.op_type == "LayerNormalization")
    (found,) = (w for w in model.graph.initializer if w.name == name)
    return found


def with_weight(model: ModelProto, place: int, value: np.ndarray) -> ModelProto:
    changed = ModelProto()
    changed.CopyFrom(model)
    weight = norm_weight(changed, place)
    weight.CopyFrom(numpy_helper.from_array(value, weight.name))
    return changed


def drawn(name: str, inputs: dict[str, np.ndarray], seed: int) -> dict[str, np.ndarray]:
    """A program's inputs, drawn again."""
    rng = np.random.default_rng(seed)
    found = {
        k: rng.standard_normal(v.shape).astype(np.float32)
        for k, v in inputs.items()
        if v.dtype.kind != "i"  # a mask
    }
    if seed:
        wide = OCTAVES[name] / 2
        for v in found.values():
            v *= 2.0 ** rng.uniform(-wide, wide, (*v.shape[:-1], 1)).astype(np.float32)
    if seed == 1 and name == "softmax":
        spikes(found["x"])
    kept = inputs | {k: v.astype(inputs[k].dtype) for k, v in found.items()}
    if seed and "attention_mask" in inputs:
        holes(kept, seed)
    if seed > 1 and name == "softmax":
        masked(kept["x"], rng)
    if seed > 1 and name in APART:
        specials(kept[APART[name]], rng)
    if seed > 1 and name == "attention":
        agreeing(kept["q"], kept["k"], rng)
    return kept


def holes(inputs: dict[str, np.ndarray], seed: int) -> None:
    """Mask half of the columns, by seed 2 the other half."""
    mask = inputs["attention_mask"]
    order = np.random.default_rng(0).permutation(mask.shape[-1])
    half = len(order) // 2
    seen = np.isin(np.arange(len(order)), order[:half] if seed == 1 else order[half:])
    inputs["attention_mask"] = np.broadcast_to(seen, mask.shape).astype(mask.dtype)


def spikes(x: np.ndarray) -> None:
    """Every column is far above the rest of some lines."""
    lines = x.reshape(-1, x.shape[-1])
    for row in range(0, len(lines), 2):
        lines[row, row // 2 % x.shape[-1]] += 400


def masked(x: np.ndarray, rng: np.random.Generator) -> None:
    lines = x.reshape(-1, x.shape[-1])[::2]
    lines[rng.random(lines.shape) < 0.2] = -np.inf


def agreeing(q: np.ndarray, k: np.ndarray, rng: np.random.Generator) -> None:
    """Queries that are one key, enlarged: their scores overflow exp where nothing is subtracted,
    and every other key's weight is 0. Half of the queries of each head are."""
    queries, keys = q.reshape(-1, *q.shape[-2:]), k.reshape(-1, *k.shape[-2:])
    for head in range(len(queries)):
        own = keys[head].astype(np.float64)
        alike = own @ own.T
        clear = np.diag(alike) - np.sort(alike)[:, -2] > 4  # margin over the next
        rows = rng.permutation(queries.shape[1])[: queries.shape[1] // 2]
        chosen = np.flatnonzero(clear)[head % 2 :: 2]
        for row, key in zip(rows, chosen, strict=False):
            queries[head, row] = 40 * keys[head, key]


def specials(x: np.ndarray, rng: np.random.Generator) -> None:
    """Put lines and elements of special values into some lines of an array."""
    lines = x.reshape(-1, x.shape[-1])
    order = rng.permutation(len(lines))
    whole = (0.0, 1.5, np.nan, -np.inf, -LARGEST / 64)
    single = (np.nan, np.inf, -np.inf, LARGEST, float(np.finfo(x.dtype).tiny) / 8)
    for row, value in zip(order, whole, strict=False):
        lines[row] = value
    for row, value in zip(order[len(whole) :], single * 2, strict=False):
        lines[row, rng.integers(x.shape[-1])] = value


def deviation(got: np.ndarray, want: np.ndarray) -> float:
    """The largest |got - want| over the largest |want| of the element's line; infinity where one is
    NaN or infinite and the other is not, or where 0 is wanted and a denormal of f32 is there: what
    rounding leaves of numbers that cancel is far larger.

    A line is along the last axis, with the axes before it where that is short.
    """
    assert got.shape == want.shape
    width, axes = 1, 0
    while axes < want.ndim and width < LEAST_LINE:
        axes += 1
        width *= want.shape[-axes]
    a = got.astype(np.float64).reshape(-1, width)
    b = want.astype(np.float64).reshape(-1, width)
    if got.dtype == np.float16:
        # values beyond f16's range are infinite; near its largest number either is right
        size = np.abs(b)
        near = np.isfinite(b) & (np.abs(size - LARGEST) <= BORDER * LARGEST)
        b = np.where((size > LARGEST) & (~near | np.isinf(a)), np.copysign(np.inf, b), b)
        b = np.where(near & np.isinf(a) & (np.sign(a) == np.sign(b)), a, b)
    special = ~np.isfinite(b)
    if (
        not np.array_equal(a[special], b[special], equal_nan=True)
        or not np.isfinite(a[~special]).all()
    ):
        return float("inf")
    a, b = np.where(special, 0, a), np.where(special, 0, b)
    if ((b == 0) & (a != 0) & (np.abs(a) < np.finfo(np.float32).tiny)).any():
        return float("inf")
    scale = np.abs(b).max(-1, keepdims=True)
    difference = np.abs(a - b)
    assert scale.max() > 0, "the wanted values are nothing: a blind test"
    return float((difference / np.where(scale > 0, scale, 1)).max())
