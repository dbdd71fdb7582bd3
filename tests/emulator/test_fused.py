"""Every fused kernel form on emulated GPUs, against onnxruntime and numpy in float64.

One model holds all forms; that each of them really was formed is counted while it is compiled.
Attentions and concatenations in all their forms come from the tests of the lowering.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mgx_mlir
from mgx_mlir.compiler.compile import compile as compile_program
from mgx_mlir.core import dtypes
from mgx_mlir.core.context import new_context
from mgx_mlir.core.ir import ir
from mgx_mlir.core.literals import WeightStore
from mgx_mlir.core.op import Kernel, is_a
from mgx_mlir.core.operand_segments import parse_module
from mgx_mlir.passes import PASSES
from mgx_mlir.passes.analysis.attention_form import DECODING
from mgx_mlir.passes.pipelines import pipeline
from mgx_mlir.programs.lowered import Lowered
from mgx_mlir.programs.program_ir import ProgramIR
from mgx_mlir.rewrite.passes import pass_name, run_pipeline
from mgx_mlir.rewrite.registry import rewrites_of
from mgx_mlir.rewrite.rewrite_trace import observing
from mgx_mlir.runtime.iree_runtime import LoadedModule
from mgx_mlir.targets.child import shared_compiler
from mgx_mlir.targets.flags import gpu_ladder
from tests.emulator.forms import FLOATS, floats, integers, known_forms
from tests.emulator.models import Case
from tests.emulator.oracle import LIMITS, wanted
from tests.lowering.harness import difference
from tests.lowering.programs import Programs, check
from tests.lowering.test_gpu_forms import FLASH, PARTS, attentions, concats
from tests.lowering.test_vector_attention import TOLERANCE, softmax

ARCHS = ("gfx942", "gfx1100")
SEEDS = (0, 1, 2)
QUICK = {("f16", "gfx942", 0), ("i8", "gfx1100", 0)}
# formed by tests of their own, below; not on GPUs, with the reason
ELSEWHERE = {
    f"group {DECODING}": "test_attentions",
    "fuse_attention/find_flash_decoding": "test_attentions",
    "split_fused_reduce": "test_split_fused_reduce",
    "group kv_cache_attention": "test_attention_with_a_cache",
    "fuse_attention/find_kv_cache_attention": "test_attention_with_a_cache",
    "fuse_attention/find_widened_attention": "test_attention_by_the_operator",
    "fuse_attention/find_masks": "test_chosen_masks.py",
    "fuse_cache_rows/find_rows_first": "test_cache_rows.py",
}
NOT_HERE = {
    "fuse_layout/find_planar_convolution": "for vector kernels of processors",
    "fuse_layout/find_convolution_of_planes": "for vector kernels of processors",
    "fuse_cache_rows/find_turned_rows": "rows are turned by a kernel of their own",
    "group blocked_dot": "pack_weights is a pass of processors",
}


def formed(case: Case) -> set[str]:
    """Run the passes of the gpu target on a model; return kernels, and rewrites that applied."""
    program = mgx_mlir.parse_onnx_buffer(case.model.SerializeToString()).program_ir
    steps = {pass_name(s.partition("{")[0]): s for s in pipeline("gpu")}
    with observing() as seen:
        run_pipeline(program.module, pipeline("gpu"), store=program.store)
    applied = {n for n, count in seen.counts.items() if count}
    found = {
        f"{step}/{r.name}" for step in steps for r in rewrites_of(PASSES[step]) if r.name in applied
    }
    for op in program.main().regions[0].blocks[0].operations:
        name = op.operation.name.removeprefix("migraphx.")
        if name == "group":
            found.add(f"group {ir.StringAttr(op.attributes['tag']).value}")
        elif is_a(op, Kernel):
            found.add(name)
    return found


def test_every_form_has_a_case() -> None:
    known = known_forms()
    assert set(ELSEWHERE) | set(NOT_HERE) <= known, "a reason for a form that is gone"
    have = formed(floats("f16", 0)) | formed(integers(0))
    assert sorted(known - have - set(ELSEWHERE) - set(NOT_HERE)) == []
    assert not have & (set(ELSEWHERE) | set(NOT_HERE)), "a reason that is out of date"


def limit(dtype: str, value: np.ndarray) -> float:
    """Return the limit of the error's norm: integers are exact, floats among them are f32."""
    if value.dtype.kind in "iu":
        return 0.0
    return LIMITS["f32" if dtype == "i8" else dtype]


@pytest.mark.parametrize(
    ("dtype", "arch", "seed"),
    [
        pytest.param(
            dtype, arch, seed,
            marks=() if (dtype, arch, seed) in QUICK else pytest.mark.slow,
        )
        for dtype in (*FLOATS, "i8")
        for arch in ARCHS
        for seed in SEEDS
    ],
)  # fmt: skip
def test_forms(dtype: str, arch: str, seed: int, library: Path) -> None:
    case = integers(seed) if dtype == "i8" else floats(dtype, seed)
    model = case.model.SerializeToString()
    got = mgx_mlir.compile(model, target="gpu", arch=arch, emulate=True).run(case.inputs)
    problems = []
    for port, a, b in zip(case.model.graph.output, got, wanted(case), strict=True):
        off = a.astype(np.float64) - b.astype(np.float64)
        error = np.linalg.norm(off) / np.linalg.norm(b.astype(np.float64))
        if not error <= limit(dtype, a):
            (node,) = (n for n in case.model.graph.node if port.name in n.output)
            problems.append(f"{port.name}, {node.op_type} {list(a.shape)}: {error:.3g}")
    assert not problems, "\n".join(problems)


def emulated(lowered: Lowered, inputs: Sequence[np.ndarray], arch: str, library: Path) -> list:
    vmfb = shared_compiler().run(lowered.bytecode, gpu_ladder(arch)[0].flags).vmfb
    module = LoadedModule(
        vmfb, lowered.params, inputs=lowered.inputs, outputs=lowered.outputs, device="hip",
        library=str(library),
    )  # fmt: skip
    return module.run(inputs)


@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("step", [FLASH, PARTS], ids=["flash", "parts"])
def test_attentions(step: str, arch: str, library: Path) -> None:
    """Cut tiles, masks, f16, heads side by side, NaN: as one op, or in parts of the keys."""
    net = attentions()
    lowered = net.lowered(step, target="gpu", arch=arch)
    assert f'tag = "{"attention" if step == FLASH else DECODING}"' in str(net.module)
    got = emulated(lowered, net.inputs, arch, library)
    for found, want, (dtype, name) in zip(got, net.want, net.names, strict=True):
        check(found, want, TOLERANCE[dtype] * 2, name)  # the CPU's limit: test_gpu_forms.py


@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHS)
def test_concatenations(arch: str, library: Path) -> None:
    net = concats()
    lowered = net.fused(target="gpu", arch=arch)
    got = emulated(lowered, net.inputs, arch, library)
    problems = [
        f"{name}: {text}"
        for name, found, want in zip(net.names, got, net.want, strict=True)
        if (text := difference(found, want))
    ]
    assert not problems, "\n".join(problems)


SPLIT = """
func.func @main(%x: tensor<6x70xf32>) -> tensor<6x1xf32> {
  %0 = "migraphx.split_fused_reduce"(%x) ({
  ^bb0(%a: tensor<6x70xf32>):
    %1 = "migraphx.mul"(%a, %a) : (tensor<6x70xf32>, tensor<6x70xf32>) -> tensor<6x70xf32>
    %2 = "migraphx.reduce_sum"(%1) {axes = array<i64: 1>} : (tensor<6x70xf32>) -> tensor<6x1xf32>
    "migraphx.yield"(%2) : (tensor<6x1xf32>) -> ()
  }) {axes = array<i64: 1>, assign = "assign_add"} : (tensor<6x70xf32>) -> tensor<6x1xf32>
  return %0 : tensor<6x1xf32>
}
"""


@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHS)
def test_split_fused_reduce(arch: str, library: Path) -> None:
    """A kernel that files hold and that our own passes do not make."""
    x = np.random.default_rng(0).standard_normal((6, 70)).astype(np.float32)
    context = new_context()
    program = ProgramIR(context, parse_module(SPLIT, context), WeightStore())
    (got,) = compile_program(program, target="gpu", arch=arch, emulate=True).run({"x0": x})
    want = (x.astype(np.float64) ** 2).sum(1, keepdims=True)
    assert np.linalg.norm(got - want) <= LIMITS["f32"] * np.linalg.norm(want)


@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("dtype", ["f32", "f16"])
def test_attention_with_a_cache(dtype: str, arch: str, library: Path) -> None:
    """Keys and values from caches that turned rows, and rows ahead of heads, are written to."""
    rng = np.random.default_rng(3)
    kind = dtypes.from_name(dtype).np
    batch, heads, new, longest, size = 2, 3, 2, 24, 16
    lengths = np.asarray([7, 20], np.int32)  # lengths of all rows, less 1

    def draw(rows: int) -> np.ndarray:
        return rng.standard_normal((batch, heads, rows, size)).astype(kind)

    q, k, v, old_k, old_v = draw(new), draw(new), draw(new), draw(longest), draw(longest)
    cos, sin = (rng.standard_normal((batch, 1, new, size)).astype(kind) for _ in range(2))
    low, high = np.split(k.astype(np.float64), 2, axis=-1)
    turned_k = k * cos.astype(np.float64) + np.concatenate([-high, low], -1) * sin
    bias = np.where(np.arange(longest) <= lengths[:, None, None, None], 0, -1e4).astype(kind)

    def cached(x: np.ndarray, past: np.ndarray) -> np.ndarray:
        whole = past.astype(np.float64)
        for entry, last in enumerate(lengths):
            whole[entry, :, last + 1 - new : last + 1] = x[entry]
        return whole

    scores = q.astype(np.float64) @ cached(turned_k, old_k).swapaxes(2, 3) / 4 + bias
    want = softmax(scores) @ cached(v, old_v)

    def build(b: Any, q: Any, k: Any, v: Any, old_k: Any, old_v: Any, n: Any, *more: Any) -> Any:
        low, cos, sin = more
        keys = b.op("concat_past_present", k, n, old_k, None, cos, sin)
        turned = b.op("transpose", keys, permutation=[0, 1, 3, 2])
        s = b.mul(b.dot(q, turned), b.literal(np.asarray(0.25, kind)))
        s = b.add(s, b.multibroadcast(low, (batch, heads, new, longest)))
        values = b.op("concat_past_present", v, n, old_v, rows_first=True)
        return b.dot(b.op("softmax", s, axis=-1), values)

    net = Programs()
    given = [q, k, v.swapaxes(1, 2).copy(), old_k, old_v, lengths, bias, cos, sin]
    net.add(build, given, want)
    lowered = net.lowered("mgx-fuse-attention{flash=true}", target="gpu", arch=arch)
    text = str(net.module)
    assert 'tag = "kv_cache_attention"' in text
    (got,) = emulated(lowered, net.inputs, arch, library)
    assert np.linalg.norm(got - want) <= LIMITS[dtype] * np.linalg.norm(want)
