"""bf16 and f16 on processors that cannot multiply them: right, and by the loops that f32 takes."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import mgx_mlir
from mgx_mlir.hardware.machine import compiled_as, processor_features
from mgx_mlir.passes.lowering.cpu.frame.isa import AVX2, AVX512, AVX512_BF16, AVX512_VNNI, isa_of
from mgx_mlir.passes.pipelines import pipeline
from tests.support.models import model_of, node

SKYLAKE = frozenset(
    (
        *("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl", "avx2", "fma", "f16c", "adx"),
        *("bmi1", "bmi2", "clflushopt", "clwb", "rdseed", "xsavec", "xsaves"),
    )
)
ICELAKE = SKYLAKE | frozenset(
    (
        *("avx512_vnni", "avx512ifma", "avx512vbmi", "avx512_vbmi2", "avx512_bitalg"),
        *("avx512_vpopcntdq", "gfni", "vaes", "vpclmulqdq", "sha_ni", "rdpid"),
    )
)


def net(kind: str) -> tuple[onnx.ModelProto, dict[str, np.ndarray], np.ndarray]:
    """A padded convolution and a dot, or dots of computed operands; with inputs and result."""
    numbers = np.random.default_rng(3)

    def draw(*dims: int) -> np.ndarray:
        # exact in bf16 and f16, and so are the sums
        return numbers.integers(-4, 5, dims).astype(np.float32)

    if kind == "window":
        x, w, m = draw(2, 8, 9, 7), draw(16, 8, 3, 3), draw(7, 5)
        first = node("Conv", "x w", "c", pads=[1, 1, 1, 1])
        padded = np.pad(x, [(0, 0), (0, 0), (1, 1), (1, 1)]).astype(np.float64)
        windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
        middle = np.einsum("nchwij,fcij->nfhw", windows, w.astype(np.float64))
        inputs, weights = {"x": x}, {"w": w, "m": m}
    else:
        x, z, m = draw(3, 17, 24), draw(3, 24, 19), draw(19, 33)
        first = node("MatMul", "x z", "c")
        middle = x.astype(np.float64) @ z.astype(np.float64)
        inputs, weights = {"x": x, "z": z}, {"m": m}
    result = middle @ m.astype(np.float64)
    nodes = [first, node("MatMul", "c m", "y")]
    return model_of(nodes, inputs, {"y": list(result.shape)}, weights, opset=18), inputs, result


@pytest.mark.parametrize("arch", [None, "x86-64-v3"])
@pytest.mark.parametrize("kind", ["window", "dots"])
@pytest.mark.parametrize("narrow", ["bf16", "fp16"])
def test_products(kind: str, narrow: str, arch: str | None) -> None:
    if arch is not None and not {"avx2", "fma", "f16c"} <= processor_features():
        pytest.skip("this processor runs no code for x86-64-v3")
    model, inputs, expected = net(kind)
    program = mgx_mlir.parse_onnx_buffer(model.SerializeToString())
    (mgx_mlir.quantize_bf16 if narrow == "bf16" else mgx_mlir.quantize_fp16)(program)
    found = mgx_mlir.compile(program, target="cpu", arch=arch, cache=False)(**inputs)
    got = np.asarray(found["y"] if isinstance(found, dict) else found, np.float64)
    # two roundings, of the middle and of the result
    step = float(np.finfo(np.float16).eps) if narrow == "fp16" else 2.0**-7
    assert np.abs(got - expected).max() <= 2 * step * np.abs(expected).max()


def test_widened() -> None:
    for isa in (AVX2, AVX512, AVX512_VNNI):
        assert isa.widened == ("half", "bf16")
    assert AVX512_BF16.widened == ("half",)
    assert "eliminate-data-type" in " ".join(pipeline("cpu", widened=AVX2.widened))
    assert "eliminate-data-type" not in " ".join(pipeline("cpu"))


@pytest.mark.parametrize(
    ("features", "name"),
    [
        (ICELAKE | {"avx512_bf16"}, "host"),
        (ICELAKE, "icelake-server"),
        (ICELAKE - {"gfni"}, "cascadelake"),
        (SKYLAKE, "skylake-avx512"),
        (SKYLAKE - {"clwb"}, "host"),
        (frozenset({"avx2", "fma"}), "host"),
        (frozenset(), "host"),
    ],
)
def test_names(features: frozenset[str], name: str) -> None:
    """A processor that a virtual machine hides something of goes by what is left."""
    assert compiled_as(features) == name
    if name != "host":
        known = isa_of(name)
        assert known is not None
        assert not known.bf16_dot
        assert bool(known.byte_dot) == ("avx512_vnni" in features)
