"""Control flow: branches, loops, the choice among functions, and the terminator of regions.

MIGraphX's `get_tuple_elem` has no operator here, because ops have several results instead of
tuples.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from mgx_mlir.core import attrs as attr
from mgx_mlir.core.errors import RunError
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import Callables, HostOp, InferView, Op, Operand, Region, Result, check
from mgx_mlir.core.shapes import DYN, TensorType, compatible, one_element, show_dims
from mgx_mlir.dialects.migraphx.axes import check_index_type


class Yield(HostOp, name="yield", traits=[ir.IsTerminatorTrait]):
    """End a region; the operands are its results. MIGraphX `@return` of a submodule.

    ```mlir
    "migraphx.yield"(%0, %1) : (tensor<4xf32>, tensor<i1>) -> ()
    ```
    """

    inputs: Sequence[Operand]

    @staticmethod
    def infer(o: InferView) -> Sequence[TensorType]:
        return []

    @staticmethod
    def reference(inputs: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
        raise RunError("migraphx.yield is not run by itself")


def region_types(
    region: ir.Region, what: str = "region"
) -> tuple[list[TensorType], list[TensorType]]:
    """Return (block arguments, yielded types) of a one-block region that ends with
    migraphx.yield.
    """
    check(len(region.blocks) == 1, lambda: f"{what} expected one block, got {len(region.blocks)}")
    block = region.blocks[0]
    operations = list(block.operations)
    last = operations[-1].operation if operations else None
    check(
        last is not None and last.name == "migraphx.yield",
        f"{what} expected to end with migraphx.yield",
    )
    assert last is not None
    return (
        [TensorType.of(a) for a in block.arguments],
        [TensorType.of(v) for v in last.operands],
    )


def fits(have: TensorType, want: TensorType) -> bool:
    """Return whether a value of type `have` can be passed as `want`."""
    return (
        have.dtype is want.dtype
        and have.rank == want.rank
        and all(compatible(a, b) for a, b in zip(have.dims, want.dims, strict=True))
    )


def check_types(
    have: Sequence[TensorType], want: Sequence[TensorType], what: str, *, each: str
) -> None:
    """Check that there are equally many types, and that each fits."""
    check(len(have) == len(want), lambda: f"{what} expected {len(want)} {each}s, got {len(have)}")
    for i, (h, w) in enumerate(zip(have, want, strict=True)):
        check(fits(h, w), lambda i=i, h=h, w=w: f"{what} {each} {i} expected {w}, got {h}")


def joined(a: TensorType, b: TensorType) -> TensorType:
    """Return the type of a value that is either `a` or `b`: extents that differ become dynamic."""
    return a.with_dims(x if x == y else DYN for x, y in zip(a.dims, b.dims, strict=True))


class If(Op, name="if"):
    """Run `then_body` if `cond` is true, else `else_body`; return the yielded values.

    `cond` is a bool tensor of one element. The regions may read values from outside; their block
    arguments are `inputs`. Both yield equally many values of the same dtypes and ranks; extents
    that differ are dynamic in the result. The builder states the results and then fills the
    regions. MIGraphX `if`.

    ```mlir
    %0 = "migraphx.if"(%cond) ({
      "migraphx.yield"(%x) : (tensor<2xf32>) -> ()
    }, {
      %1 = "migraphx.neg"(%x) : (tensor<2xf32>) -> tensor<2xf32>
      "migraphx.yield"(%1) : (tensor<2xf32>) -> ()
    }) : (tensor<i1>) -> tensor<2xf32>
    ```
    """

    cond: Operand
    inputs: Sequence[Operand]
    outs: Sequence[Result]
    then_body: Region
    else_body: Region

    @staticmethod
    def infer(o: InferView) -> Sequence[TensorType] | None:
        check_condition(o.cond)
        if not o.regions:
            return None
        found: list[Sequence[TensorType]] = []
        for name, region in zip(("then region", "else region"), o.regions, strict=True):
            arguments, yields = region_types(region, name)
            check_types(arguments, o.inputs, name, each="block argument")
            found.append(yields)
        then, other = found
        check(
            len(then) == len(other),
            lambda: (
                f"else region expected {len(then)} results as the then region, got {len(other)}"
            ),
        )
        for i, (a, b) in enumerate(zip(then, other, strict=True)):
            check(
                a.dtype is b.dtype and a.rank == b.rank,
                lambda i=i, a=a, b=b: (
                    f"else region result {i} expected {a} as the then region, got {b}"
                ),
            )
        return [joined(a, b) for a, b in zip(then, other, strict=True)]

    @staticmethod
    def reference(
        cond: np.ndarray, inputs: Sequence[np.ndarray], *, regions: Callables
    ) -> tuple[np.ndarray, ...]:
        return tuple(regions[0 if bool(cond.reshape(())) else 1](*inputs))


def check_condition(cond: TensorType) -> None:
    """Raise ShapeError unless a condition is one bool."""
    check(cond.dtype.is_bool, lambda: f"condition expected type i1, got {cond.dtype.mlir}")
    check(one_element(cond), lambda: f"condition expected 1 element, got {cond.elements}")


class Loop(Op, name="loop"):
    """Run `body` up to `iterations` times while its condition holds (ONNX Loop).

    `iterations` is an integer tensor of one element, `cond` a bool one. The block arguments are
    the iteration number (i64, one element), the condition, and the carried values; the region
    yields the next condition, the next carried values, and one element of each scan output. It
    may read values from outside. The results are the last carried values and the scan outputs,
    whose first extent, the number of iterations run, is dynamic; direction 1 in
    `scan_output_directions` puts each new element first. With `padded`, MIGraphX's form,
    `max_iterations` bounds the loop, is that extent, and zeros fill the unused tail; without
    it `max_iterations` is only kept for files. MIGraphX `loop`; `padded` is ours.

    ```mlir
    %last, %all = "migraphx.loop"(%n, %true, %x) ({
    ^bb0(%i: tensor<i64>, %c: tensor<i1>, %v: tensor<2xf32>):
      %0 = "migraphx.add"(%v, %v) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      "migraphx.yield"(%c, %0, %0) : (tensor<i1>, tensor<2xf32>, tensor<2xf32>) -> ()
    }) {max_iterations = 10 : i64, scan_output_directions = array<i64>, padded = false}
      : (tensor<i64>, tensor<i1>, tensor<2xf32>) -> (tensor<2xf32>, tensor<?x2xf32>)
    ```
    """

    iterations: Operand
    cond: Operand
    carried: Sequence[Operand]
    outs: Sequence[Result]
    body: Region
    max_iterations = attr.int_(10)
    scan_output_directions = attr.ints(())
    padded = attr.bool_(False)

    @staticmethod
    def infer(o: InferView) -> Sequence[TensorType] | None:
        check_index_type(o.iterations, "iterations")
        check(
            one_element(o.iterations),
            lambda: f"iterations expected 1 element, got {o.iterations.elements}",
        )
        check_condition(o.cond)
        check(
            o.max_iterations >= 0,
            lambda: f"max_iterations expected at least 0, got {o.max_iterations}",
        )
        if not o.regions:
            return None
        arguments, yields = region_types(o.regions[0], "body")
        check(
            len(arguments) == len(o.carried) + 2,
            lambda: (
                f"body expected {len(o.carried) + 2} block arguments "
                f"(iteration, condition, {len(o.carried)} carried), got {len(arguments)}"
            ),
        )
        check(
            arguments[0].dtype.mlir == "i64" and arguments[0].elements == 1,
            lambda: f"body block argument 0 expected tensor<i64>, got {arguments[0]}",
        )
        check_condition(arguments[1])
        kept = arguments[2:]
        check_types(o.carried, kept, "carried", each="value")
        check(
            len(yields) > len(kept),
            lambda: f"body expected at least {len(kept) + 1} yielded values, got {len(yields)}",
        )
        check_condition(yields[0])
        check_types(yields[1 : 1 + len(kept)], kept, "body", each="yielded value")
        scans = yields[1 + len(kept) :]
        directions = o.scan_output_directions
        check(
            not directions
            or (len(directions) == len(scans) and all(d in (0, 1) for d in directions)),
            lambda: (
                f"scan_output_directions expected {len(scans)} numbers 0 or 1, "
                f"got {list(directions)}"
            ),
        )
        first = o.max_iterations if o.padded else DYN
        return [*kept, *(t.with_dims((first, *t.dims)) for t in scans)]

    @staticmethod
    def reference(
        iterations: np.ndarray,
        cond: np.ndarray,
        carried: Sequence[np.ndarray],
        *,
        regions: Callables,
        max_iterations: int = 10,
        scan_output_directions: Sequence[int] = (),
        padded: bool = False,
    ) -> tuple[np.ndarray, ...]:
        body: Any = regions[0]
        limit = int(iterations.reshape(()))
        if padded:
            limit = min(limit, max_iterations)
        going, state = bool(cond.reshape(())), list(carried)
        rows: list[list[np.ndarray]] = []
        arguments = getattr(body, "arguments", None)
        number = arguments[0].dims if arguments else ()
        flag = arguments[1].dims if arguments else cond.shape
        for i in itertools.count():
            if i >= limit or not going:
                break
            found = body(np.full(number, i, np.int64), np.full(flag, going), *state)
            going = bool(found[0].reshape(()))
            state = list(found[1 : 1 + len(state)])
            rows.append(list(found[1 + len(state) :]))
        if rows:
            scans = [_stacked(i, column) for i, column in enumerate(zip(*rows, strict=True))]
        else:
            scans = _no_rows(body, len(state))
        for i, direction in enumerate(scan_output_directions):
            if direction:
                scans[i] = scans[i][::-1]
        if padded:
            missing = max_iterations - len(rows)
            scans = [np.concatenate([s, np.zeros((missing, *s.shape[1:]), s.dtype)]) for s in scans]
        return (*state, *scans)


def _stacked(at: int, column: Sequence[np.ndarray]) -> np.ndarray:
    """Return a scan output, stacked from the iterations' elements."""
    first = column[0].shape
    for i, element in enumerate(column):
        if element.shape != first:
            raise RunError(
                f"expected the same dims of scan output {at} in all iterations, got {first} in "
                f"iteration 0, {element.shape} in iteration {i}"
            )
    return np.stack(column)


def _no_rows(body: object, carried: int) -> list[np.ndarray]:
    """Return the scan outputs of a loop without iterations: dims from the region's types."""
    types = getattr(body, "results", None)
    if types is None:
        raise RunError("a loop without iterations needs the types of its scan outputs")
    return [np.zeros([0, *(max(d, 0) for d in t.dims)], t.dtype.np) for t in types[1 + carried :]]


class SelectModule(Op, name="select_module"):
    """Call the function of `callees` whose parameters have the operands' dims.

    MIGraphX `select_module`, whose submodules are functions of the module here, and whose
    `output_dyn_shapes` are the result types, which the builder states. Error at run time: no
    function takes the dims.

    ```mlir
    %0 = "migraphx.select_module"(%x) {callees = [@dim_1, @dim_2]}
           : (tensor<?x3xf32>) -> tensor<?x3xf32>
    ```
    """

    inputs: Sequence[Operand]
    outs: Sequence[Result]
    callees = attr.symbols()

    @staticmethod
    def infer(o: InferView) -> None:
        check(o.callees, "callees expected at least one function, got none")

    @staticmethod
    def reference(
        inputs: Sequence[np.ndarray], *, callees: Sequence[str], regions: Callables
    ) -> tuple[np.ndarray, ...]:
        for function in regions:
            wanted: Any = function.arguments  # type: ignore[attr-defined]
            if len(wanted) == len(inputs) and all(
                t.rank == x.ndim
                and all(compatible(d, e) for d, e in zip(t.dims, x.shape, strict=True))
                for t, x in zip(wanted, inputs, strict=True)
            ):
                return tuple(function(*inputs))
        dims = ", ".join(show_dims(x.shape) for x in inputs)
        raise RunError(f"none of {', '.join(callees)} takes dims {dims}")


class RunOnTarget(Op, name="run_on_target"):
    """Run `body` on the target of number `target_id`; block arguments are the operands.

    MIGraphX `run_on_target`. The reference runs the body where it is.

    ```mlir
    %0 = "migraphx.run_on_target"(%x) ({
    ^bb0(%a: tensor<2xf32>):
      "migraphx.yield"(%a) : (tensor<2xf32>) -> ()
    }) {target_id = 1 : i64} : (tensor<2xf32>) -> tensor<2xf32>
    ```
    """

    inputs: Sequence[Operand]
    outs: Sequence[Result]
    body: Region
    target_id = attr.int_(0)

    @staticmethod
    def infer(o: InferView) -> Sequence[TensorType] | None:
        check(o.target_id >= 0, lambda: f"target_id expected at least 0, got {o.target_id}")
        if not o.regions:
            return None
        arguments, yields = region_types(o.regions[0], "body")
        check_types(arguments, o.inputs, "body", each="block argument")
        return yields

    @staticmethod
    def reference(
        inputs: Sequence[np.ndarray], *, regions: Callables, target_id: int = 0
    ) -> tuple[np.ndarray, ...]:
        return tuple(regions[0](*inputs))
