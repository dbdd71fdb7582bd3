"""Writes data/ops: per group of operator cases a GraphDef, its inputs and what TensorFlow says.

Needs TensorFlow (`pip install tensorflow-cpu`), in an environment of its own:

    python zoo/tf_cases/make_op_cases.py [group ...]

The groups are in op_cases/. One graph holds many nodes, so that a test compiles few programs.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import numpy as np

HERE = Path(__file__).resolve().parent
DATA = HERE.parents[1] / "tests/frontends/tf/data/ops"
MODULES = ("arithmetic", "reductions", "shapes", "nn", "indexing", "image", "quantized", "misc",
           "spectra")  # fmt: skip

GROUPS: dict[str, Callable[[Cases], None]] = {}


def group(f: Callable[[Cases], None]) -> Callable[[Cases], None]:
    """Register a function that fills one graph with cases."""
    GROUPS[f.__name__] = f
    return f


class Cases:
    """One graph: placeholders with their values, nodes, and the outputs to be compared."""

    def __init__(self, seed: int) -> None:
        import tensorflow as tf

        self.tf = tf
        self.graph = tf.Graph()
        self.random = np.random.default_rng(seed)
        self.feeds: list[tuple[Any, np.ndarray]] = []
        self.outputs: list[dict[str, Any]] = []
        self.tensors: list[Any] = []

    def dtype(self, name: str) -> Any:
        return self.tf.as_dtype(name).as_numpy_dtype

    def input(self, value: Any, dtype: str | None = None, shape: Any = ...) -> Any:
        """A placeholder fed with `value`; `shape` may leave extents dynamic (None)."""
        array = np.asarray(value, None if dtype is None else self.dtype(dtype))
        kind = self.tf.as_dtype(array.dtype)
        placeholder = self.tf.raw_ops.Placeholder(
            dtype=kind, shape=array.shape if shape is ... else shape, name=f"in{len(self.feeds)}"
        )
        self.feeds.append((placeholder, array))
        return placeholder

    def floats(self, *dims: int, dtype: str = "float32", low: float = -3, high: float = 3) -> Any:
        return self.input(self.random.uniform(low, high, dims), dtype)

    def ints(self, *dims: int, dtype: str = "int32", low: int = -9, high: int = 9) -> Any:
        return self.input(self.random.integers(low, high, dims, endpoint=True), dtype)

    def bools(self, *dims: int) -> Any:
        return self.input(self.random.integers(0, 2, dims), "bool")

    def op(self, name: str, *, keep: Any = None, rtol: float = 0.0, atol: float = 0.0, **kw: Any):
        """A node of the raw operator `name`; its outputs (or those in `keep`) are compared."""
        found = getattr(self.tf.raw_ops, name)(**kw)
        outs = list(found) if isinstance(found, list | tuple) else [found]
        for i, t in enumerate(outs):
            if keep is None or i in keep:
                self.keep(t, rtol, atol)
        return found

    def keep(self, t: Any, rtol: float = 0.0, atol: float = 0.0) -> None:
        """Compare `t`, with a looser tolerance where one is given."""
        entry: dict[str, Any] = {"name": t.name, "op": t.op.type}
        if rtol:
            entry["rtol"] = rtol
        if atol:
            entry["atol"] = atol
        self.outputs.append(entry)
        self.tensors.append(t)


def storable(array: np.ndarray) -> tuple[np.ndarray, str]:
    """An array npz can hold, and its real type's name."""
    name = array.dtype.name
    return (array.view(np.uint16), name) if name == "bfloat16" else (array, name)


def write_npz(path: Path, arrays: dict[str, np.ndarray]) -> None:
    """An npz whose bytes depend on the arrays only."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as z:
        for name, array in arrays.items():
            entry = zipfile.ZipInfo(f"{name}.npy", (1980, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            with z.open(entry, "w") as f:
                np.lib.format.write_array(f, np.ascontiguousarray(array).reshape(array.shape))


def pruned(proto: Any, names: list[str]) -> Any:
    """The nodes that the named ones need, without attributes that are about placement."""
    nodes = {node.name: node for node in proto.node}
    todo, kept = list(names), set()
    while todo:
        name = todo.pop()
        if name not in kept:
            kept.add(name)
            todo += [i.lstrip("^").split(":")[0] for i in nodes[name].input]
    for i in range(len(proto.node) - 1, -1, -1):
        if proto.node[i].name not in kept:
            del proto.node[i]
    for node in proto.node:
        for key in [k for k in node.attr if k.startswith("_")]:
            del node.attr[key]
    return proto


def make(name: str) -> None:
    cases = Cases(sum(name.encode()))
    tf = cases.tf
    with cases.graph.as_default():
        GROUPS[name](cases)
    feeds = dict(cases.feeds)
    with tf.compat.v1.Session(graph=cases.graph) as session:
        try:
            wanted = session.run(cases.tensors, feeds)
        except Exception:
            for t in cases.tensors:  # name the one that fails
                try:
                    session.run(t, feeds)
                except Exception as e:
                    raise SystemExit(f"{name}: {t.name}: {e}") from None
            raise
    proto = cases.graph.as_graph_def()
    for node in proto.node:
        for key in [k for k in node.attr if k.startswith("_")]:
            del node.attr[key]
    arrays: dict[str, np.ndarray] = {}
    inputs = []
    for i, (p, a) in enumerate(cases.feeds):
        arrays[f"i{i}"], kind = storable(a)
        inputs.append({"name": p.op.name, "dtype": kind})
    for i, (entry, a) in enumerate(zip(cases.outputs, wanted, strict=True)):
        arrays[f"o{i}"], entry["dtype"] = storable(np.asarray(a))
    meta = json.dumps({"inputs": inputs, "outputs": cases.outputs})
    arrays["meta"] = np.frombuffer(meta.encode(), np.uint8)
    DATA.mkdir(parents=True, exist_ok=True)
    (DATA / f"{name}.pb").write_bytes(proto.SerializeToString(deterministic=True))
    write_npz(DATA / f"{name}.npz", arrays)
    print(f"{name}: {len(proto.node)} nodes, {len(wanted)} outputs")


def main(argv: list[str]) -> None:
    sys.path.insert(0, str(HERE))
    for m in MODULES:
        importlib.import_module(f"op_cases.{m}")
    import make_op_cases  # the module the groups registered in, where this one is __main__

    GROUPS.update(make_op_cases.GROUPS)
    for name in argv or sorted(GROUPS):
        make(name)


if __name__ == "__main__":
    main(sys.argv[1:])
