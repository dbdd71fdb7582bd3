"""Writes data/dtypes: the operator cases again in every element type that TensorFlow computes.

Needs TensorFlow (`pip install tensorflow-cpu`), in an environment of its own:

    python zoo/tf_cases/make_dtype_cases.py [type ...]

Each case of op_cases/ is built with its f32 operands in another type. What TensorFlow does not
take, or has no kernel for on CPUs, is left out, as is what data/ops holds already; of the rest
data/dtypes/<type>.pb keeps the first case of each operator and set of type attributes.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import make_op_cases  # noqa: E402  sets TensorFlow's variables before it is imported
import numpy as np  # noqa: E402

DATA = HERE.parents[1] / "tests/frontends/tf/data/dtypes"
TYPES = ("float16", "bfloat16", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16",
         "uint32", "uint64", "bool")  # fmt: skip
# TensorFlow rounds every partial sum to a 16-bit type, so that its elements are off by steps of the
# largest; we sum in f32. Its distance from sums in f64 was 0.022, and over 80 draws up to 0.0027.
LOOSE = {"DepthwiseConv2dNativeBackpropInput": 0.03, "LSTMBlockCell": 0.005}
# places are computed in f32, in an order of additions that compilers choose
PLACES = ("ImageProjectiveTransformV2", "ImageProjectiveTransformV3")


def wrong_here(t: Any) -> bool:
    """Round of integers: TensorFlow's kernel gives zeros, where its documents say the number."""
    return t.op.type == "Round" and t.dtype.is_integer


class Retyped(make_op_cases.Cases):
    """A graph whose f32 operands have another type; each operator is tried when it is added."""

    def __init__(self, seed: int, dtype: str, seen: set[Any]) -> None:
        super().__init__(seed)
        self.to, self.seen = dtype, seen

    def retyped(self, value: Any) -> Any:
        """f32 arrays and numbers in the other type; anything else as it is."""
        if isinstance(value, np.ndarray | np.generic) and value.dtype == np.float32:
            return self._cast(np.asarray(value))
        if isinstance(value, list):
            return [self.retyped(v) for v in value]
        return value

    def _cast(self, array: np.ndarray) -> np.ndarray:
        if self.to == "bool":
            return array > 0
        if "float" in self.to:
            return array.astype(self.dtype(self.to))
        whole = np.where(np.isfinite(array), np.rint(array), 0)
        limits = np.iinfo(self.to)
        low = 1 if self.to.startswith("u") else max(limits.min, -100)
        return np.clip(whole, low, 100).astype(self.to)

    def input(self, value: Any, dtype: str | None = None, shape: Any = ...) -> Any:
        array = np.asarray(value, None if dtype is None else self.dtype(dtype))
        return super().input(self.retyped(array), None, shape)

    def op(self, name: str, *, keep: Any = None, rtol: float = 0.0, atol: float = 0.0, **kw: Any):
        given = {k: self.retyped(v) for k, v in kw.items()}
        try:
            found = getattr(self.tf.raw_ops, name)(**given)
        except (TypeError, ValueError, self.tf.errors.OpError):
            raise Skip from None
        outs = list(found) if isinstance(found, list | tuple) else [found]
        for i, t in enumerate(outs):
            if keep is None or i in keep:
                self.keep(t)
        return found

    def keep(self, t: Any, rtol: float = 0.0, atol: float = 0.0) -> None:
        key = kind_of(t.op)
        entry: dict[str, Any] = {"name": t.name, "op": t.op.type}
        if wrong_here(t) or (key in self.seen and key not in self.fresh):
            return
        if t.op.type in LOOSE and self.to in ("float16", "bfloat16"):
            entry["atol"] = LOOSE[t.op.type]
        if t.op.type in PLACES and self.to == "float64":
            entry["atol"] = 1e-5
        try:
            self.run([t])
        except self.tf.errors.OpError:
            return
        self.seen.add(key)
        self.fresh.setdefault(key, t.op.name)
        if self.fresh[key] == t.op.name:
            self.outputs.append(entry)
            self.tensors.append(t)

    @property
    def fresh(self) -> dict[Any, str]:
        """The node that stands for each operator and set of types that this graph adds."""
        return self.__dict__.setdefault("_fresh", {})

    def run(self, tensors: list[Any]) -> list[np.ndarray]:
        v1 = self.tf.compat.v1
        # nodes without a kernel stay in the graph: only what is run is placed
        options = v1.GraphOptions(place_pruned_graph=True)
        config = v1.ConfigProto(graph_options=options)
        with v1.Session(graph=self.graph, config=config) as session:
            return session.run(tensors, dict(self.feeds))


class Skip(Exception):
    """A case that TensorFlow does not take in this type."""


def kind_of(op: Any) -> tuple[Any, ...]:
    types = [(a.name, str(op.get_attr(a.name))) for a in op.op_def.attr if a.type == "type"]
    return (op.type, *sorted(types))


class Lenient:
    """Hands a group's calls to the cases; those that fail give None, which their users fail on."""

    def __init__(self, cases: Retyped) -> None:
        self.cases, self.random, self.tf = cases, cases.random, cases.tf

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.cases, name)

        def call(*args: Any, **kw: Any) -> Any:
            try:
                return found(*args, **kw)
            except Skip:
                return None

        return call


def known() -> set[Any]:
    """The operators and types that data/ops holds."""
    import tensorflow as tf
    from tensorflow.core.framework import graph_pb2
    from tensorflow.python.framework import op_def_registry

    out = set()
    for path in sorted(make_op_cases.DATA.glob("*.pb")):
        for node in graph_pb2.GraphDef.FromString(path.read_bytes()).node:
            types = [
                (a.name, str(tf.as_dtype(node.attr[a.name].type)))
                for a in op_def_registry.get(node.op).attr
                if a.type == "type"
            ]
            out.add((node.op, *sorted(types)))
    return out


def make(dtype: str, seen: set[Any]) -> None:
    cases = Retyped(sum(dtype.encode()), dtype, seen)
    with cases.graph.as_default():
        for name in sorted(make_op_cases.GROUPS):
            if name in ("dynamic_batch", "dynamic_sizes", "casts"):
                continue
            try:
                make_op_cases.GROUPS[name](Lenient(cases))
            except (TypeError, ValueError, AttributeError) as e:
                print(f"  {dtype}: {name} ends early: {str(e)[:80]}")
    wanted = cases.run(cases.tensors)
    proto = make_op_cases.pruned(cases.graph.as_graph_def(), [t.op.name for t in cases.tensors])
    names = {node.name for node in proto.node}
    arrays: dict[str, np.ndarray] = {}
    inputs = []
    for p, a in cases.feeds:
        if p.op.name in names:
            arrays[f"i{len(inputs)}"], kind = make_op_cases.storable(a)
            inputs.append({"name": p.op.name, "dtype": kind})
    for i, (entry, a) in enumerate(zip(cases.outputs, wanted, strict=True)):
        arrays[f"o{i}"], entry["dtype"] = make_op_cases.storable(np.asarray(a))
    meta = json.dumps({"inputs": inputs, "outputs": cases.outputs})
    arrays["meta"] = np.frombuffer(meta.encode(), np.uint8)
    DATA.mkdir(parents=True, exist_ok=True)
    (DATA / f"{dtype}.pb").write_bytes(proto.SerializeToString(deterministic=True))
    make_op_cases.write_npz(DATA / f"{dtype}.npz", arrays)
    print(f"{dtype}: {len(cases.fresh)} operators, {len(wanted)} outputs")


def main(argv: list[str]) -> None:
    for m in make_op_cases.MODULES:
        importlib.import_module(f"op_cases.{m}")
    seen = known()
    for dtype in argv or TYPES:
        make(dtype, seen)


if __name__ == "__main__":
    main(sys.argv[1:])
