"""Each pattern and rule is needed: without it, the lit file of its name fails.

That it passes as it is says lit, which runs the same lines.
"""

from __future__ import annotations

import pytest
from lit_files import LIT, run, run_lines

from mgx_mlir.passes import PASSES
from mgx_mlir.rewrite.registry import rewrites_of

REWRITES = [(name, r.name) for name in PASSES for r in rewrites_of(PASSES[name])]


@pytest.mark.parametrize(("name", "rewrite"), REWRITES, ids=[f"{n}/{r}" for n, r in REWRITES])
def test_the_lit_file_of_a_rewrite_fails_without_it(name: str, rewrite: str) -> None:
    file = LIT / name / f"{rewrite}.mlir"
    assert file.exists(), f"no lit/{name}/{rewrite}.mlir"
    assert run_lines(file), f"no `RUN: mgx-opt ... | filecheck ...` in lit/{name}/{rewrite}.mlir"
    off = run(file, [f"--disable-pattern={rewrite}"])
    for outcome in off:
        assert outcome.status == 0, f"mgx-opt fails without the pattern:\n{outcome.errors}"
    assert not all(o.matches for o in off), f"nothing in it checks what {rewrite} does"


def test_there_is_something_to_switch_off() -> None:
    assert len(REWRITES) > 40
