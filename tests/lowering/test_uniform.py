"""Tensors of one number, and extents that cancel to 0, which the backend folds into kernels."""

from __future__ import annotations

import iree.runtime as rt
import numpy as np
import onnx.parser
import pytest

import mgx_mlir
from mgx_mlir.targets.child import shared_compiler
from tests.lowering.harness import compile_flags
from tests.support.oracle import ort_session

HEAD = '<ir_version: 8, opset_import: ["" : 17]> g '
STORED = "<float[1] two = {2}, float one = {1}, int64 zero = {0}, int64[1] first = {0}>"

SUMS = f"""{HEAD} (float[n, 3] x) => (float s, float[m] l, float mean, float[n, 3] c) {STORED} {{
  dims = Shape(x)
  e = Expand(two, dims)
  s = ReduceSum <keepdims = 0> (e)
  l = ReduceL2 <keepdims = 0, axes = [1]> (e)
  mean = ReduceMean <keepdims = 0> (e)
  c = CumSum(e, zero)
}}"""
PLACES = f"""{HEAD} (float[2, 3] x) => (int64[2, k] p, int64[1, 3] q, float[2, m] c)
  <bool[3] kept = {{1, 1, 1}}, float[2, 3] ones = {{2, 2, 2, 2, 2, 2}}> {{
  p = NonZero(ones)
  q = NonZero(kept)
  c = Compress <axis = 1> (x, kept)
}}"""
EQUAL_ENDS = f"""{HEAD} (float[n, n] x, int64 step) => (float[n, m] y, int64[k] r)
  <int64[1] start = {{-1}}, int64[1] last = {{-9223372036854775807}}, int64[1] at = {{1}},
   int64[1] back = {{4}}, int64 same = {{2}}> {{
  y = Slice(x, back, start, at)
  r = Range(same, same, step)
}}"""


FOLDED = f"""{HEAD} (int64[a] x) => (int64[1, k] p, int64 s, int64[a] c) {STORED} {{
  same = Equal(x, x)
  p = NonZero(same)
  ones = Cast <to = 7> (same)
  s = ReduceSum <keepdims = 0> (ones)
  c = CumSum(ones, zero)
}}"""


def runs(text: str, feeds: dict[str, np.ndarray], **options: bool) -> None:
    """Compare with onnxruntime."""
    data = onnx.parser.parse_model(text).SerializeToString()
    wants = ort_session(data).run(None, feeds)
    program = mgx_mlir.compile(data, "cpu", cache=False, **options)
    used = {k: v for k, v in feeds.items() if k in program.input_names}
    for got, want in zip(program.run(used), wants, strict=True):
        assert np.asarray(got).shape == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-6)


@pytest.mark.parametrize("boundaries", [True, False])
def test_sums_of_one_number(boundaries: bool) -> None:
    runs(SUMS, {"x": np.ones((4, 3), np.float32)}, kernel_boundaries=boundaries)


def test_places_of_constants() -> None:
    runs(PLACES, {"x": np.arange(6, dtype=np.float32).reshape(2, 3)})


@pytest.mark.parametrize("boundaries", [True, False])
def test_sums_of_what_folds_to_one_number(boundaries: bool) -> None:
    runs(FOLDED, {"x": np.array([3, -1, 7])}, kernel_boundaries=boundaries)


def test_ranges_of_equal_ends() -> None:
    feeds = {"x": np.ones((5, 5), np.float32), "step": np.array(3)}
    runs(EQUAL_ENDS, feeds)


@pytest.mark.slow
def test_iree_still_drops_iterations_of_a_sum_of_a_fill() -> None:
    """If this fails, `LoweringContext.hidden` and its hazard can go."""
    text = """
    func.func @main(%n: tensor<i64>) -> tensor<f32> {
      %k = tensor.extract %n[] : tensor<i64>
      %d = arith.index_cast %k : i64 to index
      %two = arith.constant 2.0 : f32
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty(%d) : tensor<?xf32>
      %x = linalg.fill ins(%two : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
      %s = tensor.empty() : tensor<f32>
      %i = linalg.fill ins(%zero : f32) outs(%s : tensor<f32>) -> tensor<f32>
      %r = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> ()>],
                           iterator_types = ["reduction"]}
        ins(%x : tensor<?xf32>) outs(%i : tensor<f32>) {
      ^bb0(%a: f32, %t: f32):
        %u = arith.addf %t, %a : f32
        linalg.yield %u : f32
      } -> tensor<f32>
      return %r : tensor<f32>
    }"""
    vmfb = shared_compiler().run(text.encode(), compile_flags()).vmfb
    config = rt.Config("local-sync")
    module = rt.load_vm_module(rt.VmModule.copy_buffer(config.vm_instance, bytes(vmfb)), config)
    assert float(module.main(np.array(5)).to_host()) == 2
