"""Attention kernels in tiles of our own: numbers on the emulator against float64, their code."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import TensorProto, helper, numpy_helper

import mgx_mlir
from mgx_mlir.hardware.architectures import vendor_of
from mgx_mlir.hardware.chips import CHIPS
from mgx_mlir.passes.lowering.gpu.attention import attention_tiles
from mgx_mlir.passes.lowering.gpu.attention.attention_lanes import (
    Layout,
    operand_layout,
    result_layout,
)
from mgx_mlir.passes.lowering.gpu.attention.attention_tiles import (
    AttentionShape,
    AttentionTile,
    BlockTile,
    choose,
)
from mgx_mlir.passes.lowering.gpu.matmul.mma import SIDE
from mgx_mlir.targets.report import gpu_report
from tests.emulator import oracle
from tests.emulator.models import Case, Graph
from tests.emulator.oracle import LIMITS, worst
from tests.support.models import model_of, node

KINDS = {
    "f16": (TensorProto.FLOAT16, np.float16),
    "bf16": (TensorProto.BFLOAT16, ml_dtypes.bfloat16),
}
# heads, queries, keys, width, depth, the mask's dims without the first, type
Form = tuple[int, int, int, int, int, Sequence[int] | None, str]
WHOLE: Form = (4, 64, 64, 64, 64, None, "f16")
CUT: Form = (3, 37, 45, 32, 48, None, "f16")  # last tiles of queries and keys are cut
FORMS: list[Form] = [
    WHOLE,
    CUT,
    (4, 16, 32, 64, 64, (1, 1, 32), "f16"),  # fewer queries than waves could take
    (2, 100, 77, 64, 32, (1, 100, 77), "f16"),
    (3, 33, 200, 128, 128, (3, 33, 200), "f16"),
    (2, 64, 64, 96, 96, None, "f16"),
    (2, 32, 48, 256, 256, None, "f16"),
    (1, 40, 40, 64, 64, None, "f16"),
    (4, 64, 96, 64, 64, None, "bf16"),
    (2, 64, 256, 128, 128, None, "f16"),  # 128 keys a tile
]


def model(form: Form) -> onnx.ModelProto:
    heads, queries, keys, width, depth, mask, dtype = form
    kind = KINDS[dtype][0]
    dims = {"q": [queries, heads, width], "k": [keys, heads, width], "v": [keys, heads, depth]}
    if mask is not None:
        dims["mask"] = list(mask)
    nodes = [
        node("Transpose", "q", "qt", perm=[0, 2, 1, 3]),
        node("Transpose", "k", "kt", perm=[0, 2, 3, 1]),
        node("Transpose", "v", "vt", perm=[0, 2, 1, 3]),
        node("MatMul", "qt kt", "scores"),
        node("Mul", "scores by", "scaled"),
        *([node("Add", "scaled mask", "masked")] if mask is not None else []),
        node("Softmax", "masked" if mask is not None else "scaled", "p", axis=-1),
        node("MatMul", "p vt", "o"),
        node("Transpose", "o", "ot", perm=[0, 2, 1, 3]),
        node("Reshape", "ot dims", "y"),
    ]
    rows = [queries, heads * depth]
    weights = {"by": helper.make_tensor("by", kind, [], [width**-0.5]), "dims": np.array(rows)}
    inputs = {n: (kind, [1, *d]) for n, d in dims.items()}
    return model_of(nodes, inputs, {"y": (kind, rows)}, weights)


def draw(form: Form, seed: int) -> dict[str, np.ndarray]:
    heads, queries, keys, width, depth, mask, dtype = form
    rng = np.random.default_rng(seed)
    dims = {"q": (queries, heads, width), "k": (keys, heads, width), "v": (keys, heads, depth)}
    if mask is not None:
        dims["mask"] = tuple(mask)
    return {n: rng.standard_normal((1, *d)).astype(KINDS[dtype][1]) for n, d in dims.items()}


def wanted(form: Form, inputs: dict[str, np.ndarray]) -> np.ndarray:
    q, k, v = (inputs[n].astype(np.float64)[0].transpose(1, 0, 2) for n in "qkv")
    scores = q @ k.transpose(0, 2, 1) * form[3] ** -0.5
    if "mask" in inputs:
        scores = scores + inputs["mask"].astype(np.float64)[0]
    e = np.exp(scores - scores.max(-1, keepdims=True))
    found = (e / e.sum(-1, keepdims=True)) @ v
    return found.transpose(1, 0, 2).reshape(form[1], -1)


def check(form: Form, arch: str) -> None:
    compiled = mgx_mlir.compile(
        model(form).SerializeToString(), target="gpu", arch=arch, emulate=True
    )
    inputs = draw(form, seed=form[1])
    assert worst(compiled.run(inputs), [wanted(form, inputs)]) <= LIMITS[form[-1]]
    assert compiled.executable.fallbacks == ()
    report = gpu_report(compiled.executable.vmfb)
    assert [k.name for k in report.kernels if k.spills or k.scratch] == []


@pytest.mark.parametrize("arch", ["gfx942", "gfx1100"])
@pytest.mark.parametrize("form", [WHOLE, CUT], ids=["whole", "cut"])
def test_attention(form: Form, arch: str, library: Path) -> None:
    check(form, arch)


def shared(queries: int, width: int, keys: int = 50) -> Case:
    """Six heads of queries, of which three each share keys and values."""
    g = Graph(queries, "f16")
    q = g.input("q", 1, 6, queries, width)
    mask = g.input("mask", 1, 1, queries, keys)
    k, v = (g.input(n, 1, 2, keys, width) for n in "kv")
    axes, many = g.weight(array=np.array([2])), g.weight(array=np.array([1, 2, 3, keys, width]))
    whole = g.weight(array=np.array([1, 6, keys, width]))
    k, v = (
        g.op("Reshape", g.op("Expand", g.op("Unsqueeze", n, axes), many), whole) for n in (k, v)
    )
    scores = g.op("MatMul", q, g.op("Transpose", k, perm=[0, 1, 3, 2]))
    scores = g.op("Mul", scores, g.weight(array=np.array(width**-0.5, np.float16)))
    y = g.op("MatMul", g.op("Softmax", g.op("Add", scores, mask), axis=-1), v)
    x = {n: a.astype(np.float64)[0] for n, a in g.arrays.items()}
    k64, v64 = (np.repeat(x[n], 3, axis=0) for n in "kv")
    e = x["q"] @ k64.transpose(0, 2, 1) * width**-0.5 + x["mask"]
    e = np.exp(e - e.max(-1, keepdims=True))
    case = g.case(y, 1, 6, queries, width)
    case.wanted = [((e / e.sum(-1, keepdims=True)) @ v64)[None]]
    return case


@pytest.mark.parametrize(("queries", "width", "count"), [(32, 64, 3), (32, 80, 4)])
def test_shared_heads(queries: int, width: int, count: int, library: Path) -> None:
    """Keys are read where they lie: repeated, they did not compile with tiles. The mask is
    converted and filled up by launches of their own, and so are queries of 80."""
    case = shared(queries, width)
    made = mgx_mlir.compile(
        case.model.SerializeToString(), target="gpu", arch="gfx942", emulate=True, cache=False
    )
    assert worst(made.run(case.inputs), case.wanted or []) <= LIMITS["f16"]
    assert made.executable.fallbacks == ()
    report = gpu_report(made.executable.vmfb, made.executable.dispatches)
    assert [k.name for k in report.kernels if k.spills or k.scratch] == []
    assert report.dispatches == count


FEW: list[Form] = [
    (8, 2, 17, 64, 64, (1, 1, 17), "f16"),
    (5, 1, 333, 64, 64, (5, 1, 333), "f16"),
    (8, 3, 1000, 128, 128, None, "f16"),  # the last part has fewer keys
    (1, 15, 40, 64, 64, (1, 15, 40), "f16"),  # one head
    (4, 1, 1024, 64, 64, None, "bf16"),
]


@pytest.mark.parametrize(
    ("form", "arch"), [(FEW[0], "gfx942"), (FEW[1], "gfx1100"), (FEW[2], "gfx942")], ids=str
)
def test_few_queries(form: Form, arch: str, library: Path) -> None:
    """Fewer than a tile has rows: in the one tile, cut, they were wrong, and in scratch memory
    (hazard 39). They are taken by parts of the keys."""
    check(form, arch)


@pytest.mark.slow
@pytest.mark.parametrize("arch", ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"])
@pytest.mark.parametrize("form", FEW, ids=str)
def test_few_queries_everywhere(form: Form, arch: str, library: Path) -> None:
    if form[-1] == "bf16" and arch == "gfx90a":
        pytest.skip("the compiler's own tiles")
    check(form, arch)


@pytest.mark.parametrize(("queries", "keys"), [(1, 300), (2, 128)])
def test_few_queries_of_shared_heads(queries: int, keys: int, library: Path) -> None:
    """Heads that share keys are rows of one tile, so keys are read once for all of them. The mask
    leaves no key of the first part to the first query."""
    case = shared(queries, 64, keys)
    case.inputs["mask"][..., 0, : keys // 2] = -np.inf
    x = {n: a.astype(np.float64)[0] for n, a in case.inputs.items()}
    k, v = (np.repeat(x[n], 3, axis=0) for n in "kv")
    shares = np.exp(x["q"] @ k.transpose(0, 2, 1) / 8 + x["mask"])
    wanted = (shares / shares.sum(-1, keepdims=True)) @ v
    made = mgx_mlir.compile(
        case.model.SerializeToString(), target="gpu", arch="gfx942", emulate=True, cache=False
    )
    assert worst(made.run(case.inputs), [wanted[None]]) <= LIMITS["f16"]
    assert made.executable.fallbacks == ()
    report = gpu_report(made.executable.vmfb, made.executable.dispatches)
    assert [k.name for k in report.kernels if k.spills or k.scratch] == []
    assert [k.name for k in report.kernels if "online_attention_2x" in k.name]


@pytest.mark.slow
@pytest.mark.parametrize("arch", ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"])
@pytest.mark.parametrize("form", FORMS, ids=str)
def test_attention_forms(form: Form, arch: str, library: Path) -> None:
    if form[-1] == "bf16" and arch == "gfx90a":
        pytest.skip("the compiler's own tiles")
    check(form, arch)


@pytest.mark.parametrize("arch", sorted(a for a in CHIPS if vendor_of(a) == "amd"))
def test_tiles(arch: str) -> None:
    chip = CHIPS[arch]
    for queries in (2, 16, 33, 128, 4096):
        for keys in (1, 16, 77, 2048):
            for width, depth in ((64, 64), (128, 128), (32, 96), (256, 256)):
                tile = choose(arch, AttentionShape(12, queries, keys, width, depth))
                assert tile is not None
                assert tile.rows == SIDE or tile.rows <= queries
                assert tile.keys * (width + tile.depth) * 2 <= chip.lds
                assert depth % tile.depth == 0
    assert choose(arch, AttentionShape(12, 128, 128, 80, 80)) is None


@pytest.mark.parametrize("arch", ["gfx90a", "gfx942", "gfx950"])
def test_waves_take_two_lines_where_there_are_many_queries(arch: str) -> None:
    tile = choose(arch, AttentionShape(32, 2048, 2048, 128, 128))
    assert tile is not None
    assert tile.lines == 2


@pytest.mark.parametrize(
    ("tile", "arch"),
    [(AttentionTile(4, 32, 64, 2), "gfx942"), (AttentionTile(8, 64, 64, 2), "gfx950")],
    ids=str,
)
def test_two_lines_of_a_wave(
    tile: AttentionTile, arch: str, library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last queries and the last keys are cut."""
    monkeypatch.setattr(attention_tiles, "choose", lambda *_: tile)
    check((2, tile.rows + 22, 200, 64, 64, None, "f16"), arch)


# heads, heads of keys, queries, keys, width, what hides a key (None: no mask), type
Seen = tuple[int, int, int, int, int, float | None, str]
CAUSAL: Seen = (2, 2, 320, 320, 64, -np.inf, "f16")
BLOCKS: list[Seen] = [
    CAUSAL,
    (4, 2, 256, 256, 128, -65504.0, "f16"),  # two heads share keys
    (2, 2, 128, 256, 64, -np.inf, "bf16"),  # the first query sees 129 keys
    (2, 2, 256, 320, 32, None, "f16"),
    (3, 3, 64, 256, 128, None, "bf16"),
]


def seen(form: Seen) -> tuple[Case, np.ndarray]:
    """An attention that sees keys up to its own place, the last query all: a constant mask."""
    heads, own, queries, keys, width, low, dtype = form
    g = Graph(queries, dtype)
    q, k, v = (g.input(n, 1, *d, width) for n, d in zip(
        "qkv", ((queries, heads), (keys, own), (keys, own)), strict=True))  # fmt: skip
    q, k, v = (g.op("Transpose", x, perm=[0, 2, 1, 3]) for x in (q, k, v))
    if own < heads:
        many = g.weight(array=np.array([1, own, heads // own, keys, width]))
        whole = g.weight(array=np.array([1, heads, keys, width]))
        axes = g.weight(array=np.array([2]))
        k, v = (
            g.op("Reshape", g.op("Expand", g.op("Unsqueeze", n, axes), many), whole) for n in (k, v)
        )
    kind = KINDS[dtype][1]
    scores = g.op("MatMul", q, g.op("Transpose", k, perm=[0, 1, 3, 2]))
    scores = g.op("Mul", scores, g.weight(array=np.array(width**-0.5, kind)))
    hidden = np.triu(np.ones((queries, keys), bool), keys - queries + 1)
    if low is not None:
        scores = g.op("Add", scores, g.weight(array=np.where(hidden, low, 0).astype(kind)))
    y = g.op("MatMul", g.op("Softmax", scores, axis=-1), v)
    y = g.op("Transpose", y, perm=[0, 2, 1, 3])
    y = g.op("Reshape", y, g.weight(array=np.array([1, queries, heads * width])))
    x = [g.arrays[n].astype(np.float64)[0].transpose(1, 0, 2) for n in "qkv"]
    q64, k64, v64 = x[0], *(np.repeat(a, heads // own, axis=0) for a in x[1:])
    e = q64 @ k64.transpose(0, 2, 1) * width**-0.5
    e = np.exp(e - e.max(-1, keepdims=True)) * (1 if low is None else ~hidden)
    wanted = ((e / e.sum(-1, keepdims=True)) @ v64).transpose(1, 0, 2).reshape(1, queries, -1)
    return g.case(y, 1, queries, heads * width), wanted


def check_seen(form: Seen, arch: str) -> None:
    case, wanted = seen(form)
    made = mgx_mlir.compile(
        case.model.SerializeToString(), target="gpu", arch=arch, emulate=True, cache=False
    )
    assert worst(made.run(case.inputs), [wanted]) <= LIMITS[form[-1]]
    assert made.executable.fallbacks == ()
    report = gpu_report(made.executable.vmfb, made.executable.dispatches)
    assert [k.name for k in report.kernels if k.spills or k.scratch] == []
    if CHIPS[arch].lanes == 64:
        heads, _, queries, keys, width, low, _ = form
        a = AttentionShape(heads, queries, keys, width, width)
        tile = attention_tiles.blocks(CHIPS[arch], a, causal=low is not None)
        assert report.dispatches == 1
        assert tile is not None
        assert report.kernels[0].lds == tile.lds(width, width)


@pytest.mark.parametrize(("form", "arch"), [(BLOCKS[0], "gfx942"), (BLOCKS[1], "gfx950")], ids=str)
def test_blocks_of_keys(form: Seen, arch: str, library: Path) -> None:
    """Between the products nothing moves: instructions of depth 16, and of 32."""
    check_seen(form, arch)


@pytest.mark.slow
@pytest.mark.parametrize("arch", ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"])
@pytest.mark.parametrize("form", BLOCKS, ids=str)
def test_blocks_of_keys_everywhere(form: Seen, arch: str, library: Path) -> None:
    if form[-1] == "bf16" and arch == "gfx90a":
        pytest.skip("the compiler's own tiles")
    check_seen(form, arch)


def test_keys_that_no_query_of_a_tile_sees_are_not_read(library: Path) -> None:
    """A value that is no number, by a weight of 0, is no number: only tiles that see it have it."""
    case, wanted = seen(CAUSAL)
    case.inputs["v"][:, -64:] = np.nan
    made = mgx_mlir.compile(
        case.model.SerializeToString(), target="gpu", arch="gfx942", emulate=True, cache=False
    )
    (found,) = made.run(case.inputs)
    assert np.isnan(np.asarray(found)[:, -64:]).all()
    assert worst([np.asarray(found)[:, :-64]], [wanted[:, :-64]]) <= LIMITS["f16"]


@pytest.mark.parametrize("arch", ["gfx90a", "gfx942", "gfx950"])
def test_tiles_of_blocks(arch: str) -> None:
    chip = CHIPS[arch]
    for queries, keys, size in ((2048, 2048, 128), (512, 512, 64), (192, 320, 64), (64, 256, 32)):
        for causal in (False, True):
            a = AttentionShape(32, queries, keys, size, size)
            tile = attention_tiles.blocks(chip, a, causal=causal)
            assert tile is not None
            assert queries % tile.rows == 0
            assert keys % tile.keys == 0
            assert tile.lds(size, size) <= chip.lds
    spilled = AttentionShape(32, 2048, 2048, 256, 256)
    for a in (AttentionShape(32, 100, 512, 64, 64), AttentionShape(32, 512, 500, 64, 64), spilled):
        assert attention_tiles.blocks(chip, a, causal=False) is None
    assert attention_tiles.blocks(CHIPS["gfx1100"], a, causal=False) is None


def places(layout: Layout, wave: int, lane: int) -> list[np.ndarray]:
    """Return for each axis where the elements are that a lane has, in order."""
    found = []
    for axis in range(len(layout.batch)):
        own = [wave // max(layout.wave_strides[axis], 1) % layout.waves[axis]]
        thread = lane // layout.thread_strides[axis] % layout.thread[axis]
        batch, element = np.arange(layout.batch[axis]), np.arange(layout.element[axis])
        at = (own[0] * layout.batch[axis] + batch) * layout.thread[axis] + thread
        found.append((at[:, None] * layout.element[axis] + element).ravel())
    return found


@pytest.mark.parametrize(
    "tile", [BlockTile(8, 128), BlockTile(8, 64, 2), BlockTile(8, 32), BlockTile(4, 64)], ids=str
)
def test_keys_of_values_lie_as_a_lane_has_their_weights(tile: BlockTile) -> None:
    """A lane of the first product has four keys of each 16; of 32, a deep instruction takes them as
    eight neighbours."""
    found = attention_tiles.load_layouts(tile, 64, 128, 128)
    assert found is not None
    assert found.keys.dims == [tile.keys, 128]
    assert found.values.dims == [tile.keys, 128]
    assert found.turned.dims == [128, tile.keys]
    keys = np.full((128, tile.keys), -1)
    for wave in range(tile.waves):
        for lane in range(64):
            own, across = places(found.values, wave, lane)
            rows, columns = places(found.turned, wave, lane)
            assert np.array_equal(rows, across)
            keys[np.ix_(rows, columns)] = own
    for lane in range(64):
        weights = places(result_layout(16 * tile.waves, tile.keys, tile.waves), 0, lane)[1]
        read = places(operand_layout(128, tile.keys), 0, lane)[1]
        assert (keys[:, read] == weights).all()


PARTS = """<ir_version: 8, opset_import: ["" : 17]> g (float[6,16,16] x) => (float[6,16,16] y)
{ d = Constant<value_ints=[0,0,2,8]>()  s = Constant<value=float {0.35}>()
  u = Constant<value_ints=[0,0,-1]>()  m = MatMul(x, w)  q, k, v = Split<axis=2>(m)
  a = Reshape(q, d)  b = Reshape(k, d)  c = Reshape(v, d)  e = Transpose<perm=[0,2,1,3]>(a)
  f = Transpose<perm=[0,2,3,1]>(b)  h = Transpose<perm=[0,2,1,3]>(c)  i = MatMul(e, f)
  j = Mul(i, s)  n = Softmax(j)  o = MatMul(n, h)  p = Transpose<perm=[0,2,1,3]>(o)
  y = Reshape(p, u) }"""


def test_parts_of_one_product(library: Path) -> None:
    """Queries, keys and values of several windows, split from one product, are not copied in the
    kernel: the compiler kept all of it in registers, and took ten minutes."""
    rng, net = np.random.default_rng(8), onnx.parser.parse_model(PARTS)
    w = (rng.standard_normal((16, 48)) / 4).astype(np.float32)
    net.graph.initializer.append(numpy_helper.from_array(w, "w"))
    made = mgx_mlir.compile(
        net.SerializeToString(), target="gpu", arch="gfx942", emulate=True, timeout=120, cache=False
    )
    kernels = gpu_report(made.executable.vmfb, made.executable.dispatches).kernels
    assert [k.name for k in kernels if k.spills or k.scratch] == []
    assert sum("attention" in k.name for k in kernels) == 1
    inputs = {"x": rng.standard_normal((6, 16, 16)).astype(np.float32)}
    assert worst(made.run(inputs), oracle.wanted(Case(net, inputs))) <= LIMITS["f32"]


WIDE = """<ir_version: 10, opset_import: ["" : 23]>
g (float16[1,4,256,64] q, float16[1,2,256,64] k, float16[1,2,256,64] v, float16[2,37,64] r) =>
  (float16[1,4,256,64] y, float16[2,37,64] z)
{ y = Attention <is_causal: int = 1> (q, k, v)
  z = Attention <q_num_heads: int = 2, kv_num_heads: int = 2> (r, r, r)
}"""


@pytest.mark.parametrize("size", [1.0, 300.0])
def test_attention_by_the_operator(size: float, library: Path) -> None:
    """One kernel reads f16 and computes in f32: scores may exceed the range of f16."""
    model, rng = onnx.parser.parse_model(WIDE), np.random.default_rng(5)
    dims = {v.name: [d.dim_value for d in v.type.tensor_type.shape.dim] for v in model.graph.input}
    inputs = {n: rng.standard_normal(d) for n, d in dims.items()}
    held = {n: (a * (1 if n == "v" else size)).astype(np.float16) for n, a in inputs.items()}
    made = mgx_mlir.compile(model.SerializeToString(), "gpu", arch="gfx942", emulate=True)
    kernels = gpu_report(made.executable.vmfb, made.executable.dispatches).kernels
    assert len(kernels) == 2
    assert [k.name for k in kernels if k.spills or k.scratch] == []

    def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray, seen: np.ndarray) -> np.ndarray:
        scores = np.where(seen, q @ k.swapaxes(-1, -2) / q.shape[-1] ** 0.5, -np.inf)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        return weights / weights.sum(-1, keepdims=True) @ v

    q, k, v, r = (held[n].astype(np.float64) for n in "qkvr")
    own = r.reshape(2, 37, 2, 32).swapaxes(1, 2)
    whole = np.ones((37, 37), bool)
    want = [
        attention(q, np.repeat(k, 2, 1), np.repeat(v, 2, 1), np.tril(np.ones((256, 256), bool))),
        attention(own, own, own, whole).swapaxes(1, 2).reshape(2, 37, 64),
    ]
    got = [np.asarray(a, np.float64) for a in made.run(held)]
    assert worst(got, want) <= LIMITS["f16"]


ONE = """<ir_version: 10, opset_import: ["" : 23]>
g (T[1,4,1,64] q, T[1,2,N,64] k, T[1,2,N,64] v, T[1,1,1,N] m) => (T[1,4,1,64] y)
{ y = Attention (q, k, v, m) }"""


@pytest.mark.parametrize(
    ("arch", "kind", "keys", "size"),
    [("gfx942", "f16", 256, 300.0), ("gfx942", "bf16", 300, 1.0), ("gfx1100", "f16", 300, 300.0)],
)
def test_one_query_by_the_operator(
    arch: str, kind: str, keys: int, size: float, library: Path
) -> None:
    """The keys are processed in parts, in their own type: scores beyond the range of f16, heads
    that share keys, and a mask, which is read in place if all parts are whole."""
    name, held = {"f16": "float16", "bf16": "bfloat16"}[kind], KINDS[kind][1]
    model = onnx.parser.parse_model(ONE.replace("T", name).replace("N", str(keys)))
    rng, dims = np.random.default_rng(6), {"q": (1, 4, 1, 64), "m": (1, 1, 1, keys)}
    inputs = {n: rng.standard_normal(dims.get(n, (1, 2, keys, 64))) for n in "qkvm"}
    inputs["q"], inputs["k"] = inputs["q"] * size, inputs["k"] * size
    inputs["m"][..., : keys // 3] = -np.inf
    inputs = {n: a.astype(held) for n, a in inputs.items()}
    made = mgx_mlir.compile(model.SerializeToString(), "gpu", arch=arch, emulate=True, cache=False)
    report = gpu_report(made.executable.vmfb, made.executable.dispatches)
    assert [k.name for k in report.kernels if k.spills or k.scratch] == []
    assert [k.name for k in report.kernels if "online_attention_2x" in k.name]
    # two, one ahead and one behind for rows that are masked whole, and that of a mask's layout
    assert report.dispatches == (5 if keys % 256 else 4)
    q, k, v, m = (inputs[n].astype(np.float64) for n in "qkvm")
    k, v = np.repeat(k, 2, 1), np.repeat(v, 2, 1)
    scores = q @ k.swapaxes(-1, -2) / 8 + m
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    want = [weights / weights.sum(-1, keepdims=True) @ v]
    got = [np.asarray(a, np.float64) for a in made.run(inputs)]
    assert worst(got, want) <= LIMITS[kind]


JOINED = """<ir_version: 8, opset_import: ["" : 17]> g (float[2,256,128] x) => (float[2,256,128] y)
{ d = Constant<value_ints=[0,0,2,64]>()  s = Constant<value=float {0.125}>()
  u = Constant<value_ints=[0,0,-1]>()  a0 = MatMul(x, q)  b0 = MatMul(x, k)  c0 = MatMul(x, v)
  a = Reshape(a0, d)  b = Reshape(b0, d)  c = Reshape(c0, d)  e = Transpose<perm=[0,2,1,3]>(a)
  f = Transpose<perm=[0,2,3,1]>(b)  h = Transpose<perm=[0,2,1,3]>(c)  i = MatMul(e, f)
  j = Mul(i, s)  l = Add(j, m)  n = Softmax(l)  o = MatMul(n, h)
  p = Transpose<perm=[0,2,1,3]>(o)  y = Reshape(p, u) }"""


def test_blocks_of_parts_of_one_product(library: Path) -> None:
    """Queries, keys and values of one product, as it is fused, are read where they lie in it."""
    rng, net = np.random.default_rng(8), onnx.parser.parse_model(JOINED)
    for name in "qkv":
        w = (rng.standard_normal((128, 128)) / 128**0.5).astype(np.float32)
        net.graph.initializer.append(numpy_helper.from_array(w, name))
    mask = np.triu(np.full((256, 256), -np.inf, np.float32), 1)
    net.graph.initializer.append(numpy_helper.from_array(mask, "m"))
    program = mgx_mlir.parse_onnx_buffer(net.SerializeToString())
    mgx_mlir.quantize_fp16(program)
    made = mgx_mlir.compile(program, target="gpu", arch="gfx942", emulate=True)
    kernels = gpu_report(made.executable.vmfb, made.executable.dispatches).kernels
    assert [k.name for k in kernels if k.spills or k.scratch] == []
    a = AttentionShape(4, 256, 256, 64, 64)
    tile = attention_tiles.blocks(CHIPS["gfx942"], a, causal=True)
    assert tile is not None
    assert tile.lds(64, 64) in [k.lds for k in kernels]
    inputs = {"x": rng.standard_normal((2, 256, 128)).astype(np.float32)}
    assert worst(made.run(inputs), oracle.wanted(Case(net, inputs))) <= LIMITS["f16"]
