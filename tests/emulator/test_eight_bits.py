"""8-bit convolutions and quantised nets on emulated GPUs: exact sums, on matrix instructions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx.parser
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import mgx_mlir
from mgx_mlir.compiler.dump_files import kept_assembly
from mgx_mlir.debug.gpu_kernels import gpu_kernels
from mgx_mlir.targets.report import gpu_report
from tests.support.models import bytes_of

pytestmark = pytest.mark.emulator

# unsigned, zero point, channels, filters, window, padding, stride
CONVOLUTIONS = [
    (False, None, 16, 32, 3, 1, 1),
    (True, 131, 32, 24, 3, 1, 2),
    (True, 128, 64, 48, 1, 0, 1),
    (True, 7, 3, 32, 3, 1, 1),
    (False, -3, 20, 17, 3, 1, 1),
]


def conv_integer(
    rng: np.random.Generator, unsigned: bool, zero: int | None, into: int, out: int, size: int,
    padding: int, stride: int,
) -> tuple[bytes, dict[str, np.ndarray], np.ndarray]:  # fmt: skip
    """Return ONNX ConvInteger with its input and what it gives."""
    kind = np.uint8 if unsigned else np.int8
    low, high = np.iinfo(kind).min, np.iinfo(kind).max + 1
    x = rng.integers(low, high, (1, into, 9, 9)).astype(kind)
    w = rng.integers(-128, 128, (out, into, size, size)).astype(np.int8)
    weights = {"w": w} if zero is None else {"w": w, "p": np.array(zero, kind)}
    convolve = helper.make_node(
        "ConvInteger", ["x", *weights], ["y"], pads=[padding] * 4, strides=[stride] * 2
    )
    model = bytes_of([convolve], {"x": x}, {"y": (TensorProto.INT32, None)}, weights)
    p = zero or 0
    padded = np.pad(x.astype(np.int64) - p, [(0, 0), (0, 0), (padding,) * 2, (padding,) * 2])
    windows = np.lib.stride_tricks.sliding_window_view(padded, (size, size), (2, 3))
    want = np.einsum("nchwij,fcij->nfhw", windows[:, :, ::stride, ::stride], w.astype(np.int64))
    return model, {"x": x}, want


def products(made: Any, assembly: Any, arch: str) -> list[Any]:
    """Return the rows of kernels that multiply; nothing spills."""
    report = gpu_report(made.executable.vmfb, made.executable.dispatches)
    assert [k.name for k in report.kernels if k.spills or k.scratch] == []
    rows = gpu_kernels(report, assembly, {}, arch).rows
    return [r for r in rows if "matmul" in r.kernel.name or "conv" in r.kernel.name]


@pytest.mark.parametrize("arch", ["gfx942", "gfx1100"])
def test_convolutions(arch: str, library: Path) -> None:
    rng = np.random.default_rng(17)
    for given in CONVOLUTIONS:
        model, inputs, want = conv_integer(rng, *given)
        with kept_assembly() as assembly:
            made = mgx_mlir.compile(model, target="gpu", arch=arch, emulate=True, cache=False)
        np.testing.assert_array_equal(made.run(inputs)[0], want, err_msg=str(given))
        assert all(r.mix.matrix > 0 for r in products(made, assembly, arch)), given


def test_windows_that_the_lds_does_not_hold(library: Path) -> None:
    """IREE's tile of a whole image took 147,968 bytes: all was compiled three times."""
    rng = np.random.default_rng(18)
    x = rng.integers(-128, 128, (1, 16, 29, 29)).astype(np.int8)
    w = rng.integers(-128, 128, (24, 16, 3, 3)).astype(np.int8)
    convolve = helper.make_node("ConvInteger", ["x", "w"], ["y"], pads=[1] * 4)
    model = bytes_of([convolve], {"x": x}, {"y": (TensorProto.INT32, None)}, {"w": w})
    made = mgx_mlir.compile(model, target="gpu", arch="gfx942", emulate=True, cache=False)
    assert made.executable.fallbacks == ()
    padded = np.pad(x.astype(np.int64), [(0, 0), (0, 0), (1, 1), (1, 1)])
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
    want = np.einsum("nchwij,fcij->nfhw", windows, w.astype(np.int64))
    np.testing.assert_array_equal(made.run({"x": x})[0], want)


NET = """<ir_version: 8, opset_import: ["" : 17]> g (float[1,16,8,8] x) => (float[4,40] y)
  { c = Conv<pads=[1,1,1,1]>(x,w0)  c1 = Relu(c)  d = Conv(c1,w1)  s = Constant<value_ints=[4,-1]>()
    f = Reshape(d,s)  y = MatMul(f,w2) }"""
SHAPES = {"w0": (32, 16, 3, 3), "w1": (32, 32, 1, 1), "w2": (512, 40)}


def quantised(kind: str) -> tuple[Any, dict[str, np.ndarray], np.ndarray]:
    """Return a net in 8 bits, its input, and what it gives in f32."""
    rng = np.random.default_rng(3)
    model = onnx.parser.parse_model(NET)
    for name, dims in SHAPES.items():
        fan = dims[0] if len(dims) == 2 else int(np.prod(dims[1:]))
        w = (rng.standard_normal(dims) / np.sqrt(fan)).astype(np.float32)
        model.graph.initializer.append(numpy_helper.from_array(w, name))
    x = {"x": rng.standard_normal((1, 16, 8, 8)).astype(np.float32)}
    program = mgx_mlir.parse_onnx_buffer(model.SerializeToString())
    quantise = mgx_mlir.quantize_int8 if kind == "int8" else mgx_mlir.quantize_fp8
    quantise(program, mgx_mlir.get_target("ref"), calibration=[x])
    return program, x, np.asarray(ReferenceEvaluator(model).run(None, x)[0])


@pytest.mark.parametrize(
    ("kind", "arch"),
    [
        ("int8", "gfx942"), ("fp8", "gfx942"),
        *(pytest.param(*p, marks=pytest.mark.slow)
          for p in (("int8", "gfx950"), ("fp8", "gfx950"), ("int8", "gfx1100"),
                    ("int8", "gfx1201"), ("fp8", "gfx1201"))),
    ],
)  # fmt: skip
def test_nets(kind: str, arch: str, library: Path) -> None:
    """One kernel for each matmul and the ops between, on matrix instructions; checked by `ref`."""
    program, x, f32 = quantised(kind)
    want = np.asarray(mgx_mlir.compile(program.program_ir, target="ref").run(x)[0])
    with kept_assembly() as assembly:
        made = mgx_mlir.compile(
            program.program_ir, target="gpu", arch=arch, emulate=True, cache=False
        )
    assert made.executable.fallbacks == ()
    got = np.asarray(made.run(x)[0])
    # sums in another order move a value of f32 over a tie now and then: one step of one operand
    np.testing.assert_allclose(got, want, atol=0.02 * np.abs(want).max())
    assert np.abs(want - f32).max() < 0.1 * np.abs(f32).max()
    found = products(made, assembly, arch)
    assert len(found) == len(SHAPES)
    assert all(r.mix.matrix > 0 for r in found)


ROUNDED = """<ir_version: 8, opset_import: ["" : 19]>
g (float[5,16] x, float[5,24] r) => (float[5,24] y)
<float s = {3.0}, int8 z = {0}, float t = {5.0}, uint8 u = {131}>
{ m = MatMul(x,w)  q = QuantizeLinear(m,s,z)  d = DequantizeLinear(q,s,z)
  a = Add(d,r)  b = QuantizeLinear(a,t,u)  e = DequantizeLinear(b,t,u)  y = Relu(e) }"""


@pytest.mark.parametrize("arch", ["gfx942", "gfx1100"])
def test_pairs_round(arch: str, library: Path) -> None:
    """Pairs that no product takes round as the model says, unless their removal is asked for.

    All values are whole numbers that f32 holds, so that results are equal.
    """
    rng = np.random.default_rng(6)
    model = onnx.parser.parse_model(ROUNDED)
    w = rng.integers(-4, 5, (16, 24)).astype(np.float32)
    model.graph.initializer.append(numpy_helper.from_array(w, "w"))
    inputs = {
        "x": rng.integers(-9, 10, (5, 16)).astype(np.float32),
        "r": rng.integers(-90, 91, (5, 24)).astype(np.float32),
    }
    want = ReferenceEvaluator(model).run(None, inputs)[0]
    data = model.SerializeToString()

    def result(**options: bool) -> np.ndarray:
        made = mgx_mlir.compile(data, target="gpu", arch=arch, emulate=True, cache=False, **options)
        return np.asarray(made.run(inputs)[0])

    np.testing.assert_array_equal(result(), want)
    unrounded = np.maximum(np.clip(inputs["x"] @ w, -384, 381) + inputs["r"], 0)
    removed = result(remove_qdq_pairs=True)
    np.testing.assert_array_equal(removed, np.minimum(unrounded, 620))
    assert np.any(removed != want)
