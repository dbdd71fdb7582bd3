"""Images keep the order of their axes between the products of a net: few launches only turn them.

The net has what detectors and U-Nets have: parts of channels, concatenations of what is resized,
and a transposed convolution.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import mgx_mlir
from mgx_mlir.core.op import is_a
from mgx_mlir.dialects.migraphx.fused import Group
from mgx_mlir.passes.pipelines import pipeline
from mgx_mlir.rewrite.passes import run_pipeline
from tests.emulator.forms import Forms
from tests.emulator.oracle import LIMITS, wanted


def pyramid(dtype: str) -> Forms:
    g = Forms(0, dtype)

    def conv(x: str, channels: int, filters: int, window: int = 3, stride: int = 1) -> str:
        w = g.weight(filters, channels, window, window, scale=(window * window * channels) ** -0.5)
        bias, pads = g.weight(filters, scale=0.3), [window // 2] * 4
        return g.op("Relu", g.op("Conv", x, w, bias, pads=pads, strides=[stride, stride]))

    x = g.x(1, 3, 16, 24)
    fine = conv(conv(x, 3, 16, stride=2), 16, 32, 1)
    half = [g.ints(0), g.ints(16), g.ints(32), g.ints(1)]
    left = g.op("Slice", fine, half[0], half[1], half[3])
    right = g.op("Slice", fine, half[1], half[2], half[3])
    both = g.op("Concat", left, right, g.op("Add", right, conv(right, 16, 16)), axis=1)
    fine = conv(both, 48, 32, 1)
    coarse = conv(fine, 32, 64, stride=2)
    scales = g.weight(array=np.asarray([1, 1, 2, 2], np.float32))
    wide = g.op(
        "Resize", coarse, "", scales, mode="nearest", nearest_mode="floor",
        coordinate_transformation_mode="asymmetric",
    )  # fmt: skip
    merged = conv(g.op("Concat", wide, fine, axis=1), 96, 32)
    w = g.weight(32, 24, 2, 2, scale=0.2)
    up = g.op("ConvTranspose", merged, w, strides=[2, 2])
    y = conv(g.op("Concat", up, conv(x, 3, 24), axis=1), 48, 16)
    g.result(y, 1, 16, 16, 24)
    return g


def test_only_the_input_is_turned() -> None:
    program = mgx_mlir.parse_onnx_buffer(
        pyramid("f16").case_of().model.SerializeToString()
    ).program_ir
    run_pipeline(program.module, pipeline("gpu"), store=program.store)
    ops = program.main().regions[0].blocks[0].operations
    tags = [op.tag for op in ops if is_a(op, Group)]
    assert tags.count("convolution") + tags.count("dot") == 9
    assert tags.count("transpose") == 1, "the input has two readers, which need it in their order"


def test_the_net_is_right(library: Path) -> None:
    case = pyramid("f16").case_of()
    model = case.model.SerializeToString()
    got = mgx_mlir.compile(model, target="gpu", arch="gfx942", emulate=True).run(case.inputs)
    for a, b in zip(got, wanted(case), strict=True):
        wide = np.asarray(a, np.float64)
        assert np.linalg.norm(wide - b) <= LIMITS["f16"] * np.linalg.norm(b)


def test_dynamic_images_are_resized_and_padded_in_their_order(library: Path) -> None:
    """To the sizes of another one, as U-Nets do: the input and the result are turned, no more."""
    g = Forms(0, "f32")
    x = g.x(1, 3, 12, 16)

    def conv(x: str, channels: int, filters: int, stride: int = 1) -> str:
        w = g.weight(filters, channels, 3, 3, scale=(9 * channels) ** -0.5)
        return g.op("Relu", g.op("Conv", x, w, pads=[1] * 4, strides=[stride, stride]))

    fine = conv(x, 3, 16)
    coarse = conv(fine, 16, 16, 2)
    sizes = g.op("Concat", g.op("Shape", coarse, end=2), g.op("Shape", fine, start=2), axis=0)
    wide = g.op("Resize", coarse, "", "", sizes, mode="linear")
    both = g.op("Concat", wide, fine, axis=1)
    mirrored = g.op("Pad", both, g.ints(0, 0, 1, 2, 0, 0, 1, 2), mode="reflect")
    g.result(conv(mirrored, 32, 8), 1, 8, 14, 20)
    case = g.case_of()
    for value in (*case.model.graph.input, *case.model.graph.output):
        last = value in case.model.graph.output
        for axis, name in ((0, "n"), (2, "k" if last else "h"), (3, "l" if last else "w")):
            value.type.tensor_type.shape.dim[axis].dim_param = name
    model = case.model.SerializeToString()
    program = mgx_mlir.read_model(model)
    run_pipeline(program.module, pipeline("gpu"), store=program.store)
    ops = program.main().regions[0].blocks[0].operations
    assert [op.tag for op in ops if is_a(op, Group)].count("transpose") == 2
    made = mgx_mlir.compile(model, target="gpu", arch="gfx942", emulate=True)
    for a, b in zip(made.run(case.inputs), wanted(case), strict=True):
        assert np.linalg.norm(np.asarray(a, np.float64) - b) <= LIMITS["f32"] * np.linalg.norm(b)
