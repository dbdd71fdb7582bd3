"""Choices of the TensorFlow importer: NaN, complex numbers, dynamic channels, steps of fused
nodes."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import mgx_mlir
from mgx_mlir.core.errors import MgxError

sys.path.insert(0, str(Path(__file__).parent))

from tf_graphs import FLOAT, INT32, Graph

NAN, INF = np.nan, np.inf
X = np.array([[1, NAN, 3, 2], [NAN, 1, NAN, 0], [-INF, INF, NAN, 1], [5, 4, NAN, NAN]], np.float32)


def result(g, *inputs, target="ref", **options):
    return mgx_mlir.compile(g.parse(**options), target, cache=False).run(*inputs)


@pytest.mark.parametrize("target", ["ref", "cpu"])
def test_nan_is_as_the_page_says(target):
    """The table of docs/tensorflow.md."""
    g = Graph()
    g.placeholder(dims=(4, 4))
    g.const("one", np.array(1, np.int32))
    for op in ("ArgMax", "ArgMin"):
        g.node(op, op, "x", "one")
    g.const("two", np.array(2, np.int32))
    g.node("TopKV2", "TopKV2", "x", "two", sorted=True)
    g.node("Bucketize", "Bucketize", "x").attr["boundaries"].list.f.extend([0.0, 2.0])
    g.node("Softmax", "Softmax", "x")
    for number in (INT32, 6, 4):  # int8, uint8
        cast = g.node(f"Cast{number}", "Cast", "x")
        cast.attr["SrcT"].type, cast.attr["DstT"].type = FLOAT, number
    names = ["ArgMax", "ArgMin", "TopKV2:0", "TopKV2:1", "Bucketize", "Softmax"]
    found = result(g, X, target=target, output_names=[*names, f"Cast{INT32}", "Cast6", "Cast4"])
    largest, least, values, places, buckets, shares, wide, narrow, unsigned = found
    np.testing.assert_array_equal(largest, [1, 0, 2, 2])
    np.testing.assert_array_equal(least, [1, 0, 2, 2])
    np.testing.assert_array_equal(values, [[NAN, 3], [NAN, NAN], [NAN, INF], [NAN, NAN]])
    np.testing.assert_array_equal(places, [[1, 2], [0, 2], [2, 1], [2, 3]])
    np.testing.assert_array_equal(buckets, [[1, 2, 2, 2], [2, 1, 2, 1], [0, 2, 2, 1], [2, 2, 2, 2]])
    assert np.isnan(shares).all()
    np.testing.assert_array_equal(wide[2], [-(2**31), 2**31 - 1, 0, 1])
    np.testing.assert_array_equal(narrow[2], [-128, 127, 0, 1])
    np.testing.assert_array_equal(unsigned[2], [0, 255, 0, 1])


def spectrum():
    g = Graph()
    g.placeholder(dims=(2, 8))
    g.const("n", np.array([8], np.int32))
    g.node("s", "RFFT", "x", "n")
    return g


def test_complex_outputs_are_refused():
    with pytest.raises(MgxError, match="got a tensor of complex numbers"):
        spectrum().parse()


def test_operators_without_a_form_for_complex_numbers_are_named():
    g = spectrum()
    g.node("y", "Sqrt", "s")
    g.node("z", "Real", "y")
    with pytest.raises(MgxError, match="Sqrt: complex numbers"):
        g.parse()


def test_lengths_that_do_not_fit_the_axes():
    g = spectrum()
    g.const("two", np.array([2, 8], np.int32))
    g.proto.node[2].input[1] = "two"
    g.node("z", "Real", "s")
    with pytest.raises(MgxError, match="fft_length expected 1 numbers, got 2"):
        g.parse()


def test_a_convolution_of_dynamic_channels():
    """One group: another number of channels is an error of the run."""
    g = Graph()
    g.placeholder(dims=(-1, -1, -1, -1))
    random = np.random.RandomState(0)
    w = random.standard_normal((1, 1, 3, 4)).astype(np.float32)
    g.const("w", w)
    g.node("y", "Conv2D", "x", "w", strides=[1, 1, 1, 1], padding="SAME")
    compiled = mgx_mlir.compile(g.parse(batch_size=None), "ref", cache=False)
    x = random.standard_normal((2, 5, 6, 3)).astype(np.float32)
    np.testing.assert_allclose(compiled.run(x)[0], x @ w[0, 0], rtol=1e-5, atol=1e-6)
    with pytest.raises(MgxError):
        compiled.run(x[..., :2])


def fused(steps, *args):
    g = Graph()
    g.placeholder(dims=(2, 3))
    g.const("w", np.ones((3, 2), np.float32))
    g.const("b", np.ones(2, np.float32))
    node = g.node("y", "_FusedMatMul", "x", "w", *args, num_args=len(args))
    node.attr["fused_ops"].list.s.extend(s.encode() for s in steps)
    return g


@pytest.mark.parametrize(
    ("steps", "args", "message"),
    [
        (["BiasAdd", "Swish"], "b", "step 'Swish' of fused_ops"),
        (["BiasAdd"], "", "step 'BiasAdd' of fused_ops expected 1 more operands"),
        (["Relu"], "b", "the steps of fused_ops leave 1 operands"),
    ],
)
def test_steps_that_are_not_known_or_do_not_fit(steps, args, message):
    with pytest.raises(MgxError, match=message):
        fused(steps, *args).parse()


def test_a_list_that_a_write_makes_longer():
    g = Graph()
    g.placeholder(dims=(2, 3))
    g.const("n", np.array(0, np.int32))
    g.const("dims", np.array([2, 3], np.int32))
    g.node("list", "TensorListReserve", "dims", "n").attr["element_dtype"].type = FLOAT
    g.node("more", "TensorListSetItem", "list", "n", "x", resize_if_index_out_of_bounds=True)
    g.node("y", "TensorListStack", "more", "dims").attr["element_dtype"].type = FLOAT
    with pytest.raises(MgxError, match="a write beyond the end of a tensor list"):
        g.parse()


def test_colours_of_dynamic_channels():
    g = Graph()
    g.placeholder(dims=(-1, -1))
    g.node("y", "RGBToHSV", "x")
    compiled = mgx_mlir.compile(g.parse(batch_size=None), "ref", cache=False)
    [found] = compiled.run(np.array([[1, 0, 0], [0.5, 0.5, 0.5]], np.float32))
    np.testing.assert_allclose(found, [[0, 1, 1], [0, 0, 0.5]], atol=1e-6)
    for channels in (4, 6):  # six are no two pixels
        with pytest.raises(MgxError, match="channels of extent 3 along dim 1"):
            compiled.run(np.zeros((2, channels), np.float32))


def test_a_filter_of_fewer_channels_than_the_run_has():
    g = Graph()
    g.placeholder(dims=(1, -1, 5, -1))
    g.const("w", np.ones((2, 2, 1, 2), np.float32))
    node = g.node("y", "Conv2D", "x", "w", strides=[1, 1, 1, 1])
    node.attr["padding"].s = b"VALID"
    compiled = mgx_mlir.compile(g.parse(batch_size=None), "ref", cache=False)
    assert compiled.run(np.ones((1, 4, 5, 1), np.float32))[0].shape == (1, 3, 4, 2)
    with pytest.raises(MgxError, match="an input of extent 1 along dim 1"):
        compiled.run(np.ones((1, 4, 5, 2), np.float32))


def test_dynamic_dims_are_question_marks_in_messages():
    g = Graph()
    g.placeholder(dims=(2, -1, -1))
    g.node("y", "DiagPart", "x")
    with pytest.raises(MgxError, match=r"got \{2, \?, \?\}"):
        g.parse(batch_size=None)


INVALID = {
    "Slice": ("begin of 0 or more", {"begin": [0, -2], "size": [2, 1]}),
    "MirrorPad": ("paddings of up to dim 1", {"paddings": [[0, 0], [1, 4]]}),
}


@pytest.mark.parametrize("dynamic_dims", [False, True])
@pytest.mark.parametrize("op", INVALID)
def test_amounts_that_tensorflow_refuses(op, dynamic_dims):
    told, operands = INVALID[op]
    g = Graph()
    g.placeholder(dims=(-1, -1) if dynamic_dims else (2, 3))
    for name, value in operands.items():
        g.const(name, np.array(value, np.int32))
    made = g.node("y", op, "x", *operands)
    if op == "MirrorPad":
        made.attr["mode"].s = b"SYMMETRIC"
    with pytest.raises(MgxError, match=told):
        mgx_mlir.compile(g.parse(batch_size=None), "ref", cache=False).run(np.ones((2, 3), "f4"))


@pytest.mark.parametrize("width", [1, 2])
@pytest.mark.parametrize("dynamic_dims", [False, True])
def test_a_window_longer_than_the_image(dynamic_dims, width):
    """TensorFlow gives no windows, or an error where there are 2 strides less than one."""
    g = Graph()
    g.placeholder(dims=(1, -1, -1, 2) if dynamic_dims else (1, 5, width, 2))
    node = g.node("y", "ExtractImagePatches", "x", ksizes=[1, 3, 3, 1], strides=[1, 1, 1, 1],
                  rates=[1, 1, 1, 1], padding="VALID")  # fmt: skip
    assert node.attr["padding"].s == b"VALID"
    x = np.ones((1, 5, width, 2), np.float32)
    if width == 2:
        assert result(g, x, batch_size=None)[0].shape == (1, 3, 0, 18)
        return
    with pytest.raises(MgxError, match="at least 2 elements along dim 2, for a window of 3"):
        result(g, x, batch_size=None)
