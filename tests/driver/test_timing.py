"""Times of calls and kernels: the means, and which launch belongs to which kernel."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

from mgx_mlir.debug.dry_run import DryRun
from mgx_mlir.printers.instructions import ListedInstruction
from mgx_mlir.runtime.profile import DispatchTime
from mgx_mlir.tools.driver import progress, timing
from mgx_mlir.tools.driver.call_times import Calls, middle_mean, time_calls
from mgx_mlir.tools.driver.perf_report import report_lines
from mgx_mlir.tools.driver.timing import Kernels, Line, match


def kernels(*names: str) -> list[ListedInstruction]:
    return [ListedInstruction(f"@{i}", f"cpu::{name}") for i, name in enumerate(names)]


def test_means_and_percentiles() -> None:
    assert middle_mean([1, 2, 3, 100]) == 2.5
    assert middle_mean([5]) == 5
    calls = Calls(tuple(float(i) for i in range(100)))
    assert calls.total == 49.5
    assert [calls.percentile(p) for p in (0.9, 0.95, 0.99)] == [89, 94, 98]
    few = Calls(tuple(float(i) for i in range(1, 21)))
    assert [few.percentile(p) for p in (0.5, 0.9, 0.95, 0.99)] == [10, 18, 19, 20]
    assert Calls((7.0,)).percentile(0.9) == 7


def test_kernels_that_share_code_match_in_order() -> None:
    launches = ["m_dispatch_0_matmul_4x4", "m_dispatch_1_elementwise_4", "m_dispatch_0_matmul_4x4"]
    assert match(kernels("dot", "add", "dot_relu"), launches) == [(name,) for name in launches]


def test_parts_of_a_kernel_are_taken_together() -> None:
    first = ["kernel_dispatch_0_convolution_relu_part1of2"]
    second = ["kernel_dispatch_1_convolution_relu_part2of2"]
    rest = ["kernel_dispatch_2_pooling"]
    whole = [(*first, *second), (*rest,), (*first, *second)]
    names = kernels("convolution_relu", "pooling", "convolution_relu")
    assert match(names, [*first, *second, *rest, *first, *second]) == whole
    assert match(names, [*first, *rest, *second, *first, *second]) is None
    assert match(names, [*second, *first, *rest, *first, *second]) is None
    assert match(names[:2], [*rest, *first]) is None


def test_the_sums_of_a_split_matmul_are_its_kernel() -> None:
    split = ["m_dispatch_0_matmul_like_16x49x512x128_f32", "m_dispatch_1_reduction_49x512x16_f32"]
    rest = ["m_dispatch_2_reduction_49x512x16_f32"]
    names = kernels("convolution_relu", "reduce_sum")
    assert match(names, [*split, *rest]) == [tuple(split), tuple(rest)]
    # another kernel's sums: a launch for each kernel
    assert match(names, split) == [(split[0],), (split[1],)]
    other = "m_dispatch_1_reduction_49x512x8_f32"
    assert match(names, [split[0], other, *rest]) is None


@pytest.mark.parametrize(
    "launches",
    [
        ["m_dispatch_0_matmul_4x4"],
        ["m_dispatch_1_elementwise_4", "m_dispatch_0_matmul_4x4"],
        ["m_dispatch_0_elementwise_4", "m_dispatch_1_matmul_4x4"],
    ],
    ids=["fewer", "reordered", "another kind"],
)
def test_kernels_that_cannot_be_matched(launches: list[str]) -> None:
    assert match(kernels("dot", "add"), launches) is None


def test_launches_by_the_backends_names() -> None:
    found = Kernels("times")
    rows = [
        DispatchTime("m_dispatch_10_matmul_8", 1, 2e-3, 2e-3),
        DispatchTime("m_dispatch_2_matmul_8", 3, 6e-3, 6e-3),
        DispatchTime("_encoding_0_x", 1, 1e-3, 1e-3),
    ]
    timing._by_launch(found, rows, 4, 3)
    assert [(line.text, line.ms) for line in found.lines] == [
        ("m_dispatch_2_matmul_8 x 3", 6.0), ("m_dispatch_10_matmul_8", 2.0),
    ]  # fmt: skip
    assert found.groups() == {"matmul_8": (8.0, 4.0)}
    assert "4 launches of 3 kernels" in found.note


def test_overhead_is_what_kernels_leave() -> None:
    found = Kernels("times")
    found.lines = [Line("k", 3.0, group="k"), Line("v")]
    lines = report_lines(Calls((4.0,)), found, 1)
    assert lines[:5] == ["k: 3ms, 100%", "v", "", "Summary:", "k: 3ms, 100%"]
    assert "Total instructions time: 3ms" in lines
    assert lines[-2:] == ["Overhead time: 1ms", "Overhead: 25%"]
    dry = report_lines(Calls((4.0,)), found, 1, dry_ms=0.5)
    assert dry[-3:-1] == ["Overhead time: 0.5ms, 1ms", "Overhead: 12%, 25%"]
    assert dry[-1] == "(first: a call without kernels; second: total time minus kernels)"
    assert not any("instructions" in line for line in report_lines(Calls((2.0,)), None, 1))


def test_times_are_those_of_the_calls() -> None:
    class Slow:
        def execute(self, arrays: object) -> None:
            time.sleep(0.004)

    slow: Any = Slow()
    calls = time_calls(slow, [np.zeros(1)], 5)
    assert len(calls.times) == 5
    assert calls.total >= 4


def test_a_dry_run_computes_nothing() -> None:
    x, u = np.ones((2, 3), np.float32), np.ones(5, np.uint8)
    empty = DryRun([x, u], [x, np.zeros((4, 2), np.uint16), u > 0], 1)
    assert empty.launches == []
    assert [(a.dtype, a.shape) for a in empty.execute([x, u])] == [
        (np.float32, (2, 3)), (np.uint16, (4, 2)), (np.bool_, (5,)),
    ]  # fmt: skip


def test_a_spinner_only_on_a_terminal_and_only_after_a_while(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "DELAY", 0.05)
    monkeypatch.delenv("MGX_PROGRESS", raising=False)
    with progress.step("Working ..."):
        time.sleep(0.2)
    assert capsys.readouterr().err == "Working ...\n"
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with progress.working("Working ..."):
        pass
    assert capsys.readouterr().err == ""
    shown, deadline = "", time.monotonic() + 60
    with progress.working("Working ..."):
        while "Working" not in shown and time.monotonic() < deadline:
            time.sleep(0.05)
            shown += capsys.readouterr().err
    assert "Working" in shown
    capsys.readouterr()
    monkeypatch.setenv("MGX_PROGRESS", "0")
    with progress.working("Working ..."):
        time.sleep(0.2)
    assert capsys.readouterr().err == ""
