"""Calibration data from memory, loaders, files and folders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from mgx_mlir.core.errors import MgxError
from mgx_mlir.programs.signature import Port
from mgx_mlir.quantization.samples import samples

X, Y = Port("x", "float_type", (2, 3)), Port("y", "int64_type", (4,))
ROWS = [
    {"x": np.full((2, 3), i, np.float32), "y": np.arange(4, dtype=np.int64) + i} for i in range(12)
]


def same(found: list[dict[str, np.ndarray]], want: list[dict[str, np.ndarray]]) -> bool:
    return len(found) == len(want) and all(
        a.keys() == b.keys() and all(np.array_equal(a[k], b[k]) for k in b)
        for a, b in zip(found, want, strict=True)
    )


@pytest.mark.parametrize(
    "source",
    [
        ROWS,
        tuple(ROWS),
        iter(ROWS),
        [[r["x"], r["y"]] for r in ROWS],
        [(r["x"], r["y"], "a label") for r in ROWS],
        [{**r, "more": 1} for r in ROWS],
    ],
    ids=["list", "tuple", "iterator", "sequences", "labels", "more"],
)
def test_from_memory(source: Any) -> None:
    assert same(list(samples(source, [X, Y])), ROWS)


def test_one_sample_and_one_input() -> None:
    assert same(list(samples(ROWS[0], [X, Y])), ROWS[:1])
    assert same(list(samples([r["x"] for r in ROWS], [X])), [{"x": r["x"]} for r in ROWS])


def test_tensors_with_gradients() -> None:
    class Tensor:
        def __init__(self, a: np.ndarray) -> None:
            self.a = a

        def detach(self) -> Tensor:
            return self

        def cpu(self) -> np.ndarray:
            return self.a

    assert same(list(samples([[Tensor(r["x"]), r["y"]] for r in ROWS], [X, Y])), ROWS)


def test_from_files(tmp_path: Path) -> None:
    def written(form: str) -> Path:
        folder = tmp_path / form
        folder.mkdir()
        for i, r in enumerate(ROWS):
            if form == "npz":
                np.savez(folder / f"sample{i}.npz", **r)
            elif form == "sets":
                (folder / f"test_data_set_{i}").mkdir()
                for k, a in enumerate(r.values()):
                    raw = onnx.numpy_helper.from_array(a).SerializeToString()
                    (folder / f"test_data_set_{i}" / f"input_{k}.pb").write_bytes(raw)
            else:
                for name, a in r.items():
                    (folder / name).mkdir(exist_ok=True)
                    np.save(folder / name / f"{i}.npy", a)
        return folder

    for form in ("npz", "sets", "columns"):
        assert same(list(samples(written(form), [X, Y])), ROWS), form
    assert same(list(samples(str(tmp_path / "npz" / "sample3.npz"), [X, Y])), ROWS[3:4])
    only = [{"x": r["x"]} for r in ROWS]
    assert same(list(samples(tmp_path / "columns" / "x", [X])), only)


def test_errors(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "y").mkdir()
    np.save(tmp_path / "x" / "0.npy", ROWS[0]["x"])
    (tmp_path / "empty").mkdir()
    for source, message in (
        (7, "expected samples or a path, got int"),
        (np.ones(3), "expected samples or a path, got ndarray"),
        ([{"x": 1}], "sample 0 of the calibration data has no y"),
        ([ROWS[0], [1]], "sample 1 of the calibration data has 1 arrays, expected 2"),
        (tmp_path / "none", "no such file or folder"),
        (tmp_path / "empty", "no calibration data in this folder"),
        (tmp_path, "expected equally many files of each input, got 1 of x, 0 of y"),
        (Path(__file__), "unknown form of calibration data"),
    ):
        with pytest.raises(MgxError) as caught:
            list(samples(source, [X, Y]))
        assert message in str(caught.value)
    (tmp_path / "empty" / "a.npz").write_bytes(b"PK no zip")
    with pytest.raises(MgxError, match=r"a\.npz"):
        list(samples(tmp_path / "empty", [X, Y]))
