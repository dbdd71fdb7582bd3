"""Programs whose plain form the backend refuses or gets wrong: each runs as in onnxruntime."""

from __future__ import annotations

import iree.runtime as rt
import numpy as np
import onnx.parser
import pytest

import mgx_mlir
from mgx_mlir.targets.child import CompileFailed, shared_compiler
from tests.lowering.harness import compile_flags
from tests.support.oracle import ort_session

HEAD = '<ir_version: 8, opset_import: ["" : 18]> g '
X = np.arange(63, dtype=np.float32).reshape(7, 9)


def runs(text: str, feeds: dict[str, np.ndarray], fallbacks: tuple[str, ...] | None = None) -> None:
    data = onnx.parser.parse_model(HEAD + text).SerializeToString()
    wants = ort_session(data).run(None, feeds)
    program = mgx_mlir.compile(data, "cpu", cache=False)
    assert fallbacks is None or program.executable.fallbacks == fallbacks
    for got, want in zip(program.run(feeds), wants, strict=True):
        assert np.asarray(got).shape == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-6)


@pytest.mark.parametrize("start", [0, 1])
def test_elements_of_a_slice_with_steps_at_computed_places(start: int) -> None:
    text = f"""(float[n, m] x, int64[2] dims) => (float[?, ?] y)
      <int64[1] first = {{{start}}}, int64[1] last = {{9223372036854775807}}, int64[1] one = {{1}},
       int64[1] two = {{2}}> {{
      s = Slice(x, first, last, one, two)
      y = Expand(s, dims)
    }}"""
    runs(text, {"x": X, "dims": np.array([7, 5 - start])})


def test_elements_from_the_end_of_a_slice_of_a_slice_with_steps() -> None:
    text = """(float[8] x) => (float[4] y, float[2] z)
      <int64[1] least = {-100}, int64[1] first = {7}, int64[1] last = {-1}, int64[1] five = {-5},
       int64[1] zero = {0}, int64[1] back = {-2}> {
      y = Slice(x, first, least, zero, back)
      z = Slice(y, last, five, zero, back)
    }"""
    runs(text, {"x": np.arange(8, dtype=np.float32)})


@pytest.mark.slow
def test_iree_still_refuses_to_gather_from_a_slice_with_steps() -> None:
    """Where this fails, `indices.read` need not look through the slice."""
    text = """
    func.func @main(%x: tensor<?x?xf32>, %n: index, %m: index) -> tensor<?x?xf32> {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %a = tensor.dim %x, %c0 : tensor<?x?xf32>
      %s = tensor.extract_slice %x[0, 0] [%a, %m] [1, 2] : tensor<?x?xf32> to tensor<?x?xf32>
      %one = arith.cmpi eq, %m, %c1 : index
      %e = tensor.empty(%a, %n) : tensor<?x?xf32>
      %y = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>],
                           iterator_types = ["parallel", "parallel"]}
        outs(%e : tensor<?x?xf32>) {
      ^bb0(%o: f32):
        %i = linalg.index 0 : index
        %j = linalg.index 1 : index
        %k = arith.select %one, %c0, %j : index
        %v = tensor.extract %s[%i, %k] : tensor<?x?xf32>
        linalg.yield %v : f32
      } -> tensor<?x?xf32>
      return %y : tensor<?x?xf32>
    }"""
    with pytest.raises(CompileFailed, match="unrealized_conversion_cast"):
        shared_compiler().run(text.encode(), compile_flags())


def test_axes_of_a_squeeze_that_are_an_input() -> None:
    text = "(float[n, m, k] x, int64[2] axes) => (float[l] y) { y = Squeeze(x, axes) }"
    runs(text, {"x": X[:1, :7, None], "axes": np.array([2, 0])})


def test_one_bool_of_dims() -> None:
    text = """(float[n] x) => (bool[1] y, float[1] z) <int64[1] eight = {8}> {
      s = Shape(x)
      y = Equal(s, eight)
      z = Cast <to = 1> (y)
    }"""
    runs(text, {"x": X[0, :8]})


def test_dims_in_two_axes() -> None:
    text = """(float[n, m] x) => (int64[2, 1] column, int64[1, 2] row, int64[3, 2] table)
      <int64[1] zero = {0}, int64[1] one = {1}> {
      s = Shape(x)
      column = Unsqueeze(s, one)
      row = Unsqueeze(s, zero)
      table = Concat <axis = 0> (row, row, row)
    }"""
    runs(text, {"x": X})


def test_parts_of_what_is_counted_at_run_time() -> None:
    """A column of the rows that are kept, and a row in front: the copy is launched by the count."""
    text = """(float[n, 3] x, float[1, m, 4] boxes, float[1, 2, m] scores)
      => (float[?] a, int64[?] b)
      <int64 first = {0}, int64[2] ahead = {1, 0}, float low = {0.0}, int64[1] most = {4},
       float[1] overlap = {0.4}, float[1] least = {0.3}> {
      r = Gather <axis = 1> (x, first)
      g = Greater (r, low)
      kept = Compress <axis = 0> (x, g)
      rows = Gather <axis = 1> (kept, first)
      a = Pad (rows, ahead)
      boxed = NonMaxSuppression (boxes, scores, most, overlap, least)
      w = Gather <axis = 1> (boxed, first)
      b = Pad (w, ahead)
    }"""
    rng = np.random.default_rng(0)
    feeds = {
        "x": (rng.standard_normal((6, 3)) * 3).astype(np.float32),
        "boxes": np.sort(rng.random((1, 9, 4)).astype(np.float32), -1),
        "scores": rng.random((1, 2, 9)).astype(np.float32),
    }
    runs(text, feeds, fallbacks=())


@pytest.mark.slow
def test_iree_still_stores_elements_of_two_axes_wrongly() -> None:
    """Where this fails, `host.tensor_of` need not make a vector first."""
    text = """
    func.func @main(%x: tensor<2xi64>) -> tensor<2x1xi64> {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %a = tensor.extract %x[%c0] : tensor<2xi64>
      %b = tensor.extract %x[%c1] : tensor<2xi64>
      %y = tensor.from_elements %a, %b : tensor<2x1xi64>
      return %y : tensor<2x1xi64>
    }"""
    vmfb = shared_compiler().run(text.encode(), compile_flags()).vmfb
    config = rt.Config("local-sync")
    module = rt.load_vm_module(rt.VmModule.copy_buffer(config.vm_instance, bytes(vmfb)), config)
    assert module.main(np.array([1, 2])).to_host().tolist() == [[2], [2]]
