"""Dynamic dims are read where fixed ones are, with the same numbers, and the reverse.

The onnx package's cases on `ref`, the dims of their first input dynamic. `-m slow` has all of them.
"""

from __future__ import annotations

import functools
import os
import sys
from dataclasses import replace

sys.path.insert(0, os.path.dirname(__file__))

import backend_cases
import numpy as np
import pytest
from onnx import parser

import mgx_mlir
from mgx_mlir.core.errors import RunError, ShapeError, UnsupportedModel
from tests.support.compare import agrees
from tests.support.oracle import ort_session

# refused where dynamic: documented in docs/onnx-operators.md
REFUSED = ("matrices of dynamic dims", "shape of dynamic dims")
OTHER_DRAWS = ("test_bernoulli", "test_training_dropout")  # random numbers of another generator
SOME = (
    "test_attention_4d_gqa", "test_attention_4d_gqa_causal", "test_attention_4d_gqa_with_past",
    "test_attention_3d", "test_attention_3d_gqa_causal", "test_rotary_embedding_3d_input",
    "test_rotary_embedding", "test_rotary_embedding_no_position_ids_rotary_dim", "test_dft",
    "test_dft_opset19", "test_affine_grid_2d", "test_stft_with_window", "test_operator_params",
    "test_gridsample_bicubic", "test_instancenorm_example", "test_batchnorm_example",
    "test_deform_conv_with_mask_bias", "test_tensorscatter", "test_tensorscatter_circular",
    "test_quantizelinear_blocked_asymmetric", "test_quantizelinear_blocked_symmetric",
    "test_dequantizelinear_blocked", "test_tfidfvectorizer_tf_batch_uniandbigrams_skip5",
    "test_tfidfvectorizer_tf_onlybigrams_skip0", "test_tfidfvectorizer_tf_uniandbigrams_skip5",
)  # fmt: skip


def differs(case: backend_cases.Case, inputs: int | None) -> str:
    kind, why = backend_cases.run(case)
    other, text = backend_cases.run(
        replace(case, model=backend_cases.with_dynamic_dims(case.model, inputs), atol=1e-6)
    )
    if kind == other or any(r in text for r in REFUSED):
        return ""
    return f"{case.name}: {kind} {why} with fixed dims, {other} {text} with dynamic ones"


@functools.cache
def all_cases() -> list[backend_cases.Case]:
    stored = [c for k in ("pytorch-operator", "simple") for c in backend_cases.stored_cases(k)]
    return [c for c in (*backend_cases.node_cases(), *stored) if not c.name.startswith(OTHER_DRAWS)]


def test_some_cases() -> None:
    assert [d for c in all_cases() if c.name in SOME for d in [differs(c, 1)] if d] == []


@pytest.mark.slow
def test_all_cases() -> None:
    assert [d for c in all_cases() for d in [differs(c, 1)] if d] == []


@pytest.mark.parametrize("name", ["test_gridsample_border_padding", "test_reflect_pad",
                                  "test_resize_upsample_scales_nearest"])  # fmt: skip
def test_lengths_that_ranks_imply(name: str) -> None:
    (case,) = [c for c in all_cases() if c.name == name]
    assert differs(case, None) == ""


def model(inputs: str, outputs: str, body: str, opset: int = 18) -> bytes:
    text = f'<ir_version: 10, opset_import: ["": {opset}]> g ({inputs}) => ({outputs}) {{{body}}}'
    return parser.parse_model(text).SerializeToString()


@pytest.mark.parametrize("channels", ["4", "c"])
def test_a_bias_of_one_element_for_four_channels(channels: str) -> None:
    """onnxruntime refuses it in the run."""
    norm = "y = BatchNormalization(x,s,s,s,s)"
    for dims in ("5", "n"):
        data = model(
            f"float[1,3,{dims}] x",
            "float[1,4,m] y",
            """w = Constant<value = float[4,3,1] {1,1,1,1,1,1,1,1,1,1,1,1}>()
               s = Constant<value = float[1] {1}>() y = Conv(x,w,s)""",
        )
        with pytest.raises(ShapeError):
            mgx_mlir.compile(data, "ref")
    data = model(f"float[1,{channels},2] x, float[k] s", "float[1,d,2] y", norm)
    program = mgx_mlir.compile(data, "ref")
    x = np.ones((1, 4, 2), np.float32)
    assert program.run({"x": x, "s": np.ones(4, np.float32)})[0].shape == x.shape
    with pytest.raises(RunError, match=r"expected (a vector as long as dim 1|float_type .4.)"):
        program.run({"x": x, "s": np.ones(1, np.float32)})


def test_blocks_of_dynamic_dims() -> None:
    """One scale for each block; another number of blocks or rows is an error of the run."""
    data = model(
        "float[n,m] x, float[r,k] s",
        "float[n,m] y",
        "q = QuantizeLinear<axis = 1, block_size = 4>(x, s)"
        "y = DequantizeLinear<axis = -1, block_size = 4>(q, s)",
        opset=21,
    )
    draws = np.random.default_rng(0)
    calls = [
        {"x": 30 + draws.random((n, m), np.float32), "s": 1 + draws.random((n, k), np.float32)}
        for n, m, k in ((2, 7, 2), (1, 4, 1), (3, 9, 3))
    ]
    program = agrees(data, calls, "ref")
    x, s = calls[0]["x"], calls[0]["s"]
    for wrong in (s[:, :1], np.ones((2, 3), np.float32), s[:1]):
        with pytest.raises(RunError, match=r"a scale (for each block of 4|of the input's dim 0)"):
            program.run({"x": x, "s": wrong})


@pytest.mark.parametrize("target", ["ref", "cpu"])
def test_convolutions_by_dynamic_weights(target: str) -> None:
    data = model(
        "float[n,3,h,w] x, float[o,i,k,l] f",
        "float[a,b,c,d] y, float[a,e,g,m] z",
        "y = Conv<kernel_shape = [3,2], pads = [1,0,1,0]>(x, f)"
        "t = Transpose<perm = [1,0,2,3]>(f)"
        "z = ConvTranspose<kernel_shape = [3,2], strides = [2,1]>(x, t)",
    )
    draws = np.random.default_rng(0)
    calls = [
        {"x": draws.random((n, 3, h, w), np.float32), "f": draws.random((o, 3, 3, 2), np.float32)}
        for n, h, w, o in ((2, 5, 6, 4), (1, 3, 2, 7))
    ]
    program = agrees(data, calls, target)
    for wrong in (np.ones((4, 3, 2, 2)), np.ones((4, 3, 3, 3)), np.ones((4, 1, 3, 2))):
        with pytest.raises(RunError):
            program.run({"x": calls[0]["x"], "f": wrong.astype(np.float32)})


def test_weights_of_unknown_windows_are_refused() -> None:
    data = model("float[1,3,8,8] x, float[o,3,k,3] f", "float[1,b,c,d] y", "y = Conv(x, f)")
    with pytest.raises(UnsupportedModel, match=r"dims \{\?, 3, \?, 3\} without kernel_shape") as e:
        mgx_mlir.compile(data, "ref")
    assert "fixed dims are read: --input-dim" in str(e.value)
    assert "skip_unknown_operators" not in str(e.value)


PARTS = """s = SplitToSequence<axis = 0>(x,p) l = SequenceLength(s) a = SequenceAt(s,i)
  c = ConcatFromSequence<axis = 0>(s)"""


@pytest.mark.parametrize("dims", ["5", "n"])
@pytest.mark.parametrize("target", ["ref", "cpu"])
def test_parts_of_one_length(dims: str, target: str) -> None:
    data = model(
        f"float[{dims},3] x, int64 p, int64 i", "int64 l, float[a,3] a, float[b,3] c", PARTS
    )
    calls = [
        {
            "x": np.arange(3 * rows, dtype=np.float32).reshape(rows, 3),
            "p": np.array(part),
            "i": np.array(i),
        }
        for rows in ((5, 4, 1) if dims == "n" else (5,))
        for part, i in ((2, 0), (2, -1), (1, 0), (5, 0), (9, -1))
    ]
    program = agrees(data, calls, target, rtol=0, atol=0)
    x = np.ones((5, 3), np.float32)
    for part, i, text in ((0, 0, "split"), (-1, 0, "split"), (2, 3, "position"), (2, -4, "pos")):
        with pytest.raises(RunError, match=text):
            program.run({"x": x, "p": np.array(part), "i": np.array(i)})


@pytest.mark.parametrize("rows", [4, 5])
def test_parts_that_are_stacked(rows: int) -> None:
    """Parts of one length are a stack; a last part that has less is no row of it."""
    data = model(
        "float[n,3] x", "float[2,m] y",
        """p = Constant<value_int = 2>() s = SplitToSequence<axis = 0>(x,p)
           y = ConcatFromSequence<axis = 1>(s)""",
    )  # fmt: skip
    x = np.arange(3 * rows, dtype=np.float32).reshape(rows, 3)
    program = mgx_mlir.compile(data, "ref")
    if rows == 5:
        with pytest.raises(RunError, match="dim 0 divided into equal parts"):
            program.run({"x": x})
    else:
        np.testing.assert_array_equal(program.run({"x": x})[0], np.concatenate([x[:2], x[2:]], 1))


@pytest.mark.parametrize("dims", [("2", "2"), ("2", "3"), ("n", "n"), ("n", "m")])
@pytest.mark.parametrize("target", ["ref", "cpu"])
def test_an_element_at_a_position_of_the_run(dims: tuple[str, str], target: str) -> None:
    data = model(
        f"float[{dims[0]}] a, float[{dims[1]}] c, int64 p", "float[k] y",
        "s = SequenceConstruct(a,c) y = SequenceAt(s,p)",
    )  # fmt: skip
    program = mgx_mlir.compile(data, target)
    a, c = np.ones(2, np.float32), np.zeros(2 if dims[0] == dims[1] else 3, np.float32)
    for p, want in ((0, a), (1, c), (-1, c), (-2, a)):
        np.testing.assert_array_equal(program.run({"a": a, "c": c, "p": np.array(p)})[0], want)
    for p in (2, -3):
        with pytest.raises(RunError, match=rf"position in \[-2, 2\), got {p}"):
            program.run({"a": a, "c": c, "p": np.array(p)})


IF = """y = If(k) <then_branch = t () => (float u) {{ u = Add(x,x) }},
                 else_branch = e () => (float v) {{ o = Constant<value = float[{ones}] {{1}}>()
                                                  v = Add(x,o) }}>"""
ONE_ELEMENT = [
    IF.format(ones="1"),
    IF.format(ones="1,1"),
    """one = Constant<value_int = 3>()
       y = Loop(one,k,x) <body = b (int64 i, bool g, float s) => (bool h, float z) {
           h = Identity(k) o = Constant<value_floats = [1.0]>() z = Add(s,o) }>""",
]


@pytest.mark.parametrize("body", ONE_ELEMENT)
def test_one_element_at_the_borders_of_bodies(body: str) -> None:
    """A body states a 0-d result and gives one of dims {1}: one element, of the stated rank."""
    data = model("bool k, float x", "float y", body)
    program = mgx_mlir.compile(data, "ref")
    source = parser.parse_model(
        f'<ir_version: 8, opset_import: ["": 18]> g (bool k, float x) => (y) {{{body}}}'
    ).SerializeToString()
    session = ort_session(source)
    for k in (True, False):
        call = {"k": np.array(k), "x": np.array(3, np.float32)}
        (got,), (want,) = program.run(call), session.run(None, call)
        assert got.shape == ()
        assert got == np.reshape(want, ())
