"""Reads the stored operator cases (data/ops, data/dtypes) and judges results."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

DATA = Path(__file__).resolve().parent / "data" / "ops"  # files of make_op_cases.py
DTYPES = DATA.parent / "dtypes"  # files of make_dtype_cases.py

# relative errors per type: what TensorFlow and we compute in another order, or in steps of the
# type where we take f32 for all of them (16-bit floats)
RTOL = {"float64": 1e-12, "float32": 1e-5, "float16": 4e-3, "bfloat16": 3e-2}
ATOL = {"float64": 1e-13, "float32": 1e-6, "float16": 2e-3, "bfloat16": 2e-2}


@dataclass(frozen=True)
class Group:
    """One graph: its bytes, inputs by name, and the outputs with the values expected."""

    name: str
    graph: bytes
    inputs: dict[str, np.ndarray]
    outputs: list[tuple[dict[str, Any], np.ndarray]]

    @property
    def names(self) -> list[str]:
        return [entry["name"] for entry, _ in self.outputs]


def groups(folder: Path = DATA) -> list[str]:
    return sorted(p.stem for p in folder.glob("*.pb"))


def load(name: str, folder: Path = DATA) -> Group:
    with np.load(folder / f"{name}.npz", allow_pickle=False) as arrays:
        meta = json.loads(bytes(arrays["meta"]))
        inputs = {
            i["name"]: _typed(arrays[f"i{k}"], i["dtype"]) for k, i in enumerate(meta["inputs"])
        }
        outputs = [(o, _typed(arrays[f"o{k}"], o["dtype"])) for k, o in enumerate(meta["outputs"])]
    return Group(name, (folder / f"{name}.pb").read_bytes(), inputs, outputs)


def _typed(array: np.ndarray, dtype: str) -> np.ndarray:
    return array.view(ml_dtypes.bfloat16) if dtype == "bfloat16" else array


def fault(entry: dict[str, Any], got: np.ndarray, want: np.ndarray) -> str | None:
    """Return the fault of an output, None where there is none. Integers and bools are exact."""
    if got.dtype != want.dtype:
        return f"type {got.dtype}, expected {want.dtype}"
    if got.shape != want.shape:
        return f"dims {got.shape}, expected {want.shape}"
    if want.dtype.kind in "biu":
        return None if np.array_equal(got, want) else f"{_shown(got)}, expected {_shown(want)}"
    rtol = entry.get("rtol", RTOL[want.dtype.name])
    atol = entry.get("atol", ATOL[want.dtype.name])
    a, b = got.astype(np.float64), want.astype(np.float64)
    if np.allclose(a, b, rtol, atol, equal_nan=True):
        return None
    return f"{_shown(a)}, expected {_shown(b)}"


def _shown(x: np.ndarray) -> str:
    return np.array2string(x.reshape(-1)[:12], precision=7, max_line_width=400)
