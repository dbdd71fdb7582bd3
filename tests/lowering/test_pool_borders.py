"""Poolings whose windows reach a border along some axes only: iree-compile has to end."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mgx_mlir.compiler.compile import compile as compile_program
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import OPS
from mgx_mlir.passes.lowering.iree import regions
from mgx_mlir.programs.build import Builder
from mgx_mlir.targets import base
from mgx_mlir.targets.child import IreeCompiler
from mgx_mlir.targets.diagnostics import CompileFailed, Failure
from tests.lowering.programs import program_of
from tests.support import compiles

# (image, window, stride, padding, ceil_mode): those with a border along the width alone did not end
FORMS = (
    ((1, 4, 6, 6), (2, 2), (2, 2), (0, 1, 0, 1), False),
    ((1, 4, 6, 6), (2, 2), (2, 2), (0, 1, 0, 0), False),
    ((1, 4, 6, 6), (2, 2), (2, 1), (0, 1, 0, 1), False),
    ((2, 3, 9, 10), (3, 3), (3, 2), (0, 1, 0, 1), False),
    ((1, 4, 7, 6), (3, 3), (2, 2), (0, 0, 1, 1), False),
    ((1, 4, 7, 6), (3, 3), (2, 2), (0, 0, 0, 0), True),
    ((1, 4, 7, 7), (3, 3), (2, 2), (1, 1, 1, 1), False),
    ((1, 4, 6, 6), (2, 2), (2, 2), (1, 0, 1, 0), False),
)


def pools(mode: str, forms: tuple = FORMS):
    attributes = [
        {"mode": mode, "lengths": k, "stride": s, "padding": p, "ceil_mode": c}
        for _, k, s, p, c in forms
    ]

    def build(b: Builder, *xs: ir.Value) -> list[ir.Value]:
        return [b.pooling(x, **a) for x, a in zip(xs, attributes, strict=True)]

    types = ["tensor<{}xf32>".format("x".join(map(str, form[0]))) for form in forms]
    return program_of(build, *types), attributes


@pytest.mark.parametrize("mode", ["max", "average"])
def test_every_border_ends(mode: str) -> None:
    rng = np.random.default_rng(0)
    program, attributes = pools(mode)
    xs = [rng.standard_normal(form[0]).astype(np.float32) for form in FORMS]
    got = compile_program(program, "cpu", threads=1, cache=False, timeout=200).run(*xs)
    for a, x, own in zip(got, xs, attributes, strict=True):
        cls = OPS["pooling"]
        want = cls.reference(x, **{d.field: d.default for d in cls.ATTRS.values()} | own)
        # a mean near 0 of numbers of size one is rounded as they are
        np.testing.assert_allclose(a, want, rtol=1e-6, atol=1e-7, err_msg=str(own))


@pytest.mark.slow
def test_the_compiler_does_not_end_on_such_a_region(monkeypatch: pytest.MonkeyPatch) -> None:
    """If this fails, `pads_some_axes` may go (docs/iree-hazards.md, hazard 21)."""
    monkeypatch.setattr(regions, "pads_some_axes", lambda anchor: False)
    program, _ = pools("max", FORMS[:1])
    with pytest.raises(CompileFailed, match="ended after 20 seconds"):
        compile_program(program, "cpu", threads=1, cache=False, timeout=20)


def test_a_compile_that_does_not_end_goes_on_without_kernel_boundaries(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limits: list[float] = []
    run = IreeCompiler.run

    def ended(self: IreeCompiler, source: bytes, flags: Any, **options: Any) -> Any:
        limits.append(options["timeout"])
        if len(limits) == 1:
            raise CompileFailed(Failure("timeout", "iree-compile was ended after 606 seconds"))
        return run(self, source, flags, **options)

    compiles.answered_by(monkeypatch, ended)
    program, _ = pools("max", FORMS[-2:-1])
    x = np.random.default_rng(0).standard_normal(FORMS[-2][0]).astype(np.float32)
    made = compile_program(program, "cpu", threads=1, cache=False)
    assert limits[0] == pytest.approx(base.BASE_SECONDS + base.KERNEL_SECONDS, abs=1)
    assert "kernel-boundaries" in made.executable.fallbacks[0]
    assert np.isfinite(made.run(x)[0]).all()
    limits.clear()
    with pytest.raises(CompileFailed, match="ended after 606 seconds"):
        compile_program(program, "cpu", threads=1, cache=False, timeout=7)
    assert limits == pytest.approx([7], abs=1)
