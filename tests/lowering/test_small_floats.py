"""8-bit floats by integer arithmetic, as NVIDIA's programs convert them, beside ml_dtypes."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from mgx_mlir.core import dtypes
from mgx_mlir.core.context import new_context
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.ir import ir
from mgx_mlir.passes.lowering.gpu.small_floats import expand_small_floats
from mgx_mlir.runtime.iree_runtime import LoadedModule
from mgx_mlir.targets import flags
from mgx_mlir.targets.child import shared_compiler

KINDS = {
    dtypes.FP8E4M3FN: ml_dtypes.float8_e4m3fn,
    dtypes.FP8E5M2: ml_dtypes.float8_e5m2,
    dtypes.FP8E4M3FNUZ: ml_dtypes.float8_e4m3fnuz,
    dtypes.FP8E5M2FNUZ: ml_dtypes.float8_e5m2fnuz,
}
TEXT = """
#i = affine_map<(i) -> (i)>
func.func @main(%x: tensor<{n}xf32>, %q: tensor<256xi8>) -> (tensor<{n}xi8>, tensor<256xf32>) {{
  %e = tensor.empty() : tensor<{n}xi8>
  %narrow = linalg.generic {{indexing_maps = [#i, #i], iterator_types = ["parallel"]}}
      ins(%x : tensor<{n}xf32>) outs(%e : tensor<{n}xi8>) {{
    ^bb0(%in: f32, %out: i8):
      %s = arith.truncf %in : f32 to {kind}
      %b = arith.bitcast %s : {kind} to i8
      linalg.yield %b : i8
  }} -> tensor<{n}xi8>
  %f = tensor.empty() : tensor<256xf32>
  %wide = linalg.generic {{indexing_maps = [#i, #i], iterator_types = ["parallel"]}}
      ins(%q : tensor<256xi8>) outs(%f : tensor<256xf32>) {{
    ^bb0(%in: i8, %out: f32):
      %s = arith.bitcast %in : i8 to {kind}
      %w = arith.extf %s : {kind} to f32
      linalg.yield %w : f32
  }} -> tensor<256xf32>
  return %narrow, %wide : tensor<{n}xi8>, tensor<256xf32>
}}
"""


def floats(kind: type) -> np.ndarray:
    """Every number of the type, what lies halfway to its neighbours and beside, and drawn ones."""
    every = np.arange(256, dtype=np.uint8).view(kind).astype(np.float32)
    held = np.sort(np.unique(every[np.isfinite(every)]))
    half = (held[1:] + held[:-1]) / 2
    beside = [np.nextafter(half, np.float32(s)) for s in (-np.inf, np.inf)]
    rng = np.random.default_rng(0)
    drawn = rng.standard_normal(4096) * 2.0 ** rng.integers(-24, 20, 4096)
    ends = np.array([0, -0.0, np.inf, -np.inf, np.nan, 1e38, -1e38, 464, 480, 61440, 65536])
    return np.concatenate([held, half, *beside, drawn, ends]).astype(np.float32)


@pytest.mark.parametrize("dtype", KINDS, ids=lambda d: d.name)
def test_conversions_are_those_of_ml_dtypes(dtype: DType) -> None:
    kind = KINDS[dtype]
    x, bits = floats(kind), np.arange(256, dtype=np.uint8)
    x = x[np.abs(x) != np.float32(2.0**-149)]
    text = TEXT.format(n=len(x), kind=dtype.mlir)
    with new_context() as context:
        context.allow_unregistered_dialects = True
        module = ir.Module.parse(text)
        assert expand_small_floats(module) == 2
        module.operation.verify()
        source = str(module)
    assert "arith.truncf" not in source
    assert "arith.extf" not in source
    made = shared_compiler().run(source.encode(), flags.cpu_ladder()[0].flags)
    narrow, wide = LoadedModule(made.vmfb, threads=1).run([x, bits.view(np.int8)])
    want = x.astype(kind)
    got = narrow.view(kind)
    same = (got.view(np.uint8) == want.view(np.uint8)) | (
        np.isnan(got.astype(np.float32)) & np.isnan(want.astype(np.float32))
    )
    assert same.all(), (x[~same][:8], got[~same][:8], want[~same][:8])
    np.testing.assert_array_equal(wide, bits.view(kind).astype(np.float32))
    signs = ~np.isnan(wide)
    np.testing.assert_array_equal(
        np.signbit(wide[signs]), np.signbit(bits.view(kind).astype(np.float32))[signs]
    )


def test_what_matrix_instructions_multiply_stays() -> None:
    text = """
    func.func @main(%x: f8E4M3FN) -> f32 {
      %0 = "mgx.multiplied"() ({
        %w = arith.extf %x : f8E4M3FN to f32
        "mgx.yield"(%w) : (f32) -> ()
      }) {compilation_info = "mma_kind"} : () -> f32
      return %0 : f32
    }"""
    with new_context() as context:
        context.allow_unregistered_dialects = True
        module = ir.Module.parse(text)
        assert expand_small_floats(module) == 0
        assert "arith.extf" in str(module)
        other = ir.Module.parse(text.replace("mma_kind", "none"))
        assert expand_small_floats(other) == 1
