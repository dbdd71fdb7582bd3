"""GPU lowerings of fused attentions and concatenations, run on the CPU."""

from __future__ import annotations

import pytest

from tests.lowering.test_vector_attention import Attentions
from tests.lowering.test_vector_rows import Concats

FLASH = "mgx-fuse-attention{flash=true fast-math=true}"
PARTS = "mgx-fuse-attention{splits=2}"


def attentions() -> Attentions:
    net = Attentions(3)
    net.attention(20, 34, 16, 8, mask="add-rows inf")
    net.attention(4, 64, 16, 16, dtype="f16", mask="add-keys inf", layout="heads", merge=True)
    net.attention(9, 40, 8, 16, lead=(2, 3), large=5.0, spoil="nan")
    return net


def concats() -> Concats:
    net = Concats(5)
    net.rotary("f32", 5, 2, 16)
    net.rotary("f16", 3, 2, 8)
    for _ in range(6):
        net.parts()
    return net


def test_flash_attention() -> None:
    net = attentions()
    lowered = net.lowered(FLASH, target="gpu")
    assert [k.name.count("softmax") for k in lowered.kernels] == [1, 1, 1]
    net.compare(lowered, factor=2)  # weights and parts are rounded to 16 bits between the dots


@pytest.mark.parametrize("target", ["gpu", pytest.param("cpu", marks=pytest.mark.slow)])
def test_parts_of_the_keys(target: str) -> None:
    """With masks that leave a part of them, or all, without keys."""
    net = attentions()
    net.attention(9, 40, 8, 16, mask="where-rows all")
    net.attention(3, 8, 8, 4, mask="add-row inf")
    lowered = net.lowered(PARTS, target=target)
    assert sum(k.name.count("reduce_max") for k in lowered.kernels) == len(net.want)
    net.compare(lowered, factor=2)  # weights and parts are rounded to 16 bits between the dots


def test_concatenations() -> None:
    concats().check(vectors=False, target="gpu")


@pytest.mark.slow
@pytest.mark.parametrize("arch", ["gfx942", "gfx1100"])
@pytest.mark.parametrize("what", [FLASH, PARTS, "concat"])
def test_compiles_for(arch: str, what: str) -> None:
    from mgx_mlir.targets.child import shared_compiler
    from mgx_mlir.targets.flags import gpu_ladder

    concat = what == "concat"
    lowered = concats().fused(target="gpu") if concat else attentions().lowered(what, target="gpu")
    assert shared_compiler().run(lowered.bytecode, gpu_ladder(arch)[0].flags).vmfb
