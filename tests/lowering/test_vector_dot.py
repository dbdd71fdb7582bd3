"""Matrix products as vector loops: rows, panels and their ends, what follows, dynamic extents."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from onnx import helper

import mgx_mlir
from mgx_mlir.compiler.models import read_model
from mgx_mlir.core import dtypes
from mgx_mlir.core.ir import arith, ir, tensor
from mgx_mlir.passes.lowering.cpu.frame.epilogue import Epilogue
from mgx_mlir.passes.lowering.cpu.frame.isa import AVX2, AVX512, NEON, Isa, isa_of
from mgx_mlir.passes.lowering.cpu.frame.workgroup_builder import SCRATCH_BYTES, WorkgroupBuilder
from mgx_mlir.passes.lowering.cpu.matmul import dot as loops
from mgx_mlir.passes.lowering.cpu.matmul.panel import pack
from mgx_mlir.passes.lowering.lower import lower_to_linalg
from mgx_mlir.passes.lowering.options import LowerOptions
from tests.lowering.programs import COMPILES, Programs, check, execute, kernels_of
from tests.lowering.vector_kernels import run
from tests.support.models import model_of, parsed
from tests.support.oracle import ort_session

pytestmark = pytest.mark.skipif(isa_of("host") is None, reason="no vector kernels for this host")

ARCHS = {"znver4": AVX512, "haswell": AVX2, "neoverse-v1": NEON}


# ---- how a product is cut ------------------------------------------------------------------------


@given(
    st.one_of(st.none(), st.integers(1, 5000)),
    st.integers(1, 20000),
    st.integers(1, 40000),
    st.sampled_from((AVX512, AVX2, NEON)),
)
def test_cut(rows: int | None, depth: int, columns: int, isa: Isa) -> None:
    """Tiles fit the registers, workgroups are whole tiles, and no panel has nothing to do."""
    dynamic_extent: Any = object()
    cut = loops.plan(loops.DotShape(rows or dynamic_extent, depth, columns), isa)
    registers = cut.width // isa.lanes
    have = 16 if isa is AVX2 else 32
    assert registers * isa.lanes == cut.width
    assert cut.tile * registers + registers + 1 <= have
    assert 1 <= cut.panels <= -(-columns // cut.width)
    if rows is None:
        assert cut.rows % cut.tile == 0
    else:
        assert cut.rows <= -(-rows // cut.tile) * cut.tile
        assert cut.rows == rows or cut.rows % cut.tile == 0
        assert cut.tile == 1 or rows > 1


def test_few_work_groups_are_shared_out() -> None:
    """Eight workers have two groups each, or one of enough work."""
    for rows, depth, columns in [(128, 768, 768), (1, 768, 3072), (4096, 64, 64), (197, 768, 768)]:
        cut = loops.plan(loops.DotShape(rows, depth, columns), AVX512)
        panels = math.ceil(columns / cut.width)
        groups = math.ceil(panels / cut.panels) * math.ceil(rows / cut.rows)
        assert 8 <= groups <= 64, (rows, depth, columns, cut)


def test_packed_weights() -> None:
    w = np.arange(15, dtype=np.float32).reshape(3, 5)
    packed = pack(w, 4)
    assert packed.shape == (2, 3, 4)
    np.testing.assert_array_equal(packed[0], w[:, :4])
    np.testing.assert_array_equal(packed[1], np.pad(w[:, 4:], ((0, 0), (0, 3))))
    pairs = pack(w[:2], 4, unit=2)
    np.testing.assert_array_equal(pairs[0], [[0, 5, 1, 6, 2, 7, 3, 8]])


# ---- numbers -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Product:
    """rows: of each leading dim. open: only the run knows them."""

    rows: tuple[int, ...]
    depth: int
    columns: int
    open: bool
    after: str


AFTER = ("nothing", "residual", "bias_relu", "gelu", "two")
products = st.builds(
    Product,
    rows=st.one_of(
        st.tuples(st.integers(1, 40)),
        st.tuples(st.sampled_from((1, 2, 48, 49, 130))),
        st.tuples(st.integers(1, 3), st.integers(1, 7)),
    ),
    depth=st.one_of(st.integers(1, 9), st.sampled_from((64, 100, 257))),
    columns=st.one_of(st.integers(1, 130), st.sampled_from((48, 64, 96, 192, 1000))),
    open=st.booleans(),
    after=st.sampled_from(AFTER),
)


def _has_pairs() -> bool:
    isa = isa_of("host")
    return isa is not None and bool(isa.bf16_dot)


class Products(Programs):
    """Matmuls of drawn matrices in one program."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        self.numbers = np.random.default_rng(seed)

    def draw(self, *dims: int) -> np.ndarray:
        return self.numbers.standard_normal(dims).astype(np.float32)

    def product(self, p: Product) -> None:
        x, w = self.draw(*p.rows, p.depth), self.draw(p.depth, p.columns)
        row, other = self.draw(p.columns), self.draw(*p.rows, p.columns)
        y = np.matmul(x.astype(np.float64), w.astype(np.float64))
        is_dynamic = p.open and len(p.rows) == 1
        lead = "x".join("?" if is_dynamic else str(d) for d in p.rows)
        types = [f"tensor<{lead}x{p.depth}xf32>", f"tensor<{lead}x{p.columns}xf32>"]
        arrays = [x, other]
        after = "residual" if is_dynamic and p.after == "bias_relu" else p.after

        def build(b: Any, x: Any, other: Any) -> Any:
            matrix = b.literal(w)
            if len(p.rows) > 1:
                matrix = b.multibroadcast(matrix, (*p.rows[:-1], p.depth, p.columns))
            made = b.op("dot", x, matrix)
            if after == "nothing":
                return b.op("add", made, made)
            if after == "bias_relu":
                bias = b.multibroadcast(b.literal(row), (*p.rows, p.columns))
                return b.op("relu", b.op("add", made, bias))
            if after == "gelu":
                return b.op("mul", b.op("erf", made), other)
            if after == "two":
                return b.op("add", b.op("tanh", made), b.op("mul", made, other))
            return b.op("add", other, made)

        want = {
            "nothing": lambda: 2 * y,
            "residual": lambda: y + other,
            "bias_relu": lambda: np.maximum(y + row, 0),
            "gelu": lambda: _erf(y) * other,
            "two": lambda: np.tanh(y) + y * other,
        }[after]()
        self.add(build, arrays, want, types=types, name=p, tolerance=1e-5)


def _erf(x: np.ndarray) -> np.ndarray:
    return np.vectorize(math.erf)(x)


@settings(COMPILES, max_examples=2)
@given(st.lists(products, min_size=6, max_size=9), st.sampled_from(sorted(ARCHS)), st.booleans())
def test_products(drawn: Sequence[Product], arch: str, both: bool) -> None:
    """Every one is a dispatch of its own, its numbers those of f64."""
    made = Products(len(drawn))
    for p in drawn:
        made.product(p)
    made.agree("fuse_ops", threads=(1 + both,), arch=arch)


@dataclass(frozen=True)
class Batch:
    """Products of matrices that are both computed; a, b: their last two dims are changed over."""

    lead: tuple[int, ...]
    rows: int
    depth: int
    columns: int
    a: bool
    b: bool
    open: bool
    isa: Isa

    def build(self, x: ir.Value, w: ir.Value) -> list[ir.Value]:
        """The sums, and the sums plus one, of one or all leading dims as a batch."""
        n = len(self.lead)
        swapped = (*range(n), n + 1, n)
        a, b = (swapped if s else tuple(range(n + 2)) for s in (self.a, self.b))
        extents = [[_dim(v, i) for i in range(n + 2)] for v in (x, w)]
        *lead, rows, depth = (extents[0][a.index(i)] for i in range(n + 2))
        columns = extents[1][b.index(n + 1)]
        batch: Any = math.prod(self.lead)
        if self.open and lead:
            batch = lead[0]
            for d in lead[1:]:
                batch = arith.MulIOp(batch, d).result
        shape = loops.DotShape(rows, depth, columns, tuple(lead), a, b)
        cut = loops.plan(shape, self.isa)
        after = Epilogue((), [dtypes.FLOAT] * 2, _twice)
        return loops.matmul(shape, cut, self.isa, (x, w), batch, after)

    def arrays(self, numbers: np.random.Generator) -> list[np.ndarray]:
        out = []
        for dims, swap in (((self.rows, self.depth), self.a), ((self.depth, self.columns), self.b)):
            own = (*self.lead, *(dims[::-1] if swap else dims))
            out.append(numbers.standard_normal(own).astype(np.float32))
        return out

    def want(self, x: np.ndarray, w: np.ndarray) -> np.ndarray:
        x, w = (v.swapaxes(-1, -2) if s else v for v, s in ((x, self.a), (w, self.b)))
        found = np.matmul(x.astype(np.float64), w.astype(np.float64))
        return found.reshape(*[math.prod(self.lead)] * bool(self.lead), *found.shape[-2:])


def _dim(x: ir.Value, axis: int) -> Any:
    """The extent of a dim, a number or a value."""
    kind = ir.RankedTensorType(x.type)
    if not kind.is_dynamic_dim(axis):
        return kind.shape[axis]
    return tensor.DimOp(x, arith.ConstantOp(ir.IndexType.get(), axis).result).result


def _twice(
    k: WorkgroupBuilder, tensors: Any, sums: ir.Value, at: Any, reads: Any, *, masked: bool
) -> list[ir.Value]:
    one = k.splat(1.0, ir.VectorType(sums.type).shape[0])
    return [sums, k.fma(one, one, sums)]


batches = st.builds(
    Batch,
    lead=st.sampled_from(((), (3,), (2, 2), (1,))),
    rows=st.one_of(st.integers(1, 20), st.sampled_from((1, 130))),
    depth=st.one_of(st.integers(1, 40), st.sampled_from((64, 256, 300, 513))),
    columns=st.one_of(st.integers(1, 70), st.sampled_from((48, 96, 128))),
    a=st.booleans(),
    b=st.booleans(),
    open=st.booleans(),
    isa=st.sampled_from((AVX512, AVX512, AVX2, NEON)),
)


@settings(COMPILES, max_examples=2)
@given(st.lists(batches, min_size=6, max_size=8), st.booleans())
@example([Batch((2,), 0, 9, 5, False, True, True, AVX512),
          Batch((), 3, 0, 5, False, False, True, AVX512),
          Batch((), 1, 300, 70, False, False, True, AVX512)], False)  # fmt: skip
def test_computed_operands(drawn: Sequence[Batch], both: bool) -> None:
    numbers = np.random.default_rng(len(drawn))
    arrays = [a for b in drawn for a in b.arrays(numbers)]
    types = [b.open for b in drawn for _ in range(2)]

    def build(*arguments: ir.Value) -> list[ir.Value]:
        pairs = zip(drawn, arguments[::2], arguments[1::2], strict=True)
        return [v for b, x, w in pairs for v in b.build(x, w)]

    got = run(build, arrays, 1 + both, is_dynamic=types)
    for i, b in enumerate(drawn):
        want = b.want(*arrays[2 * i : 2 * i + 2])
        check(got[2 * i], want, 1e-5, str(b))
        check(got[2 * i + 1], want + 1, 1e-5, str(b))


def test_a_computed_panel_is_read_in_place() -> None:
    """64 columns of AVX-512 lie in memory as they are packed; other columns and orders do not."""
    batch = {"lead": (12,), "a": (0, 1, 2)}
    one = loops.DotShape(512, 512, 64, b=(0, 1, 2), **batch)
    assert loops.plan(one, AVX512).block == 0
    for other in (
        loops.DotShape(512, 512, 65, b=(0, 1, 2), **batch),
        loops.DotShape(512, 512, 64, b=(0, 2, 1), **batch),
        loops.DotShape(512, 512, 64, b=(1, 0, 2), **batch),
    ):
        assert loops.plan(other, AVX512).block > 0


def test_what_workgroups_share_is_packed_ahead() -> None:
    """A kernel of its own packs whole panels that several workgroups read."""
    for rows, columns, is_ahead in ((1024, 1024, True), (64, 768, False), (1024, 1000, False)):
        shape = loops.DotShape(rows, 1024, columns, b=(0, 1))
        assert loops.packs_ahead(shape, loops.plan(shape, AVX512)) is is_ahead


@pytest.mark.parametrize(
    ("dims", "kernels"),
    [((3, 65, 300, 64), 1), ((0, 130, 513, 64), 1), ((0, 301, 700, 192), 2), ((0, 97, 33, 640), 1)],
)
def test_computed_panels(dims: tuple[int, int, int, int], kernels: int) -> None:
    """In place or packed ahead, with what follows the sums, against float64."""
    batch, rows, depth, columns = dims
    lead, rng = [batch] if batch else [], np.random.default_rng(5)
    x = rng.standard_normal((*lead, rows, depth)).astype(np.float32)
    w = rng.standard_normal((*lead, depth, columns)).astype(np.float32)
    model = parsed(f"""(float{list(x.shape)} x, float{list(w.shape)} w) => (float[] y)
        {{ s = MatMul(x, w) y = Relu(s) }}""")
    program = mgx_mlir.compile(model, "cpu", threads=1)
    [y] = program.run({"x": x, "w": w})
    check(y, np.maximum(x.astype(np.float64) @ w, 0), 1e-5, str(dims))
    assert len(program.executable.dispatches["main"]) <= kernels


@pytest.mark.parametrize("isa", [AVX512, AVX2, NEON], ids=["avx512", "avx2", "neon"])
@given(
    rows=st.one_of(st.none(), st.integers(1, 5000)),
    depth=st.one_of(st.none(), st.integers(1, 20000)),
    columns=st.one_of(st.none(), st.integers(1, 5000)),
    turned=st.booleans(),
)
def test_scratch_is_bounded(
    isa: Isa, rows: int | None, depth: int | None, columns: int | None, turned: bool
) -> None:
    """The scratch of every plan fits the stack, for all matmuls."""
    o: Any = object()
    b = (1, 0) if turned else (0, 1)
    shape = loops.DotShape(rows or o, depth or o, columns or o, b=b)
    cut = loops.plan(shape, isa)
    assert cut.block % isa.lanes == 0
    parts = cut.block and (depth is None or depth > cut.block)
    used = 4 * cut.width * (cut.block + (cut.rows if parts else 0))
    assert used <= SCRATCH_BYTES
    assert bool(cut.block) == ((rows != 1 or turned) and not shape.is_one_panel(cut.width))


def test_special_values() -> None:
    """NaN and infinities of a row reach that row alone, and no column that is filled up with 0."""
    x, w = np.ones((10, 6), np.float32), np.ones((6, 50), np.float32)
    x[3, 2], x[5, 0], w[1, 49], w[4, 7] = np.nan, np.inf, -np.inf, 0
    with np.errstate(invalid="ignore"):
        want = np.matmul(x.astype(np.float64), w.astype(np.float64))
    made = Products()
    made.add(lambda b, x: b.op("dot", x, b.literal(w)), [x], want, tolerance=1e-6)
    made.agree("fuse_ops")


@pytest.mark.skipif(not _has_pairs(), reason="this host has no product of bf16")
@settings(COMPILES, max_examples=2)
@given(st.lists(products, min_size=6, max_size=8))
def test_bf16(drawn: Sequence[Product]) -> None:
    """Sums are kept in f32 until they are stored, and what follows is computed in f32."""
    made = Products(len(drawn))
    for p in drawn:
        x = made.draw(*p.rows, 2 * p.depth).astype(ml_dtypes.bfloat16)
        w = made.draw(2 * p.depth, p.columns).astype(ml_dtypes.bfloat16)
        other = made.draw(*p.rows, p.columns).astype(ml_dtypes.bfloat16)
        y = np.matmul(x.astype(np.float64), w.astype(np.float64))

        def build(b: Any, x: Any, other: Any, w: Any = w, p: Product = p) -> Any:
            matrix = b.literal(w)
            if len(p.rows) > 1:
                matrix = b.multibroadcast(matrix, (*p.rows[:-1], 2 * p.depth, p.columns))
            made = b.op("dot", x, matrix)
            if p.after == "nothing":
                return b.op("convert", made, target_type="float")
            return b.op("add", made, other)

        lead = "x".join("?" if p.open and len(p.rows) == 1 else str(d) for d in p.rows)
        types = [f"tensor<{lead}x{n}xbf16>" for n in (2 * p.depth, p.columns)]
        want = y if p.after == "nothing" else y + other.astype(np.float64)
        limit = 1e-5 if p.after == "nothing" else 2**-8
        made.add(build, [x, other], want, types=types, name=p, tolerance=limit)
    made.agree("fuse_ops")


TRANSPOSED = """
func.func @main(%x: tensor<2x5x7xf32>) -> tensor<2x7x9xf32> {
  %w = "migraphx.literal"() {value = dense<2.0> : tensor<5x9xf32>} : () -> tensor<5x9xf32>
  %0 = "migraphx.group"(%x, %w) ({
  ^bb0(%a: tensor<2x5x7xf32>, %b: tensor<5x9xf32>):
    %t = "migraphx.transpose"(%a) {permutation = array<i64: 0, 2, 1>}
           : (tensor<2x5x7xf32>) -> tensor<2x7x5xf32>
    %m = "migraphx.multibroadcast"(%b) {out_lens = array<i64: 2, 5, 9>}
           : (tensor<5x9xf32>) -> tensor<2x5x9xf32>
    %1 = "migraphx.dot"(%t, %m) : (tensor<2x7x5xf32>, tensor<2x5x9xf32>) -> tensor<2x7x9xf32>
    "migraphx.yield"(%1) : (tensor<2x7x9xf32>) -> ()
  }) {tag = "dot"} : (tensor<2x5x7xf32>, tensor<5x9xf32>) -> tensor<2x7x9xf32>
  return %0 : tensor<2x7x9xf32>
}
"""


def test_transposed_matrices_by_weights(tmp_path: Path) -> None:
    """Rows of a transposed operand are not next to each other: its leading dims are no rows."""
    file = tmp_path / "transposed.mlir"
    file.write_text(TRANSPOSED)
    lowered = lower_to_linalg(read_model(file), LowerOptions("cpu"))
    x = np.arange(70, dtype=np.float32).reshape(2, 5, 7)
    want = np.matmul(x.transpose(0, 2, 1).astype(np.float64), np.full((5, 9), 2.0))
    assert kernels_of(lowered) == 1
    check(execute(lowered, [x])[0], want, 1e-6, "transposed")


# ---- a model's products --------------------------------------------------------------------------


def _model(build: Callable[[list[Any], Callable[..., str]], None], dims: Sequence[Any]) -> bytes:
    nodes: list[Any] = []
    weights: dict[str, np.ndarray] = {}

    def constant(*shape: int) -> str:
        weights[name := f"w{len(weights)}"] = np.random.default_rng(len(weights)).standard_normal(
            shape
        )
        return name

    build(nodes, constant)
    made = model_of(nodes, {"x": list(dims)}, " ".join(n.output[0] for n in nodes), weights,
                    opset=20)  # fmt: skip
    return onnx.shape_inference.infer_shapes(made).SerializeToString()


@pytest.mark.parametrize("threads", [1, 2])
def test_dynamic_rows_of_a_model(threads: int) -> None:
    """One program takes every number of rows: smaller tiles at the end, and no rows at all."""

    def build(nodes: list[Any], constant: Callable[..., str]) -> None:
        nodes.append(helper.make_node("MatMul", ["x", constant(70, 200)], ["a"]))
        nodes.append(helper.make_node("Gemm", ["x", constant(61, 70)], ["b"], transB=1))

    model = _model(build, ["rows", 70])
    program = mgx_mlir.compile(model, target="cpu", threads=threads, cache=False)
    assert not program.executable.fallbacks
    session = ort_session(model)
    numbers = np.random.default_rng(0)
    for rows in (1, 2, 7, 8, 9, 23, 64, 300, 0):
        x = numbers.standard_normal((rows, 70)).astype(np.float32)
        for got, want in zip(program.run({"x": x}), session.run(None, {"x": x}), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5 * np.sqrt(70) * 4)


def test_weights_are_there_once() -> None:
    """Weights are stored in the layout that the loops read; equal ones are shared."""

    def build(nodes: list[Any], constant: Callable[..., str]) -> None:
        w = constant(32, 32)
        nodes.append(helper.make_node("MatMul", ["x", w], ["a"]))
        nodes.append(helper.make_node("MatMul", ["a", w], ["b"]))

    program = mgx_mlir.compile(_model(build, [4, 32]), target="cpu", cache=False)
    assert [a.size for a in program.params.values()] == [32 * 32]
