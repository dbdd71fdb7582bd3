"""Property cases of fuse_layout."""

from __future__ import annotations

from typing import Any

from pattern_graphs import case

from mgx_mlir.passes.analysis.kernel_ops import make_kernel


@case("find_planar_convolution", fires=0.25)
def find_planar_convolution(g: Any) -> Any:
    n, height, width = g.dims(3, low=3, high=9)
    channels, outputs = g.pick(1, 3, 3, 12), g.pick(16, 16, 32, 8)
    kh, kw = g.dims(2, high=3)
    x = g.argument((n, channels, height, width))
    w, bias = g.constant((kh, kw, channels, outputs)), g.argument((outputs,))
    planar = g.b.op("transpose", x, permutation=[0, 2, 3, 1])
    kind = planar.type
    planar.owner.erase()
    copied = make_kernel(
        "group",
        [x],
        [kind],
        lambda a: [g.b.op("transpose", a[0], permutation=[0, 2, 3, 1])],
        tag="transpose",
    ).results[0]

    def body(a: list[Any]) -> list[Any]:
        y = g.b.op("convolution", a[0], a[1], padding=[kh // 2, kw // 2], channels_last=True)
        return [g.b.op("add", y, g.b.op("multibroadcast", [a[2]], out_lens=list(y.type.shape)))]

    probe = g.b.op("convolution", copied, w, padding=[kh // 2, kw // 2], channels_last=True)
    out = probe.type
    probe.owner.erase()
    return make_kernel("group", [g.maybe_used(copied), w, bias], [out], body, tag="convolution")


@case("find_convolution_of_planes", fires=0.25)
def find_convolution_of_planes(g: Any) -> Any:
    n, height, width = (*g.dims(1), *g.dims(2, low=7, high=14))
    channels, kh, kw = g.pick(2, 3, 16), *g.dims(2, high=3)
    group = g.pick(1, channels, channels, channels)
    last, first = [0, 2, 3, 1], [0, 3, 1, 2]
    x = g.argument((n, channels, height, width))
    w, bias = g.constant((kh, kw, channels // group, channels)), g.argument((channels,))

    def typed(build: Any) -> Any:
        probe = build()
        kind = probe.type
        probe.owner.erase()
        return kind

    def transposed(v: Any, permutation: list[int]) -> Any:
        kind = typed(lambda: g.b.op("transpose", v, permutation=permutation))
        build = lambda a: [g.b.op("transpose", a[0], permutation=permutation)]  # noqa: E731
        return make_kernel("group", [v], [kind], build, tag="transpose").results[0]

    def convolved(v: Any, weights: Any) -> Any:
        padding = [kh // 2, kw // 2]
        return g.b.op("convolution", v, weights, padding=padding, group=group, channels_last=True)

    def body(a: list[Any]) -> list[Any]:
        y = convolved(a[0], a[1])
        return [g.b.op("add", y, g.b.op("multibroadcast", [a[2]], out_lens=list(y.type.shape)))]

    image = transposed(x, last)
    out = typed(lambda: convolved(image, w))
    operands = [g.maybe_used(image), w, bias]
    made = make_kernel("group", operands, [out], body, tag="convolution").results[0]
    return transposed(g.maybe_used(made), first)


@case("find_gathered_convolution", fires=0.1, options={"gathered": True})
def find_gathered_convolution(g: Any) -> Any:
    n, height, width = g.dims(3, low=3, high=9)
    channels, outputs = g.pick(1, 3, 4, 12), g.pick(16, 32, 8)
    kh, kw = g.dims(2, high=3)
    x = g.argument((n, height, width, channels), g.pick("f16", "f16", "f32"))
    dtype = "f16" if str(x.type.element_type) == "f16" else "f32"
    w = g.constant((kh, kw, channels, outputs), dtype)
    name = g.pick("abs", "neg", "relu", "relu", "exp")
    image = make_kernel("pointwise", [x], [x.type], lambda a: [g.b.op(name, a[0])]).results[0]

    def build(image: Any, weights: Any) -> Any:
        return g.b.op("convolution", image, weights, padding=[kh // 2, kw // 2], channels_last=True)

    probe = build(image, w)
    out = probe.type
    probe.owner.erase()
    operands = [g.maybe_used(image), w]
    return make_kernel("group", operands, [out], lambda a: [build(*a)], tag="convolution").results[
        0
    ]


@case("find_transposed_result", fires=0.3, options={"gathered": True})
def find_transposed_result(g: Any) -> Any:
    n, height, width = g.dims(3, low=3, high=6)
    channels, outputs = g.pick(4, 12, 16), g.pick(8, 16)
    x, w = g.argument((n, height, width, channels)), g.argument((1, 1, channels, outputs))
    kind = [g.argument((n, height, width, outputs)).type]

    def build(a: list[Any]) -> list[Any]:
        return [g.b.op("convolution", a[0], a[1], channels_last=True)]

    y = make_kernel("group", [x, w], kind, build, tag="convolution").results[0]
    order = g.pick([0, 3, 1, 2], [0, 3, 1, 2], [3, 0, 2, 1])
    turned = g.b.op("transpose", y, permutation=order)
    kind = [turned.type]
    turned.owner.erase()
    return make_kernel(
        "group",
        [g.maybe_used(y)],
        kind,
        lambda a: [g.b.op("transpose", a[0], permutation=order)],
        tag="transpose",
    ).results[0]
