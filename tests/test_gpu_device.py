"""The run on a GPU as a file: cases that travel, how results are judged, the page of a report."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest

from benchmarks import gpu_device, gpu_page, gpu_stored
from benchmarks.gpu_stored import Stored, error_of, judge
from benchmarks.gpu_suite import repeated
from mgx_mlir.targets.devices import gpu_devices

X = np.linspace(-3, 3, 24).reshape(2, 3, 4)


def test_a_case_travels(tmp_path: Path) -> None:
    inputs = {"x": X.astype(ml_dtypes.bfloat16), "n": np.array(7, np.int64)}
    wanted = [X.astype(np.float32), np.zeros((0, 3), bool)]
    Stored("edges", "one", [(inputs, wanted), (inputs, wanted)], 2e-3, True, 1).write(tmp_path)
    found = gpu_stored.read(tmp_path / "edges" / "one.mxr")
    assert (found.part, found.name, found.limit, found.by_largest, found.slack) == (
        "edges", "one", 2e-3, True, 1,
    )  # fmt: skip
    assert len(found.runs) == 2
    for got, want in zip(found.runs[1][0].values(), inputs.values(), strict=True):
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got, want)
    assert [a.shape for a in found.runs[0][1]] == [(2, 3, 4), (0, 3)]


def test_what_is_wrong_is_said() -> None:
    case, want = Stored("edges", "one", [], 1e-5), X.astype(np.float32)
    assert judge(case, [want + 1e-7], [want]) == ""
    assert judge(case, [want * 1.001], [want]).startswith("result 0: error 1.00e-03")
    assert judge(case, [want[:1]], [want]) == "result 0: dims [1, 3, 4], [2, 3, 4] wanted"
    assert judge(case, [], [want]) == "0 results, 1 wanted"
    n = np.arange(6)
    assert judge(case, [n + (n == 2)], [n]) == "result 0: 1 of 6 integers differ, by 1 at most"
    case.slack = 1
    assert judge(case, [n + (n == 2)], [n]) == ""


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_must_be_the_same(odd: float) -> None:
    want = np.array([1.0, odd, 2.0])
    assert error_of(want.copy(), want) == 0
    assert error_of(np.array([1.0, 0.0, 2.0]), want) == np.inf
    assert error_of(want, np.array([1.0, 0.0, 2.0])) == np.inf
    if np.isinf(odd):
        assert error_of(np.array([1.0, -odd, 2.0]), want) == np.inf


def test_repeated_weights_keep_their_spread() -> None:
    drawn = np.random.default_rng(0).standard_normal((300, 200)).astype(np.float32)
    found = repeated(drawn)
    assert found.shape == drawn.shape
    assert abs(found.std() - 1) < 0.05
    np.testing.assert_array_equal(found[61:122], found[:61])


def test_bytes_of_a_network() -> None:
    pytest.importorskip("torch")
    from benchmarks.gpu_networks import NETWORKS, moved_bytes  # imports torch

    network = NETWORKS["chain-1"]
    assert moved_bytes(network, network.built()) == 64 * 64 * 2


def test_a_network_is_judged_by_the_inputs_that_are_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Another version of torch may draw other inputs from the same seed."""
    torch = pytest.importorskip("torch")
    from benchmarks import gpu_times  # imports torch

    x = np.full((1, 3, 224, 224), 2, np.float16)
    Stored("models", "resnet50-1", [({"x": x}, [x + x])]).write(tmp_path)
    (tmp_path / "models" / "resnet50-1.mxr").touch()
    executable = SimpleNamespace(launches=lambda _: [], fallbacks=())
    monkeypatch.setattr(
        gpu_times.mgx_mlir, "load", lambda *_, **__: SimpleNamespace(executable=executable)
    )
    monkeypatch.setattr(gpu_times.calls, "runner", lambda _: lambda given: [given[0] + given[0]])
    monkeypatch.setattr(torch.Tensor, "cuda", lambda t: t)
    network = gpu_times.NETWORKS["resnet50-1"]
    found = gpu_times.ours(tmp_path, "resnet50-1", network, [torch.zeros(1, 3, 224, 224)])
    assert list(found) == ["ours", "ours, launches"]
    assert capsys.readouterr().out.count('"wrong": ""') == 2


def test_the_page_of_a_report() -> None:
    times = {"moved_bytes": 2_000_000, "us": 12.0, "row_us": 11.0}
    report = {
        "card": "A card, 1.2", "date": "2026-11-29", "python": "3.12", "cpus": 16, "parts": {
            "edges": [{"case": "edges/a", "wrong": ""}, {"case": "edges/b", "wrong": "by | 3"},
                      {"case": "edges/c", "error": "lost"}],
            "memory": [{"check": "threads", "wrong": ""}],
            "launches": [{"launch": 1, "graph": False, "us": 60, "host_us": 150, "kernels": 2},
                         {"graph": False, "each_us": 5.5}],
            "models": [{"model": "m", "by": "ours", "least_us": 99.0, **times},
                       {"model": "m", "by": "ours", "least_us": 10.0, **times},
                       {"model": "m", "by": "torch default", "least_us": 5.0, **times}],
            "faults": [{"fault": "a kernel reads", "said": "TargetError: gone"}],
        },
    }  # fmt: skip
    text = gpu_page.page(report)
    assert "| edges | 3 | 1 | 1 | 1 |" in text
    assert "| edges/b | by \\| 3 |" in text
    assert "| threads | right |" in text
    assert "| stream, chain of 1 | 60 us | 150 us | 2 | 5.5 us |" in text
    assert "| m | ours | 10.0 | 12.0 | 11.0 | 1.00 | 200 |" in text
    assert "| m | torch default | 5.0 | 12.0 | 11.0 | 0.50 | 400 |" in text
    assert "99.0" not in text
    assert max(len(line) for line in text.splitlines() if not line.startswith("|")) <= 120


def test_what_is_asked_most_comes_first_and_a_run_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A part that did not end is run again without the cases that it has."""
    begun: list[str] = []
    faulty = ["edges"]

    def ran(command: list[str], seconds: float) -> list[dict[str, object]]:
        part = command[3]
        begun.append(part)
        assert seconds > 0
        if part in faulty:
            faulty.remove(part)
            return [{"case": "edges/a", "wrong": ""}, {"case": "edges/b", "error": "lost"},
                    {"ended": "status 1"}]  # fmt: skip
        return [{"part_s": 0.1}]

    monkeypatch.setattr(gpu_device, "ran", ran)
    path, parts = tmp_path / "out.json", ["edges", "memory", "families", "models", "faults"]
    path.write_text('{"parts": {"edges": [{"case": "edges/old", "wrong": ""}]}}')
    report = gpu_device.Report(path, "sm_90")
    assert gpu_stored.cases(str(path)) == set()  # cases of another run
    assert gpu_device.run(tmp_path, report, parts, ["one"], 100.0) == 1
    assert begun == ["families", "edges", "models", "memory", "faults"]
    assert gpu_stored.cases(str(path)) == {"edges/a"}
    begun.clear()
    resumed = gpu_device.Report(path, "sm_90", True)
    assert gpu_device.run(tmp_path, resumed, parts, ["one"], 100.0) == 0
    assert begun == ["edges"]
    assert [row.get("case") for row in resumed.parts["edges"]] == ["edges/a", None]
    assert gpu_device.run(tmp_path, gpu_device.Report(path, "sm_90", True), parts, [], 9.0) == 0
    assert begun == ["edges"]


@pytest.mark.skipif(bool(gpu_devices()), reason="there is a GPU")
def test_without_a_gpu_it_says_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert gpu_device.main(["--folder", str(tmp_path)]) == 2
    assert capsys.readouterr().err.startswith("error: no GPU: ")
