"""Dynamic dims of inputs whose sizes an operator tells, because it takes no other."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import parser

import mgx_mlir
from mgx_mlir.core.errors import RunError
from tests.support.compare import agrees

SCALE = "<float[6] s = {1, 2, 3, 4, 5, 6}, float[6] t = {6, 5, 4, 3, 2, 1}>"
WEIGHTS = "<float[6, 2] w = {1, 2, 3, 4, 5, 6, 6, 5, 4, 3, 2, 1}>"
# inputs, initializers, nodes, and the dims that x then has
CASES = {
    "layer norm": ("float[n,c] x", SCALE, "y = LayerNormalization(x, s, t)", (-1, 6)),
    "rms norm": ("float[n,c] x", SCALE, "y = RMSNormalization(x, s)", (-1, 6)),
    "batch norm": (
        "float[n,c,h] x", SCALE, "y = BatchNormalization(x, s, t, t, s)", (-1, 6, -1)),
    "instance norm": (
        "float[n,c,h] x", SCALE, "y = InstanceNormalization(x, s, t)", (-1, 6, -1)),
    "product": ("float[n,c] x", WEIGHTS, "y = MatMul(x, w)", (-1, 6)),
    "product of a turned input": ("float[c,n] x", WEIGHTS, "y = Gemm <transA = 1> (x, w)", (6, -1)),
    "behind another operator": (
        "float[n,c] x", SCALE, "a = Relu(x) y = LayerNormalization(a, s, t)", (-1, 6)),
    "an unnamed dim": ("float[?,?] x", SCALE, "y = LayerNormalization(x, s, t)", (-1, 6)),
    # operators that decide no size: they may broadcast, or the name is that of several dims
    "a factor": ("float[n,c] x", SCALE, "y = Mul(x, s)", (-1, -1)),
    "a scale of one": (
        "float[n,c] x", "<float[1] s = {2}>", "y = LayerNormalization(x, s)", (-1, -1)),
    "a name for two dims": ("float[c,c] x", WEIGHTS, "y = MatMul(x, w)", (-1, -1)),
    "a sum of dims": (
        "float[n,c] x", WEIGHTS, "a = Concat <axis = 1> (x, x) y = MatMul(a, w)", (-1, -1)),
}  # fmt: skip


def _model(inputs: str, initializers: str, nodes: str) -> bytes:
    text = f"""<ir_version: 10, opset_import: ["": 23]>
        g ({inputs}) => (float[p,q] y) {initializers} {{ {nodes} }}"""
    return parser.parse_model(text).SerializeToString()


@pytest.mark.parametrize("name", CASES)
def test_told(name: str) -> None:
    *parts, dims = CASES[name]
    program = mgx_mlir.compile(_model(*parts), "ref")
    assert program.signature.inputs[0].dims == dims


def test_another_size_is_refused_before_anything_runs() -> None:
    program = mgx_mlir.compile(_model(*CASES["layer norm"][:3]), "ref")
    with pytest.raises(RunError, match=r"input 'x' expected .*6.*got \{2, 5\}"):
        program.run({"x": np.ones((2, 5), np.float32)})


def test_two_sizes_tell_nothing() -> None:
    """Two operators need different sizes: the mismatch is reported at run time."""
    numbers = ", ".join(["1"] * 10)
    own = f"{SCALE[:-1]}, float[5, 2] v = {{{numbers}}}>"
    nodes = "a = LayerNormalization(x, s, t) y = MatMul(x, v)"
    program = mgx_mlir.compile(_model("float[n,c] x", own, nodes), "ref")
    assert program.signature.inputs[0].dims == (-1, -1)
    with pytest.raises(RunError):
        program.run({"x": np.ones((2, 6), np.float32)})


def test_a_branch_that_may_not_run_tells_nothing() -> None:
    text = f"""<ir_version: 10, opset_import: ["": 23]>
        g (float[n,c] x, bool go) => (float[p,q] y) {SCALE} {{
          y = If (go) <then_branch = a () => (float[p,q] u) {{ u = LayerNormalization(x, s, t) }},
                       else_branch = b () => (float[p,q] v) {{ v = Neg(x) }}>
        }}"""
    program = mgx_mlir.compile(parser.parse_model(text).SerializeToString(), "ref")
    assert program.signature.inputs[0].dims == (-1, -1)
    x = np.ones((2, 5), np.float32)
    np.testing.assert_array_equal(program.run({"x": x, "go": np.array(False)})[0], -x)


def test_ranges_stay_as_they_were_asked_for() -> None:
    dims = [mgx_mlir.shape.dynamic_dimension(1, 4), mgx_mlir.shape.dynamic_dimension(2, 6)]
    data = _model(*CASES["layer norm"][:3])
    program = mgx_mlir.parse_onnx_buffer(data, map_dyn_input_dims={"x": dims})
    (found,) = program.get_parameter_shapes().values()
    assert [(d.min, d.max) for d in found.dyn_dims()] == [(1, 4), (2, 6)]


def test_norms_of_dynamic_rows_are_one_kernel() -> None:
    """The kernels are those of static dims; results agree with onnxruntime's."""
    text = f"""<ir_version: 10, opset_import: ["": 20]>
        g (float[n,l,c] x, float[n2,c2,h,w] i) => (float[n,l,6] y, float[n2,6,h,w] z) {SCALE} {{
          y = LayerNormalization(x, s, t) z = InstanceNormalization(i, s, t)
        }}"""
    rng = np.random.default_rng(0)
    calls = [
        {"x": rng.standard_normal((n, h, 6)).astype(np.float32),
         "i": rng.standard_normal((n, 6, h, 5)).astype(np.float32)}
        for n, h in ((1, 1), (3, 7), (2, 33))
    ]  # fmt: skip
    program = agrees(parser.parse_model(text).SerializeToString(), calls, atol=2e-5)
    assert len(program.kernels) == 2
