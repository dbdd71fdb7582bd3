"""Resize by scales that f32 cannot hold, and GridSample at and beyond the border."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

import mgx_mlir
from tests.support.compare import agrees
from tests.support.models import bytes_of, node, parsed_bytes

F32 = TensorProto.FLOAT
# for 20 to 102 of the lengths up to 512 the product is a whole number in f32, and just below in f64
SCALES = (0.7, 0.9, 1.3, 1.4, 1.8, 1.9, 2.1, 2.3, 2.6, 2.8, 3.1, 3.3, 3.6, 3.8)


def model_of(
    nodes: list[Any], feeds: dict[str, np.ndarray], held: dict[str, Any], opset: int, names: Any
) -> bytes:
    inputs = {k: names or v for k, v in feeds.items()}
    weights = {k: np.array(v, np.float32) for k, v in held.items()}
    return bytes_of(nodes, inputs, " ".join(n.output[0] for n in nodes), weights, opset=opset)


def agree(
    nodes: list[Any], feeds: dict[str, np.ndarray], held: dict[str, Any], target: str,
    *, opset: int = 19, names: Any = None,
) -> None:  # fmt: skip
    agrees(model_of(nodes, feeds, held, opset, names), [feeds], target, atol=2e-5)


@pytest.mark.parametrize("target", ["ref", "cpu"])
@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_an_infinity_reaches_what_weighs_it(value: float, target: str) -> None:
    """Not the image next to it, whose batch is dynamic, nor pixels that lie elsewhere."""
    parts = [
        node("Shape", "x", "lead", end=2),
        node("Concat", "lead space", "sizes", axis=0),
        node("Resize", "x _ _ sizes", "y", mode="linear",
             coordinate_transformation_mode="half_pixel"),
    ]  # fmt: skip
    x = np.arange(40, dtype=np.float32).reshape(2, 2, 2, 5)
    for names in (["N", 2, 2, 5], ["N", "C", "H", "W"]):
        data = bytes_of(parts, {"x": names}, "y", {"space": np.array([4, 7])}, opset=19)
        compiled = mgx_mlir.compile(data, target, cache=False)

        def of(v: float, compiled: Any = compiled) -> np.ndarray:
            given = x.copy()
            given[1, 0, 0, 1] = v
            return np.asarray(compiled.run({"x": given})[0])

        found, plain = of(value), of(0)
        weighed = of(1000) != plain
        np.testing.assert_allclose(found[~weighed], plain[~weighed], rtol=1e-6)
        assert weighed.sum() < 20
        assert not np.isfinite(found[weighed]).any()


@pytest.mark.parametrize(
    ("mode", "coordinates", "nearest"),
    [
        ("nearest", "asymmetric", "floor"), ("nearest", "asymmetric", "ceil"),
        ("linear", "half_pixel", "floor"), ("cubic", "half_pixel", "floor"),
    ],
)  # fmt: skip
def test_resize_by_scales_of_many_lengths(mode: str, coordinates: str, nearest: str) -> None:
    rng = np.random.default_rng(0)
    nodes, feeds, held = [], {}, {}
    for scale in (*SCALES, 0.6):
        whole = [n for n in range(3, 200) if np.floor(np.float32(scale) * np.float32(n)) % 1 == 0]
        for n in (20, 50, *rng.choice(whole, 2, replace=False)):
            at = f"{scale}_{n}"
            feeds[f"x{at}"] = rng.standard_normal((1, 1, 2, n)).astype(np.float32)
            held[f"s{at}"] = [1, 1, 1, scale]
            nodes.append(
                helper.make_node(
                    "Resize", [f"x{at}", "", f"s{at}"], [f"y{at}"], mode=mode,
                    coordinate_transformation_mode=coordinates, nearest_mode=nearest,
                )
            )  # fmt: skip
    agree(nodes, feeds, held, "ref")


def test_resize_by_scales_compiled() -> None:
    """Dynamic and known extents, opset 10 among them."""
    x = np.random.default_rng(1).standard_normal((1, 1, 2, 20)).astype(np.float32)
    linear = {"mode": "linear", "coordinate_transformation_mode": "half_pixel"}
    floor = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    nodes = [
        helper.make_node("Resize", ["x", "", f"s{i}"], [f"y{i}{j}"], **how)
        for i in range(2) for j, how in enumerate((linear, floor))
    ]  # fmt: skip
    held = {"s0": [1, 1, 1, 0.7], "s1": [1, 1, 1, 0.6]}
    for names in (None, [1, 1, 2, "n"]):
        agree(nodes, {"x": x}, held, "cpu", names=names)
    old = [helper.make_node("Resize", ["x", "s0"], ["y"])]
    agree(old, {"x": x}, {"s0": held["s0"]}, "cpu", opset=10)


CORNERS = ("align_corners", "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel",
           "asymmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize")  # fmt: skip
FRACTIONS = (1.7, 0.7, 0.3, 2.3, 0.15)  # 0.15: one element, or none


def resized(
    x: str, out: str, space: int, scale: float, how: dict[str, Any], held: dict[str, Any]
) -> Any:
    """A node that resizes `space` axes behind batch and channels."""
    held[f"s{out}"] = [1, 1] + [scale] * space
    roi = ""
    if how["coordinate_transformation_mode"] == "tf_crop_and_resize":
        roi, how = f"r{out}", how | {"extrapolation_value": 5.0}
        held[roi] = [0, 0] + [0.1] * space + [1, 1] + [0.8] * space
    return helper.make_node("Resize", [x, roi, f"s{out}"], [f"y{out}"], **how)


@pytest.mark.parametrize("coordinates", CORNERS)
def test_resize_by_fractions(coordinates: str) -> None:
    """The extent that counts is the rounded one, in every mode, of one to three axes."""
    rng = np.random.default_rng(0)
    forms: list[tuple[int, dict[str, Any]]] = [
        (1, {"mode": "linear"}), (2, {"mode": "linear"}), (3, {"mode": "linear"}),
        (2, {"mode": "cubic"}), (2, {"mode": "cubic", "antialias": 1}),
        (2, {"mode": "linear", "antialias": 1}), (2, {"mode": "cubic", "exclude_outside": 1}),
        *((n, {"mode": "nearest", "nearest_mode": how})
          for n, how in ((1, "round_prefer_floor"), (2, "floor"), (3, "ceil"))),
    ]  # fmt: skip
    feeds = {
        f"x{n}": rng.standard_normal((1, 2, 4, 3, 5)[: n + 2]).astype(np.float32) for n in (1, 2, 3)
    }
    nodes, held = [], {}
    for i, (n, how) in enumerate(forms):
        how["coordinate_transformation_mode"] = coordinates
        # onnxruntime has no antialiased crops
        if how.get("antialias") and coordinates == "tf_crop_and_resize":
            continue
        nodes += [resized(f"x{n}", f"{i}_{j}", n, s, how, held) for j, s in enumerate(FRACTIONS)]
    agree(nodes, feeds, held, "ref")


@pytest.mark.parametrize("names", [None, [1, 1, "h", "w"]], ids=["fixed", "dynamic"])
def test_resize_by_fractions_compiled(names: Any) -> None:
    """The form that `nn.Upsample(scale_factor=1.7, align_corners=True)` exports."""
    x = np.random.default_rng(0).standard_normal((1, 1, 7, 5)).astype(np.float32)
    held: dict[str, Any] = {}
    nodes = [
        resized("x", f"{c}{m}", 2, 1.7, {"mode": m, "coordinate_transformation_mode": c}, held)
        for c, m in (("align_corners", "linear"), ("align_corners", "cubic"),
                     ("half_pixel_symmetric", "linear"), ("align_corners", "nearest"))
    ]  # fmt: skip
    agree(nodes, {"x": x}, held, "cpu", names=names)


def test_resize_by_fractions_of_the_run() -> None:
    x = np.random.default_rng(0).standard_normal((1, 1, 7, 5)).astype(np.float32)
    node = helper.make_node(
        "Resize", ["x", "", "s"], ["y"], mode="linear",
        coordinate_transformation_mode="align_corners",
    )  # fmt: skip
    for scale in (1.7, 0.15):
        scales = np.array([1, 1, scale, 1.7], np.float32)
        agree([node], {"x": x, "s": scales}, {}, "ref")


SIZED = """g (float[n,3,h,w] x, float[a,b,i,j] q) => (
    float[n,3,i,j] plain, float[n,3,i,j] corners, float[n,3,i,j] left, float[n,3,i,j] torch,
    float[n,3,h,k] wider) {
    two = Constant <value_int = 2> ()
    kept = Shape <end = 2> (x)
    wanted = Shape <start = 2> (q)
    sizes = Concat <axis = 0> (kept, wanted)
    plain = Resize <mode = "linear"> (x, , , sizes)
    corners = Resize <mode = "linear", coordinate_transformation_mode = "align_corners"> (
        x, , , sizes)
    left = Resize <mode = "linear", coordinate_transformation_mode = "asymmetric"> (x, , , sizes)
    torch = Resize <mode = "linear", coordinate_transformation_mode = "pytorch_half_pixel"> (
        x, , , sizes)
    ahead = Shape <end = 3> (x)
    last = Shape <start = 3> (x)
    twice = Mul (last, two)
    three = Add (twice, two)
    others = Concat <axis = 0> (ahead, three)
    wider = Resize <mode = "linear"> (x, , , others)
}"""


@pytest.mark.parametrize("names", [None, [1, 1, "n"]])
def test_nearest_by_sizes_finds_each_element_that_a_position_is_on(names: Any) -> None:
    """floor(position * input / output) in whole numbers, as PyTorch's interpolate."""
    for length, extent in [(100, 28), (50, 14), (49, 7), (10, 6), (28, 100), (224, 7)]:
        resize = node("Resize", "x _ _ sizes", "y", mode="nearest", nearest_mode="floor",
                      coordinate_transformation_mode="asymmetric")  # fmt: skip
        sizes = {"sizes": np.array([1, 1, extent])}
        data = bytes_of([resize], {"x": names or [1, 1, length]}, "y", sizes, opset=19)
        x = np.arange(length, dtype=np.float32).reshape(1, 1, length)
        (found,) = mgx_mlir.compile(data, "ref").run({"x": x})
        wanted = [i * length // extent for i in range(extent)]
        np.testing.assert_array_equal(found.ravel(), wanted)


@pytest.mark.parametrize("target", ["ref", "cpu"])
def test_resize_to_the_sizes_of_another_image(target: str) -> None:
    """One op that keeps batch and channels, as fixed sizes are; also of no elements."""
    data = parsed_bytes(SIZED, opset=19)
    module = mgx_mlir.read_model(data).module
    names = [op.operation.name for op in module.body.operations[0].regions[0].blocks[0].operations]
    assert names.count("migraphx.resize") == 5
    assert "migraphx.gather" not in names
    rng = np.random.default_rng(3)
    sizes = [(1, 5, 6, 10, 12), (2, 7, 5, 3, 9), (1, 4, 4, 4, 7), (3, 2, 9, 1, 1), (1, 1, 1, 4, 3)]
    calls = [
        {"x": rng.standard_normal((n, 3, h, w)).astype(np.float32),
         "q": np.zeros((1, 2, i, j), np.float32)}
        for n, h, w, i, j in sizes
    ]  # fmt: skip
    program = agrees(data, calls, target, atol=2e-5)
    x = np.ones((2, 3, 4, 5), np.float32)
    got = program.run({"x": x, "q": np.zeros((1, 2, 0, 7), np.float32)})
    assert [np.asarray(a).shape for a in got] == [(2, 3, 0, 7)] * 4 + [(2, 3, 4, 12)]


def test_cubic_samples_beyond_the_border() -> None:
    rng = np.random.default_rng(2)
    x = rng.standard_normal((1, 2, 5, 6)).astype(np.float32)
    grid = rng.uniform(-2, 2, (1, 8, 8, 2)).astype(np.float32)
    grid[0, 0, :4, 0] = 1, -1, 1e9, -1e9
    nodes = [
        helper.make_node(
            "GridSample", ["x", "grid"], [f"y{a}"], align_corners=a, mode="cubic",
            padding_mode="border",
        )
        for a in (0, 1)
    ]  # fmt: skip
    agree(nodes, {"x": x, "grid": grid}, {}, "ref", opset=20)


@pytest.mark.parametrize("target", ["ref", "cpu"])
@pytest.mark.parametrize("policy", ["not_larger", "not_smaller"])
def test_a_kept_aspect_ratio_is_the_scale_of_every_axis(policy: str, target: str) -> None:
    """Coordinates are divided by the one scale, not by that of the rounded extent."""
    forms = [
        {"mode": mode, "coordinate_transformation_mode": how}
        for mode in ("nearest", "linear", "cubic")
        for how in ("half_pixel", "pytorch_half_pixel", "asymmetric")
    ]
    x = np.random.default_rng(4).standard_normal((1, 1, 4, 7)).astype(np.float32)
    for sizes in ([6, 3], [5, 9]):
        nodes = [
            node("Resize", "x _ _ s", f"y{i}", axes=[2, 3], keep_aspect_ratio_policy=policy, **form)
            for i, form in enumerate(forms)
        ]
        wanted = {"s": np.array(sizes)}
        names = " ".join(n.output[0] for n in nodes)
        data = bytes_of(nodes, {"x": x}, names, wanted, opset=19)
        agrees(data, [{"x": x}], target, atol=2e-5)
