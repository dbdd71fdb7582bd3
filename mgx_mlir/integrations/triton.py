"""A model of Triton's Python backend, over a compiled program; a bundle's model.py names it.

The module `triton_python_backend_utils` exists only in Triton's own processes.
"""

# pyright: reportMissingImports=false
from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import mgx_mlir
from mgx_mlir.core.errors import MgxError, UsageError
from mgx_mlir.integrations.triton_repository import ARTEFACT, data_type, dims_of
from mgx_mlir.integrations.v2.batching import Call, groups, run_together
from mgx_mlir.integrations.v2.models import Entry, ServedModel


class TritonPythonModel:
    """Load the artefact beside model.py; answer requests, batched up to the model's max_batch_size.

    An error of a request's own (MgxError) is Triton's INVALID_ARG, a 400 over HTTP, with its text.
    """

    folder = ""  # folder of the artefact, for auto_complete_config: model.py sets it

    @classmethod
    def auto_complete_config(cls, config: Any) -> Any:
        """Fill in the names, types and dims of a config.pbtxt that does not state them."""
        program = mgx_mlir.load(os.path.join(cls.folder, ARTEFACT))
        rows = config.as_dict()["max_batch_size"] > 0
        for ports, add in (
            (program.signature.given_inputs, config.add_input),
            (program.signature.outputs, config.add_output),
        ):
            for p in ports:
                dims = dims_of(p, rows)
                add({"name": p.name, "data_type": data_type(p), "dims": dims or [1],
                     **({} if dims else {"reshape": {"shape": []}})})  # fmt: skip
        return config

    def initialize(self, args: Mapping[str, str]) -> None:
        """Load the code and the weights."""
        from pathlib import Path

        config = json.loads(args["model_config"])
        path = Path(args["model_repository"], args["model_version"], ARTEFACT)
        batch = max(1, int(config.get("max_batch_size", 0)))
        entry = Entry(args["model_name"], args["model_version"], path, {"max_batch_size": batch})
        device = int(args.get("model_instance_device_id") or 0)
        gpu = args.get("model_instance_kind") == "GPU"
        limits = _limits(config.get("parameters") or {})
        program = mgx_mlir.load(path, device_id=device if gpu else 0, **limits)
        self.served = ServedModel(entry, program)
        self.served.warm_up()

    def execute(self, requests: Sequence[Any]) -> list[Any]:
        """Return a response for each request, in order."""
        calls = [self._call(r) for r in requests]
        found: list[Any] = list(calls)
        good = [i for i, c in enumerate(calls) if isinstance(c, Call)]
        for group in groups([calls[i] for i in good]):
            places = [good[j] for j in group]
            results = run_together([calls[i] for i in places])
            for i, result in zip(places, results, strict=True):
                found[i] = result
        pairs = zip(requests, found, strict=True)
        return [self._response(request, value) for request, value in pairs]

    def _call(self, request: Any) -> Any:
        try:
            feed = {t.name(): _array(t) for t in request.inputs()}
            return Call(self.served, feed, self.served.checked(feed, None))
        except MgxError as e:
            return e

    def _response(self, request: Any, found: Any) -> Any:
        import triton_python_backend_utils as pb

        if isinstance(found, Exception):
            own = isinstance(found, MgxError)
            text = str(found) if own else f"internal error: {type(found).__name__}"
            code = pb.TritonError.INVALID_ARG if own else pb.TritonError.INTERNAL
            return pb.InferenceResponse(error=pb.TritonError(text, code))
        by_name = dict(zip(self.served.program.output_names, found, strict=True))
        wanted = request.requested_output_names()
        return pb.InferenceResponse(
            output_tensors=[_tensor(pb, n, a) for n, a in by_name.items() if n in wanted]
        )

    def finalize(self) -> None:
        """Release the code and the weights."""
        self.served.program.close()


def _limits(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the limits of runs in a config.pbtxt. Errors: UsageError."""
    found: dict[str, Any] = {}
    for name in ("max_run_seconds", "max_run_memory"):
        if name in parameters:
            text = parameters[name]["string_value"]
            try:
                found[name] = float(text)
            except ValueError:
                raise UsageError(f"parameter {name} expected a number, got '{text}'") from None
    return found


def _array(tensor: Any) -> np.ndarray:
    """Return a tensor; strings come as bytes.

    Numbers pass by DLPack: backends that were built for numpy 1 misread numpy 2's element sizes.
    Strings have no other way.
    """
    try:
        return np.from_dlpack(tensor)
    except Exception:  # exception class of the backend: strings, and types that DLPack lacks
        found = np.asarray(tensor.as_numpy())
    if found.dtype != object:
        return found
    texts = [v.decode() if isinstance(v, bytes) else str(v) for v in found.reshape(-1)]
    return np.array(texts, object).reshape(found.shape)


def _tensor(pb: Any, name: str, array: np.ndarray) -> Any:
    """Return an array as Triton's tensor.

    It passes by DLPack: backends that were built for numpy 1 read the size of numpy 2's elements as
    0.
    """
    if array.dtype == object:
        texts = [str(v).encode() for v in array.reshape(-1)]
        return pb.Tensor(name, np.array(texts, object).reshape(array.shape))
    held = np.ascontiguousarray(array)
    return pb.Tensor.from_dlpack(name, held if held.flags.writeable else held.copy())
