"""Loads gpu programs behind a recorder: calls are launches of a graph, or have markers."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any

from mgx_mlir.core.errors import TargetError, UsageError
from mgx_mlir.runtime.device import Device, open_device

if TYPE_CHECKING:
    from mgx_mlir.compiler.iree_program import IreeProgram

log = logging.getLogger(__name__)


def check_graph(target: str, graph: bool | None, stream_priority: int | None) -> None:
    """UsageError where calls of the target's programs cannot be one launch of a graph."""
    if (graph or stream_priority is not None) and target != "gpu":
        raise UsageError(f"only gpu programs are graphs of a GPU, the target is {target}")
    if stream_priority is not None and not graph:
        raise UsageError("stream_priority is for graph=True: the runtime's stream has none")


def open_gpu(kind: str, index: int = 0, library: str | None = None) -> Device:
    """Return a GPU as `open_device` does.

    Ahead of CUDA's first one the recorder is loaded: IREE looks for the library once in a process.
    """
    if kind == "cuda":
        # start-up: few programs need them
        from mgx_mlir.runtime.gpu_api import CUDA, loaded
        from mgx_mlir.targets import gpu_recorder

        try:
            loaded(CUDA)  # without it IREE has an error of its own
            loaded(CUDA, str(gpu_recorder.build_cuda()))
        except TargetError as e:
            log.info("calls are launches, not graphs: %s", e.message)
    return open_device(kind, index=index, library=library)


def recording(made: IreeProgram, library: str | None) -> Any:
    """Return what loads a module behind a recorder: as a graph, or with markers; else None."""
    kind = made.driver
    if made.can_mark and kind == "cuda":
        raise UsageError(
            "markers are for AMD GPUs", notes=["NVIDIA's profilers show kernels by their names"]
        )
    # not measured yet on AMD's GPUs
    if not (made.graph or made.can_mark or (made.graph is None and kind == "cuda")):
        return None
    # start-up: few programs need them
    from mgx_mlir.runtime.gpu_calls import library_file
    from mgx_mlir.runtime.graphs import GraphModule, markable, recorder_of
    from mgx_mlir.targets import gpu_recorder

    try:
        home = open_gpu(kind, made.device_id, library)
        built = gpu_recorder.build_cuda() if kind == "cuda" else None
        folder = str(built or gpu_recorder.build(library_file(home)))
        if made.can_mark and not made.graph:
            return partial(markable, folder)
        recorder = recorder_of(home, folder)
        recorder.device()
    except TargetError as e:
        if made.graph:
            raise
        log.info("calls are launches, not graphs: %s", e.message)
        return None
    return partial(GraphModule, recorder, made.stream_priority, bool(made.graph))
