"""Operators over dynamic dims in the forms that shipped models have, against onnxruntime.

Several operators share a model, and each model is compiled once and run at every size.
"""

from __future__ import annotations

import numpy as np
import pytest
from onnx import parser

import mgx_mlir
from mgx_mlir.compiler.models import read_model
from mgx_mlir.core.errors import ModelError, RunError
from mgx_mlir.passes.pipelines import pipeline
from mgx_mlir.rewrite.passes import run_pipeline
from tests.support import compiles
from tests.support.compare import agrees


def model(inputs: str, outputs: str, body: str, opset: int = 18) -> bytes:
    text = f'<ir_version: 8, opset_import: ["": {opset}]> g ({inputs}) => ({outputs}) {{{body}}}'
    return parser.parse_model(text).SerializeToString()


def draw(*dims: int, dtype: str = "f4") -> np.ndarray:
    rng = np.random.default_rng(sum(dims))
    return rng.standard_normal(dims).astype(dtype)


def test_k_of_topk_is_a_run_time_number() -> None:
    data = model(
        "float[N, C] x, double[N, C, D] d, int64[1] k",
        "float a, int64 ai, float c, int64 ci, double e, int64 ei, double h, int64 hi",
        """a, ai = TopK <axis: int = 1> (x, k)
           s = Shape <start: int = 1, end: int = 2> (x)
           most = Constant <value_ints: ints = [40]> ()
           l = Min (s, most)
           c, ci = TopK <axis: int = 1, largest: int = 0> (x, l)
           e, ei = TopK <axis: int = 1> (d, l)
           two = Constant <value_ints: ints = [2]> ()
           h, hi = TopK <axis: int = 0> (d, two)""",
    )
    calls = []
    for n, c, d, k in ((3, 7, 2, 3), (2, 300, 3, 300), (5, 40, 1, 1)):
        x = np.round(draw(n, c) * 3)  # with equal elements
        calls.append({"x": x, "d": np.round(draw(n, c, d, dtype="f8") * 3), "k": np.array([k])})
    calls[0]["x"][0, 3] = -np.inf
    program = agrees(data, calls)
    with pytest.raises(RunError, match="k of 0 to the extent"):
        program.run({**calls[0], "k": np.array([8])})


EQUATIONS = [
    "bid,bjke->bijkde", "bijc,bklc->bijkl", "bijc,bijd->bcd", "bi,bj->bij", "nctv,kvw->nkctw",
    "nkctv,kvw->nctw", "bijj->bji", "...ij,jk->...ik",
]  # fmt: skip


def test_einsum_of_several_labels() -> None:
    sizes = [{c: 2 + (7 * i + k) % 4 for k, c in enumerate("bcdehijklnctvwxyz")} for i in range(2)]
    inputs, body = [], []
    calls: list[dict[str, np.ndarray]] = [{} for _ in sizes]
    for i, equation in enumerate(EQUATIONS):
        names = []
        for j, term in enumerate(equation.split("->")[0].split(",")):
            names.append(name := f"x{i}{j}")
            term = term.replace("...", "xy")
            inputs.append(f"float[{', '.join(term)}] {name}")
            for call, size in zip(calls, sizes, strict=True):
                call[name] = draw(*(size[c] for c in term))
        body.append(f'y{i} = Einsum <equation: string = "{equation}"> ({", ".join(names)})')
    outputs = ", ".join(f"float y{i}" for i in range(len(EQUATIONS)))
    agrees(model(", ".join(inputs), outputs, " ".join(body)), calls)


def test_einsum_of_an_ellipsis_whose_extents_are_1_at_run_time() -> None:
    data = model(
        "float[a, b, 4, 5] x, float[c, d, 5, 6] w, float[c, d, 4] v",
        "float y, float z",
        """y = Einsum <equation: string = "...ij,...jk->...ik"> (x, w)
           z = Einsum <equation: string = "...ij,...i->j..."> (x, v)""",
    )
    sizes = ((2, 3, 2, 3), (2, 3, 1, 3), (1, 1, 4, 2), (2, 3, 2, 1))
    calls = [{"x": draw(a, b, 4, 5), "w": draw(c, d, 5, 6), "v": draw(c, d, 4)}
             for a, b, c, d in sizes]  # fmt: skip
    program = agrees(data, calls)
    with pytest.raises(RunError):
        program.run({**calls[0], "x": draw(2, 4, 4, 5)})


@pytest.mark.parametrize("pad", ["NOTSET", "SAME_UPPER", "SAME_LOWER"])
def test_output_shapes_of_transposed_convolutions(pad: str) -> None:
    """The whole result is of 9 elements, for an input of 4; more is added behind them."""
    shapes = (5, 8, 9, 10)
    body = [
        f"""y{o}{more} = ConvTranspose <auto_pad: string = "{pad}", strides: ints = [2],
            output_shape: ints = [{o}], output_padding: ints = [{more}]> (x, k)"""
        for o in shapes
        for more in (0, 1)
    ]
    body.append("k = Constant <value: tensor = float[1, 1, 3] {1, 10, 100}> ()")
    outputs = ", ".join(f"float y{o}{more}" for o in shapes for more in (0, 1))
    x = np.arange(1, 5, dtype=np.float32).reshape(1, 1, 4)
    for dims in ("n, 1, w", "1, 1, 4"):
        program = agrees(
            model(f"float[{dims}] x", outputs, " ".join(body[::-1])), [{"x": x}], "ref"
        )
    open_ = model("float[n, 1, w] x", "float y80", " ".join(body[::-1]))
    program = agrees(open_, [{"x": x}, {"x": draw(2, 1, 7)}])
    with pytest.raises(RunError, match="an output_shape within reach of the input"):
        program.run({"x": x[..., :2]})


def test_negative_pads_and_blocks_of_dynamic_channels() -> None:
    data = model(
        "float[N, C] x, float[N, C, H, W] z",
        "float a, float e, float s, float t, float u",
        """p = Constant <value_ints: ints = [0, -1, 0, -2]> ()
           q = Constant <value_ints: ints = [0, -1, 2, 1]> ()
           a = Pad (x, p)
           e = Pad <mode: string = "edge"> (x, q)
           s = SpaceToDepth <blocksize: int = 2> (z)
           t = DepthToSpace <blocksize: int = 2> (z)
           u = DepthToSpace <blocksize: int = 2, mode: string = "CRD"> (z)""",
    )
    calls = [{"x": draw(n, c), "z": draw(n, c, h, w)}
             for n, c, h, w in ((3, 8, 4, 6), (1, 4, 2, 8))]  # fmt: skip
    program = agrees(data, calls)
    with pytest.raises(RunError, match="cut no more than there is"):
        program.run({"x": draw(3, 2), "z": draw(3, 2, 2, 2)})


def test_places_of_maxima() -> None:
    whole = """a, ai = MaxPool <kernel_shape: ints = [2, 2], strides: ints = [2, 2]> (x)
               y = MaxUnpool <kernel_shape: ints = [2, 2], strides: ints = [2, 2]> (a, ai)"""
    padded = """a, ai = MaxPool <kernel_shape: ints = [3, 2], strides: ints = [2, 3],
                                 auto_pad: string = "SAME_LOWER"> (x)
                y, yi = MaxPool <kernel_shape: ints = [3, 2, 2], strides: ints = [2, 1, 2],
                                 dilations: ints = [1, 2, 1], pads: ints = [1, 0, 0, 1, 1, 0],
                                 storage_order: int = 1> (v)"""
    sizes = ((2, 3, 8, 6, 4), (1, 2, 12, 10, 3))
    outputs = "float a, int64 ai, float y"
    data = model("float[N, C, H, W] x", outputs, whole)
    agrees(data, [{"x": draw(*s[:4])} for s in sizes])
    data = model("float[N, C, H, W] x, float[N, C, H, W, D] v", outputs + ", int64 yi", padded)
    agrees(data, [{"x": draw(*s[:4]), "v": draw(*s)} for s in sizes], "ref")


def test_one_name_for_two_sizes() -> None:
    data = model(
        "float[N, M] x, float[M, N] z, float[N, 3] w",
        "float y, float v",
        """y = MatMul (x, z)
           v = Concat <axis: int = 0> (w, w)""",
    )
    sizes = ((2, 4, 2), (2, 4, 5), (3, 5, 3))
    calls = [{"x": draw(n, m), "z": draw(m, p), "w": draw(p, 3)} for n, m, p in sizes]
    with pytest.warns(UserWarning, match="'N' is 2 in 'x'; the model is compiled again"):
        program = agrees(data, calls)
    for call in calls * 3:  # repeated, because later calls are checked less
        product, rows = program.run(call)
        np.testing.assert_allclose(product, call["x"] @ call["z"], rtol=0, atol=1e-5)
        np.testing.assert_array_equal(rows, np.concatenate([call["w"], call["w"]]))
    with pytest.raises(RunError, match="inner dims do not match"):
        program.run({**calls[0], "z": draw(5, 2)})


def test_a_call_that_is_wrong_compiles_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """One name with two sizes that the model cannot take, in every call anew."""
    names = "abcdef"
    inputs = ", ".join(f"float[N{i % 3}, M{i % 2}] {n}" for i, n in enumerate(names))
    program = mgx_mlir.compile(model(inputs, "float y", f"y = Sum ({', '.join(names)})"), "cpu")

    compiles.forbidden(monkeypatch)
    for k in range(3):
        call = {n: draw(2 + i + k, 3) for i, n in enumerate(names)}
        for _ in range(2):
            with pytest.raises(RunError, match="dim 0 is") as e:
                program.run(call)
            assert any("without the name" in note for note in e.value.notes)
    for wrong in ({"a": draw(2)}, {"zz": draw(2, 3)}, {"a": draw(2, 3).astype(np.float64)}):
        with pytest.raises(RunError):
            program.run({**{n: draw(2, 3) for n in names}, **wrong})


def test_resize_by_whole_numbers() -> None:
    """Each element is repeated; where scales or sizes say so of symbols, the dims stay named."""
    ways = [("asymmetric", "floor"), ("half_pixel", "round_prefer_floor"),
            ("pytorch_half_pixel", "round_prefer_ceil"), ("asymmetric", "ceil"),
            ("tf_half_pixel_for_nn", "floor")]  # fmt: skip
    body = [
        """s = Constant <value_floats: floats = [1.0, 1.0, 2.0, 3.0]> ()
               a = Shape <start: int = 0, end: int = 2> (x)
               b = Shape <start: int = 2, end: int = 4> (x)
               t = Constant <value_ints: ints = [2, 4]> ()
               c = Mul (b, t)
               z = Concat <axis: int = 0> (a, c)"""
    ]
    for i, (mode, nearest) in enumerate(ways):
        given = "x,, s" if i % 2 else "x,,, z"
        body.append(
            f'y{i} = Resize <coordinate_transformation_mode: string = "{mode}", '
            f'nearest_mode: string = "{nearest}"> ({given})'
        )
    outputs = ", ".join(f"float y{i}" for i in range(len(ways)))
    data = model("float[N, C, H, W] x", outputs, " ".join(body))
    agrees(data, [{"x": draw(2, 3, 4, 5)}, {"x": draw(1, 2, 7, 3)}], "ref")
    text = str(mgx_mlir.compile(data, "ref", cache=False).program.text())
    assert text.count("broadcast_with_dims") == 3
    scaled = model("float[N, C, H, W] x", "float y0", body[0] + body[2].replace("y1", "y0"))
    agrees(scaled, [{"x": draw(2, 3, 4, 5)}, {"x": draw(1, 2, 7, 3)}])


LISTED = """<ir_version: 8, opset_import: ["": 15]>
g (float[n, t, 4] x, int64 i) => (float last, int64 length, float stacked, float rows, float relu) {
  parts = SplitToSequence <axis: int = 1, keepdims: int = 0> (x)
  last = SequenceAt (parts, i)
  length = SequenceLength (parts)
  stacked = ConcatFromSequence <axis: int = 1, new_axis: int = 1> (parts)
  wide = SplitToSequence <axis: int = 0> (x)
  rows = ConcatFromSequence <axis: int = 2> (wide)
  first = SequenceConstruct (last)
  yes = Constant <value: tensor = bool {1}> ()
  done = Loop (length, yes, first) <body = b (int64 k, bool c, seq(float) l)
      => (bool d, seq(float) m) {
    part = SequenceAt (parts, k)
    low = Relu (part)
    more = SequenceInsert (l, low)
    m = Identity (more)
    d = Identity (c)
  }>
  relu = ConcatFromSequence <axis: int = 0> (done)
}"""


def test_lists_as_long_as_a_dynamic_dim() -> None:
    """Parts of a dynamic dim, and what the body of a loop appends, as scripted modules have it."""
    data = parser.parse_model(LISTED).SerializeToString()
    calls = [{"x": draw(n, t, 4), "i": np.array(i)} for n, t, i in ((2, 3, -1), (1, 5, 2))]
    program = agrees(data, calls)
    with pytest.raises(RunError, match="a position in the sequence"):
        program.run({"x": draw(2, 3, 4), "i": np.array(3)})


@pytest.mark.parametrize("target", ["ref", "cpu"])
def test_bounds_that_are_cut_out_of_a_list(target: str) -> None:
    """Torch's export of EmbeddingBag slices bounds out of a list, known only at run time."""
    body = """
      one = Constant <value_ints = [1]> ()
      next = Add (i, one)
      further = Add (next, one)
      start = Slice (offsets, i, next)
      end = Slice (offsets, next, further)
      y = Slice (x, start, end)
    """
    data = model("float[n, 3] x, int64[k] offsets, int64[1] i", "y", body)
    offsets = np.array([0, 2, 2, 5])
    calls = [{"x": draw(5, 3), "offsets": offsets, "i": np.array([i])} for i in (0, 1, 2)]
    program = agrees(data, calls, target)
    with pytest.raises(RunError, match=r"1 in the starts of a slice \(a length that"):
        program.run({"x": draw(5, 3), "offsets": offsets, "i": np.array([9])})


REPEATED = """<ir_version: 8, opset_import: ["": 15]>
g (float[b, t, c] x, int64[t] repeats) => (float y, float z)
<int64 one = {1}, int64[1] front = {1}, int64[1] second = {2}> {
  count = Size (repeats)
  yes = Constant <value: tensor = bool {1}> ()
  counts = SplitToSequence <axis: int = 0> (repeats, one)
  columns = SplitToSequence <axis: int = 1> (x, one)
  none = SequenceEmpty <dtype: int = 1> ()
  first = SequenceConstruct (x)
  parts, more = Loop (count, yes, none, first) <
    body = f (int64 i, bool go, seq(float) l, seq(float) m)
      => (bool on, seq(float) longer, seq(float) further) {
    repeat = SequenceAt (counts, i)
    column = SequenceAt (columns, i)
    stood = Unsqueeze (column, second)
    dims = Concat <axis: int = 0> (front, front, repeat, front)
    wide = Expand (stood, dims)
    part = Squeeze (wide, front)
    longer = SequenceInsert (l, part)
    negative = Neg (part)
    further = SequenceInsert (m, negative)
    on = Identity (go)
  }>
  y = ConcatFromSequence <axis: int = 1> (parts)
  z = ConcatFromSequence <axis: int = -2> (more)
}"""


def test_a_list_of_parts_of_several_lengths_is_joined() -> None:
    """Each column as often as a tensor says, as repeat_interleave is written by PyTorch."""
    data = parser.parse_model(REPEATED).SerializeToString()
    given = (((2, 3, 4), [2, 0, 3]), ((1, 5, 3), [1, 1, 4, 0, 2]), ((1, 1, 1), [1]))
    calls = [{"x": draw(*dims), "repeats": np.array(repeats)} for dims, repeats in given]
    agrees(data, calls)
    agrees(data, calls, "ref")


STATES = """<ir_version: 8, opset_import: ["": 13]>
g (float[b, t, 3] x, int64[b] lengths) => (float y)
<float[2, 18, 3] w = {W}, float[2, 18, 6] r = {R},
  int64[1] zero = {0}, int64[1] one = {1}, int64[1] two = {2}, int64[1] six = {6}> {
  steps = Transpose <perm: ints = [1, 0, 2]> (x)
  count = Cast <to: int = 6> (lengths)
  shape = Shape (steps)
  batch = Slice (shape, one, two)
  dims = Concat <axis: int = 0> (two, batch, six)
  h = ConstantOfShape (dims)
  all, last = GRU <hidden_size: int = 6, direction: string = "bidirectional"> (
    steps, w, r, , count, h)
  there = Slice (last, zero, one)
  back = Slice (last, one, two)
  both = Concat <axis: int = 2> (there, back)
  y = Squeeze (both, zero)
}"""


def test_last_states_of_both_directions() -> None:
    """The states' first extent is that of a computed shape: a pass must not restate its slices."""
    w, r = (", ".join(f"{v:.2f}" for v in draw(2 * 18 * n) / 3) for n in (3, 6))
    text = STATES.replace("{W}", f"{{{w}}}").replace("{R}", f"{{{r}}}")
    program = read_model(parser.parse_model(text).SerializeToString())
    run_pipeline(program.module, pipeline("cpu"), store=program.store)
    with program.ctx:
        assert program.module.operation.verify()


def test_groups_of_dynamic_channels() -> None:
    data = model(
        "float[N, C, L] x, float[D] scale, float[E] bias",
        "float y",
        "y = GroupNormalization <num_groups: int = 4> (x, scale, bias)",
        opset=21,
    )
    calls = [
        {"x": draw(n, c, length), "scale": draw(c), "bias": draw(c)}
        for n, c, length in ((2, 8, 5), (1, 4, 1), (3, 12, 7))
    ]
    program = agrees(data, calls)
    with pytest.raises(RunError, match="dim 1 of input 'x'"):
        program.run({"x": draw(2, 6, 5), "scale": draw(6), "bias": draw(6)})


def test_attention_of_dynamic_heads() -> None:
    data = model(
        "float[B, H, S, D] q, float[B, G, T, D] k, float[B, G, T, E] v",
        "float y",
        "y = Attention (q, k, v)",
        opset=23,
    )
    calls = [
        {"q": draw(b, h, s, d), "k": draw(b, h, t, d), "v": draw(b, h, t, e)}
        for b, h, s, t, d, e in ((2, 3, 5, 7, 16, 8), (1, 1, 1, 9, 4, 4), (1, 12, 17, 33, 8, 8))
    ]
    calls += [
        {"q": draw(2, 4, 5, 8), "k": draw(2, g, 7, 8), "v": draw(2, g, 7, 8)} for g in (1, 2)
    ]  # shared key heads
    program = agrees(data, calls)
    with pytest.raises(RunError, match="query heads that key heads divide"):
        program.run({"q": draw(2, 4, 5, 8), "k": draw(2, 3, 7, 8), "v": draw(2, 3, 7, 8)})


def test_rows_of_an_extent_that_only_the_run_knows(caplog: pytest.LogCaptureFixture) -> None:
    """A dot takes the rows of both leading dims as one; the other dims keep their names."""
    numbers = ", ".join(f"{v:.2f}" for v in np.linspace(-1, 1, 16))
    data = model(
        "float[N, S, 4] x, bool[S] keep",
        "float y",
        f"""some = Compress <axis: int = 1> (x, keep)
           w = Constant <value: tensor = float[4,4] {{{numbers}}}> ()
           b = Constant <value: tensor = float[4] {{1, 2, 3, 4}}> ()
           made = MatMul (some, w)
           m = Add (made, b)
           r = Add (m, some)
           mean = ReduceMean <axes: ints = [2]> (r)
           c = Sub (r, mean)
           y = MatMul (c, w)""",
        opset=17,
    )
    calls = []
    for n, s in ((2, 5), (1, 1), (3, 8)):
        calls.append({"x": draw(n, s, 4), "keep": np.arange(s) % 2 == 0})
    with caplog.at_level("WARNING"):
        agrees(data, calls)
    assert not [r for r in caplog.records if "without names" in r.getMessage()]


def test_slice_by_bounds_of_a_dynamic_length() -> None:
    """The bounds are as many as the axes, although only the run knows how long they are."""
    data = model(
        "float[N, 3] x, int64[M] at",
        "float[K, 3] y, float[L, 3] z",
        """
        axes = Constant <value_ints = [0]> ()
        steps = Constant <value_ints = [2]> ()
        one = Constant <value_ints = [1]> ()
        more = Add (at, one)
        y = Slice (x, at, more, axes)
        z = Slice (x, at, more, axes, steps)
        """,
    )
    agrees(data, [{"x": draw(n, 3), "at": np.array([n - 2])} for n in (5, 2)])
    program = mgx_mlir.compile(data, "ref")
    with pytest.raises(RunError, match=r"1 in the starts of a slice \(as many"):
        program.run({"x": draw(5, 3), "at": np.array([0, 1])})


def test_tiles_of_dynamic_dims_keep_what_is_known() -> None:
    """tf.gather_nd with batch_dims makes its indices so, whose last dim must be known."""
    data = model(
        "float[N, 8, 5] x, int64[N, 3, 1] i, float[2, 3] like",
        "float[N, 3, 5] y",
        """zero = Constant <value_int: int = 0> ()
           one = Constant <value_int: int = 1> ()
           n = Shape <start: int = 0, end: int = 1> (x)
           empty = Constant <value_ints: ints = []> ()
           end = Reshape (n, empty)
           rows = Range (zero, end, one)
           column = Constant <value_ints: ints = [-1, 1, 1]> ()
           high = Reshape (rows, column)
           ones = Constant <value_ints: ints = [1]> ()
           three = Shape <start: int = 1> (like)
           repeats = Concat <axis: int = 0> (ones, three, ones)
           tiled = Tile (high, repeats)
           places = Concat <axis: int = -1> (tiled, i)
           y = GatherND (x, places)""",
    )
    calls = [
        {"x": draw(n, 8, 5), "i": np.arange(3 * n).reshape(n, 3, 1) % 8, "like": draw(2, 3)}
        for n in (1, 4)
    ]
    agrees(data, calls, "ref")


def test_the_first_row_of_a_dynamic_dim(caplog: pytest.LogCaptureFixture) -> None:
    """The slice has 0 rows or one, so its dim has its own name: a reshape of it stated one."""
    data = model(
        "float[N, 7] x, float[1, 3] y",
        "float[A, B, C] z",
        """zero = Constant <value_ints: ints = [0]> ()
           one = Constant <value_ints: ints = [1]> ()
           two = Constant <value_ints: ints = [2]> ()
           first = Slice (x, zero, one, zero)
           column = Unsqueeze (first, two)
           row = Unsqueeze (y, one)
           z = Add (column, row)""",
    )
    agrees(data, [{"x": draw(n, 7), "y": draw(1, 3)} for n in (3, 0)])
    assert "without names" not in caplog.text


def test_scales_of_a_dynamic_axis() -> None:
    """One scale for each row or column of a tensor whose extents are all dynamic."""
    body = """q = QuantizeLinear<axis=-1>(x, s, z) y = DequantizeLinear<axis=-1>(q, s, z)
    w = DequantizeLinear<axis=0>(q, r)"""
    inputs = "float[N,M] x, float[M] s, int8[M] z, float[N] r"
    calls = [
        {"x": draw(n, m) * 9, "s": np.abs(draw(m)) + 0.1, "r": np.abs(draw(n)) + 0.1,
         "z": np.arange(m).astype(np.int8)}
        for n, m in ((3, 4), (1, 2), (5, 1), (0, 3))
    ]  # fmt: skip
    agrees(model(inputs, "float[N,M] y, float[N,M] w", body), calls, "ref")


def test_dynamic_dims_in_messages() -> None:
    text = model("float[A,B,C,D] x, float[P,Q,R] g", "float[A,B,Q,R] y", "y = GridSample(x, g)")
    with pytest.raises(ModelError, match=r"grid dims \{\?, \?, \?\} do not fit"):
        mgx_mlir.compile(text, "ref")


def test_running_sums_of_extents_and_maxima_of_nothing() -> None:
    data = model(
        "bool[N, M, 7] x, float[N, M, 3] y",
        "int64[3] a, float[P, Q, 3] b",
        """axis = Constant <value_int: int = 0> ()
           s = Shape (x)
           a = CumSum <reverse: int = 1> (s, axis)
           last = Constant <value_ints: ints = [-1]> ()
           one = Constant <value_ints: ints = [1]> ()
           none = Slice (y, last, last, one)
           b = Hardmax <axis: int = 0> (none)""",
    )
    sizes = ((1, 1), (2, 5), (9, 3), (0, 4))
    agrees(data, [{"x": np.zeros((n, m, 7), bool), "y": draw(n, m, 3)} for n, m in sizes])


@pytest.mark.parametrize("dims", ["N, 3, M", "N, M, 3"])
def test_matrices_of_which_one_dim_is_known(dims: str) -> None:
    data = model(f"float[{dims}] x", "float[N] y", "y = Det(x)")
    program = agrees(data, [{"x": draw(n, 3, 3)} for n in (1, 4)])
    wrong = draw(1, 3, 2) if dims == "N, 3, M" else draw(1, 2, 3)
    with pytest.raises(RunError, match="square matrices"):
        program.run({"x": wrong})
