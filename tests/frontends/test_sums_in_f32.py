"""Operators that add 16-bit floats: as onnxruntime gives in f32, rounded once to the type."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from contrib_cases import MS, Case, Draws, describe, expected, model, run

HALF, BRAIN = np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)
# half a step, and what f32 itself may be off by; norms of a far mean lose digits in onnxruntime
STEPS = 0.56
FAR = {"SkipLayerNormalization": 1.0}


def tables_of(g: Draws) -> list[np.ndarray]:
    """Cosines and sines of a rotation."""
    angles = g.floats(1, 3, 4, scale=3)
    return [np.cos(angles), np.sin(angles)]


def cases(g: Draws) -> list[Case]:
    x, s, v, image = g.floats(2, 4, 16), g.floats(2, 4, 16), g.floats(16), g.floats(2, 8, 6, 6)
    far = (g.floats(1, 3, 64) * 0.5 + 100).astype(np.float32)
    near, gains = g.floats(1, 3, 64, scale=0.01), [g.floats(64) for _ in range(3)]
    ids, kinds = g.ints(0, 5, 2, 4), g.ints(0, 2, 2, 4)
    tables = [g.floats(5, 16), g.floats(8, 16), g.floats(2, 16)]
    small = np.asarray(g.positive(8) * 1e-5, np.float32)  # f16 has few digits there
    contrib = [
        Case("SkipLayerNormalization", [far, near, *gains], outputs=[0, 3]),
        Case("SkipSimplifiedLayerNormalization", [far, near, gains[0], gains[1]], outputs=[0, 3]),
        Case("EmbedLayerNormalization", [ids, kinds, *tables, v, v], outputs=[0, 1]),
        Case("BiasGelu", [x, v]),
        Case("FastGelu", [x, v]),
        Case("QuickGelu", [x]),
        Case(
            "CropAndResize",
            [image, g.positive(3, 4), np.array([0, 1, 1], np.int32), np.array([3, 2], np.int32)],
        ),
    ]
    standard: list[tuple[str, list[Any], dict[str, Any], int]] = [
        ("Sum", [x, s, x * 0.3 + 100], {}, 20),
        ("Mean", [x, s, x * 0.3 + 100], {}, 20),
        ("Einsum", [x[0], x[1], s[0]], {"equation": "ij,kj,lj->i"}, 20),
        ("LayerNormalization", [x, v, v], {}, 20),
        ("RMSNormalization", [x * 20, v], {}, 23),
        ("STFT", [g.floats(1, 32, 1), np.array(4), g.floats(8)], {}, 20),
        ("Col2Im", [g.floats(1, 8, 9), np.array([4, 4]), np.array([2, 2])], {}, 20),
        ("InstanceNormalization", [image, g.floats(8), g.floats(8)], {}, 20),
        ("BatchNormalization", [image, *(g.positive(8) for _ in range(3)), small], {}, 20),
        ("RotaryEmbedding", [g.floats(1, 2, 3, 8), *tables_of(g)], {"interleaved": 1}, 23),
        ("Gelu", [x], {}, 20),
        ("Gelu", [x], {"approximate": "tanh"}, 20),
        ("Swish", [x], {"alpha": 0.8}, 24),
        *((op, [x * 3], {}, 20) for op in ("Softplus", "Mish", "HardSwish", "Softsign", "Selu")),
        ("Celu", [x], {"alpha": 0.7}, 20),
        ("HardSigmoid", [x], {"alpha": 0.3}, 20),
        ("CumSum", [np.abs(g.floats(2, 300)), np.array(1)], {}, 20),
    ]
    held = {"STFT": {1}, "Col2Im": {1, 2}, "CumSum": {1}}
    return contrib + [
        Case(op, given, how, domain="", opset=opset, constants=held.get(op, ()))
        for op, given, how, opset in standard
    ]


def typed(case: Case, kind: np.dtype, source: type) -> Case:
    return replace(
        case,
        inputs=[x.astype(kind) if x is not None and x.dtype == source else x for x in case.inputs],
    )


def off(case: Case, kind: np.dtype, target: str) -> float:
    """The largest difference in steps of the type; below a hundredth of the largest, of that."""
    low = typed(case, kind, np.float32)
    wants = expected(typed(low, np.dtype(np.float32), kind.type))
    data, feeds, _ = model([low])
    steps = 0.0
    for found, want in zip(run(data, feeds, target), wants, strict=True):
        got, w = (np.asarray(a).astype(np.float64) for a in (found, want))
        size = np.maximum(np.abs(w), np.abs(w).max(initial=0) / 100)
        step = float(ml_dtypes.finfo(kind).eps) * size + 1e-30
        steps = max(steps, float(np.max(np.abs(got - w) / step)))
    return steps


@pytest.mark.parametrize("kind", [HALF, BRAIN], ids=["f16", "bf16"])
def test_sums_on_ref(kind: np.dtype) -> None:
    for case in cases(Draws(3)):
        found = off(case, kind, "ref")
        assert found <= FAR.get(case.op, STEPS), f"{describe(case)}: {found:.2f} steps"


@pytest.mark.slow  # a compile for each operator
@pytest.mark.parametrize("kind", [HALF, BRAIN], ids=["f16", "bf16"])
def test_sums_compiled(kind: np.dtype) -> None:
    for case in cases(Draws(4)):
        found = off(case, kind, "cpu")
        assert found <= FAR.get(case.op, STEPS), f"{describe(case)}: {found:.2f} steps"


def test_a_residual_is_added_in_f32() -> None:
    """Beside a mean of 100 the rounding of the sum is a third of what the norm is made of."""
    g = Draws(5)
    x, skip = (g.floats(1, 64) * 0.5 + 100).astype(HALF), g.floats(1, 64, scale=0.01, dtype=HALF)
    total = x.astype(np.float64) + skip
    want = (total - total.mean()) / total.std()
    case = Case("SkipLayerNormalization", [x, skip, np.ones(64, HALF)], domain=MS)
    data, feeds, _ = model([case])
    for target in ("ref", "cpu"):
        np.testing.assert_allclose(run(data, feeds, target)[0], want, rtol=1e-3, atol=1e-3)
