"""Compiled programs that a Ray cluster shares: compiled once, kept in the object store.

A named actor has the references. Who asks first for a key has the model compiled on its own node;
who asks meanwhile waits for that. Weights are used where they lie in the store: the processes of
a node share them.
"""

# ray is an extra, and need not be there
# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

import mgx_mlir
from mgx_mlir.compiler.compiled import CompiledProgram
from mgx_mlir.core.errors import FileError, MgxError, TargetError, UsageError
from mgx_mlir.targets.flags import host_cpu

NAME, NAMESPACE = "mgx-artefacts", "mgx_mlir"


@dataclass(frozen=True)
class Artefact:
    """A model to compile: its bytes, or a path that every node has; options of `compile`.

    Files beside the model (external data) and compiled files (.mxr) are read by their path.
    """

    model: bytes | str
    target: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    @staticmethod
    def of(
        model: bytes | str | os.PathLike[str], target: str | None, options: Mapping[str, Any]
    ) -> Artefact:
        """Return the artefact of a model: bytes, or an absolute path."""
        if isinstance(model, bytes):
            return Artefact(model, target, dict(options))
        path = os.path.abspath(os.fspath(model))
        if not os.path.exists(path):
            raise FileError("no such file", location=path)
        return Artefact(path, target, dict(options))

    @property
    def key(self) -> str:
        """The digest of the model's bytes, the options, the version, and the kind of processor."""
        found = hashlib.sha256()
        if isinstance(self.model, bytes):
            found.update(self.model)
        else:
            with open(self.model, "rb") as f:
                while data := f.read(1 << 22):
                    found.update(data)
        rest = [self.target, sorted(self.options.items()), mgx_mlir.__version__, host_cpu()]
        found.update(repr(rest).encode())
        return found.hexdigest()

    def compile(self) -> CompiledProgram:
        """Compile, or load where the path is a compiled file's. Raises MgxError."""
        if isinstance(self.model, str) and Path(self.model).suffix == ".mxr":
            if self.options:
                raise UsageError("a compiled program takes no options", location=self.model)
            found = mgx_mlir.load(self.model)
            return found if isinstance(found, CompiledProgram) else found.compiled
        return mgx_mlir.compile(self.model, self.target, **self.options)


@dataclass(frozen=True)
class Failure:
    """A compile that failed: the error's class and texts, which travel whatever it holds."""

    kind: str
    message: str
    location: str | None
    notes: tuple[str, ...]

    def error(self) -> MgxError:
        """Return the error."""
        known = {k.__name__: k for k in MgxError.__subclasses__()}
        return known.get(self.kind, MgxError)(
            self.message, location=self.location, notes=self.notes
        )


def _compiled(artefact: Artefact) -> Any:
    """Return the program, or why there is none."""
    try:
        made = artefact.compile()
    except MgxError as e:
        return Failure(type(e).__name__, e.message, e.location, e.notes)
    return made


class _Artefacts:
    """The actor: references to programs by key, and how many were compiled."""

    def __init__(self) -> None:
        self._tasks: dict[str, asyncio.Task[Any]] = {}
        self._compiles = 0

    async def get(self, key: str, artefact: Artefact, node: str, gpus: float) -> list[Any]:
        """Return the reference to a program, in a list so that it is not fetched here."""
        if key not in self._tasks:
            self._compiles += 1
            self._tasks[key] = asyncio.ensure_future(self._compile(artefact, node, gpus))
        try:
            return [await asyncio.shield(self._tasks[key])]
        except Exception:
            self._tasks.pop(key, None)  # a node that died: the next one who asks tries again
            raise

    async def _compile(self, artefact: Artefact, node: str, gpus: float) -> Any:
        strategy = NodeAffinitySchedulingStrategy(node_id=node, soft=False)
        task = cast(Any, ray.remote(_compiled)).options(
            scheduling_strategy=strategy, num_cpus=0, num_gpus=gpus, max_retries=2
        )
        reference = task.remote(artefact)
        await asyncio.wrap_future(reference.future())
        return reference

    def compiles(self) -> int:
        """Return how many programs were compiled or loaded."""
        return self._compiles


def artefacts() -> Any:
    """Return the cluster's actor, which is made where there is none."""
    return cast(Any, ray.remote(_Artefacts)).options(
        name=NAME, namespace=NAMESPACE, lifetime="detached", get_if_exists=True, num_cpus=0,
        max_concurrency=1000,
    ).remote()  # fmt: skip


def forget_artefacts() -> None:
    """Let go of all programs that the cluster keeps."""
    try:
        ray.kill(ray.get_actor(NAME, namespace=NAMESPACE))
    except ValueError:
        return  # there is none


def shared_program(artefact: Artefact) -> CompiledProgram:
    """Return a program that is compiled once for the cluster. Raises MgxError."""
    node = ray.get_runtime_context().get_node_id()
    [reference] = ray.get(artefacts().get.remote(artefact.key, artefact, node, 0))
    found = ray.get(reference)
    if isinstance(found, Failure):
        raise found.error()
    if not isinstance(found, CompiledProgram):
        raise TargetError(f"expected a program, got {type(found).__name__}")
    return found
