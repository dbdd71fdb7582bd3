"""onnxruntime as a reference: it shares no importer and no operator with this package."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from mgx_mlir.core.errors import RunError, TargetError


class OnnxRuntimeSession:
    """An ONNX file in onnxruntime, on the CPU. TargetError without it, RunError where it fails.

    Without `threads` it is a reference: sums of 8-bit matmuls do not saturate. With a number of
    threads it has its users' configuration, for timing. Its telemetry is off, unless
    ORT_DISABLE_TELEMETRY says otherwise.
    """

    def __init__(self, path: str, *, threads: int | None = None) -> None:
        os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # read once, by the import
        try:
            import onnxruntime  # optional dependency
        except ImportError:
            raise TargetError(
                "onnxruntime is not installed", notes=["pip install onnxruntime"]
            ) from None
        self.version = onnxruntime.__version__
        self.path = path
        try:
            self._session = _session(onnxruntime, path, threads)
        except Exception as e:  # exceptions of onnxruntime share no base class
            raise _failed(path, "cannot load the model", e) from None
        self.output_names = [o.name for o in self._session.get_outputs()]

    def run(self, inputs: Mapping[str, np.ndarray]) -> list[Any]:
        """Run, and return the outputs in order; ZipMap's output is a list of dicts.

        Errors: RunError for inputs that the model does not have.
        """
        wanted = {i.name for i in self._session.get_inputs()}
        unknown, missing = sorted(set(inputs) - wanted), sorted(wanted - set(inputs))
        if unknown or missing:
            raise RunError(
                f"the inputs differ from onnxruntime's: {', '.join(unknown + missing)}",
                location=self.path,
            )
        try:
            found: list[Any] = list(self._session.run(None, dict(inputs)))
        except Exception as e:
            raise _failed(self.path, "cannot run the model", e) from None
        for name, value in zip(self.output_names, found, strict=True):
            maps = isinstance(value, list) and all(isinstance(m, dict) for m in value)
            if not isinstance(value, np.ndarray) and not maps:
                raise RunError(f"output '{name}' is neither a tensor nor maps", location=self.path)
        return found


def _session(onnxruntime: Any, path: str, threads: int | None) -> Any:
    """Make a session; without `threads` one whose sums of 8-bit matmuls do not saturate.

    x86 CPUs without VNNI saturate by default: results are then off by a tenth and more.
    """
    providers = ["CPUExecutionProvider"]
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # errors are raised as exceptions too
    if threads is not None:
        options.intra_op_num_threads = threads
        return onnxruntime.InferenceSession(path, options, providers=providers)
    options.add_session_config_entry("session.x64quantprecision", "1")
    try:
        return onnxruntime.InferenceSession(path, options, providers=providers)
    except Exception:  # matmuls of two i8 have no such form, and need none
        options.add_session_config_entry("session.x64quantprecision", "0")
        return onnxruntime.InferenceSession(path, options, providers=providers)


def _failed(path: str, what: str, e: Exception) -> RunError:
    text = str(e).strip().splitlines()
    return RunError(f"onnxruntime {what}: {text[0] if text else type(e).__name__}", location=path)
