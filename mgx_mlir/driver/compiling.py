"""Compiling as the options say: the target, progress, and what the compile cost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mgx_mlir.core.errors import FileError, TargetError, UsageError
from mgx_mlir.core.program_ir import ProgramIR
from mgx_mlir.core.signature import Signature, Variant
from mgx_mlir.driver.arguments import Arguments
from mgx_mlir.driver.emit import CODE, emit, form_of
from mgx_mlir.driver.model import Model
from mgx_mlir.driver.progress import say, working
from mgx_mlir.driver.reading import announce


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
        return self.archs[0]

    def options(self, arch: str | None = None) -> dict[str, Any]:
        """Keywords of compile()."""
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


# options of what ref does not do
_COMPILED = (
    "--arch", "--kernel-boundaries", "--timeout", "--no-cache", "--disable-fast-math",
    "--exhaustive-tune",
)  # fmt: skip


def choose_target(args: Arguments, *, runs: bool, held: str | None = None) -> Choice:
    """The target that the options mean, named on stderr.

    `runs`: the command runs the program, so that one architecture and a device are needed.
    `held`: the target that the code at hand is for.
    UsageError for options that do not go together, TargetError without the device.
    """
    from mgx_mlir.targets import default_target

    flag = args.only_one("--gpu", "--cpu", "--ref")
    target = flag.removeprefix("--") if flag else held or default_target()
    if held is not None and target != held:
        raise UsageError(f"the compiled model is for {held}, the target is {target}")
    archs = list(dict.fromkeys(args.get("--arch", [])))
    choice = Choice(
        target,
        tuple(archs) or (None,),
        args.get("--threads"),
        "--disable-fast-math" not in args,
        args.get("--kernel-boundaries", "on") == "on",
        "--no-cache" not in args,
        args.get("--timeout"),
        "--exhaustive-tune" in args,
        "--emulate" in args,
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
    if choice.emulate and not runs:
        raise UsageError("option '--emulate' is for commands that run the program")
    if target == "gpu":
        choice = _with_archs(choice)
    if runs and len(choice.archs) > 1:
        raise UsageError(f"expected one architecture to run on, got {', '.join(archs)}")
    say(_target_line(choice, by_default=flag is None and held is None))
    if choice.tune and len(choice.archs) > 1:
        raise UsageError(f"expected one architecture to tune for, got {', '.join(archs)}")
    if (runs or choice.tune) and target == "gpu" and not choice.emulate:
        _check_device()
    return choice


def _with_archs(choice: Choice) -> Choice:
    """The choice with gfx names in place of product names. TargetError for unknown ones."""
    from dataclasses import replace

    from mgx_mlir.targets import get_target

    found = [get_target("gpu", architecture=a).arch for a in choice.archs]
    return replace(choice, archs=tuple(dict.fromkeys(found)))


def _target_line(choice: Choice, *, by_default: bool) -> str:
    from mgx_mlir.core.machine import available_cpus

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


def _check_device() -> None:
    from mgx_mlir.targets.devices import hip_devices

    if not hip_devices():
        raise TargetError(
            "no HIP device is found, the program cannot run on gpu",
            notes=["mgx-driver compile --gpu needs no device", "--emulate needs none to run it"],
        )


def compile_model(
    args: Arguments, model: Model, choice: Choice, arch: str | None = None, *, quiet: bool = False
) -> Any:
    """The compiled program of a model; what it took goes to stderr."""
    from mgx_mlir.api.compile import compile as compile_program

    if not quiet:
        say("Compiling ...")
        announce(model)
    with working(f"Compiling {model.name}"):
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
    "--arch", "--disable-fast-math", "--kernel-boundaries", "--optimize", "--apply-pass", "--fp16",
    "--bf16", "--trim", "--replace-literals", "--exhaustive-tune",
)  # fmt: skip


def _tuning_inputs(model: Model) -> Callable[[Signature], list[np.ndarray]]:
    """What calls are timed on: what `run` would run on."""

    def made(signature: Signature) -> list[np.ndarray]:
        from mgx_mlir.debug.inputs import draws, make_inputs

        uses = draws(model.program)
        found = make_inputs(signature, uses, dims=model.input_dims, batch=model.batch)
        return list(found.values())

    return made


def _held(args: Arguments, model: Model, choice: Choice) -> Any:
    """The compiled program that a saved file holds, where it is for the chosen target."""
    if not model.is_saved or model.is_stripped:
        return None
    try:
        saved = model.saved(compiled=True)
    except FileError as e:
        notes = ["--strip-context leaves the code out and compiles again"]
        raise FileError(e.message, location=e.location or model.path, notes=notes) from None
    if not saved.is_compiled():
        return None
    held = saved.compiled
    given = [f for f in _CHANGES_CODE if f in args]
    wanted = f"{choice.target} {choice.arch}" if choice.target == "gpu" else choice.target
    has = f"gpu {held.executable.arch}" if held.target == "gpu" else held.target
    if has != wanted or given:
        why = given[0] if given else f"the target is {wanted}"
        say(f"The file's code for {held.target} is not used: {why}")
        return None
    held.threads = choice.threads
    say(f"Compiled: the file holds code for {held.target}")
    return held


def report_compile(compiled: Any) -> None:
    """What a compile took, and what it had to give up, on stderr."""
    stats = compiled.stats
    if stats.get("cached"):
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
    for line in stats.get("tuning", ()):
        say(line)
    if compiled.signature.variants:
        say(f"Variants: {'; '.join(map(_variant_text(compiled), compiled.signature.variants))}")
    executable = getattr(compiled, "executable", None)
    if executable is not None:
        for text in executable.fallbacks:
            say(f"warning: compiled with the flag set '{executable.flag_set}' because {text}")


def _variant_text(compiled: Any) -> Callable[[Variant], str]:
    """What a variant is for: the sizes of the inputs' dims, by symbol where they have one."""
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
    emit(args, program, compiled=compiled, options={"target": choice.target, **options})


def report_gpu(compiled: Any) -> None:
    """The registers, spills and launches of every kernel of a gpu program, on stderr."""
    from mgx_mlir.targets.report import gpu_report

    executable = compiled.executable
    say(gpu_report(executable.vmfb, executable.dispatches).text())
