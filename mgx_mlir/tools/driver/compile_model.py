"""Compiling as the options say: the target, progress, and what the compile cost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mgx_mlir.core.errors import TargetError, UsageError
from mgx_mlir.programs.program_ir import ProgramIR
from mgx_mlir.programs.signature import Signature, Variant
from mgx_mlir.tools.driver.arguments import Arguments
from mgx_mlir.tools.driver.deadline import within
from mgx_mlir.tools.driver.emit import CODE, emit, form_of
from mgx_mlir.tools.driver.model import Model
from mgx_mlir.tools.driver.progress import say, working
from mgx_mlir.tools.driver.read_model import announce


@dataclass(frozen=True)
class Choice:
    """The target of a command line: its name, architectures (None: the target's own), options."""

    target: str
    archs: tuple[str | None, ...]
    threads: int | None
    fast_math: bool
    boundaries: bool
    cache: bool
    timeout: float | None
    tune: bool
    emulate: bool = False

    @property
    def arch(self) -> str | None:
        """The first architecture, None where none is stated."""
        return self.archs[0]

    def options(self, arch: str | None = None) -> dict[str, Any]:
        """Return the keywords of compile()."""
        return {
            "arch": arch if arch is not None else self.arch,
            "threads": self.threads,
            "fast_math": self.fast_math,
            "kernel_boundaries": self.boundaries,
            "cache": self.cache,
            "timeout": self.timeout,
            "exhaustive_tune": self.tune,
            "emulate": self.emulate,
        }


EMULATED = "Emulated: the times are of this machine's processor, they say nothing of a GPU"
# options of what ref does not do
_COMPILED = (
    "--arch", "--kernel-boundaries", "--timeout", "--no-cache", "--disable-fast-math",
    "--exhaustive-tune",
)  # fmt: skip


def choose_target(
    args: Arguments,
    *,
    runs: bool,
    counts: bool = False,
    held: Any = None,
    model: Model | None = None,
) -> Choice:
    """Choose the target that the options mean, and name it on stderr.

    `runs`: the command runs the program, so that one architecture and a device are needed.
    `counts`: it does not, but may count what an emulated call executes. `held`: the compiled
    program at hand. `model`: what a saved file holds code for is the architecture where none is
    stated.

    Errors: UsageError for options that do not go together, TargetError without the device.
    """
    from mgx_mlir.targets import default_target

    flag = args.only_one("--gpu", "--cpu", "--ref")
    target = flag.removeprefix("--") if flag else held.target if held else default_target()
    if held is not None and target != held.target:
        raise UsageError(f"the compiled model is for {held.target}, the target is {target}")
    archs = list(dict.fromkeys(args.get("--arch", [])))
    emulate = "--emulate" in args
    if target == "gpu" and not archs:
        archs = _default_archs(held or (model and model.code(emulate)), emulate)
    choice = Choice(
        target,
        tuple(archs) or (None,),
        args.get("--threads"),
        "--disable-fast-math" not in args,
        args.get("--kernel-boundaries", "on") == "on",
        "--no-cache" not in args,
        args.get("--timeout"),
        "--exhaustive-tune" in args,
        emulate,
    )
    if target != "cpu" and choice.threads is not None:
        raise UsageError(f"option '--threads' is for --cpu, the target is {target}")
    if target == "ref":
        for option in _COMPILED:
            if option in args:
                raise UsageError(f"option '{option}' is for --cpu and --gpu, the target is ref")
    if target != "gpu" and "--enable-offload-copy" in args:
        raise UsageError(
            f"option '--enable-offload-copy' is for --gpu: {target} computes in host memory"
        )
    if target != "gpu" and choice.emulate:
        raise UsageError(f"option '--emulate' is for --gpu, the target is {target}")
    if choice.emulate and not runs and not counts:
        raise UsageError("option '--emulate' is for commands that run the program")
    if target == "gpu":
        choice = _with_archs(choice)
    if runs and len(choice.archs) > 1:
        raise UsageError(f"expected one architecture to run on, got {', '.join(archs)}")
    say(_target_line(choice, by_default=flag is None and held is None))
    if choice.tune and len(choice.archs) > 1:
        raise UsageError(f"expected one architecture to tune for, got {', '.join(archs)}")
    if choice.emulate:
        _check_emulation(choice)
    elif runs and target == "gpu":
        _check_device()
    return choice


def held_for(held: Any, choice: Choice) -> Any:
    """Return the compiled program at hand with its code for the chosen architecture."""
    if held is None or held.target != "gpu":
        return held
    found = held.for_arch(choice.arch)
    if found is None:
        raise UsageError(
            f"the compiled model is for {', '.join(held.archs)}, the target is {choice.arch}"
        )
    return found


def _default_archs(code: Any, emulate: bool) -> list[str]:
    """Return the architecture where none is stated: that of the code at hand, else the device's.

    Of several in the code it is the one that fits the device. Empty where neither is known.
    """
    from mgx_mlir.compiler.architectures import of_device

    if code is not None and code.target == "gpu":
        return [code.executable.arch]
    found = of_device(0, emulate=emulate)
    return [found] if found else []


def _with_archs(choice: Choice) -> Choice:
    """Replace product names by gfx names. Errors: TargetError for unknown ones."""
    from dataclasses import replace

    from mgx_mlir.targets import get_target

    found = [get_target("gpu", architecture=a).arch for a in choice.archs]
    return replace(choice, archs=tuple(dict.fromkeys(found)))


def _target_line(choice: Choice, *, by_default: bool) -> str:
    from mgx_mlir.hardware.machine import available_cpus

    parts = [f"Target: {choice.target}"]
    parts += [a for a in choice.archs if a is not None]
    if choice.target == "cpu":
        count = choice.threads or available_cpus()
        parts.append("1 thread" if count == 1 else f"{count} threads")
    if choice.emulate:
        parts.append("emulated")
    if by_default:
        found = "a HIP device is present" if choice.target == "gpu" else "no HIP device is found"
        parts.append(f"by default: {found}")
    return ", ".join(parts)


def _check_emulation(choice: Choice) -> None:
    """Raise TargetError where the emulator does not exist, or not for the architecture."""
    from mgx_mlir.targets import emulator

    for arch in choice.archs:
        emulator.check_arch(str(arch))
    emulator.activate()


def _check_device() -> None:
    from mgx_mlir.targets.devices import hip_devices, why_no_device

    if not hip_devices():
        raise TargetError(
            "no HIP device is found, the program cannot run on gpu",
            notes=[
                *filter(None, [why_no_device()]),
                "mgx-driver compile --gpu needs no device",
                "--emulate needs none to run it",
            ],
        )


def compile_model(
    args: Arguments, model: Model, choice: Choice, arch: str | None = None, *, quiet: bool = False
) -> Any:
    """Compile a model, and print on stderr what it took."""
    from mgx_mlir.compiler.compile import compile as compile_program

    if not quiet:
        say("Compiling ...")
        announce(model)
    with working(f"Compiling {model.name}"), within(choice.timeout):
        # code that builds the program needs the weights, which only a fresh compile keeps
        whole = form_of(args, more=(CODE,)) in ("py", "cpp")
        held = None if whole else _held(args, model, choice)
        if held is not None:
            return held
        source = model.program if whole else model.source()
        options = {} if isinstance(source, ProgramIR) else model.options
        inputs = _tuning_inputs(model) if choice.tune else None
        compiled = compile_program(
            source, choice.target, tuning_inputs=inputs, **choice.options(arch), **options
        )
    if not quiet:
        report_compile(compiled)
    return compiled


_CHANGES_CODE = (
    "--disable-fast-math", "--kernel-boundaries", "--optimize", "--apply-pass", "--fp16",
    "--bf16", "--trim", "--replace-literals", "--exhaustive-tune",
)  # fmt: skip


def _tuning_inputs(model: Model) -> Callable[[Signature], list[np.ndarray]]:
    """Return what makes the inputs that calls are timed on: the inputs of `run`."""

    def made(signature: Signature) -> list[np.ndarray]:
        from mgx_mlir.debug.inputs import draws, make_inputs

        uses = draws(model.program)
        found = make_inputs(signature, uses, dims=model.input_dims, batch=model.batch)
        return list(found.values())

    return made


def _held(args: Arguments, model: Model, choice: Choice) -> Any:
    """Return the compiled program of a saved file, if it is for the chosen target."""
    held = model.code(choice.emulate)
    if held is None:
        return None
    given = [f for f in _CHANGES_CODE if f in args]
    if held.target != "gpu" and "--arch" in args:
        given.insert(0, "--arch")
    found = held if held.target == choice.target else None
    if found is not None and held.target == "gpu":
        found = held.for_arch(choice.arch)
    has = ", ".join([held.target, *(held.archs if held.target == "gpu" else ())])
    if found is None or given:
        wanted = ", ".join(filter(None, [choice.target, choice.arch]))
        why = given[0] if given else f"the target is {wanted}"
        say(f"The file's code for {has} is not used: {why}")
        return None
    found.threads = choice.threads
    say(f"Compiled: the file holds code for {has}")
    return found


def report_compile(compiled: Any) -> None:
    """Print on stderr what a compile took, and what it had to give up."""
    stats = compiled.stats.known()
    if compiled.stats.cached:
        say(f"Compiled: found in the cache in {stats['total_s']:.2f} s")
    else:
        stages = [("import", "import_s"), ("passes", "passes_s"), ("lowering", "lowering_s"),
                  ("iree", "iree_s")]  # fmt: skip
        parts = [f"{name} {stats[key]:.2f} s" for name, key in stages if key in stats]
        line = f"Compiled in {stats['total_s']:.2f} s: {', '.join(parts)}"
        memory = [
            f"{name} {stats[key] / 1e6:.0f} MB"
            for name, key in (("here", "peak_rss"), ("in the compiler", "iree_peak_memory"))
            if stats.get(key)
        ]
        say(line + (f"; peak memory {', '.join(memory)}" if memory else ""))
    for line in compiled.stats.tuning:
        say(line)
    if compiled.signature.variants:
        say(f"Variants: {'; '.join(map(_variant_text(compiled), compiled.signature.variants))}")
    executable = getattr(compiled, "executable", None)
    if executable is not None:
        for text in executable.crashes:
            say(f"warning: {text}; run once more, on one thread, it compiled the model")
        for text in executable.fallbacks:
            say(f"warning: compiled with the flag set '{executable.flag_set}' because {text}")


def _variant_text(compiled: Any) -> Callable[[Variant], str]:
    """Return what describes a variant: the sizes of the inputs' dims, by symbol where possible."""
    ports = compiled.signature.inputs

    def text(variant: Variant) -> str:
        sizes = {}
        for i, d, n in variant.sizes:
            symbol = ports[i].ranges[d].symbol
            sizes[symbol or f"{ports[i].name}[{d}]"] = n
        return f"{variant.function} for {', '.join(f'{k} = {n}' for k, n in sizes.items())}"

    return text


def emit_compiled(args: Arguments, model: Model, choice: Choice, compiled: Any) -> None:
    """Write or print a compiled program; a saved one also holds what it was compiled from."""
    saved = form_of(args) in ("json", "msgpack")
    program = model.program if saved else compiled.program
    options = {k: v for k, v in choice.options().items() if k in ("arch", "fast_math")}
    if choice.target != "gpu" and choice.arch is None:
        options.pop("arch")
    emit(args, program, compiled=compiled, options={"target": choice.target, **options})


def report_gpu(compiled: Any) -> None:
    """Print the registers, spills and launches of every kernel of a gpu program on stderr."""
    from mgx_mlir.targets.report import gpu_report

    executable = compiled.executable
    say(gpu_report(executable.vmfb, executable.dispatches).text())
