"""Programs whose plain form the backend refuses to compile: each runs, as in onnxruntime."""

from __future__ import annotations

import numpy as np
import onnx.parser
import onnxruntime
import pytest

import mgx_mlir
from mgx_mlir.targets.child import CompileFailed, shared_compiler
from tests.lower.harness import compile_flags

HEAD = '<ir_version: 8, opset_import: ["" : 18]> g '
X = np.arange(63, dtype=np.float32).reshape(7, 9)


def runs(text: str, feeds: dict[str, np.ndarray]) -> None:
    data = onnx.parser.parse_model(HEAD + text).SerializeToString()
    wants = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"]).run(None, feeds)
    program = mgx_mlir.compile(data, "cpu", cache=False)
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
