"""Products with weights of 4 and 8 bits on emulated GPUs, against numpy in float64."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from mgx_mlir.dialects.migraphx.blocked_dot import matrix
from mgx_mlir.passes.lowering.gpu.matmul.compilation_info import steps_of
from mgx_mlir.runtime.iree_runtime import LoadedModule
from mgx_mlir.targets.kernel_bounds import compile_with_bounds
from mgx_mlir.targets.report import gpu_report
from tests.emulator.oracle import LIMITS, error
from tests.lowering.programs import Programs

OTHERS = ("gfx90a", "gfx950", "gfx1201")
TYPES = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32}
# type; rows, depth, columns, block; bits; type of the zero points
CASES = [
    ("f16", (1, 256, 96, 32), 4, None),
    ("f16", (1, 1376, 33, 32), 4, np.int8),  # 43 blocks: the lanes' last step is cut
    ("f32", (1, 256, 100, 256), 4, np.float32),
    ("bf16", (1, 384, 64, 128), 8, np.int8),
    ("f16", (3, 192, 70, 64), 4, None),
    ("f32", (4, 96, 40, 16), 8, None),
    ("f16", (9, 8192, 48, 32), 4, np.int8),  # in parts of the depth
    ("f16", (40, 256, 77, 32), 4, None),  # the last tile is cut both ways
    ("bf16", (17, 1376, 64, 32), 4, np.int8),
    ("f32", (20, 256, 65, 64), 4, np.float32),
    ("f16", (33, 128, 64, 16), 8, None),
]


def products() -> Programs:
    """Each product with a bias and an activation behind it."""
    rng, net = np.random.default_rng(11), Programs()
    for name, (m, k, n, block), bits, points in CASES:
        kind = TYPES[name]
        if bits == 4:
            codes = rng.integers(0, 256, (k // 2, n), dtype=np.uint8)
        else:
            codes = rng.integers(-128, 128, (k, n), dtype=np.int8)
        count = k // block
        scales = (rng.uniform(0.5, 2, (count, n)) / 2**bits / k**0.5).astype(np.float16)
        low = rng.integers(0, 16, (count, n))
        zeros = None if points is None else (low if points is np.int8 else low + 0.25)
        x, bias = (rng.standard_normal(d).astype(kind) for d in ((m, k), (n,)))
        given = [codes, scales] if zeros is None else [codes, scales, zeros.astype(points)]
        w = matrix(k, codes, scales, None if zeros is None else given[2], block, bits)
        want = np.maximum(x.astype(np.float64) @ w.astype(np.float64) + bias.astype(np.float64), 0)
        net.add(
            lambda b, v, given=given, c=bias, block=block, bits=bits: b.relu(
                b.add(
                    b.op("blocked_dot", v, *map(b.literal, given), block_size=block, bits=bits),
                    b.literal(c),
                )
            ),
            [x], want,
        )  # fmt: skip
    return net


@pytest.mark.emulator
@pytest.mark.parametrize(
    "arch", ["gfx942", "gfx1100", *(pytest.param(a, marks=pytest.mark.slow) for a in OTHERS)]
)
def test_products_by_few_bits(arch: str, library: Path) -> None:
    """Each is one kernel, or two in parts of the depth, and no weight exists as floats."""
    net = products()
    lowered = net.lowered("fuse_pointwise_reduce", target="gpu", arch=arch)
    # codes, scales and zero points: what f16 weights would take is more
    assert sum(p.nbytes for p in lowered.params.values()) < sum(
        k * n * (1.3 if bits == 4 else 2.1) for _, (_, k, n, _), bits, _ in CASES
    )
    vmfb, launches = compile_with_bounds(lowered.bytecode, arch)
    assert [k.name for k in gpu_report(vmfb).kernels if k.spills or k.scratch] == []
    assert len(launches["main"]) == len(CASES) + 1
    module = LoadedModule(
        vmfb, lowered.params, inputs=lowered.inputs, outputs=lowered.outputs, device="hip",
        library=str(library),
    )  # fmt: skip
    for case, got, want in zip(CASES, module.run(net.inputs), net.want, strict=True):
        assert error(got, want) <= LIMITS[case[0]], case


def test_steps_of_blocks() -> None:
    """Short blocks go together where they divide all of them; of a long one a step takes a part."""
    assert steps_of(32, 8, 128) == (4, 32)
    assert steps_of(32, 43, 128) == (1, 32)
    assert steps_of(32, 6, 128) == (3, 32)
    assert steps_of(256, 2, 64) == (1, 64)
    assert steps_of(96, 2, 64) == (1, 32)
