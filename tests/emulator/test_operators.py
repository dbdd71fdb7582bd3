"""Every lowered operator's examples on emulated GPUs, against their numpy references.

Slow: it compiles more than a thousand kernels for each architecture. `-m slow -k gfx942` runs one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from mgx_mlir.core.lowered import Lowered
from mgx_mlir.core.op import OPS
from mgx_mlir.targets import emulator
from tests.lower import harness
from tests.lower.harness import Case
from tests.lower.test_conformance import lowered, spread

harness.load_dialect()

EXAMPLES = 4  # of one operator
CHUNK = 40  # cases in one compile


def chunks() -> Iterator[tuple[str, list[Case]]]:
    """Neighbouring operators together, until there are enough for one compile."""
    names: list[str] = []
    cases: list[Case] = []
    for name in sorted(OPS):
        if not lowered(OPS[name]):
            continue
        names.append(name)
        cases += spread(harness.examples_of(OPS[name]), EXAMPLES)
        if len(cases) >= CHUNK:
            yield f"{names[0]}-{names[-1]}", cases
            names, cases = [], []
    if cases:
        yield f"{names[0]}-{names[-1]}", cases


@pytest.mark.slow
@pytest.mark.parametrize("arch", ["gfx942", "gfx1100"])
@pytest.mark.parametrize("cases", [pytest.param(c, id=n) for n, c in chunks()])
def test_examples(
    cases: list[Case], arch: str, library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def execute(program: Lowered, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        from mgx_mlir.runtime.iree_runtime import LoadedModule
        from mgx_mlir.targets.child import IreeCompiler
        from mgx_mlir.targets.flags import gpu_ladder

        flags = (*gpu_ladder(arch)[0].flags, "--iree-opt-const-eval=false")
        vmfb = IreeCompiler(use_worker=False).compile(program.bytecode, flags, timeout=600)
        module = LoadedModule(
            vmfb,
            program.params,
            inputs=program.inputs,
            outputs=program.outputs,
            device="hip",
            library=str(emulator.activate()),
        )
        return module.run(inputs)

    monkeypatch.setattr(harness, "execute", execute)
    harness.check_cases(cases, batch=CHUNK * 2, target="gpu", arch=arch)
