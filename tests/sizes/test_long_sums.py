"""A size that reads another one many times, at many depths, takes no longer than others."""

from __future__ import annotations

import time

from mgx_mlir.passes.lowering.symbols import Symbols, inputs_of, show, values_of

DEEP = 60  # 2 to that is more than anyone waits for


def test_expressions() -> None:
    symbols = Symbols()
    e = symbols.input(0, 0)
    begin = time.process_time()
    for i in range(DEEP):
        e = symbols.larger(symbols.divided(e, i + 2), e * e - i)
    assert inputs_of(e) == [(0, 0)]
    assert not values_of(e)
    assert symbols.space.nonnegative(e)
    assert show(e, ["x"]) == "a size that is computed + a size that is computed"
    assert time.process_time() - begin < 2
