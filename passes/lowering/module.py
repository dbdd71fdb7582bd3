"""From the migraphx dialect to linalg on tensors: rebuilds functions, one lowering per op."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from mgx_mlir.core import interrupts, literals
from mgx_mlir.core.errors import CompileError, MgxError
from mgx_mlir.core.ir import arith, func, ir
from mgx_mlir.core.literals import is_literal
from mgx_mlir.core.op import (
    OPS,
    Kernel,
    Op,
    attributes_of,
    is_a,
    is_terminator,
    mnemonic,
    op_class,
)
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.broadcasts import DimensionsOf
from mgx_mlir.dialects.migraphx.fused import FusedReduce
from mgx_mlir.hardware.architectures import vendor_of
from mgx_mlir.hardware.iree_targets import stated_target
from mgx_mlir.passes.analysis.host_sizes import host_sizes
from mgx_mlir.passes.lowering import (
    assertions,
    contract,
    equal_kernels,
    host,
    kernel_region,
    named_kernel,
    select,
    views,
)
from mgx_mlir.passes.lowering.context import (
    PARAMETER_ELEMENTS,
    KernelPlan,
    LoweringContext,
    Scope,
)
from mgx_mlir.passes.lowering.cpu import rules as cpu_rules
from mgx_mlir.passes.lowering.cpu.frame.isa import isa_of
from mgx_mlir.passes.lowering.cpu.frame.sites import ExprSite, KernelSite, OpSite
from mgx_mlir.passes.lowering.cpu.frame.workgroup_builder import launched_for
from mgx_mlir.passes.lowering.cpu.windows import convolution_kernel
from mgx_mlir.passes.lowering.expr import Compute, Expr, Leaf, Splat, View
from mgx_mlir.passes.lowering.gpu.matmul import few_bits, split_k
from mgx_mlir.passes.lowering.gpu.matmul.stored_rows import stored_by_row
from mgx_mlir.passes.lowering.iree import packed, read_back, workgroup_loops
from mgx_mlir.passes.lowering.iree.equal_results import merge_equal_results
from mgx_mlir.passes.lowering.iree.input_alignment import written
from mgx_mlir.passes.lowering.iree.outline import (
    drop_unread_kernels,
    leave_out_kernels,
    outline_alone,
    outline_kernels,
)
from mgx_mlir.passes.lowering.iree.regions import is_attention
from mgx_mlir.passes.lowering.iree.weight_table import make_tables
from mgx_mlir.passes.lowering.iree.widening import fence_widening_loops
from mgx_mlir.passes.lowering.materialize import materialized
from mgx_mlir.passes.lowering.options import LowerOptions
from mgx_mlir.passes.lowering.registry import LAZY, LOWERINGS, Results
from mgx_mlir.passes.lowering.scalar import computed, signless
from mgx_mlir.passes.lowering.sizes import Sizes, has_relations
from mgx_mlir.passes.lowering.weights import Weights
from mgx_mlir.programs.lowered import IOSpec, KernelChoice, KernelInfo, Lowered, is_in_place
from mgx_mlir.programs.program_ir import (
    ProgramIR,
    argument_names,
    argument_types,
    entry_block,
    result_names,
    result_types,
)


class ModuleLowering(LoweringContext):
    """Lowers programs to the functions of one module; use `lower_to_linalg`."""

    def __init__(
        self,
        programs: Mapping[str, ProgramIR],
        options: LowerOptions,
        listed: str,
        *,
        readable: bool = False,
    ) -> None:
        super().__init__(options)
        self.programs: Mapping[str, ProgramIR] = programs
        self.listed, self.readable = listed, readable
        self._settled: set[ir.Value] = set()  # values that kernels both yield and read
        self._launching = 0  # ops lowered so far
        self._choices: list[KernelChoice] = []  # choices in the function that is being lowered
        self._now = ("", "")  # name and location of the op that is being lowered
        o = options
        given = o.target, o.regions, o.arch, o.vector_kernels, o.tiles, o.fast_math, o.row_bits
        salt = repr((*given, sorted(select.switched_off()), sorted(o.plainer.items())))
        self._codes = equal_kernels.Codes(options.apart, self._alone, salt)
        self._scalars: set[ir.Value] = set()  # scalars in kernels' bodies that become inputs
        self._host_read: set[ir.Value] = set()  # tensors that the host reads, for sizes

    # ---- the module --------------------------------------------------------------------------

    def run(self) -> Lowered:
        """Lower every program and return the module with its kernels, inputs and outputs."""
        try:
            found = self._lower()
            self.filling.wait()
        except BaseException:
            self.filling.close()
            raise
        # the context's objects are cyclic, and would keep all weights until a collection
        self.forget_weights()
        self.weights.forget()
        self.programs = {}
        return found

    def _lower(self) -> Lowered:
        main = self.programs["main"].main()
        for program in self.programs.values():
            contract.check_lowerable(entry_block(program.main()), self.options.target)
        context = self.programs["main"].ctx
        context.allow_unregistered_dialects = True
        kernels: list[KernelInfo] = []
        choices: list[KernelChoice] = []
        with context, ir.Location.unknown():
            self.module = ir.Module.create()
            self.weights = Weights(self.module)
            for name, program in self.programs.items():
                with program.store.active():
                    self._function(name, program.main())
                if name == self.listed:
                    kernels, choices = self.kernels, self._choices
                self.kernels, self._choices = [], []
            left_out = self.options.apart is not None and self.options.apart.holds
            if left_out:
                leave_out_kernels(self.module)
            drop_unread_kernels(self.module)
            self.weights.drop_unread()
            fence_widening_loops(self.module)
            if vendor_of(self.options.arch) == "nvidia":
                # start-up: CPUs need none of it
                from mgx_mlir.passes.lowering.gpu.small_floats import expand_small_floats

                expand_small_floats(self.module)
            outline_kernels(self.module)
            merge_equal_results(self.module)
            if self.options.target == "cpu" and not self.readable:
                make_tables(self.module, self.weights)
            self._verify(self.module)
            if not self.readable:
                workgroup_loops.give(self.module)
            select.noted(choices)
            stated = stated_target(self.options.arch)
            if stated is not None:
                self.module.operation.attributes["hal.device.targets"] = ir.Attribute.parse(stated)
            bytecode, alignment = written(self.module, self.options.target)
        inputs = zip(argument_names(main), argument_types(main), strict=True)
        outputs = zip(result_names(main), result_types(main), strict=True)
        return Lowered(
            bytecode=bytecode,
            params=self.weights.arrays,
            inputs=[IOSpec.of(n, t) for n, t in inputs],
            outputs=[IOSpec.of(n, t) for n, t in outputs],
            kernels=kernels,
            choices=choices,
            input_alignment=alignment,
            left_out=left_out,
        )

    def _function(self, name: str, main: ir.OpView) -> None:
        """Lower a program's entry function as the function `name`."""
        ins, outs = argument_types(main), result_types(main)
        self.scope, self.function = Scope(), name
        loops = self.options.target == "cpu" and self.options.vector_kernels
        self._scalars = equal_kernels.own_scalars(entry_block(main)) if loops else set[ir.Value]()
        with ir.InsertionPoint(self.module.body):
            types = [self.mlir_type(t) for t in ins], [self.mlir_type(t) for t in outs]
            f = func.FuncOp(name, types)
        self.entry = f.add_entry_block()
        with ir.InsertionPoint(self.entry):
            # parameters are loaded before any op that may capture them
            head = arith.ConstantOp(ir.IndexType.get(), 0).operation
            self.weights.enter(head)
            arguments = entry_block(main).arguments
            self.sizes = Sizes(self, main, self.entry, head)
            for old, new, t in zip(arguments, self.entry.arguments, ins, strict=True):
                self.bind(old, Leaf(t, new))
            self._host_read = host_sizes(entry_block(main))
            for old in arguments:
                self._read_back(old)
            results = self.block(entry_block(main))
            returned = [self.refine(r, t) for r, t in zip(results, outs, strict=True)]
            func.ReturnOp(returned)
            assertions.wait(self, self.entry, outermost=True)
            read_back.keep(self.entry)

    def _alone(self, dispatch: ir.Operation) -> bytes:
        """Return a kernel that has been built, a module of one flow.executable."""
        alone = outline_alone(dispatch)
        workgroup_loops.give(alone)
        return written(alone, self.options.target)[0]

    def _verify(self, module: ir.Module) -> None:
        try:
            module.operation.verify()
        except ir.MLIRError as e:
            raise CompileError(
                f"the lowered module is not valid: {e}",
                notes=["this is a fault of the lowering: please report it with the model"],
            ) from None

    # ---- blocks and ops ----------------------------------------------------------------------

    def block(self, block: ir.Block) -> list[ir.Value]:
        """Lower a block's ops in order; its terminator's operands as tensors."""
        return self.tensors(self.statements(block))

    @contextmanager
    def inner_scope(self, scope: Scope | None = None) -> Generator[Scope]:
        """Return a scope for a region, which can be entered again.

        Its values are not visible outside.
        """
        outer = self.scope
        self.scope = scope or outer.inner()
        try:
            with self.sizes.inside():
                yield self.scope
        finally:
            self.scope = outer

    def statements(self, block: ir.Block) -> list[ir.Value]:
        """Lower a block's ops in order; its terminator's operands, as they were."""
        for view in block.operations:
            op = view.operation
            if is_terminator(op):
                return list(op.operands)
            with op.location:
                try:
                    self.operation(op)
                except MgxError as e:
                    raise CompileError(
                        f"'{op.name}' op {e.message}", location=str(op.location), notes=e.notes
                    ) from e
        return []

    def operation(self, op: ir.Operation) -> None:
        """Lower one op and bind its results."""
        interrupts.check()
        if self.in_kernel:
            self._lowered(op)
            return
        self._launching += 1
        body = op.regions[0].blocks[0] if is_a(op, Kernel) else None
        name = mnemonic(op) if body is None else named_kernel.kernel_name(body)
        self._now = f"{self.options.target}::{name}", str(op.location)
        with launched_for(f"{self._launching} {name}"):
            self._lowered(op)
            for r in op.results:
                self._read_back(r)

    def _read_back(self, v: ir.Value) -> None:
        """Read the elements of a tensor that sizes depend on; it remains a tensor too."""
        if v in self._host_read and self.elements(v) is None:
            self.bind(v, host.read_elements(self, v))

    def _lowered(self, op: ir.Operation) -> None:
        name = mnemonic(op)
        cls = OPS[name]
        if name == "literal":
            self.literal(op)
            return
        if not self.in_kernel and host.lower_on_host(self, op, cls):
            return
        if len(op.results) == 1 and op.results[0] in self.plan.same:
            self.bind(op.results[0], self.expr(self.plan.same[op.results[0]]))
            return
        self.sizes.relations_of(op, cls)
        if name in views.VIEWS:
            found = views.VIEWS[name](self, op.opview)
            if isinstance(found, View) and found.make is None and self.has_vector_kernels(op):
                found.make = lambda: self._copied(found)
            self.bind(op.results[0], found)
        elif is_a(op, Kernel):
            self._kernel(op)
        elif getattr(cls, "scalar", None) is not None:
            self.pointwise(op, cls)
        else:
            # control flow takes its operands as its regions need them
            ins = () if len(op.regions) else self.operands_of(op, cls)
            made = self._op_by_rule(op, ins)
            self.define(op, LOWERINGS[name](op.opview, ins, self) if made is None else made)
        if not self.options.regions and not self.in_kernel:
            self._fence(op)

    def _fence(self, op: ir.Operation) -> None:
        """Put barriers on results of dynamic dims with several readers.

        Without kernel boundaries IREE would compute a loop only at the elements that a strided
        window among its readers reads (hazard 11).
        """
        for r in op.results:
            x = self.scope.exprs.get(r)
            if isinstance(x, Leaf) and not x.type.is_static and len(list(r.uses)) > 1:
                self.bind(r, Leaf(x.type, self.barrier(x.value, self.extents(x.value))))

    def define(self, op: ir.Operation, found: Results) -> None:
        """Record an op's lowered results."""
        results = [found] if isinstance(found, ir.Value | Expr) else list(found)
        for r, value in zip(op.results, results, strict=True):
            if isinstance(value, np.ndarray):
                self.bind(r, value)
                continue
            t = TensorType.of(r)
            if isinstance(value, ir.Value):
                have = ir.RankedTensorType(value.type)
                t = t.with_dims(have.shape)
                if have.element_type != signless(t.dtype):
                    # a sum that is not rounded yet, and is read unrounded inside of the kernel
                    t = t.with_dtype(computed(t.dtype))
                value = Leaf(t, value)
            self.bind(r, value)

    def operands_of(self, op: ir.Operation, cls: type[Op]) -> tuple[Results | None, ...]:
        """Return lowered operands for lowering functions: by group, None where absent."""
        out: list[Results | None] = []
        read = self.expr if cls.mnemonic in LAZY else self.tensor
        for group, values in zip(cls.OPERANDS, cls.split_operands(op), strict=True):
            lowered = [read(v) for v in values]
            if group.arity == "variadic":
                out.append(lowered)
            else:
                out.append(lowered[0] if lowered else None)
        return tuple(out)

    def pointwise(self, op: ir.Operation, cls: type[Op]) -> None:
        """Bind a pointwise op to a lazy expression."""
        x = Compute(
            TensorType.of(op.results[0]),
            cls,
            attributes_of(op),
            [self.expr(v, exact=cls.raw) for v in op.operands],
        )
        # inside a kernel the op is built by its consumer; alone, or if the kernel both yields and
        # uses it, it is a separate loop
        lazy = self.in_kernel and op.results[0] not in self._settled
        if not lazy and not x.type.is_static and all(isinstance(a, Splat) for a in x.args):
            x.args = [self._filled(a) for a in x.args if isinstance(a, Splat)]
        made = None
        if not lazy and self.has_vector_kernels(op):
            made = self._expr_by_rule(cpu_rules.EXPRESSIONS, x)
        if made is not None:
            self.bind(op.results[0], Leaf(x.type, made))
        else:
            self.bind(op.results[0], x if lazy else Leaf(x.type, self.tensor(x)))

    def _copied(self, x: View) -> ir.Value:
        """Build the tensor of a view, as vector loops where there are some for it."""
        inside = self.in_kernel or self.in_region
        made = None if inside else self._expr_by_rule(cpu_rules.VIEWS, x)
        return materialized(self, [x], joined=True)[0] if made is None else made

    # ---- kernel rules ------------------------------------------------------------------------

    def chose(self, choice: KernelChoice) -> None:
        """Record the kernel rule that takes the op that is being lowered."""
        choice.name, choice.location = self._now
        self._choices.append(choice)

    def _op_by_rule(
        self, op: ir.Operation, ins: Sequence[Results | None]
    ) -> Sequence[ir.Value] | None:
        """Return what a kernel rule builds of an op outside of kernels, None without one."""
        isa = isa_of(self.options.arch) if self.has_vector_kernels(op) else None
        if isa is None or not ins or not isinstance(ins[0], ir.Value | list):
            return None
        return select.lower(self, cpu_rules.OPS, OpSite(op.opview, ins, isa), op.opview)

    def _expr_by_rule(self, rules: Sequence[select.KernelRule], x: Expr) -> ir.Value | None:
        """Return what a kernel rule builds of an expression outside of kernels."""
        isa = isa_of(self.options.arch)
        made = None if isa is None else select.lower(self, rules, ExprSite(x, isa), None)
        return None if made is None else made[0]

    def _kernel_by_rule(self, op: ir.Operation, body: ir.Block) -> Sequence[ir.Value] | None:
        """Return the results of a kernel that a rule of the target takes, else None."""
        if self.options.target == "gpu":
            bounded = self.options.regions and self._refusals(op) < 2 and not self.in_kernel
            bounded = bounded and not _computes_with_extents(body)
            # start-up: CPUs need none of it
            from mgx_mlir.passes.lowering.gpu import rules as gpu_rules
            from mgx_mlir.passes.lowering.gpu.sites import GpuKernelSite

            site = GpuKernelSite(op, body, bounded)
            rules = gpu_rules.ATTENTION if is_attention(op) else gpu_rules.KERNELS
            return select.lower(self, rules, site, op.opview)
        isa = isa_of(self.options.arch) if self.has_vector_kernels(op) else None
        if isa is None:
            return None
        what = equal_kernels.description(op, body, self.scope.exprs, self.scope.elements)
        with self._codes.of(what):
            found = select.lower(self, cpu_rules.KERNELS, KernelSite(op, body, isa), op.opview)
        if found is not None:
            self._expect_checked(body)
        return found

    def _filled(self, x: Splat) -> Leaf:
        """Return a splat of dynamic dims as a tensor.

        A loop without operands has no extents that IREE could find.
        """
        value = self.tensor(x)
        return Leaf(x.type, self.barrier(value, self.extents(value)))

    # ---- values ------------------------------------------------------------------------------

    def expr(self, v: ir.Value, *, exact: bool = False) -> Expr:
        """Return the expression of a value; with `exact` in the value's own type."""
        found = self.scope.exprs.get(v)
        if found is None:
            found = Leaf(TensorType.of(v), host.tensor_of(self, v, self.scope.elements[v]))
            self.bind(v, found)
        if exact and found.type.dtype is not TensorType.of(v).dtype:
            self.tensor(v)
            return self.scope.exprs[v]
        return found

    def tensor(self, x: ir.Value | Expr) -> ir.Value:
        """Build the tensor of a value or an expression."""
        return materialized(self, [x])[0] if isinstance(x, Expr) else self._tensor_of(x)

    def _tensor_of(self, v: ir.Value) -> ir.Value:
        x = self.expr(v)
        value = self.tensor(x)
        dtype = TensorType.of(v).dtype
        if x.type.dtype is not dtype:
            t = x.type.with_dtype(dtype)
            value = self.map_elements([value], [x.type.dtype], t, lambda b, e: e)
            self.bind(v, Leaf(t, value))
            return value
        if not isinstance(x, Leaf) and not isinstance(x, Compute):
            self.bind(v, Leaf(x.type, value))
        return value

    def tensors(self, vs: Sequence[ir.Value]) -> list[ir.Value]:
        """Build the tensors of several values, those of the same dims in one loop."""
        found: dict[ir.Value, ir.Value] = {}
        by_dims: dict[tuple[int, ...], list[ir.Value]] = {}
        for v in dict.fromkeys(vs):
            by_dims.setdefault(TensorType.of(v).dims, []).append(v)
        for group in by_dims.values():
            lazy = [v for v in group if not isinstance(self.expr(v), Leaf)]
            # dynamic extents of one kernel's pointwise results are equal, as the ops are connected
            same = TensorType.of(group[0]).is_static or self.in_region
            if self.in_kernel and same and len(lazy) > 1:
                made = materialized(self, [self.expr(v) for v in lazy], joined=True)
                found.update(zip(lazy, made, strict=True))
            for v in group:
                if v not in found:
                    found[v] = self.tensor(v)
        return [found[v] for v in vs]

    def literal(self, op: ir.Operation, *, own: bool = False) -> None:
        """Bind a literal to a splat, a constant or a weight. own: make a small one of a kernel
        a weight too.
        """
        array = literals.seen_of(op)
        t = TensorType.of(op.results[0])
        if own:
            self.bind(op.results[0], Leaf(t, self.parameter(array)))
            return
        if not t.dtype.is_float and array.size <= host.LIMIT:
            self.bind(op.results[0], host.constant_elements(array))
        if array.size and literals.is_uniform(array):
            first = array.flat[0]
            number = float(first) if t.dtype.is_float else int(first)
            self.bind(op.results[0], Splat(t, number, list(t.dims)))
        elif array.size <= PARAMETER_ELEMENTS:
            self.bind(op.results[0], Leaf(t, self.constant(array)))
        else:
            self.bind(op.results[0], Leaf(t, self.parameter(array)))

    def parameter(self, array: np.ndarray) -> ir.Value:
        """Return a weight that the runtime supplies."""
        return self.weights.loaded(self, array)

    # ---- kernels -----------------------------------------------------------------------------

    def _kernel(self, op: ir.Operation) -> None:
        """Lower a fused op: its body, in one dispatch region where the target takes them."""
        if not self._refusals(op) or not self.options.tiles:
            self._fused(op)
            return
        whole, self.options = self.options, replace(self.options, tiles=False)
        try:
            self._fused(op)
        finally:
            self.options = whole

    def _fused(self, op: ir.Operation) -> None:
        body = op.regions[0].blocks[0]
        # literals of a body are captured values, made outside of it
        for arg, v in zip(body.arguments, op.operands, strict=True):
            x = self.expr(v)
            # a broadcast to dynamic dims stays lazy, as the kernel reads through it
            through = isinstance(x, View) and not x.make and isinstance(x.source, Leaf)
            if isinstance(x, Splat) and not x.type.is_static:
                x = self._filled(x)
            elif not isinstance(x, Splat) and (not through or x.type.is_static):
                x = kernel_region.broadcast_operand(self, arg, v) or Leaf(x.type, self.tensor(v))
            if self.options.target == "gpu":
                x = stored_by_row(self, arg, v) or few_bits.stored_by_column(self, arg, v) or x
            self.bind(arg, packed.operand(self, op, x))
        for inner in body.operations:
            if is_literal(inner):
                self.literal(inner.operation, own=inner.operation.results[0] in self._scalars)
        self._record_kernel(op, body)
        if is_a(op, FusedReduce):
            # a value is yielded and read too: two parallel loops would not form one dispatch
            last = list(body.operations)[-1].operation
            self._settled.update(v for v in last.operands if len(list(v.uses)) > 1)
        made = self._kernel_by_rule(op, body)
        if made is not None:
            self.define(op, made)
            return
        if _computes_with_extents(body):
            # outside of kernels
            self.define(op, self.block(body))
            return
        nested = self.in_kernel
        with self.kernel(self._plan(op, body)):
            bounded = self.options.regions and self._refusals(op) < 2
            extents = kernel_region.result_extents(self, op, body) if bounded else None
            if extents is not None and not nested:
                found = kernel_region.dispatched(self, op, extents, lambda: self.block(body))
            else:
                found = self.block(body)
                if self.options.regions and not nested:
                    # without a region IREE could fuse it with a strided reader, and compute only
                    # the elements of that reader
                    found = [self.barrier(v, self.extents(v)) for v in found]
        self.define(op, found)

    def _expect_checked(self, body: ir.Block) -> None:
        """Assert that a family that lowered a whole body checks the size assumptions of its ops.

        Without that, inputs of wrong sizes would give results instead of an error.
        """
        for o in (view.operation for view in body.operations):
            cls = op_class(o)
            if cls is None or is_terminator(o) or o in self.sizes.asked:
                continue
            if has_relations(o, cls):
                raise CompileError(
                    f"'{o.name}' op is lowered without a check of its sizes",
                    location=str(o.location),
                    notes=["this is a fault of the lowering: please report it with the model"],
                )

    def has_vector_kernels(self, op: ir.Operation) -> bool:
        """Say whether an op may be lowered as vector loops of our own."""
        wanted = self.options.target == "cpu" and self.options.vector_kernels
        wanted = wanted and self.options.regions and not self.in_kernel
        return wanted and not self._refusals(op)

    def updates_in_place(self, value: ir.Value) -> bool:
        """Say whether an op may write into the memory of a tensor that it was given."""
        wanted = self.options.target != "ref" and self.options.regions and not self.in_kernel
        return wanted and is_in_place(self.function) and value.owner == self.entry

    def _refusals(self, op: ir.Operation) -> int:
        """Return the number of the backend's refusals of kernels at an op's source location."""
        if not self.options.plainer:
            return 0
        own = str(op.location).replace('"', "")
        return max((n for place, n in self.options.plainer.items() if place in own), default=0)

    def _plan(self, op: ir.Operation, body: ir.Block) -> KernelPlan:
        """Return the choices and tensors made before a kernel's region."""
        if self.options.target == "gpu" and self.options.regions and not self.in_region:
            plan = split_k.plan(self, op, body)
            plan = plan.with_matrices(few_bits.matrices(self, body))
            return plan.with_sums(few_bits.sums_of_parts(self, body))
        return convolution_kernel.plan(self, body) if self.has_vector_kernels(op) else KernelPlan()

    def _record_kernel(self, op: ir.Operation, body: ir.Block) -> None:
        name = f"{self.options.target}::{named_kernel.kernel_name(body)}"
        self.kernels.append(KernelInfo(name, named_kernel.kernel_ops(body), str(op.location)))


def _computes_with_extents(body: ir.Block) -> bool:
    return any(is_a(o, DimensionsOf) for o in body.operations)
