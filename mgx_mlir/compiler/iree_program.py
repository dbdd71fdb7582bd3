"""Programs that IREE compiled: the loading of their code for a CPU or GPU, and their runs."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from mgx_mlir.compiler.compiled import CompiledProgram, Placement
from mgx_mlir.compiler.recording import open_gpu, recording
from mgx_mlir.compiler.stats import CompileStats
from mgx_mlir.core import dtypes, forks, interrupts
from mgx_mlir.core.errors import TargetError, UsageError
from mgx_mlir.hardware.architectures import best_of, driver_of
from mgx_mlir.hardware.machine import available_cpus
from mgx_mlir.programs.known_inputs import KnownInputs
from mgx_mlir.programs.lowered import KernelInfo
from mgx_mlir.programs.signature import Signature
from mgx_mlir.runtime.direct_call import DirectCalls, can_be_direct
from mgx_mlir.runtime.gpu_calls import device_arch
from mgx_mlir.targets.executable import Executable

if TYPE_CHECKING:
    from mgx_mlir.programs.program_ir import ProgramIR
    from mgx_mlir.runtime.gpu_memory import DeviceMemory
    from mgx_mlir.runtime.iree_runtime import LoadedModule

# Bytes of inputs, results, weights and intermediate values. A second thread costs 9 us a call; a
# matmul of 200 kB, or a sum of 700 kB, takes twice as long on one thread.
_SMALL = 1 << 17


class IreeProgram(CompiledProgram):
    """A program compiled by IREE, for the CPU or a GPU; loaded at its first run.

    `alternatives` are the same program for other architectures; the one for the device is loaded.
    """

    alternatives: tuple[IreeProgram, ...] = ()
    _closed = False
    # makes `program` where the code came from the cache
    after_passes: Callable[[], ProgramIR] | None = None

    def __init__(
        self,
        placement: Placement,
        signature: Signature,
        kernels: Sequence[KernelInfo],
        stats: CompileStats,
        *,
        executable: Executable,
        params: Mapping[str, np.ndarray],
        program: ProgramIR | None = None,
        module_text: str = "",
        threads: int | None = None,
    ) -> None:
        super().__init__(placement, signature, kernels, stats)
        self.executable, self.params, self.threads = executable, params, threads
        self.module_text = module_text
        self._start()
        self._program = program

    def _start(self) -> None:
        """Set the state that copies and pickles do not share."""
        self._known = KnownInputs(self.signature)
        self._plain = self.signature.gives_plain_arrays
        self._program: ProgramIR | None = None
        self._loaded: Any = None
        self._direct: DirectCalls | None = None
        self._quick = None
        self._lock = forks.lock(waits=True)  # for loading; the runtime has its own locks
        self._reading = forks.lock()

    @property
    @interrupts.held
    def program(self) -> ProgramIR:
        """The program after the passes; of a file's model, without the weights' values."""
        with interrupts.waiting(self._reading):
            if self._program is None and self.after_passes is not None:
                self._program = self.after_passes()
            # the bindings: a run needs none
            from mgx_mlir import dialects
            from mgx_mlir.compiler.device_plan import device_plan
            from mgx_mlir.core import operand_segments
            from mgx_mlir.core.context import new_context
            from mgx_mlir.programs.program_ir import ProgramIR

            if self._program is None:
                dialects.load()  # a warm process has imported no operator
                ctx = new_context()
                module = operand_segments.parse_module(self.module_text, ctx)
                self._program = ProgramIR(ctx, module)
            found = self._program
            if self.target == "gpu" and found.plan is None:
                found.plan = device_plan(found, self.signature, self.executable, self.params)
        return found

    @property
    @interrupts.held
    def text(self) -> str:
        """The program after the passes, as MLIR."""
        if not self.module_text:
            # the bindings: a run needs none
            from mgx_mlir.core.operand_segments import asm

            with self.program.ctx:
                self.module_text = asm(self.program.module.operation, enable_debug_info=True)
        return self.module_text

    @property
    def archs(self) -> tuple[str, ...]:
        """Return the architectures of the code: this program's, then those of `alternatives`."""
        return tuple(p.executable.arch for p in (self, *self.alternatives))

    def for_arch(self, arch: str) -> IreeProgram | None:
        """Return this program or the alternative whose code is for an architecture, else None."""
        found = (p for p in (self, *self.alternatives) if p.executable.arch == arch)
        return next(found, None)

    def memory(self) -> DeviceMemory:
        if self.target != "gpu":
            return super().memory()
        # start-up: compiling needs no runtime
        from mgx_mlir.runtime.gpu_memory import memory

        return memory(self.load().device)

    def load(self) -> LoadedModule:
        """Load the module on its device, once, and return it.

        Errors: TargetError where the device is missing, or no code is for its architecture.
        """
        return self._module()

    @interrupts.held
    def _load(self) -> LoadedModule:
        with interrupts.waiting(self._lock):
            if self._loaded is not None and self._loaded.device.is_lost:
                # a forked child must not free it: the parent's threads use it
                forks.keep(self._loaded)
                self._loaded = None
            if self._closed:
                raise UsageError("the program is closed")
            if self._loaded is None:
                # start-up: compiling needs no runtime
                from mgx_mlir.runtime import kept_blocks
                from mgx_mlir.runtime.iree_runtime import LoadedModule

                start = time.perf_counter()
                gpu = self.target == "gpu"
                kind = self.driver if gpu else None
                library = self._library() if gpu else None
                chosen = self._of_device(library) if gpu else self
                make: Any = recording(self, library) if gpu else None
                own: dict[str, Any] = {} if make else {"library": library}
                self._loaded = (make or LoadedModule)(
                    chosen.executable.vmfb,
                    chosen.params,
                    inputs=list(chosen.signature.inputs),
                    outputs=list(chosen.signature.outputs),
                    device=kind,
                    threads=None if gpu else self.thread_count,
                    variants=chosen.signature.variants,
                    in_place=chosen.signature.in_place,
                    device_id=self.device_id,
                    input_alignment=chosen.executable.input_alignment,
                    # otherwise each context would keep the results of loading
                    lanes=1 if chosen.executable.launches("initializer") else None,
                    **own,
                )
                if self._loaded.device.kind == "local-task":
                    kept_blocks.keep(chosen.executable.plan.get("transient", 0))
                if self._loaded.device.is_local and not self._is_static:
                    kept_blocks.keep(kept_blocks.OPEN)
                self.stats.load_s = time.perf_counter() - start
            return self._loaded

    @property
    def thread_count(self) -> int:
        """The CPU threads of a run: the `threads` option, else all, or one for a small program."""
        if self.threads is not None:
            return self.threads
        if not self._is_static:
            return available_cpus()
        ports = (*self.signature.inputs, *self.signature.outputs)
        size = sum(math.prod(p.dims) * dtypes.from_name(p.dtype).size for p in ports)
        size += sum(a.nbytes for a in self.params.values())
        size += self.executable.plan.get("transient", 0)
        return 1 if size <= _SMALL else available_cpus()

    @property
    def driver(self) -> str:
        """The driver of the GPU that the code is for: hip or cuda.

        For code of both vendors it is this machine's.
        """
        kinds = {driver_of(arch) for arch in self.archs}
        if self.placement.emulate or len(kinds) == 1:
            return "hip" if self.placement.emulate else kinds.pop()
        # start-up: few programs need it
        from mgx_mlir.targets.devices import gpu_kind

        return gpu_kind()

    def _library(self) -> str | None:
        """Return the HIP library to run on; None: the system's."""
        if not self.placement.emulate:
            return None
        # start-up: few programs need it
        from mgx_mlir.targets import emulator

        return str(emulator.activate())

    def _of_device(self, library: str | None) -> IreeProgram:
        """Return the program whose code is for the device."""

        device = open_gpu(self.driver, self.device_id, library)
        arch = device_arch(device)
        name = best_of(self.archs, arch) if arch else self.executable.arch
        found = None if name is None else self.for_arch(name)
        if found is None:
            raise TargetError(
                f"the code is for {', '.join(self.archs)}, device {self.device_id} is {arch}",
                notes=[f"compile for {arch}, or for several: arch='{self.archs[0]},{arch}'"],
            )
        return found

    @interrupts.held
    def close(self) -> None:
        """Free the code, the weights and the loaded module. Results stay valid."""
        super().close()
        with interrupts.waiting(self._lock):
            if self._loaded is not None:
                self._loaded.close()
            self._closed, self._loaded, self._direct, self._quick = True, None, None, None
            self.params, self.without_names = {}, None
            self.executable = replace(self.executable, vmfb=b"")
        for each in self.alternatives:
            each.close()

    @interrupts.held
    def __getstate__(self) -> dict[str, Any]:
        """Return the state to pickle: without the loaded module and the source program."""
        state = dict(self.__dict__)
        own = ("_loaded", "_direct", "_quick", "_lock", "_reading", "_program", "after_passes",
               "_known", "_limited")  # fmt: skip
        for name in (*own, "_plain"):
            state.pop(name, None)
        return {**state, "without_names": None, "module_text": self.text}

    @interrupts.held
    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._start()

    @interrupts.held
    def __deepcopy__(self, memo: dict[int, Any]) -> IreeProgram:
        """Return a copy that loads its own module; the two share the weights, which are never
        written.
        """
        made = type(self).__new__(type(self))
        made.__setstate__(self.__getstate__())
        return made

    def execute(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Run the compiled code on arrays in the order of the inputs."""
        if self.limits is not None:
            return self._execute_limited(arrays, self.limits)
        return self._module().run(arrays)

    def execute_in_place(
        self, arrays: Sequence[np.ndarray], caches: Mapping[int, np.ndarray]
    ) -> list[np.ndarray]:
        """Run the function that updates caches in place; on a GPU, main on copies of the arrays."""
        if self.limits is not None:
            return self._execute_limited(arrays, self.limits)
        module = self._module()
        return module.run(arrays) if self.target == "gpu" else module.run_in_place(arrays, caches)

    def run_known(self, given: dict[str, Any]) -> list[np.ndarray] | None:
        """Run on inputs of the same types and shapes as earlier ones; None where they need
        checks.
        """
        if self.limits is not None:
            return super().run_known(given)
        direct = self._direct
        if direct is not None:
            found = direct.call(given)
            if found is not None:
                return found
        known = self._known.arrays(given)
        if known is None:
            return None
        module = self._module()
        found = module.run(*known)
        if can_be_direct(module):
            if direct is None or direct.module is not module:
                check = self.signature.value_check()
                names = [p.name for p in self.signature.inputs]
                direct = self._direct = DirectCalls(module, names, check)
                if self._plain and not self.signature.takes_texts:
                    self._quick = direct.call
            direct.add(known[1])
        return found

    def least_bytes(self, arrays: Sequence[np.ndarray]) -> int:
        """Return the bytes of inputs, and of results and intermediate values where known."""
        found = super().least_bytes(arrays) + self.executable.plan.get("transient", 0)
        ports = [p for p in self.signature.outputs if p.is_static]
        return found + sum(math.prod(p.dims) * dtypes.from_name(p.dtype).size for p in ports)

    def _module(self) -> LoadedModule:
        """Return the loaded module; a forked child loads its own where it must."""
        loaded = self._loaded
        if loaded is None or (loaded.may_be_lost and loaded.device.is_lost):
            return self._load()
        return loaded

    def function_for(self, arrays: Sequence[np.ndarray]) -> str:
        """Return the function that a run on these inputs calls: main, or a variant's."""
        return self._module().function_for(arrays)
