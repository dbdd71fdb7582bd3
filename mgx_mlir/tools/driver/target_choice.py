"""The target that the options of a command line ask for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mgx_mlir.compiler.architectures import of_device
from mgx_mlir.compiler.compiled import CompiledProgram
from mgx_mlir.compiler.iree_program import IreeProgram
from mgx_mlir.core.errors import TargetError, UsageError
from mgx_mlir.hardware.machine import available_cpus
from mgx_mlir.targets import default_target, emulator, get_target
from mgx_mlir.targets.devices import gpu_devices, why_no_device
from mgx_mlir.tools.driver import dims
from mgx_mlir.tools.driver.arguments import Arguments
from mgx_mlir.tools.driver.model import Model
from mgx_mlir.tools.driver.progress import say

EMULATED = "Emulated: the times are of this machine's CPU, they say nothing of a GPU"
# options that are for some targets alone
_TARGETS = {
    "--threads": ("cpu",),
    **dict.fromkeys(
        ("--arch", "--kernel-boundaries", "--timeout", "--no-cache", "--disable-fast-math",
         "--remove-qdq-pairs", "--exhaustive-tune", "--sizes"),
        ("cpu", "gpu"),
    ),
    "--enable-offload-copy": ("gpu",),
    "--emulate": ("gpu",),
    "--graph": ("gpu",),
}  # fmt: skip


@dataclass(frozen=True)
class TargetChoice:
    """The target of a command line: its name, architectures (None: the target's own), options."""

    target: str
    archs: tuple[str | None, ...]
    threads: int | None
    fast_math: bool
    remove_qdq_pairs: bool
    boundaries: bool
    cache: bool
    timeout: float | None
    tune: bool
    emulate: bool = False
    graph: bool | None = None
    sizes: Sequence[int] | Mapping[str, Sequence[int]] = ()
    assumed: bool = False  # no option, device or code at hand states the architecture

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
            "remove_qdq_pairs": self.remove_qdq_pairs,
            "kernel_boundaries": self.boundaries,
            "cache": self.cache,
            "timeout": self.timeout,
            "exhaustive_tune": self.tune,
            "emulate": self.emulate,
            "graph": self.graph,
            "sizes": self.sizes,
        }

    def named(self, *, by_default: bool) -> str:
        """Return the line that names the target; `by_default`: no option asked for it."""
        parts = [f"Target: {self.target}"]
        by = " by default" if self.assumed else ""
        parts += [f"{a}{by}" for a in self.archs if a is not None]
        if self.target == "cpu":
            count = self.threads or available_cpus()
            parts.append("1 thread" if count == 1 else f"{count} threads")
        if self.emulate:
            parts.append("emulated")
        if self.graph:
            parts.append("one graph a call")
        if by_default:
            found = "a GPU is present" if self.target == "gpu" else "no GPU is found"
            parts.append(f"by default: {found}")
        return ", ".join(parts)


def choose_target(
    args: Arguments,
    *,
    runs: bool,
    counts: bool = False,
    held: CompiledProgram | None = None,
    model: Model | None = None,
) -> TargetChoice:
    """Choose the target that the options mean, and name it on stderr.

    `runs`: the command runs the program, so that one architecture and a device are needed.
    `counts`: it does not, but may count what an emulated call executes. `held`: the compiled
    program at hand. `model`: what a saved file holds code for is the architecture where none is
    stated.

    Errors: UsageError for options that do not go together, TargetError without the device.
    """
    flag = args.only_one("--gpu", "--cpu", "--ref")
    target = flag.removeprefix("--") if flag else held.target if held else default_target()
    if held is not None and target != held.target:
        raise UsageError(f"the compiled model is for {held.target}, the target is {target}")
    _check_options(args, target, can_emulate=runs or counts, runs=runs)
    choice = _choice_of(args, target)
    if target == "gpu":
        choice = _with_archs(choice, held, model)
    _check_one_arch(choice, runs=runs)
    say(choice.named(by_default=flag is None and held is None))
    if choice.emulate:
        _check_emulation(choice)
    elif runs and target == "gpu":
        _check_device()
    return choice


def code_for(held: CompiledProgram | None, choice: TargetChoice) -> CompiledProgram | None:
    """Return the compiled program at hand with its code for the chosen architecture."""
    if not isinstance(held, IreeProgram) or held.target != "gpu":
        return held
    found = held.for_arch(str(choice.arch))
    if found is None:
        raise UsageError(
            f"the compiled model is for {', '.join(held.archs)}, the target is {choice.arch}"
        )
    return found


def _check_options(args: Arguments, target: str, *, can_emulate: bool, runs: bool) -> None:
    """Raise UsageError for an option that is for other targets, or for other commands."""
    for option, targets in _TARGETS.items():
        if option in args and target not in targets:
            names = " and ".join(f"--{t}" for t in targets)
            raise UsageError(f"option '{option}' is for {names}, the target is {target}")
    if "--emulate" in args and not can_emulate:
        raise UsageError("option '--emulate' is for commands that run the program")
    if "--graph" in args and not runs:
        raise UsageError("option '--graph' is for commands that run the program")


def _choice_of(args: Arguments, target: str) -> TargetChoice:
    archs = tuple(dict.fromkeys(args.get("--arch", [])))
    return TargetChoice(
        target,
        archs or (None,),
        args.get("--threads"),
        "--disable-fast-math" not in args,
        "--remove-qdq-pairs" in args,
        args.get("--kernel-boundaries", "on") == "on",
        "--no-cache" not in args,
        args.get("--timeout"),
        "--exhaustive-tune" in args,
        "--emulate" in args,
        "--graph" in args or None,
        dims.sizes("--sizes", args.get("--sizes")) if "--sizes" in args else (),
    )


def _with_archs(
    choice: TargetChoice, held: CompiledProgram | None, model: Model | None
) -> TargetChoice:
    """Name each architecture as the table has it; none stated: that of the code at hand, else here.

    Of several in the code it is the one that fits the device. Errors: TargetError for unknown ones.
    """
    archs = choice.archs
    if archs == (None,):
        code = held or (model and model.code(choice.emulate))
        if isinstance(code, IreeProgram) and code.target == "gpu":
            archs = (code.executable.arch,)
        else:
            archs = (of_device(0, emulate=choice.emulate),)
            choice = replace(choice, assumed=choice.emulate or not gpu_devices())
    names = [get_target("gpu", architecture=a).arch for a in archs]
    return replace(choice, archs=tuple(dict.fromkeys(names)))


def _check_one_arch(choice: TargetChoice, *, runs: bool) -> None:
    """Raise UsageError for several architectures where the command needs one."""
    purpose = "run on" if runs else "tune for" if choice.tune else None
    if purpose and len(choice.archs) > 1:
        archs = ", ".join(map(str, choice.archs))
        raise UsageError(f"expected one architecture to {purpose}, got {archs}")


def _check_emulation(choice: TargetChoice) -> None:
    """Raise TargetError where the emulator does not exist, or not for the architecture."""
    for arch in choice.archs:
        emulator.check_arch(str(arch))
    emulator.activate()


def _check_device() -> None:
    """Raise TargetError without a GPU."""
    if not gpu_devices():
        raise TargetError(
            "no GPU is found, the program cannot run on gpu",
            notes=[
                *filter(None, [why_no_device()]),
                "mgx-driver compile --gpu needs no device",
                "with --emulate it runs on the CPU, without a device",
            ],
        )
