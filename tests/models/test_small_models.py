"""Whole models of each family on the targets, against onnxruntime."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto

import mgx_mlir
from zoo import made, redraw

Inputs = dict[str, np.ndarray]
LIMIT = 1e-4  # max|a-b| / max|b| per output, as the project states it for whole models


def run_onnxruntime(model: ModelProto, inputs: Inputs) -> list[np.ndarray]:
    return redraw.run_onnxruntime(model, inputs)


def draw(model: ModelProto, seed: int = 0, **sizes: int) -> Inputs:
    """Inputs for a made model; `sizes` are the dynamic dimensions."""
    rng = np.random.default_rng(seed)
    result = {}
    for value in model.graph.input:
        kind = value.type.tensor_type
        dims = [sizes[d.dim_param] if d.dim_param else d.dim_value for d in kind.shape.dim]
        if kind.elem_type == made.FLOAT:
            result[value.name] = rng.standard_normal(dims).astype(np.float32)
        elif value.name == "attention_mask":
            result[value.name] = (
                (np.arange(dims[1]) < dims[1] - 2).astype(np.int64)[None].repeat(dims[0], 0)
            )
        else:
            result[value.name] = rng.integers(0, 50, dims)
    return result


def assert_agrees(got: list[np.ndarray], wanted: list[np.ndarray]) -> None:
    assert len(got) == len(wanted)
    for a, b in zip(got, wanted, strict=True):
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        assert np.isfinite(b).all()
        if b.dtype.kind in "iub":
            np.testing.assert_array_equal(a, b)
        else:
            assert b.std() > 0.01 * np.abs(b).max(), "the oracle's output is flat: a blind test"
            assert np.abs(a - b).max() / np.abs(b).max() < LIMIT


STATIC: dict[str, Callable[[], ModelProto]] = {
    "conv_net": made.conv_net,
    "transformer": made.transformer,
    "decoder": made.decoder,
    "prefill": made.prefill,
    "mlp": lambda: made.mlp(3),
    "shape_arithmetic": made.shape_arithmetic,
}


@pytest.mark.parametrize("target", ["ref", "cpu"])
@pytest.mark.parametrize("name", STATIC)
def test_static(name: str, target: str) -> None:
    model = STATIC[name]()
    inputs = draw(model)
    program = mgx_mlir.compile(model.SerializeToString(), target=target)
    assert list(program.input_names) == [value.name for value in model.graph.input]
    assert list(program.output_names) == [value.name for value in model.graph.output]
    assert_agrees(program.run(inputs), run_onnxruntime(model, inputs))


@pytest.mark.parametrize("name", ["decoder", "prefill"])
def test_gpu_kernels_are_compiled_as_they_are(name: str) -> None:
    """One query's attention once crashed the compiler; the program then had no kernels of ours."""
    model = STATIC[name]().SerializeToString()
    program = mgx_mlir.compile(model, target="gpu", arch="gfx942", cache=False)
    assert program.executable.fallbacks == ()


SIZE = {"n": 3, "s": 14}
DYNAMIC: dict[str, tuple[Callable[[], ModelProto], list[dict[str, int]]]] = {
    "conv_net": (lambda: made.conv_net("n"), [{"n": 1}, {"n": 3}]),
    "transformer": (
        lambda: made.transformer("n", "s"),
        [{"n": 1, "s": 1}, {"n": 2, "s": 12}, {"n": 3, "s": 33}],
    ),
    "decoder": (lambda: made.decoder("n", "p"), [{"n": 1, "p": 1}, {"n": 2, "p": 19}]),
    "prefill": (lambda: made.prefill("n", "s"), [{"n": 1, "s": 2}, {"n": 2, "s": 17}]),
    "mlp": (made.mlp, [{"batch": 2}, {"batch": 64}]),
    "shape_arithmetic": (lambda: made.shape_arithmetic("n", "s"), [{"n": 1, "s": 1}, SIZE]),
}


@functools.cache
def dynamic(name: str) -> tuple[ModelProto, Any]:
    """A model with dynamic dimensions, compiled once for all tests: it takes the longest here."""
    model = DYNAMIC[name][0]()
    return model, mgx_mlir.compile(model.SerializeToString(), target="cpu")


@pytest.mark.parametrize("name", DYNAMIC)
def test_dynamic(name: str) -> None:
    """One compile, several sizes."""
    _, sizes = DYNAMIC[name]
    model, program = dynamic(name)
    for size in sizes:
        inputs = draw(model, **size)
        assert_agrees(program.run(inputs), run_onnxruntime(model, inputs))


def test_no_tokens() -> None:
    """An extent of 0 in a run is one, not a request to copy another."""
    _, program = dynamic("transformer")
    inputs = draw(made.transformer("n", "s"), n=2, s=0)
    assert [a.shape for a in program.run(inputs)] == [(2, 0, 32)]


def test_second_run_does_not_depend_on_the_first() -> None:
    model, program = dynamic("transformer")
    first = draw(model, 1, n=2, s=8)
    before = [array.copy() for array in program.run(first)]
    program.run(draw(model, 2, n=1, s=20))
    for a, b in zip(program.run(first), before, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("threads", [1, 2])
def test_threads_give_the_same_answer(threads: int) -> None:
    model = made.conv_net()
    inputs = draw(model)
    program = mgx_mlir.compile(model.SerializeToString(), target="cpu", threads=threads)
    assert_agrees(program.run(inputs), run_onnxruntime(model, inputs))


def test_a_changed_weight_is_seen() -> None:
    """The comparison above can fail: one flipped sign is past the limit."""
    model = made.conv_net()
    inputs = draw(model)
    wanted = run_onnxruntime(model, inputs)
    kernel = next(n for n in model.graph.node if n.op_type == "Conv").input[1]
    tensor = next(t for t in model.graph.initializer if t.name == kernel)
    weights = onnx.numpy_helper.to_array(tensor).copy()
    largest = np.abs(weights).argmax()
    weights.flat[largest] *= -1
    tensor.CopyFrom(onnx.numpy_helper.from_array(weights, kernel))
    got = mgx_mlir.compile(model.SerializeToString(), target="cpu").run(inputs)
    with pytest.raises(AssertionError):
        assert_agrees(got, wanted)


def test_the_smallest_light_model_with_drawn_weights() -> None:
    model = redraw.redraw(redraw.load("squeezenet"))
    inputs = redraw.inputs_of(model)
    program = mgx_mlir.compile(model.SerializeToString(), target="cpu")
    assert_agrees(program.run(inputs), run_onnxruntime(model, inputs))


@pytest.mark.slow
@pytest.mark.parametrize("name", redraw.NAMES)
@pytest.mark.parametrize("weights", ["shipped", "drawn"])
def test_light_models(name: str, weights: str) -> None:
    model = redraw.load(name)
    if weights == "drawn":
        model = redraw.redraw(model)
    inputs = redraw.inputs_of(model)
    program = mgx_mlir.compile(model.SerializeToString(), target="cpu")
    got, wanted = program.run(inputs), run_onnxruntime(model, inputs)
    for a, b in zip(got, wanted, strict=True):
        assert np.abs(a - b).max() / np.abs(b).max() < LIMIT
