"""The contract of lowering: queries and builders for lowering functions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import ChainMap
from collections.abc import Callable, Generator, Hashable, Mapping, MutableMapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from mgx_mlir.core import attrs, dtypes, literals
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.errors import CompileError
from mgx_mlir.core.filling import AT_ONCE, Filling, Packing
from mgx_mlir.core.huge_pages import HugePages
from mgx_mlir.core.ir import arith, ir, linalg, tensor
from mgx_mlir.core.shapes import DYN, TensorType
from mgx_mlir.passes.lowering.expr import (
    Compute,
    DimMap,
    Expr,
    Extent,
    Leaf,
    Opaque,
    Splat,
    View,
    identity,
)
from mgx_mlir.passes.lowering.gpu.matmul.gemm_shape import GemmConfig
from mgx_mlir.passes.lowering.index_builder import IndexBuilder
from mgx_mlir.passes.lowering.iree import iree_ops
from mgx_mlir.passes.lowering.options import LowerOptions
from mgx_mlir.passes.lowering.scalar import (
    ArithScalars,
    GpuScalars,
    Number,
    TypedScalar,
    constant,
    constant_of,
    narrow,
    signless,
    widen,
)
from mgx_mlir.programs.lowered import KernelChoice, KernelInfo

if TYPE_CHECKING:
    from mgx_mlir.passes.lowering.sizes import Sizes

T = TypeVar("T")
Body = Callable[..., ir.Value | Sequence[ir.Value]]
# Function of one element, given one scalar for each tensor.
ElementBody = (
    Callable[[ArithScalars, TypedScalar], TypedScalar]
    | Callable[[ArithScalars, TypedScalar, TypedScalar], TypedScalar]
    | Callable[[ArithScalars, TypedScalar, TypedScalar, TypedScalar], TypedScalar]
    | Callable[..., TypedScalar]
)
PARALLEL, REDUCTION = "parallel", "reduction"
PARAMETER_ELEMENTS = 64  # constants above this many elements become parameters


@dataclass(frozen=True)
class KernelPlan:
    """Choices and tensors made before a kernel's region; keys are results of its ops."""

    # padded input of a convolution or matmul
    padded_inputs: Mapping[ir.Value, ir.Value] = field(default_factory=dict[ir.Value, ir.Value])
    # tile and split of a matmul
    gemm_configs: Mapping[ir.Value, GemmConfig] = field(default_factory=lambda: {})
    # partial sums of a matmul whose depth is split
    split_k_sums: Mapping[ir.Value, ir.Value] = field(default_factory=dict[ir.Value, ir.Value])
    # bias that the sums of a matmul start from
    first_sums: Mapping[ir.Value, ir.Value] = field(default_factory=dict[ir.Value, ir.Value])
    # result of the matmul that already includes the bias, for the op that adds it
    same: Mapping[ir.Value, ir.Value] = field(default_factory=dict[ir.Value, ir.Value])
    # widened weights of a matmul, [columns, depth]
    matrices: Mapping[ir.Value, ir.Value] = field(default_factory=dict[ir.Value, ir.Value])

    def with_sums(self, sums: Mapping[ir.Value, ir.Value]) -> KernelPlan:
        """Return the plan with more sums of parts."""
        return replace(self, split_k_sums={**self.split_k_sums, **sums})

    def with_matrices(self, matrices: Mapping[ir.Value, ir.Value]) -> KernelPlan:
        """Return the plan with more widened weights."""
        return replace(self, matrices={**self.matrices, **matrices})


@dataclass
class Scope:
    """Lowered forms of the original values that are in scope."""

    # expressions of original values
    exprs: MutableMapping[ir.Value, Expr] = field(default_factory=dict[ir.Value, Expr])
    # elements of small integer tensors that are kept as host scalars
    elements: MutableMapping[ir.Value, np.ndarray] = field(
        default_factory=dict[ir.Value, np.ndarray]
    )

    def inner(self) -> Scope:
        """Return a nested scope, which reads from this one too."""
        return Scope(_above(self.exprs), _above(self.elements))


def _above(outer: MutableMapping[ir.Value, T]) -> ChainMap[ir.Value, T]:
    return ChainMap({}, *(outer.maps if isinstance(outer, ChainMap) else [outer]))


class LoweringContext(IndexBuilder, ABC):
    """Build lowered ops at the current insertion point; map original values to lowered ones.

    Tensors are signless; `TensorType` arguments and results are the original, signed ones.
    """

    sizes: Sizes  # checks of dynamic sizes in the current function

    def __init__(self, options: LowerOptions) -> None:
        self.options = options
        self.in_kernel = False  # pointwise ops are built by their readers
        self.in_region = False  # inside a dispatch region: no other one may start
        self.function = "main"  # the current function
        self.plan = KernelPlan()
        self.scope = Scope()
        self.kernels: list[KernelInfo] = []  # kernels of the function, in creation order
        # results of ops that a kernel of an earlier op computes, too
        self.made_before: dict[ir.Operation, ir.Value] = {}
        self._repacked: dict[Hashable, tuple[np.ndarray, np.ndarray]] = {}
        self._huge_pages = HugePages()
        self.filling = Filling()  # fills packed weights

    # ---- original values ---------------------------------------------------------------------

    @abstractmethod
    def expr(self, v: ir.Value, *, exact: bool = False) -> Expr:
        """Return the expression of an original value; exact: rounded to its own type."""

    @abstractmethod
    def tensor(self, x: ir.Value | Expr) -> ir.Value:
        """Return the lowered tensor of an original value, or of an expression; it is made once."""

    @abstractmethod
    def tensors(self, vs: Sequence[ir.Value]) -> list[ir.Value]:
        """Return original values as tensors; lazy ones of the same dims share a loop."""

    def elements(self, v: ir.Value) -> np.ndarray | None:
        """Return the elements of an original value that is kept as host scalars, else None.

        An element is a Python number if known, else a TypedScalar.
        """
        return self.scope.elements.get(v)

    def bind(self, v: ir.Value, found: Expr | np.ndarray) -> None:
        """Record the expression, or the elements, of an original value."""
        if isinstance(found, np.ndarray):
            self.scope.elements[v] = found
        else:
            self.scope.exprs[v] = found

    # ---- original ops ------------------------------------------------------------------------

    @abstractmethod
    def operation(self, op: ir.Operation) -> None:
        """Lower one original op, and bind its results."""

    @abstractmethod
    def updates_in_place(self, value: ir.Value) -> bool:
        """Return whether an op may write into the memory of an operand."""

    @abstractmethod
    def chose(self, choice: KernelChoice) -> None:
        """Record the kernel rule of the op that is being lowered."""

    @abstractmethod
    def has_vector_kernels(self, op: ir.Operation) -> bool:
        """Return whether an op may be lowered to our vector loops."""

    @abstractmethod
    def statements(self, block: ir.Block) -> list[ir.Value]:
        """Lower the ops of a block in order; return its terminator's operands, as they were."""

    @abstractmethod
    def inner_scope(self, scope: Scope | None = None) -> AbstractContextManager[Scope]:
        """Enter a scope for a region; its values are not visible outside."""

    @contextmanager
    def kernel(self, plan: KernelPlan | None = None) -> Generator[None]:
        """Lower ops as parts of one kernel, with the contents of `plan`."""
        outer = self.in_kernel, self.plan
        self.in_kernel, self.plan = True, plan or KernelPlan()
        try:
            yield
        finally:
            self.in_kernel, self.plan = outer

    # ---- weights -----------------------------------------------------------------------------

    @abstractmethod
    def parameter(self, array: np.ndarray) -> ir.Value:
        """Return a weight that the runtime supplies."""

    def repacked(
        self, array: np.ndarray, layout: Hashable, make: Callable[[], np.ndarray | Packing]
    ) -> np.ndarray:
        """Return `make()`, the weights `array` in a kernel's layout; one object for equal ones.

        The runtime uses it in place. A large one is filled in the background, until `filling.wait`.
        """
        order = None if array.flags.c_contiguous else (array.shape, array.strides)
        key = (array.__array_interface__["data"][0], order, layout)
        if key not in self._repacked:
            # kept with its source, whose address is in the key
            self._repacked[key] = (array, self._placed(make()))
        return self._repacked[key][1]

    def forget_weights(self) -> None:
        """Let go of weights in other layouts and of those that they were made of."""
        self._repacked.clear()
        self._huge_pages = HugePages()

    def _placed(self, made: np.ndarray | Packing) -> np.ndarray:
        if isinstance(made, np.ndarray):
            return literals.aligned(self._huge_pages.placed(made))
        if made.nbytes <= AT_ONCE:
            found = literals.aligned_empty(made.shape, made.dtype)
            made.fill(found)
            return literals.aligned(self._huge_pages.placed(found))
        found = self._huge_pages.empty(made.shape, made.dtype)
        self.filling.add(partial(made.fill, found))
        return found

    # ---- types and extents -------------------------------------------------------------------

    def mlir_type(self, t: TensorType) -> ir.RankedTensorType:
        """Return the lowered type of an original tensor type."""
        return ir.RankedTensorType.get(t.dims, signless(t.dtype))

    def extent(self, value: ir.Value, axis: int) -> Extent:
        """Return the extent of a lowered tensor's dim: an int, or an index value."""
        d = ir.RankedTensorType(value.type).shape[axis]
        return d if d != DYN else tensor.DimOp(value, self.index(axis)).result

    def extents(self, value: ir.Value) -> list[Extent]:
        """Return the extents of a tensor."""
        return [self.extent(value, i) for i in range(ir.RankedTensorType(value.type).rank)]

    def static_dims(self, extents: Sequence[Extent]) -> list[int]:
        """Return extents as dims of a type, DYN for dynamic ones."""
        return [x if isinstance(x, int) else DYN for x in extents]

    def dynamic_values(self, extents: Sequence[Extent]) -> list[ir.Value]:
        """Return the dynamic extents."""
        return [x for x in extents if not isinstance(x, int)]

    # ---- tensors -----------------------------------------------------------------------------

    def empty(self, extents: Sequence[Extent], dtype: DType) -> ir.Value:
        """Build a tensor whose elements are not yet set."""
        return tensor.EmptyOp(list(extents), signless(dtype)).result

    def fill(self, extents: Sequence[Extent], dtype: DType, number: Number) -> ir.Value:
        """Return a tensor all of whose elements are `number`."""
        value = constant(number, dtype).value
        init = self.empty(extents, dtype)
        return linalg.fill(value, outs=[init])

    def constant(self, array: np.ndarray) -> ir.Value:
        """Return a dense constant in the IR (small arrays only)."""
        dtype = dtypes.from_numpy(array.dtype)
        stored = array.view(f"i{dtype.size}") if dtype.is_unsigned else array
        return constant_of(
            ir.RankedTensorType.get(array.shape, signless(dtype)), attrs.dense(stored)
        )

    def generic(
        self,
        inputs: Sequence[ir.Value],
        inits: Sequence[ir.Value],
        maps: Sequence[ir.AffineMap],
        iterators: Sequence[str],
        body: Body,
    ) -> list[ir.Value]:
        """Build a linalg.generic; `body(*block arguments)` returns the yielded values.

        `maps` are those of the inputs, then of the inits.
        """
        op = linalg.GenericOp(
            [i.type for i in inits],
            list(inputs),
            list(inits),
            ir.ArrayAttr.get([ir.AffineMapAttr.get(m) for m in maps]),
            ir.ArrayAttr.get(
                [ir.Attribute.parse(f"#linalg.iterator_type<{i}>") for i in iterators]
            ),
        )
        elements = [ir.RankedTensorType(v.type).element_type for v in [*inputs, *inits]]
        block = op.regions[0].blocks.append(*elements, arg_locs=None)
        with ir.InsertionPoint(block):
            found = body(*block.arguments)
            linalg.YieldOp([found] if isinstance(found, ir.Value) else list(found))
        return list(op.results)

    def dim_map(self, rank: int, entries: DimMap) -> ir.AffineMap:
        """Return the AffineMap of a DimMap."""
        return ir.AffineMap.get(
            rank,
            0,
            [
                ir.AffineConstantExpr.get(0) if i is None else ir.AffineDimExpr.get(i)
                for i in entries
            ],
        )

    def scalars(self, dtype: DType, result: DType) -> ArithScalars:
        """Return the scalar builder for bodies of loops."""
        return (GpuScalars if self.options.target == "gpu" else ArithScalars)(dtype, result)

    def map_elements(
        self,
        inputs: Sequence[ir.Value],
        in_dtypes: Sequence[DType],
        out: TensorType,
        body: ElementBody,
        *,
        maps: Sequence[DimMap] | None = None,
        extents: Sequence[Extent] | None = None,
    ) -> ir.Value:
        """Build a parallel generic over `out` of `body(b, *scalars)` on computed-type scalars."""
        extents = list(extents if extents is not None else self.extents(inputs[0]))
        b = self.scalars(in_dtypes[0] if in_dtypes else out.dtype, out.dtype)

        def region(*args: ir.Value) -> ir.Value:
            scalars = [widen(TypedScalar(a, d)) for a, d in zip(args[:-1], in_dtypes, strict=True)]
            return narrow(body(b, *scalars), out.dtype).value

        rank = out.rank
        own = [self.dim_map(rank, m) for m in maps or [identity(rank)] * len(inputs)]
        init = self.empty(extents, out.dtype)
        return self.generic(
            inputs, [init], [*own, self.dim_map(rank, identity(rank))], [PARALLEL] * rank, region
        )[0]

    def cast_tensor(self, value: ir.Value, source: DType, target: DType) -> ir.Value:
        """Convert every element (wrapping; the caller clamps)."""
        if source is target:
            return value
        t = TensorType(target, tuple(ir.RankedTensorType(value.type).shape))

        def body(b: ArithScalars, x: TypedScalar) -> TypedScalar:
            return b.cast(x, target)

        return self.map_elements([value], [source], t, body)

    def reader(self, x: ir.Value, dtype: DType) -> Callable[[TypedScalar], TypedScalar]:
        """Return the function to read or write elements of `x`: the identity, except for f16 rows
        of hazard 44.

        There the bits are changed by a number that is 0 at run time, but opaque to LLVM.
        """
        if not self.is_odd_row(x, dtype):
            return lambda v: v
        i64, i16 = (ir.IntegerType.get_signless(bits) for bits in (64, 16))
        extent = arith.IndexCastUIOp(i64, self.dynamic_values(self.extents(x))[0]).result
        # IREE assumes extents below 2^53
        top = arith.ShRUIOp(extent, arith.ConstantOp(i64, 52).result).result
        zero = TypedScalar(arith.TruncIOp(i16, top).result, dtypes.UINT16)
        b = ArithScalars(dtypes.UINT16, dtypes.UINT16)
        return lambda v: b.bitcast(b.xor(b.bitcast(v, dtypes.UINT16), zero), dtype)

    def is_odd_row(self, x: ir.Value, dtype: DType) -> bool:
        """Say whether the rows of `x` are those of hazard 44."""
        shape = ir.RankedTensorType(x.type).shape
        if self.options.target != "gpu" or dtype is not dtypes.HALF or DYN not in shape[:-1]:
            return False
        return shape[-1] != DYN and shape[-1] % 2 == 1 and not (shape[-1] % 5 and shape[-1] % 7)

    def barrier(self, value: ir.Value, extents: Sequence[Extent]) -> ir.Value:
        """Return `value` with a barrier: IREE computes it before its readers, and does not fuse it
        with them.

        `extents` are its own, as the barrier hides them.
        """
        return iree_ops.tied(iree_ops.barrier(value), self.dynamic_values(extents))

    def hidden(self, value: ir.Value) -> ir.Value:
        """Return `value`, with a barrier if it may fold to a splat constant.

        Outside of regions IREE 3.13 folds a splat into the loops that read it: a sum then has one
        iteration, whatever the extents, and a running sum an unbounded stack. A loop over integers
        may fold to a constant (x = x), in more ways than are recognised here.
        """
        if self.in_region or not (_is_uniform(value) or _is_integer_loop(value)):
            return value
        return self.barrier(value, self.extents(value))

    def refine(self, value: ir.Value, t: TensorType) -> ir.Value:
        """`value` with the static dims of `t` (tensor.cast where they differ)."""
        want = self.mlir_type(t)
        if value.type == want:
            return value
        for i, d in enumerate(t.dims):
            if d != DYN:
                self.sizes.equal(self.sizes.of_dim(value, i), d)
        return tensor.CastOp(want, value).result

    # ---- lazy expressions --------------------------------------------------------------------

    def expr_extents(self, x: Expr) -> list[Extent]:
        """Return the extents of an expression, without computing it."""
        if isinstance(x, Leaf):
            return self.extents(x.value)
        if isinstance(x, Splat | View | Opaque):
            return list(x.extents)
        assert isinstance(x, Compute)
        if x.type.is_static:
            return list(x.type.dims)
        out: list[Extent] = list(x.type.dims)
        for arg in x.args:
            if all(isinstance(d, ir.Value) or d != DYN for d in out):
                break
            for i, have in enumerate(self.expr_extents(arg)):
                if isinstance(out[i], int) and out[i] == DYN:
                    out[i] = have
        return out

    def scalar_of(self, x: Compute, args: Sequence[TypedScalar]) -> TypedScalar:
        """Build one pointwise op on scalars, computed in f32 for 16- and 8-bit floats."""
        first = x.args[0].type.dtype if x.args else x.type.dtype
        b = self.scalars(first, x.type.dtype)
        if x.cls.discontinuous:
            args = [b.exact(v, a.type.dtype) for v, a in zip(args, x.args, strict=True)]
        scalar = getattr(x.cls, "scalar", None)
        if scalar is None:
            raise CompileError(f"'{x.cls.OPERATION_NAME}' op has no scalar lowering")
        if x.cls.raw:  # computed on the stored bits
            stored = [narrow(v, a.type.dtype) for v, a in zip(args, x.args, strict=True)]
            return widen(scalar(b, *stored, **x.attributes))
        return scalar(b, *args, **x.attributes)


_FORWARDS = ("tensor.collapse_shape", "tensor.expand_shape", "tensor.cast", "tensor.extract_slice")


def _is_integer_loop(value: ir.Value) -> bool:
    """Return whether a tensor of integers is computed by a loop."""
    if not isinstance(value.owner, ir.Operation | ir.OpView):
        return False
    op = value.owner.operation
    if op.name in _FORWARDS:
        return _is_integer_loop(op.operands[0])
    element = ir.RankedTensorType(value.type).element_type
    return op.name == "linalg.generic" and isinstance(element, ir.IntegerType)


def _is_uniform(value: ir.Value) -> bool:
    """Return whether a tensor is a fill, a constant, or computed only from such."""
    if not isinstance(value.owner, ir.Operation | ir.OpView):
        return False
    op = value.owner.operation
    if op.name in ("linalg.fill", "arith.constant"):
        return True
    if op.name in _FORWARDS:
        return _is_uniform(op.operands[0])
    if op.name != "linalg.generic":
        return False
    inputs = list(op.operands)[: len(op.operands) - len(op.results)]  # the others are destinations
    return bool(inputs) and all(map(_is_uniform, inputs))
