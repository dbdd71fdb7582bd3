"""`program`: models to inspect, build, compile and run."""

from __future__ import annotations

import io
import sys
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TextIO

import numpy as np

import mgx_mlir.dialects
from mgx_mlir.api.argument import argument
from mgx_mlir.api.caller_buffers import (
    bound_weights,
    output_parameters,
    parted,
    plain,
    standard,
    values_of,
)
from mgx_mlir.api.device import (
    STREAM_TYPE,
    check_stream,
    context,
)
from mgx_mlir.api.execution import checked, device_of, execute, on_gpu
from mgx_mlir.api.module import instruction_ref, module
from mgx_mlir.api.shape import shape
from mgx_mlir.api.target import target
from mgx_mlir.compiler.compiled import CompiledProgram
from mgx_mlir.core import forks, interrupts
from mgx_mlir.core.errors import RunError, UsageError
from mgx_mlir.core.ir import ir
from mgx_mlir.printers.instructions import ListedInstruction as Line
from mgx_mlir.printers.instructions import Listing
from mgx_mlir.printers.listing import list_program
from mgx_mlir.printers.python import python_text
from mgx_mlir.printers.text import instruction_text, print_listing, print_text
from mgx_mlir.programs.instructions import Instruction, instruction_of
from mgx_mlir.programs.interpreter import Interpreter
from mgx_mlir.programs.module_builder import (
    ModuleBuilder,
    ProgramBuilder,
    drop_unused_modules,
)
from mgx_mlir.programs.module_shapes import ModuleShapes
from mgx_mlir.programs.order import depth_first
from mgx_mlir.programs.program_ir import ProgramIR, argument_names, entry_block
from mgx_mlir.programs.signature import Signature

Trace = Callable[[instruction_ref, list[argument]], None]


class program:
    """A model: modules of instructions, compiled for a target or not.

    A program that is not compiled runs on the reference interpreter.
    """

    saved_tree: dict[str, Any] | None = None  # content of the compiled file that it was loaded from

    def __init__(
        self,
        built: ProgramBuilder | Callable[[], ProgramIR] | None = None,
        *,
        source: str = "",
    ) -> None:
        """If `built` is a function, it is called at the first access."""
        self._built: ProgramBuilder | Callable[[], ProgramIR] = built or ProgramBuilder()
        self._source = source
        self._compiled: CompiledProgram | None = None
        self.compile_options: dict[str, Any] = {}
        self._offload = self._offload_copy = True
        self._bound: dict[str, Any] = {}
        self._generation = 0
        self._numbering = forks.lock()
        self._reset()

    @staticmethod
    def of(found: ProgramIR) -> program:
        """Wrap a compiler's program; the two share their operations."""
        return program(ProgramBuilder.of(found), source=found.source)

    @staticmethod
    def of_code(
        compiled: CompiledProgram,
        options: Mapping[str, Any],
        source: Callable[[], ProgramIR],
        saved: dict[str, Any] | None = None,
    ) -> program:
        """Wrap compiled code; `source` reads the uncompiled program, on demand.

        `saved` is the tree of the file, without its code.
        """
        made = program(source)
        made.adopt(compiled, options)
        made.saved_tree = saved
        return made

    @property
    def _builder(self) -> ProgramBuilder:
        if not isinstance(self._built, ProgramBuilder):
            found = self._built()
            self._built, self._source = ProgramBuilder.of(found), found.source
        me = weakref.ref(self)  # a cycle would keep the weights until the garbage collector runs

        def attached(m: ModuleBuilder) -> None:
            if (found := me()) is not None:
                found._attached(m)

        self._built.on_attach = attached
        return self._built

    def become(self, found: ProgramIR) -> None:
        """Replace the content by another program's; older references become stale."""
        self._built = ProgramBuilder.of(found)
        self._reset()

    # ---- identity of instructions ------------------------------------------------------------

    def _reset(self) -> None:
        """Make every reference handed out so far stale."""
        self._generation += 1
        self._entities: list[Instruction] = []
        self._numbers: dict[Any, int] = {}
        self._shown_view: ProgramBuilder | None = None
        self._layout: ModuleShapes | None = None
        self.changed()

    def changed(self) -> None:
        """Forget what was derived from the instructions."""
        self._listing: Listing | None = None
        self._lines: dict[Any, Line] | None = None

    def ref(self, entity: Instruction) -> instruction_ref:
        """Return the reference of an instruction of this program."""
        if not isinstance(entity, ir.Value):
            entity = entity.operation
        with self._numbering:
            number = self._numbers.get(entity)
            if number is None:
                number = len(self._entities)
                self._numbers[entity] = number
                self._entities.append(entity)
        return instruction_ref(self, number, self._generation)

    def entity(self, number: int, generation: int) -> Instruction:
        """Return the value or operation of a reference. Errors: UsageError for a stale
        reference.
        """
        self.check_generation(generation, "the instruction")
        return self._entities[number]

    def check_generation(self, generation: int, what: str) -> None:
        """Raise UsageError for a reference made before the program was compiled or sorted."""
        if generation != self._generation:
            raise UsageError(
                f"{what} is stale: the program was compiled or sorted since",
                notes=["take a new reference from get_main_module()"],
            )

    def own(self, given: object) -> Instruction:
        """Return the value or operation of a reference. UsageError for another program's
        reference.
        """
        if not isinstance(given, instruction_ref):
            raise UsageError(f"expected an instruction_ref, got {type(given).__name__}")
        if given._program is not self:
            raise UsageError("the instruction belongs to another program")
        return given.entity()

    def _attached(self, m: ModuleBuilder) -> None:
        """Update the handles of the parameters of a module that became a region."""
        for value in m.block.arguments:
            number = self._numbers.pop(value, None)
            if number is not None:
                self._entities[number] = value
                self._numbers[value] = number

    def parameter_name(self, entity: Instruction) -> str:
        """Return the name of a parameter."""
        for m in self._view.modules.values():
            for name, value in m.parameters.items():
                if value == entity:
                    return name
        return self.listed(entity).attributes["parameter"]

    @property
    def _view(self) -> ProgramBuilder:
        """The modules that instruction references belong to."""
        return self._shown_view or self._builder

    # ---- views -------------------------------------------------------------------------------

    @property
    @interrupts.held
    def program_ir(self) -> ProgramIR:
        """The ProgramIR, not compiled; it shares its operations."""
        return self._builder.program(self._source)

    def _shown(self) -> ProgramIR:
        """Return the program that is printed and walked: after the passes once compiled."""
        return self.program_ir if self._compiled is None else self._compiled.program

    def _prefix(self) -> str:
        return "" if self._compiled is None else self._compiled.target

    def layout(self) -> ModuleShapes:
        """Return the shapes of the program's values; they are kept as the program grows."""
        if self._layout is None:
            shown = self._shown()
            self._layout = ModuleShapes(shown.module.operation, shown.store)
        return self._layout

    def parameter_added(self, m: ModuleBuilder, value: ir.Value) -> None:
        """Note the shape of a new parameter."""
        if self._layout is not None:
            self._layout.state(value, m.attributes[-1])
        self.changed()

    @interrupts.held
    def listing(self) -> Listing:
        """Return the printed listing of the program."""
        if self._listing is None:
            self._listing = list_program(self._shown(), kernel_prefix=self._prefix())
        return self._listing

    @contextmanager
    def weights(self) -> Iterator[None]:
        """Make the program's weights readable."""
        with self._shown().store.active():
            yield

    @interrupts.held
    def line(self, entity: Instruction) -> str:
        """Return the printed line of an instruction."""
        with self.weights():
            return instruction_text(self.listed(entity))

    def listed(self, entity: Instruction) -> Line:
        """Return an instruction's entry in the program's listing."""
        if self._lines is None:
            self._lines = self.listing().by_value()
        found = self._lines.get(entity)
        if found is None:
            raise UsageError("the instruction is not part of the program")
        return found

    # ---- parameters and outputs --------------------------------------------------------------

    def get_parameter_names(self) -> list[str]:
        """Return the names of main's parameters, in order; as get_parameter_shapes."""
        return list(self.get_parameter_shapes())

    def _output_parameters(self) -> list[str]:
        """Return the names of the parameters for results: none where results are copied."""
        return [] if self._offload_copy else output_parameters(self.compiled.signature)

    @interrupts.held
    def get_parameter_shapes(self) -> dict[str, shape]:
        """Return the shapes of main's parameters, by name.

        A program that is compiled with `offload_copy=False` has `main:#output_N` for the buffer
        of each result too; a run may leave them out.
        """
        found = self.program_ir
        main, layout = found.main(), ModuleShapes(found.module.operation, found.store)
        values = entry_block(main).arguments
        names, shapes = self._output_parameters(), self.get_output_shapes
        return {
            name: shape.of(layout.shape(v))
            for name, v in zip(argument_names(main), values, strict=True)
            if name not in self._bound
        } | (dict(zip(names, shapes(), strict=True)) if names else {})

    @interrupts.held
    def get_output_shapes(self) -> list[shape]:
        """Return the shapes of the outputs, in order; those of a compiled program are dense."""
        found, seen = self.program_ir, shape.of if self._compiled is None else standard
        layout = ModuleShapes(found.module.operation, found.store)
        operations = entry_block(found.main()).operations
        end = operations[len(operations) - 1].operation
        return [seen(layout.shape(v)) for v in end.operands]

    # ---- modules -----------------------------------------------------------------------------

    @interrupts.held
    def get_main_module(self) -> module:
        """Return the main module; of a compiled program, the one after the passes."""
        if self._compiled is not None and self._shown_view is None:
            self._shown_view = ProgramBuilder.of(self._compiled.program)
        return module(self, self._view.modules["main"], self._generation)

    @interrupts.held
    def create_module(self, name: str) -> module:
        """Create an empty module, to be passed as an argument of an instruction."""
        if self._compiled is not None:
            raise UsageError("the program is compiled and cannot be changed")
        made = self._builder.create_module(name)
        self.changed()
        return module(self, made, self._generation)

    @interrupts.held
    def sort(self) -> None:
        """Put the instructions of main in depth-first order from its results."""
        if self._compiled is not None:
            raise UsageError("the program is compiled and cannot be changed")
        found = self.program_ir
        block = entry_block(found.main())
        operations = [view.operation for view in block.operations]
        end = operations[-1]
        for operation in depth_first(end, block):
            operation.move_before(end)
        self._reset()

    # ---- compiling and running ---------------------------------------------------------------

    def is_compiled(self) -> bool:
        """Return whether the program has been compiled."""
        return self._compiled is not None

    @interrupts.held
    def compile(
        self,
        t: target,
        offload_copy: bool = True,
        fast_math: bool = True,
        exhaustive_tune: bool = False,
        **options: Any,
    ) -> None:
        """Compile for a target; `options` are those of mgx_mlir.compile.

        Without `offload_copy` a gpu program takes and returns arguments in device memory
        (`to_gpu`). Works on a copy: an error leaves the program as it was. References to its
        instructions are stale afterwards. Raises CompileError, TargetError.
        """
        # start-up: reading and printing need no compiler
        from mgx_mlir.compiler.compile import compile as compile_program
        from mgx_mlir.compiler.options import KEYWORDS

        if isinstance(t, str):
            t = target(t)
        if self._compiled is not None:
            raise UsageError(f"the program is compiled already, for {self._compiled.target}")
        chosen = {**t.options, **options}
        known = [*KEYWORDS]
        for key in chosen:
            if key not in known:
                raise UsageError(
                    f"compile has no option '{key}'", notes=[f"it has: {', '.join(known)}"]
                )
        copy = self.program_ir.clone()
        drop_unused_modules(copy)
        made = compile_program(
            copy, t.name(), fast_math=fast_math, exhaustive_tune=exhaustive_tune, **chosen
        )
        stays = {} if offload_copy else {"offload_copy": False}
        self.adopt(made, {"fast_math": fast_math, **chosen, **stays})

    def adopt(self, compiled: CompiledProgram, options: Mapping[str, Any]) -> None:
        """Take a CompiledProgram of this program as its compiled form."""
        self._compiled, self.compile_options = compiled, dict(options)
        self._offload_copy = options.get("offload_copy", True) is not False
        self._offload = self._offload_copy or compiled.target != "gpu"
        self._reset()

    @interrupts.held
    def clone(self) -> program:
        """Return a copy that may be changed or compiled by itself; compiled code is shared."""
        made = program.of(self.program_ir.clone())
        if self._compiled is not None:
            made.adopt(self._compiled, self.compile_options)
        made._bound = dict(self._bound)
        return made

    @interrupts.held
    def create_program_with_weights(self, weights: Mapping[str, Any]) -> program:
        """Return the program with values for some of its parameters; compiled code is shared.

        A GPU's are copied to it once. Arrays are not copied: they must not change while the
        program is in use. Errors: RunError for names, types and dims that are not the parameters'.
        """
        made = self.clone()
        given = bound_weights(weights, self.get_parameter_shapes(), device_of(self._compiled))
        made._bound = {**self._bound, **given}
        return made

    @property
    def bound(self) -> list[str]:
        """The names of the parameters that have values."""
        return list(self._bound)

    @property
    def compiled(self) -> CompiledProgram:
        """The CompiledProgram; UsageError where the program is not compiled."""
        if self._compiled is None:
            raise UsageError("the program is not compiled")
        return self._compiled

    @interrupts.held
    def close(self) -> None:
        """Free the compiled code and its weights; the program cannot run afterwards."""
        if self._compiled is None:
            return
        self._compiled.close()
        self.saved_tree = None
        if not isinstance(self._built, ProgramBuilder):
            self._built = _read_no_more  # closes the file too

    def __enter__(self) -> program:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @interrupts.held
    def finalize(self) -> None:
        """Load the compiled code and its weights; otherwise the first run does."""
        load = getattr(self.compiled, "load", None)
        if load is not None:
            load()

    def run(self, params: Mapping[str, Any], *, trace: Trace | None = None) -> list[argument]:
        """Evaluate on arrays or arguments by parameter name; the results in order.

        A sequence of an ONNX model is a list of arguments. With `offload_copy=False`, a result with
        a buffer (`main:#output_N`) is written to it, and the buffer is returned.
        All wrong names, dtypes and shapes are reported at once, before anything runs (RunError).
        `trace(instruction, results)` is called after each instruction of a program that is not
        compiled, or compiled for `ref`.
        """
        if self._bound:
            params = {**self._bound, **params}
        if self._compiled is not None and trace is None and self._offload:
            compiled = self._compiled
            arrays = {n: v if type(v) is np.ndarray else plain(v) for n, v in params.items()}
            found = compiled.run_known(arrays)
            if found is not None:
                wrapped = [argument.of_array(a) for a in found]
                groups = compiled.signature.output_groups
                return compiled.signature.grouped(wrapped) if groups else wrapped
        buffers: dict[int, argument] = {}
        if not self._offload_copy:
            params, buffers = parted(
                params, self.compiled.signature, lambda: device_of(self._compiled)
            )
        given = values_of(params, device_of(self._compiled))
        if self._compiled is None:
            found = self.program_ir
            signature = Signature.of(found.main())
            arrays = checked(signature, signature.check_inputs, given)
            interpreter = Interpreter(found.module, found.store)
            return signature.grouped(self._interpret(interpreter, found, arrays, trace))
        if trace is not None:
            interpreter = getattr(self._compiled, "_interpreter", None)
            if interpreter is None:
                raise RunError(
                    f"a program compiled for {self._compiled.target} runs as whole kernels, its "
                    "instructions cannot be traced",
                    notes=["compile it for 'ref', or do not compile it"],
                )
            arrays = checked(self._compiled.signature, self._compiled.check_inputs, given)
            found = self._interpret(interpreter, self._compiled.program, arrays, trace)
            return self._compiled.signature.grouped(found)
        return execute(self._compiled, given, buffers, offload=self._offload)

    eval = run

    def _interpret(
        self,
        interpreter: Interpreter,
        found: ProgramIR,
        arrays: dict[str, np.ndarray],
        trace: Trace | None,
    ) -> list[argument]:
        def show(operation: ir.Operation, results: list[np.ndarray]) -> None:
            assert trace is not None
            trace(self.ref(instruction_of(operation)), [argument(a) for a in results])

        if trace is not None and self._compiled is not None:
            self.get_main_module()
        with found.ctx:
            results = interpreter.run(arrays, trace=None if trace is None else show)
        return [argument(a) for a in results]

    def run_async(
        self, params: Mapping[str, Any], stream: int, stream_name: str = STREAM_TYPE
    ) -> list[argument]:
        """Run after all work submitted to a HIP or CUDA stream, given by its address.

        It returns when the results are complete, so later work on the stream sees them. A program
        of another target accepts only the null stream, 0, and runs at once. UsageError for any
        other stream there, or a stream of another type.
        """
        check_stream(stream_name)
        if self.compiled.target != "gpu":
            if stream:
                raise UsageError(
                    f"a program compiled for {self.compiled.target} does not run on a stream"
                )
            return self.run(params)
        context.of(on_gpu(self._compiled).load().device).wait_for(stream)
        return self.run(params)

    # ---- text --------------------------------------------------------------------------------

    @interrupts.held
    def print(self, stream: TextIO | None = None, **options: Any) -> None:
        """Write the text form to stdout or a stream; options as printers.text.print_text."""
        print_text(self._shown(), stream or sys.stdout, kernel_prefix=self._prefix(), **options)

    @interrupts.held
    def to_py(self, *, weights: str | None = None) -> str:
        """Return Python code that builds the program.

        Literals of 1024 elements and more become generated numbers. With `weights`, the path of an
        .npz, they are written there, and the code reads them from the file of that name beside it.
        """
        return python_text(self.program_ir, weights=weights)

    def __repr__(self) -> str:
        stream = io.StringIO()
        with self.weights():
            print_listing(self.listing(), stream)
        return stream.getvalue()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the program as its file; a compiled one as its code, without the source."""
        # the package imports `files`, which imports this module
        data = mgx_mlir.save_buffer(self)
        return _unpickled, (data, self._offload)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, program) and repr(self) == repr(other)

    __hash__ = object.__hash__


def _read_no_more() -> ProgramIR:
    raise UsageError("the program is closed")


@interrupts.held
def _unpickled(data: bytes, offload: bool) -> program:
    """Restore a program that was pickled."""
    made = mgx_mlir.load_buffer(data)
    made._offload = offload
    return made
