"""Compiled programs that a Ray cluster shares: compiled once, kept in the object store.

A named actor holds the references. The first caller of a key has the model compiled on its own
node; later callers wait for that. Weights are mapped from the store: the processes of a node share
them.
"""

# ray is an optional dependency
# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import onnx
import ray
from google.protobuf.message import DecodeError
from onnx.external_data_helper import ExternalDataInfo, uses_external_data
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

import mgx_mlir
from mgx_mlir.compiler.compiled import CompiledProgram
from mgx_mlir.core import errors
from mgx_mlir.core.errors import FileError, MgxError, TargetError, UsageError
from mgx_mlir.core.files import file_sha256
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
        """Return the digest of the model's files, the options, the version, and the kind of CPU.

        FileError where a file of the model cannot be read.
        """
        found = hashlib.sha256()
        if isinstance(self.model, bytes):
            found.update(self.model)
        else:
            for path in files_of(self.model):
                found.update(file_sha256(path).encode())
        rest = [self.target, sorted(self.options.items()), mgx_mlir.__version__, host_cpu()]
        found.update(repr(rest).encode())
        return found.hexdigest()

    def compile(self) -> CompiledProgram:
        """Compile, or load if the path is a compiled file's. Raises MgxError."""
        if isinstance(self.model, str) and Path(self.model).suffix == ".mxr":
            if self.options:
                raise UsageError("a compiled program takes no options", location=self.model)
            found = mgx_mlir.load(self.model)
            return found if isinstance(found, CompiledProgram) else found.compiled
        return mgx_mlir.compile(self.model, self.target, **self.options)


@dataclass(frozen=True)
class Failure:
    """A failed compile: the error's class and texts, which can always be pickled."""

    kind: str
    message: str
    location: str | None
    notes: tuple[str, ...]

    def error(self) -> MgxError:
        """Return the error to raise."""
        kind = getattr(errors, self.kind, MgxError)
        kind = MgxError if kind is errors.NamesDisagree else kind
        return kind(self.message, location=self.location, notes=self.notes)


def files_of(path: str) -> list[str]:
    """Return a model's file, or a folder's files, and the external data files that ONNX names.

    FileError where one cannot be read.
    """
    if os.path.isdir(path):  # a SavedModel
        return sorted(os.path.join(at, n) for at, _, names in os.walk(path) for n in names)
    found = [path]
    try:
        if path.endswith(".onnx"):
            graph = onnx.load_model(path, load_external_data=False).graph
            names = {ExternalDataInfo(t).location for t in _external(graph)}
            found += [os.path.join(os.path.dirname(path), n) for n in sorted(names)]
    except DecodeError:
        return found  # the compile reports the error
    except OSError as e:
        why = (e.strerror or str(e)).lower()
        raise FileError(f"the file cannot be read: {why}", location=path) from None
    missing = [p for p in found if not os.path.isfile(p)]
    if missing:
        raise FileError("no such file", location=missing[0])
    return found


def _external(graph: onnx.GraphProto) -> Iterator[onnx.TensorProto]:
    """Yield the tensors of a graph, and of its subgraphs, that are stored in other files."""
    for t in graph.initializer:
        if uses_external_data(t):
            yield t
    for node in graph.node:
        for a in node.attribute:
            if a.HasField("t") and uses_external_data(a.t):
                yield a.t
            for inner in (*([a.g] if a.HasField("g") else []), *a.graphs):
                yield from _external(inner)


def _compiled(artefact: Artefact) -> tuple[Any, bool]:
    """Return the program or the failure, and whether it is a program."""
    try:
        made = artefact.compile()
    except MgxError as e:
        return Failure(type(e).__name__, e.message, e.location, e.notes), False
    return made, True


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
            reference, good = await asyncio.shield(self._tasks[key])
        except Exception:
            self._tasks.pop(key, None)  # a node died: the next caller tries again
            raise
        if not good:
            self._tasks.pop(key, None)
        return [reference]

    async def _compile(self, artefact: Artefact, node: str, gpus: float) -> tuple[Any, bool]:
        strategy = NodeAffinitySchedulingStrategy(node_id=node, soft=False)
        task = cast(Any, ray.remote(_compiled)).options(
            scheduling_strategy=strategy, num_cpus=0, num_gpus=gpus, max_retries=2, num_returns=2
        )
        reference, good = task.remote(artefact)
        return reference, await good

    def compiles(self) -> int:
        """Return how many programs were compiled or loaded."""
        return self._compiles


def artefacts() -> Any:
    """Return the cluster's actor; make it if there is none."""
    return cast(Any, ray.remote(_Artefacts)).options(
        name=NAME, namespace=NAMESPACE, lifetime="detached", get_if_exists=True, num_cpus=0,
        max_concurrency=1000,
    ).remote()  # fmt: skip


def forget_artefacts() -> None:
    """Drop all programs that the cluster keeps."""
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
