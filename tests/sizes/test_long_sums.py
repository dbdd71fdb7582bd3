"""A size that reads another one many times, at many depths, takes no longer than others."""

from __future__ import annotations

import time

from mgx_mlir.passes.lowering.forms import Atoms, as_form, bounded, divided, show

DEEP = 60  # 2 to that is more than anyone waits for


def test_forms() -> None:
    form = Atoms().get("input", 0, 0)
    for i in range(DEEP):
        form = bounded("max", divided("div", form, as_form(i + 2)), form * form - i)
    begin = time.process_time()
    assert [a.kind for a in form.inputs()] == ["input"]
    assert not list(form.values())
    assert form.from_inputs
    assert form.is_never_negative
    assert show(form, ["x"]) == "a size that is computed"
    assert time.process_time() - begin < 1
