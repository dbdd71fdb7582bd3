"""Modules and exported programs compiled ahead of time, called with tensors."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.export.graph_signature import (
    ConstantArgument,
    InputKind,
    OutputKind,
    SymBoolArgument,
    SymFloatArgument,
    SymIntArgument,
)
from torch.utils import _pytree as pytree

from mgx_mlir.api.files import load as load_file
from mgx_mlir.api.files import save as save_file
from mgx_mlir.compiler.compiled import CompiledProgram
from mgx_mlir.core.errors import FileError, RunError, UnsupportedModel, UsageError
from mgx_mlir.core.files import atomic
from mgx_mlir.frontends.objects import (
    first_line,
    program_of_export,
    require_exporter,
    stateless_onnx,
)
from mgx_mlir.frontends.torch_training import TRAINING
from mgx_mlir.integrations.torch.build import compiled
from mgx_mlir.integrations.torch.calls import runner
from mgx_mlir.integrations.torch.check import (
    computes_in_short_floats,
    limits_of,
    refuse_difference,
)
from mgx_mlir.integrations.torch.memory import array_of, tensor_of
from mgx_mlir.integrations.torch.options import TorchOptions

# results that are Python numbers in eager
_NUMBERS = (SymBoolArgument, SymFloatArgument, SymIntArgument)


@dataclass(frozen=True)
class Nesting:
    """The nesting of arguments and results, and the leaves that are not tensors."""

    takes: pytree.TreeSpec | None = None  # tree of (args, kwargs); None: tensors in order
    gives: pytree.TreeSpec | None = None  # tree of the result; None: tensors in order
    # arguments that are not tensors: index among the leaves -> constant
    given: Mapping[int, Any] = field(default_factory=dict)
    # results that are not tensors: index among the leaves -> constant
    returned: Mapping[int, Any] = field(default_factory=dict)
    numbers: frozenset[int] = frozenset()  # indices of result leaves that are computed numbers

    @staticmethod
    def of(made: torch.export.ExportedProgram) -> Nesting:
        """Return the nesting of an exported program."""
        signature = made.graph_signature
        given = [s.arg for s in signature.input_specs if s.kind is InputKind.USER_INPUT]
        found = [s.arg for s in signature.output_specs if s.kind is OutputKind.USER_OUTPUT]
        return Nesting(
            made.call_spec.in_spec,
            made.call_spec.out_spec,
            {i: a.value for i, a in enumerate(given) if isinstance(a, ConstantArgument)},
            {i: a.value for i, a in enumerate(found) if isinstance(a, ConstantArgument)},
            frozenset(i for i, a in enumerate(found) if isinstance(a, _NUMBERS)),
        )

    def text(self) -> str | None:
        """Return the nesting as JSON; None if it has a class without a text form."""
        if self.takes is None or self.gives is None:
            return None
        try:
            trees = [pytree.treespec_dumps(s) for s in (self.takes, self.gives)]
            rest = [sorted(self.given.items()), sorted(self.returned.items()), sorted(self.numbers)]
            return json.dumps([*trees, *rest])
        except Exception:  # a class without a registered name for files, or a constant of one
            return None

    @staticmethod
    def parsed(text: str) -> Nesting:
        """Parse what `text` wrote. Other texts raise exceptions of many kinds."""
        takes, gives, given, returned, numbers = json.loads(text)
        return Nesting(
            pytree.treespec_loads(takes), pytree.treespec_loads(gives),
            {int(i): v for i, v in given}, {int(i): v for i, v in returned},
            frozenset(map(int, numbers)),
        )  # fmt: skip

    def tensors(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """Return the tensors of a call, in order. RunError for a call of another form."""
        if self.takes is None:
            if kwargs:
                raise RunError("expected tensors in the order of the program's inputs")
            return list(args)
        wanted = _keywords(self.takes)
        if set(wanted) == kwargs.keys():
            kwargs = {k: kwargs[k] for k in wanted}
        leaves, spec = pytree.tree_flatten((args, kwargs))
        if spec != self.takes:
            raise RunError(
                f"the arguments are {_short(spec)}, expected {_short(self.takes)}",
                notes=["pass arguments of the same form as the example_inputs"],
            )
        for i, value in self.given.items():
            if leaves[i] != value:
                raise RunError(
                    f"argument {i} is {leaves[i]!r}, and the module was compiled for {value!r}"
                )
        return [x for i, x in enumerate(leaves) if i not in self.given]

    def result(self, found: Sequence[torch.Tensor]) -> Any:
        """Return results as the module nests them."""
        if self.gives is None:
            return tuple(found)
        rest, leaves = iter(found), list[Any]()
        for i in range(self.gives.num_leaves):
            value = self.returned[i] if i in self.returned else next(rest)
            leaves.append(value.item() if i in self.numbers else value)
        return pytree.tree_unflatten(leaves, self.gives)


class CompiledModule:
    """A module that was compiled ahead of time, called like the module, on tensors.

    `program` is what runs: `program.run` takes numpy arrays by its input names. `save` writes it to
    a .mxr, which mgx_mlir.load reads without torch, and mgx_mlir.torch.load as a module again.
    """

    def __init__(self, program: CompiledProgram, nesting: Nesting) -> None:
        self.program, self._nesting = program, nesting
        self._run = runner(program) if program.target == "gpu" else self._on_host

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run on the module's arguments. Errors: RunError for arguments of another form."""
        given = self._nesting.tensors(args, kwargs)
        expected = len(self.program.signature.inputs)
        if len(given) != expected:
            raise RunError(f"expected {expected} tensors, got {len(given)}")
        return self._nesting.result(self._run(given))

    forward = __call__

    def _on_host(self, given: Sequence[Any]) -> list[torch.Tensor]:
        made = self.program
        arrays = {
            p.name: array_of(t) if isinstance(t, torch.Tensor) else t
            for p, t in zip(made.signature.inputs, given, strict=True)
        }
        found = made.run_known(arrays)
        if found is None:
            found = made.execute(made.check_inputs(arrays))
        return [tensor_of(a) for a in made.signature.stated(found)]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the program to a .mxr, and beside it the nesting of arguments and results.

        Raises FileError.
        """
        save_file(self.program, path)
        text = self._nesting.text()
        if text is None:
            return
        try:
            with atomic(_beside(path)) as f:
                f.write(text.encode())
        except OSError as e:
            raise FileError(f"cannot write '{_beside(path)}': {e.strerror}") from None

    def __reduce__(self) -> tuple[Any, ...]:
        return CompiledModule, (self.program, self._nesting)


def compile(
    module: Any,
    example_inputs: Sequence[Any] | torch.Tensor | None = None,
    example_kwargs: Mapping[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    target: str | None = None,
    arch: str | None = None,
    threads: int | None = None,
    fp16: bool = False,
    bf16: bool = False,
    exhaustive_tune: bool = False,
    check: bool = False,
    **more: Any,
) -> CompiledModule:
    """Compile a torch module, or an ExportedProgram, ahead of time.

    example_inputs: its positional arguments, a tuple; example_kwargs: its keyword arguments.
    dynamic_shapes: as for torch.export.export. check: run on the example inputs, and compare with
    eager. The other options are those of mgx_mlir.compile and of the backend. Raises UsageError
    without example inputs and for modules in training; UnsupportedModel; RunError if the check
    finds a difference.
    """
    options = TorchOptions(target, arch, threads, fp16, bf16, exhaustive_tune, check=check)
    if not isinstance(module, torch.export.ExportedProgram):
        module = _exported(module, example_inputs, example_kwargs, dynamic_shapes)
    made = compiled(program_of_export(stateless_onnx(module)), options, target or "cpu", **more)
    result = CompiledModule(made, Nesting.of(module))
    if options.check:
        _refuse_difference(result, module, fp16 or bf16)
    return result


def _refuse_difference(
    made: CompiledModule, module: torch.export.ExportedProgram, low: bool
) -> None:
    """Raise RunError if results for the example inputs differ from eager."""
    args, kwargs = module.example_inputs or ((), {})
    eager = module.module()
    low = low or computes_in_short_floats(module.graph)
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        wanted, again, found = (
            pytree.tree_leaves(f(*args, **kwargs)) for f in (eager, eager, made)
        )
    names = [f"result {i}" for i in range(len(wanted))]
    refuse_difference(names, found, wanted, again, limits_of(low), strides=False)


def _exported(module: Any, args: Any, kwargs: Any, shapes: Any) -> torch.export.ExportedProgram:
    if not isinstance(module, torch.nn.Module):
        raise UsageError(f"expected a torch module, got {type(module).__name__}")
    if args is None and not kwargs:
        raise UsageError(
            "expected example_inputs: a module does not say what it takes",
            notes=["mgx_mlir.torch.compile(module, (x,)) compiles it for inputs like x"],
        )
    learns = module.training and any(True for _ in module.parameters())
    if learns and not _is_exported(module):
        raise UsageError("the module is in training", notes=[TRAINING])
    require_exporter()
    args = () if args is None else (args,) if isinstance(args, torch.Tensor) else tuple(args)
    try:
        with torch.no_grad():
            return torch.export.export(
                module, args, dict(kwargs or {}), dynamic_shapes=shapes, strict=False
            )
    except Exception as e:  # torch raises exceptions of many kinds
        raise UnsupportedModel(f"torch.export cannot export the module: {first_line(e)}") from e


def _is_exported(module: torch.nn.Module) -> bool:
    """Return whether a module is an exported graph, whose operators say if they train.

    The flag `training` of such a module is set, and cannot be taken back.
    """
    graph = isinstance(module, torch.fx.GraphModule)
    return graph and any("val" in node.meta for node in module.graph.nodes)


def load(path: str | os.PathLike[str], **how: Any) -> CompiledModule:
    """Read what CompiledModule.save wrote; the keywords are those of mgx_mlir.load.

    Without the file of nesting beside it, the module takes tensors in order and returns a tuple.
    """
    made = load_file(path, **how)
    if not isinstance(made, CompiledProgram):
        raise FileError("expected a program that compile() made", location=os.fspath(path))
    try:
        with open(_beside(path), encoding="utf-8") as f:
            text = f.read()
    except FileNotFoundError:
        return CompiledModule(made, Nesting())
    except (OSError, UnicodeDecodeError) as e:
        raise FileError(f"cannot be read: {e}", location=_beside(path)) from None
    try:
        return CompiledModule(made, Nesting.parsed(text))
    except Exception as e:  # exceptions of many kinds for a damaged text
        raise FileError(f"is damaged: {type(e).__name__}", location=_beside(path)) from None


def _beside(path: str | os.PathLike[str]) -> str:
    return f"{os.fspath(path)}.nesting.json"


def _keywords(spec: pytree.TreeSpec | None) -> list[str]:
    """Return the names of the keyword arguments in the nesting of (args, kwargs)."""
    try:
        return list(_children(spec)[1].context or ())
    except (AttributeError, IndexError, TypeError):
        return []


def _children(spec: Any) -> list[Any]:
    """Return the nested specs; releases of torch differ in the function for that."""
    found = spec.children if hasattr(spec, "children") else spec.children_specs
    return list(found() if callable(found) else found)


def _short(spec: pytree.TreeSpec) -> str:
    text = " ".join(str(spec).split())
    return text if len(text) < 200 else text[:197] + "..."
