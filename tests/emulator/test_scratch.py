"""Kernels that keep neither registers nor arrays in scratch memory, where those of before did.

Each case is compiled once, with the numbers of emulated calls beside.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx.parser
import pytest
from onnx import ModelProto, helper, numpy_helper

import mgx_mlir
from mgx_mlir.api.program import program
from mgx_mlir.frontends.dims import DynamicDim
from mgx_mlir.targets.report import KernelReport, gpu_report
from tests.emulator.models import Case
from tests.emulator.oracle import LIMITS, wanted, worst

pytestmark = pytest.mark.emulator
TYPES = {"f16": ("float16", np.float16), "f32": ("float", np.float32)}


def net(text: str, kind: str, **weights: Sequence[int]) -> ModelProto:
    """A model of a text in which TYPE is its type, with drawn weights of these dims."""
    name, to = TYPES[kind]
    model = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : 17]> g {text.replace("TYPE", name)}'
    )
    rng = np.random.default_rng(2)
    for key, dims in weights.items():
        w = rng.standard_normal(dims) / max(1, int(np.prod(dims[1:]))) ** 0.5
        model.graph.initializer.append(numpy_helper.from_array(w.astype(to), key))
    return model


def compiled(model: ModelProto | program, arch: str) -> tuple[Any, list[KernelReport]]:
    """Return the program, compiled as asked for, and what its kernels are, none with scratch."""
    source = model.SerializeToString() if isinstance(model, ModelProto) else model
    made: Any = mgx_mlir.compile(source, target="gpu", arch=arch, emulate=True, cache=False)
    assert not made.executable.fallbacks
    kernels = list(gpu_report(made.executable.vmfb, made.executable.dispatches).kernels)
    bad = [(k.name, k.vgpr_spills, k.sgpr_spills, k.scratch) for k in kernels]
    assert [row for row in bad if any(row[1:])] == []
    return made, kernels


def right(
    made: Any, model: ModelProto, kind: str, shapes: Sequence[Mapping[str, Sequence[int]]]
) -> None:
    """Compare calls with inputs of these dims, drawn, with onnxruntime's."""
    rng = np.random.default_rng(3)
    types = {v.name: v.type.tensor_type.elem_type for v in model.graph.input}
    for dims in shapes:
        inputs = {
            k: rng.standard_normal(list(d)).astype(helper.tensor_dtype_to_np_dtype(types[k]))
            for k, d in dims.items()
        }
        got, want = made.run(inputs), wanted(Case(model, inputs))
        assert worst(got, want) <= LIMITS[kind], dims


# convolutions of one axis: windows whose number no tile divides, by steps, with a residual behind
# them; elements of a window that lie apart
ROW = """(TYPE[N,L,64] x, TYPE[75,64] p) => (TYPE[N,K,64] y, TYPE[N,40,M] z)
{ t = Transpose<perm=[0,2,1]>(x)  a = Conv<pads=[1,1], strides=[2]>(t, w0, b0)  e = Erf(a)
  g = Mul(a, e)  f = Transpose<perm=[0,2,1]>(g)  y = REST
  c = Conv<pads=[4,4], dilations=[2]>(a, w1, b1)  z = Relu(c) }"""


def row_net(kind: str, *, opened: bool) -> ModelProto:
    own = {"N": "n", "L": "l", "K": "k", "M": "m"}
    if not opened:
        own = {"N": "1", "L": "150", "K": "75", "M": "75"}
    text = ROW.replace("REST", "Relu(f)" if opened else "Add(f, p)")
    for key, value in own.items():
        text = text.replace(f"[{key},", f"[{value},").replace(f",{key}]", f",{value}]")
        text = text.replace(f",{key},", f",{value},")
    return net(text, kind, w0=(64, 64, 3), b0=(64,), w1=(40, 64, 5), b1=(40,))


@pytest.mark.parametrize(
    ("arch", "kind", "opened"),
    [("gfx942", "f16", False), ("gfx942", "f16", True), ("gfx1100", "f16", True)],
)
def test_convolutions_of_one_axis(arch: str, kind: str, opened: bool, library: Path) -> None:
    model = row_net(kind, opened=opened)
    made, kernels = compiled(model, arch)
    assert sum(k.lds > 0 for k in kernels) == 2
    sizes = ((1, 1), (2, 2), (3, 61), (1, 300)) if opened else ((1, 150),)
    right(made, model, kind, [{"x": (n, m, 64), "p": (75, 64)} for n, m in sizes])


@pytest.mark.parametrize(("arch", "kind"), [("gfx942", "f16"), ("gfx1100", "f16")])
def test_softmax_of_dynamic_rows(arch: str, kind: str, library: Path) -> None:
    """In f32, of f16 scores and a mask: there was no kernel at all."""
    text = """(TYPE[n,3,s,s] x, float[n,1,s,s] p) => (TYPE[n,3,s,s] y, TYPE[n,3,s,s] z)
    { a = Cast<to=1>(x)  b = Add(a, p)  c = Softmax<axis=-1>(b)  y = Cast<to=10>(c)
      d = Add(x, x)  z = LogSoftmax<axis=-1>(d) }"""
    model = net(text, kind)
    made, _ = compiled(model, arch)
    sizes = ((1, 2), (2, 17), (1, 70))
    right(made, model, kind, [{"x": (n, 3, s, s), "p": (n, 1, s, s)} for n, s in sizes])


@pytest.mark.parametrize(("arch", "kind"), [("gfx942", "f16"), ("gfx1100", "f32")])
def test_concatenations_of_what_is_broadcast(arch: str, kind: str, library: Path) -> None:
    """Positions that turn halves of a head; boxes, scaled, ahead of scores."""
    text = """(TYPE[2,48,96] x, TYPE[1,1,48,32] c, TYPE[1,1,48,32] s, TYPE[1,4,210] b,
    TYPE[1,1,210] f, TYPE[1,9,210] g) => (TYPE[2,3,48,32] y, TYPE[1,13,210] z)
    { r = Reshape(x, d)  t = Transpose<perm=[0,2,1,3]>(r)  l, h = Split<axis=-1>(t, e)
      n = Neg(h)  k = Concat<axis=-1>(n, l)  p = Mul(t, c)  q = Mul(k, s)  y = Add(p, q)
      m = Mul(b, f)  o = Sigmoid(g)  z = Concat<axis=1>(m, o) }"""
    model = net(text, kind)
    for name, own in (("d", [2, 48, 3, 32]), ("e", [16, 16])):
        model.graph.initializer.append(numpy_helper.from_array(np.array(own), name))
    made, kernels = compiled(model, arch)
    assert len(kernels) == 2
    inputs = {
        v.name: [d.dim_value for d in v.type.tensor_type.shape.dim] for v in model.graph.input
    }
    right(made, model, kind, [inputs])


@pytest.mark.parametrize("arch", ["gfx1100", "gfx942"])
def test_transposed_convolutions(arch: str, library: Path) -> None:
    """One product of all phases, without windows that are zeros but for one tap."""
    text = """(TYPE[1,128,16,16] x) => (TYPE[1,64,32,32] y)
    { y = ConvTranspose<strides=[2,2]>(x, w, b) }"""
    model = net(text, "f16", w=(128, 64, 2, 2), b=(64,))
    made, kernels = compiled(model, arch)
    assert [k.name for k in kernels if "conv" in k.name] == []
    right(made, model, "f16", [{"x": (1, 128, 16, 16)}])


def test_windows_of_dynamic_images(library: Path) -> None:
    """A lane gathers few vectors at once: each has a place and a mask in scalar registers."""
    text = """(TYPE[n,128,10,10] x, TYPE[n,16,k,l] o)
    => (TYPE[n,80,10,10] y, TYPE[n,64,5,5] z, TYPE[n,24,k,l] p)
    { a = Conv<pads=[1,1,1,1]>(x, v, b)  g = Sigmoid(a)  y = Mul(a, g)
      z = Conv<strides=[2,2]>(x, w)  q = Conv<pads=[1,1,1,1]>(o, u)  p = Relu(q) }"""
    model = net(text, "f16", v=(80, 128, 3, 3), b=(80,), w=(64, 128, 2, 2), u=(24, 16, 3, 3))
    made, _ = compiled(model, "gfx942")
    sizes = ((1, 5, 19), (3, 9, 7))
    right(made, model, "f16", [{"x": (n, 128, 10, 10), "o": (n, 16, k, m)} for n, k, m in sizes])


def test_windows_of_a_dynamic_batch_in_bf16(library: Path) -> None:
    """Images of a static height, too: four scalar registers were spilled."""
    text = """(TYPE[n,192,14,14] x) => (TYPE[n,96,7,7] y)
    { a = Conv<strides=[2,2]>(x, v, b)  s = Sigmoid(a)  y = Mul(a, s) }"""
    model = net(text, "f32", v=(96, 192, 2, 2), b=(96,))
    opened = DynamicDim(0, None)
    read = mgx_mlir.parse_onnx_buffer(model.SerializeToString(), default_dyn_dim_value=opened)
    mgx_mlir.quantize_bf16(read)
    made, _ = compiled(read, "gfx90a")
    right(made, model, "bf16", [{"x": (n, 192, 14, 14)} for n in (1, 2)])


def test_windows_without_matrix_instructions(library: Path) -> None:
    """A dynamic number of images has tiles of threads, as a static one has."""
    text = """(TYPE[n,16,24,24] x) => (TYPE[n,16,24,24] y, TYPE[n,24,8,8] z)
    { a = Conv<pads=[1,1,1,1]>(x, v, b)  g = Sigmoid(a)  y = Mul(a, g)
      z = Conv<strides=[3,3], pads=[1,1,1,1]>(x, w) }"""
    model = net(text, "f32", v=(16, 16, 3, 3), b=(16,), w=(24, 16, 3, 3))
    made, kernels = compiled(model, "gfx1100")
    assert sum(k.lds > 0 for k in kernels) == 2
    right(made, model, "f32", [{"x": (n, 16, 24, 24)} for n in (1, 3)])


def test_one_token(library: Path) -> None:
    """Keys and values are slices of one product's row, which a reshape of them copied."""
    text = """(TYPE[1,1,256] x, TYPE[1,1,1,1] mask) => (TYPE[1,1,256] y)
    { q0 = MatMul(x, wq)  q1 = Add(q0, bq)  q2 = Reshape(q1, heads)
      k0 = MatMul(x, wk)  k1 = Add(k0, bk)  k2 = Reshape(k1, heads)
      v0 = MatMul(x, wv)  v1 = Add(v0, bv)  v2 = Reshape(v1, heads)
      q = Transpose<perm=[0,2,1,3]>(q2)  k = Transpose<perm=[0,2,1,3]>(k2)
      v = Transpose<perm=[0,2,1,3]>(v2)  f = Reshape(k, rows)  g = Transpose<perm=[0,2,1]>(f)
      t = Reshape(g, turned)  qs = Mul(q, by)  ts = Mul(t, by)  s = MatMul(qs, ts)
      m = Add(s, mask)  p = Softmax<axis=-1>(m)  o = MatMul(p, v)
      a = Transpose<perm=[0,2,1,3]>(o)  y = Reshape(a, whole) }"""
    drawn = {f"{w}{i}": (256, 256) if w == "w" else (256,) for w in "wb" for i in "qkv"}
    model = net(text, "f16", **drawn)
    constants = {
        "heads": np.array([1, 1, 4, 64]), "rows": np.array([4, 1, 64]),
        "turned": np.array([1, 4, 64, 1]), "whole": np.array([1, 1, 256]), "by": np.float16(0.35),
    }  # fmt: skip
    model.graph.initializer.extend(
        numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()
    )
    made, kernels = compiled(model, "gfx942")
    assert sum("attention" in k.name for k in kernels) == 1
    right(made, model, "f16", [{"x": (1, 1, 256), "mask": (1, 1, 1, 1)}])


@pytest.mark.parametrize("arch", ["gfx1030", pytest.param("gfx942", marks=pytest.mark.slow)])
def test_windows_of_planes(arch: str, library: Path) -> None:
    """Poolings of images whose channels lie apart, in 16 bits: 20 and 28 bytes of each lane."""
    text = """(TYPE[1,5,11,13] x) => (TYPE[1,5,a,b] y, TYPE[1,5,c,d] z, TYPE[1,5,e,f] u)
    { y = LpPool<kernel_shape=[4,2], strides=[2,3], pads=[1,1,1,1], p=2>(x)
      z = AveragePool<kernel_shape=[3,4], strides=[1,3], pads=[1,2,0,1]>(x)
      u = MaxPool<kernel_shape=[2,3], strides=[3,1], pads=[0,1,1,0]>(x) }"""
    model = net(text, "f16")
    made, _ = compiled(model, arch)
    right(made, model, "f16", [{"x": (1, 5, 11, 13)}])


@pytest.mark.parametrize("arch", ["gfx1100", pytest.param("gfx1201", marks=pytest.mark.slow)])
def test_attention_of_dynamic_lengths(arch: str, library: Path) -> None:
    """Blocks of 32 keys, which the run counts, kept 11 registers of 256 elsewhere on gfx1100."""
    text = """(TYPE[b,s,384] x) => (TYPE[b,s,384] y)
    { q0 = MatMul(x, wq)  q1 = Add(q0, bq)  q2 = Reshape(q1, heads)
      k0 = MatMul(x, wk)  k1 = Add(k0, bk)  k2 = Reshape(k1, heads)
      v0 = MatMul(x, wv)  v1 = Add(v0, bv)  v2 = Reshape(v1, heads)
      q = Transpose<perm=[0,2,1,3]>(q2)  k = Transpose<perm=[0,2,3,1]>(k2)
      v = Transpose<perm=[0,2,1,3]>(v2)  s0 = MatMul(q, k)  s1 = Mul(s0, by)
      p = Softmax<axis=-1>(s1)  o = MatMul(p, v)
      a = Transpose<perm=[0,2,1,3]>(o)  y = Reshape(a, whole) }"""
    drawn = {f"{w}{i}": (384, 384) if w == "w" else (384,) for w in "wb" for i in "qkv"}
    model = net(text, "f16", **drawn)
    constants = {
        "heads": np.array([0, 0, 6, 64]), "whole": np.array([0, 0, 384]), "by": np.float16(0.125),
    }  # fmt: skip
    model.graph.initializer.extend(
        numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()
    )
    made, kernels = compiled(model, arch)
    assert sum("attention" in k.name for k in kernels) == 1
    right(made, model, "f16", [{"x": (1, 33, 384)}, {"x": (2, 17, 384)}])


@pytest.mark.parametrize(
    ("arch", "keys"),
    [("gfx1201", 1021), ("gfx1100", None), pytest.param("gfx1100", 1021, marks=pytest.mark.slow)],
)
def test_one_token_of_wide_heads(arch: str, keys: int | None, library: Path) -> None:
    """32 heads of 128 share 8 of keys: 2 to 5 registers of 256 were kept elsewhere."""
    text = f"""(TYPE[1,32,1,128] q, TYPE[1,8,{keys or "t"},128] k, TYPE[1,8,{keys or "t"},128] v)
    => (TYPE[1,32,1,128] y)
    {{ n = Shape<start=2,end=3>(k)  to = Concat<axis=0>(ahead, n, size)
      flat = Concat<axis=0>(first, n, size)
      k1 = Unsqueeze(k, two)  k2 = Expand(k1, to)  k3 = Reshape(k2, flat)
      v1 = Unsqueeze(v, two)  v2 = Expand(v1, to)  v3 = Reshape(v2, flat)
      kt = Transpose<perm=[0,1,3,2]>(k3)  s0 = MatMul(q, kt)  s1 = Mul(s0, by)
      p = Softmax<axis=-1>(s1)  y = MatMul(p, v3) }}"""
    model = net(text, "f16")
    constants = {
        "ahead": np.array([1, 8, 4]), "first": np.array([1, 32]), "size": np.array([128]),
        "two": np.array([2]), "by": np.float16(0.09),
    }  # fmt: skip
    model.graph.initializer.extend(
        numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()
    )
    made, kernels = compiled(model, arch)
    assert sum("attention" in k.name for k in kernels) == 1
    for n in (keys,) if keys else (1, 130, 300):
        held = (1, 8, n, 128)
        right(made, model, "f16", [{"q": (1, 32, 1, 128), "k": held, "v": held}])


@pytest.mark.parametrize("arch", ["gfx1102", pytest.param("gfx942", marks=pytest.mark.slow)])
def test_short_rows_by_few_weights(arch: str, library: Path) -> None:
    """Weights of fewer than 64 elements are in the kernel: 516 bytes of each lane were kept."""
    model = net("(TYPE[1,24] x) => (TYPE[1,2] y) { a = MatMul(x, w)  y = Add(a, b) }", "f16",
                w=(24, 2), b=(2,))  # fmt: skip
    made, _ = compiled(model, arch)
    right(made, model, "f16", [{"x": (1, 24)}])


def test_sixteen_bits_without_matrix_instructions(library: Path) -> None:
    """On RDNA2 311 of 256 registers were kept elsewhere, after 45 s of compiling."""
    model = net("(TYPE[66,128] x) => (TYPE[66,96] y) { y = MatMul(x, w) }", "f16", w=(128, 96))
    made, _ = compiled(model, "gfx1030")
    right(made, model, "f16", [{"x": (66, 128)}])


def test_short_rows_of_bytes(library: Path) -> None:
    """1028 bytes of each lane were kept in scratch memory."""
    w = np.random.default_rng(0).integers(-60, 60, (16, 10)).astype(np.int8)
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 17]> g (int8[1,16] x) => (int32[1,10] y)
        { y = MatMulInteger(x, w) }"""
    )
    model.graph.initializer.append(numpy_helper.from_array(w, "w"))
    made, _ = compiled(model, "gfx90a")
    x = np.arange(-8, 8, dtype=np.int8)[None]
    np.testing.assert_array_equal(made.run({"x": x})[0], x.astype(np.int32) @ w.astype(np.int32))
