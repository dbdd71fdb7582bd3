"""Operators in the forms of older opsets, on the reference interpreter, against onnxruntime."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest

from mgx_mlir.frontends.onnx.importer import parse_onnx_buffer
from mgx_mlir.programs.interpreter import Interpreter
from tests.support.oracle import ort_session

ort = pytest.importorskip("onnxruntime")

# opset, signature, body (with initializers in the signature's last part where there are any)
CASES = [
    (7, "float[2,3,4] x, float[3,1] y", "z = Add(x, y)"),
    (7, "float[2,3,4] x, float[4] y", "z = Pow(x, y)"),
    (7, "float[2,3,4] x, float[3,1] y", "z = PRelu(x, y)"),
    (7, "float[2,3,4] x", "z = Softmax(x)"),
    (7, "float[2,3,4] x", "z = Softmax <axis = 2> (x)"),
    (7, "float[2,3,4] x", "z = Softmax <axis = 0> (x)"),
    (11, "float[2,3,4] x", "z = LogSoftmax <axis = -2> (x)"),
    (11, "float[2,3,4] x", "z = Hardmax <axis = 1> (x)"),
    (13, "float[2,3,4] x", "z = Hardmax <axis = 1> (x)"),
    (9, "float[2,3,4] x", "z = Clip <min = -0.5, max = 0.25> (x)"),
    (9, "float[2,3,4] x", "z = Clip <max = 0.25> (x)"),
    (12, "float[2,3,4] x, float lo", "z = Clip(x, lo)"),
    (7, "float[2,1,3,1] x", "z = Squeeze <axes = [1]> (x)"),
    (7, "float[2,1,3,1] x", "z = Squeeze(x)"),
    (11, "float[2,1,3,1] x", "z = Squeeze <axes = [-1, 1]> (x)"),
    (7, "float[2,3] x", "z = Unsqueeze <axes = [0, 3]> (x)"),
    (11, "float[2,3] x", "z = Unsqueeze <axes = [-1]> (x)"),
    (7, "float[5,6] x", "z = Slice <starts = [1, -3], ends = [10, -1]> (x)"),
    (7, "float[5,6] x", "z = Slice <axes = [1], starts = [-4], ends = [5]> (x)"),
    (7, "float[4,6] x", "a, z = Split <axis = 1> (x)"),
    (11, "float[4,6] x", "a, z = Split <axis = -1, split = [2, 4]> (x)"),
    (7, "float[2,3] x", "z = Pad <pads = [0, 1, 2, 0], value = 1.5> (x)"),
    (7, "float[4,5] x", 'z = Pad <pads = [2, 1, 1, 3], mode = "reflect"> (x)'),
    (7, "float[4,5] x", 'z = Pad <pads = [2, 1, 1, 3], mode = "edge"> (x)'),
    (7, "float[2,3,4] x", "z = ReduceSum <axes = [0, 2], keepdims = 0> (x)"),
    (11, "float[2,3,4] x", "z = ReduceMean <axes = [-1]> (x)"),
    (13, "float[2,3,4] x", "z = ReduceMax(x)"),
    (13, "float[2,3,4] x", "z = ReduceLogSumExp <axes = [1]> (x)"),
    (13, "float[2,3,4] x", "z = ReduceL2 <axes = [1], keepdims = 0> (x)"),
    (7, "float[2,3,4] x", "z = ArgMax <axis = 1, keepdims = 0> (x)"),
    (12, "float[2,3,4] x", "z = ArgMin <axis = -1, select_last_index = 1> (x)"),
    (7, "float[3,8] x", "z, i = TopK <axis = 1, k = 3> (x)"),
    (10, "float[3,8] x", "z, i = TopK(x, k)", "int64[1] k = {3}"),
    (11, "float[3,8] x", "z, i = TopK <axis = 0, largest = 0> (x, k)", "int64[1] k = {2}"),
    (7, "float[2,3,4,4] x", "z = Upsample <scales = [1.0, 1.0, 2.0, 3.0]> (x)"),
    (9, "float[1,2,3,4] x", "z = Upsample(x, s)", "float[4] s = {1.0, 1.0, 2.0, 2.0}"),
    (
        9,
        "float[1,2,3,4] x",
        'z = Upsample <mode = "linear"> (x, s)',
        "float[4] s = {1.0, 1.0, 2.0, 2.0}",
    ),
    (10, "float[1,2,4,6] x", "z = Resize(x, s)", "float[4] s = {1.0, 1.0, 0.5, 2.0}"),
    (
        11,
        "float[1,2,4,6] x, float[0] r",
        'z = Resize <mode = "linear", coordinate_transformation_mode = "align_corners"> (x, r, s)',
        "float[4] s = {1.0, 1.0, 2.0, 1.5}",
    ),
    (
        13,
        "float[1,2,4,6] x",
        'z = Resize <mode = "cubic"> (x, , , n)',
        "int64[4] n = {1, 2, 7, 9}",
    ),
    (7, "float[2,3] x", "z = Dropout <ratio = 0.3> (x)"),
    (10, "float[2,3] x", "z, m = Dropout <ratio = 0.3> (x)"),
    (13, "float[2,3] x", "z, m = Dropout(x)"),
    (7, "float[2,3] x, float[4,3] y, float[4] c", "z = Gemm <transB = 1, beta = 0.5> (x, y, c)"),
    (
        7,
        "float[2,3,4,4] x, float[3] s, float[3] b, float[3] m, float[3] v",
        "w = Abs(v) z = BatchNormalization(x, s, b, m, w)",
    ),
    (
        14,
        "float[2,3,4,4] x, float[3] s, float[3] b, float[3] m, float[3] v",
        "w = Abs(v) z = BatchNormalization <epsilon = 0.01> (x, s, b, m, w)",
    ),
    (
        7,
        "float[1,3,7,7] x",
        'z = AveragePool <kernel_shape = [3, 3], strides = [2, 2], auto_pad = "SAME_LOWER"> (x)',
    ),
    (
        10,
        "float[1,3,7,8] x",
        "z = AveragePool <kernel_shape = [3, 3], strides = [2, 2], ceil_mode = 1,"
        " pads = [1, 0, 1, 1], count_include_pad = 1> (x)",
    ),
    (
        10,
        "float[1,3,7,8] x",
        "z = MaxPool <kernel_shape = [3, 2], strides = [2, 3], ceil_mode = 1,"
        " pads = [1, 0, 1, 1], dilations = [2, 1]> (x)",
    ),
    (8, "float[1,3,6,6] x", "z, i = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (x)"),
    (
        11,
        "float[1,4,6,6] x, float[6,2,3,3] w, float[6] b",
        "z = Conv <group = 2, dilations = [2, 1], pads = [2, 1, 2, 0]> (x, w, b)",
    ),
    (
        11,
        "float[1,4,5,5] x, float[4,3,3,3] w, float[6] b",
        "z = ConvTranspose <group = 2, strides = [2, 2], pads = [1, 0, 0, 1],"
        " output_padding = [1, 0]> (x, w, b)",
    ),
    (
        11,
        "float[1,4,5,5] x, float[4,3,3,3] w",
        'z = ConvTranspose <strides = [2, 2], auto_pad = "SAME_UPPER"> (x, w)',
    ),
    (8, "float[2,3,4] x, float[2,3,4] y, float[4] c", "z = Sum(x, y, c)"),
    (8, "float[2,3,4] x, float[4] y, float[3,1] c", "z = Mean(x, y, c)"),
    (8, "float[2,3,4] x, float[4] y, float[3,1] c", "z = Max(x, y, c)"),
    (7, "float[2,3,4,5] x", "z = LRN <size = 3, alpha = 0.01, bias = 2.0> (x)"),
    (7, "float[2,3,4] x", "z = LpNormalization <axis = 1, p = 1> (x)"),
    (7, "float[2,3,4,4] x, float[3] s, float[3] b", "z = InstanceNormalization(x, s, b)"),
    (17, "float[2,3,4] x, float[4] s, float[4] b", "z = LayerNormalization(x, s, b)"),
    (
        17,
        "float[2,3,4] x, float[3,4] s",
        "z, m, v = LayerNormalization <axis = -2> (x, s)",
    ),
    (7, "float[1,8,2,3] x", "z = DepthToSpace <blocksize = 2> (x)"),
    (11, "float[1,8,2,3] x", 'z = DepthToSpace <blocksize = 2, mode = "CRD"> (x)'),
    (7, "float[1,2,4,6] x", "z = SpaceToDepth <blocksize = 2> (x)"),
    (12, "float[2,3,4] x, float[2,4,5] y", 'z = Einsum <equation = "bij,bjk->bki"> (x, y)'),
    (12, "float[2,3,3] x", 'z = Einsum <equation = "...ii->...i"> (x)'),
    (12, "float[2,3,4] x, float[4] y", 'z = Einsum <equation = "abc,c->a"> (x, y)'),
    (
        12,
        "float[2,3] x, float[3,4] y, float[4,5] c",
        'z = Einsum <equation = "ij,jk,kl"> (x, y, c)',
    ),
    (7, "float[2,3] x, float[3,4] y", "z = MatMul(x, y)"),
    (9, "float[5,2,3] x, float[3,4] y", "z = MatMul(x, y)"),
    (9, "float[3] x, float[5,3,4] y", "z = MatMul(x, y)"),
    (9, "float[5,2,3] x, float[3] y", "z = MatMul(x, y)"),
    (9, "float[2,3] x", "z = Shrink <bias = 0.1, lambd = 0.3> (x)"),
    (10, "float[2,3] x", "z = ThresholdedRelu <alpha = 0.2> (x)"),
    (7, "float[2,3] x", "z = HardSigmoid <alpha = 0.3> (x)"),
    (7, "float[2,3] x", "z = Selu(x)"),
    (12, "float[2,3] x", "z = Celu <alpha = 2.0> (x)"),
    (11, "float[2,3,4] x", "z = CumSum <reverse = 1, exclusive = 1> (x, a)", "int64 a = {1}"),
    (9, "float[3,4] x", "s = Shape(x) z = ConstantOfShape(s)"),
    (9, "float[3,4] x", "z = EyeLike <k = 1> (x)"),
    (10, "float[4,3,2] x", "z = ReverseSequence(x, n)", "int64[3] n = {1, 4, 2}"),
    (
        16,
        "float[1,2,4,5] x, float[1,3,3,2] g",
        'z = GridSample <mode = "bicubic", padding_mode = "reflection"> (x, g)',
    ),
    (
        16,
        "float[1,2,4,5] x, float[1,3,3,2] g",
        'z = GridSample <align_corners = 1, padding_mode = "border"> (x, g)',
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c[2].split('(')[0].split('= ')[1]}-{c[0]}")
def test_against_onnxruntime(case: tuple) -> None:
    opset, signature, body, *rest = case
    initial = f"<{rest[0]}>" if rest else ""
    text = (
        f'<ir_version: 8, opset_import: ["" : {opset}]>\n'
        f"g ({signature}) => (float[a] z) {initial} {{ {_lines(body)} }}"
    )
    model = onnx.parser.parse_model(text)
    model.graph.output[0].type.tensor_type.ClearField("shape")
    kind = onnx.TensorProto.INT64 if "Arg" in body else onnx.TensorProto.FLOAT
    model.graph.output[0].type.tensor_type.elem_type = kind
    if ", i =" in body:
        model.graph.output.append(
            onnx.helper.make_tensor_value_info("i", onnx.TensorProto.INT64, None)
        )
    data = model.SerializeToString()
    random = np.random.default_rng(3)
    inputs = {
        i.name: random.standard_normal([d.dim_value for d in i.type.tensor_type.shape.dim]).astype(
            np.float32
        )
        for i in model.graph.input
    }
    if "Pow" in body:
        inputs["x"] = np.abs(inputs["x"])
    want = ort_session(data).run(None, inputs)
    program = parse_onnx_buffer(data)
    got = Interpreter(program.module, program.store).run(inputs)
    for g, w in zip(got, want, strict=True):
        assert g.shape == w.shape
        assert g.dtype == w.dtype
        np.testing.assert_allclose(g, w, rtol=2e-5, atol=2e-6)


def _lines(body: str) -> str:
    """The nodes on lines of their own: a name followed by `=` or `,` starts one."""
    return body.replace(") ", ")\n ")
