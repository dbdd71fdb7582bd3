"""The reference interpreter: runs a module by each op's numpy `reference`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mgx_mlir.core import dtypes, interrupts, literals
from mgx_mlir.core.errors import MgxError, RunError
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import Op, attributes_of, is_terminator, mnemonic, op_class
from mgx_mlir.core.shapes import TensorType, compatible, show_dims
from mgx_mlir.programs.program_ir import argument_names, entry_block, functions, main_function

Env = dict[ir.Value, np.ndarray]
Trace = Callable[[ir.Operation, list[np.ndarray]], None]
_MOST_ELEMENTS = 1 << 40  # elements of a result


class Interpreter:
    """Evaluates a module on the host, independently of every lowering.

    `compute` is the type that 16- and 8-bit floats are computed in: "f32", or "f64", which
    widens f32 too. Results have the types that the module states. `trace(op, results)` is called
    after each operation of the entry function.
    """

    def __init__(
        self, module: ir.Module, store: literals.WeightStore, *, compute: str = "f32"
    ) -> None:
        self.module, self.store = module, store
        self._fitting: set[tuple[Any, ...]] = set()  # ops with dims that passed the check of sizes
        self.compute = compute
        self.wide: Any = {"f32": np.float32, "f64": np.float64}[compute]

    @interrupts.held
    def run(
        self, inputs: Mapping[str, np.ndarray], *, trace: Trace | None = None
    ) -> list[np.ndarray]:
        """Evaluate @main on arrays by argument name; the results own their memory."""
        function = main_function(self.module)
        names = argument_names(function)
        missing = [n for n in names if n not in inputs]
        if missing:
            raise RunError(f"missing inputs: {', '.join(missing)}")
        block = entry_block(function)
        env: Env = {}
        for arg, name in zip(block.arguments, names, strict=True):
            env[arg] = np.asarray(inputs[name])
        with self.store.active(), np.errstate(all="ignore"):
            try:
                found = self.run_block(block, env, trace)
                # an input, a constant, a value returned twice, or a view of one
                return [a.copy(order="C") for a in found]
            except MemoryError as e:
                raise RunError(f"too little memory: {str(e).lower()}") from None

    def run_block(self, block: ir.Block, env: Env, trace: Trace | None = None) -> list[np.ndarray]:
        """Run a block's ops with the values of `env`; return its terminator's operands."""
        for view in block.operations:
            op = view.operation
            interrupts.check()
            if is_terminator(op):
                return [env[v] for v in op.operands]
            operands = [env[v] for v in op.operands]
            self._check_sizes(op, operands)
            results = self.evaluate(op, operands, env)
            for value, array in zip(op.results, results, strict=True):
                _check_stated(op, array.shape, TensorType.of(value).dims)
            for value, array in zip(op.results, results, strict=True):
                env[value] = array
            if trace is not None:
                with interrupts.at_once():
                    trace(op, results)
        return []

    def _check_sizes(self, op: ir.Operation, operands: Sequence[np.ndarray]) -> None:
        """Raise RunError if inference refuses the operands' dims: numpy would accept some of
        them.
        """
        cls = op_class(op)
        if cls is None or len(op.regions) or not len(op.results):
            return
        types = [TensorType.of(v) for v in op.operands]
        if all(t.is_static for t in types):
            return  # the verifier has checked static dims
        key = (op.results[0], *(a.shape for a in operands))
        if key in self._fitting:
            return
        groups = cls.split_operands(op)
        o, at = cls.view(groups, op.attributes), 0
        for group, values in zip(cls.OPERANDS, groups, strict=True):
            own = [
                t.with_dims(a.shape)
                for t, a in zip(types[at:], operands[at : at + len(values)], strict=False)
            ]
            at += len(values)
            one = own if group.arity == "variadic" else next(iter(own), None)
            setattr(o, group.name, one)
        try:
            cls.infer(o)
        except MgxError as e:
            raise RunError(f"'{op.name}' op {e.message}", location=str(op.location)) from None
        self._fitting.add(key)

    def evaluate(
        self,
        op: ir.Operation,
        inputs: Sequence[np.ndarray],
        env: Env | None = None,
        *,
        typed: bool = True,
    ) -> list[np.ndarray]:
        """Run one operation on arrays. `typed`: convert results to the op's types."""
        if literals.is_literal(op):
            return [literals.array_of(op)]
        cls = op_class(op)
        if cls is None:
            raise RunError(f"'{op.name}' op has no reference", location=str(op.location))
        operands = self.widen(cls, inputs)
        grouped: list[Any] = []
        at = 0
        for group, values in zip(cls.OPERANDS, cls.split_operands(op), strict=True):
            part = operands[at : at + len(values)]
            at += len(values)
            if group.arity == "variadic":
                grouped.append(list(part))
            else:
                grouped.append(part[0] if part else None)
        keywords = attributes_of(op)
        if cls.REGIONS:
            keywords["regions"] = [self._callable(r, env or {}) for r in op.regions]
        if "callees" in keywords:
            keywords["regions"] = [self._function(name) for name in keywords["callees"]]
        try:
            found: np.ndarray | tuple[np.ndarray, ...] | list[np.ndarray] = cls.reference(
                *grouped, **keywords
            )
        except MgxError as e:
            e.location = e.location or str(op.location)
            raise
        except MemoryError:
            raise RunError(
                f"'{op.name}' op needs more memory than is available", location=str(op.location)
            ) from None
        except (ValueError, IndexError, ZeroDivisionError) as e:
            raise RunError(
                f"'{op.name}' op failed in reference: {e}", location=str(op.location)
            ) from e
        arrays = list(found) if isinstance(found, tuple | list) else [found]
        if not typed:
            return [np.asarray(a) for a in arrays]
        return [
            _as(array, TensorType.of(r).dtype) for array, r in zip(arrays, op.results, strict=True)
        ]

    def widen(self, cls: type[Op], inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Convert low-precision floats to the compute type, unless the op takes them raw."""
        if cls.raw:
            return list(inputs)
        return [self._widen_one(a) for a in inputs]

    def _widen_one(self, a: np.ndarray) -> np.ndarray:
        dtype = dtypes.from_numpy(a.dtype)
        narrow = dtype.is_low_precision or (dtype is dtypes.FLOAT and self.wide is np.float64)
        return a.astype(self.wide) if narrow else a

    def _callable(self, region: ir.Region, env: Env) -> Callable[..., list[np.ndarray]]:
        block = region.blocks[0]

        def call(*arrays: np.ndarray) -> list[np.ndarray]:
            inner = dict(env)
            for arg, array in zip(block.arguments, arrays, strict=True):
                inner[arg] = _as(np.asarray(array), TensorType.of(arg).dtype)
            return self.run_block(block, inner)

        # types of the results of a loop without iterations, and of select_module
        last = list(block.operations)[-1].operation
        call.arguments = [TensorType.of(a) for a in block.arguments]  # type: ignore[attr-defined]
        call.results = [TensorType.of(v) for v in last.operands]  # type: ignore[attr-defined]
        return call

    def _function(self, name: str) -> Callable[..., list[np.ndarray]]:
        for function in functions(self.module.operation):
            if ir.StringAttr(function.attributes["sym_name"]).value == name:
                return self._callable(function.regions[0], {})
        raise RunError(f"function @{name} does not exist")


def _check_stated(op: ir.Operation, dims: Sequence[int], stated: Sequence[int]) -> None:
    """Raise RunError if a result's dims differ from the program's, or exceed any memory: a
    broadcast allocates none, and would not fail.
    """
    if math.prod(dims) > _MOST_ELEMENTS:
        raise RunError(
            f"'{op.name}' op needs more memory than is available: dims {show_dims(dims)}",
            location=str(op.location),
        )
    if len(dims) != len(stated) or not all(map(compatible, dims, stated)):
        raise RunError(
            f"'{op.name}' op expected a result of dims {show_dims(stated)}, got {show_dims(dims)}",
            location=str(op.location),
        )


def _as(array: ArrayLike, dtype: dtypes.DType) -> np.ndarray:
    found = np.asarray(array)
    if found.dtype == dtype.np:
        return found
    with np.errstate(all="ignore"):
        return found.astype(dtype.np)


class Folder:
    """Constant folding: evaluates small constant expressions, with a cache.

    `limit` is the largest number of elements of an operand or result.
    """

    def __init__(self, limit: int = 4096) -> None:
        self.limit = limit
        self.known: dict[ir.Value, np.ndarray | None] = {}
        self._run = Interpreter(None, literals.WeightStore())  # type: ignore[arg-type]

    def value(self, v: ir.Value) -> np.ndarray | None:
        """Return the array of `v`, None if it is not a small constant."""
        if v in self.known:
            return self.known[v]
        found = self._evaluate(v)
        self.known[v] = found
        return found

    def _evaluate(self, v: ir.Value) -> np.ndarray | None:
        op = v.owner
        if isinstance(op, ir.Block):
            return None
        if not TensorType.of(v).is_known:
            return None
        n = TensorType.of(v).elements
        if literals.is_literal(op):
            return literals.array_of(op) if n <= self.limit else None
        if mnemonic(op) == "dimensions_of":
            return self._dimensions(op)
        if n < 0 or n > self.limit or len(op.regions) or not op.name.startswith("migraphx."):
            return None
        if op.name.startswith("migraphx.random") or not len(op.operands):
            return None
        inputs = [self.value(x) for x in op.operands]
        if any(x is None for x in inputs):
            return None
        with np.errstate(all="ignore"):
            results = self._run.evaluate(op, [x for x in inputs if x is not None])
        for r, array in zip(op.results, results, strict=True):
            self.known[r] = array
        return self.known[v]

    def _dimensions(self, op: ir.Operation) -> np.ndarray | None:
        dims = TensorType.of(op.operands[0]).dims
        attributes = attributes_of(op)
        start, end = attributes["start"], attributes["end"] or len(dims)
        wanted = TensorType.of(op.operands[0]).with_dims(dims[start:end])
        return np.array(wanted.dims, np.int64) if wanted.is_known else None
