"""A runtime for MLServer: "implementation": "mgx_mlir.integrations.mlserver_runtime.MgxRuntime".

    {"name": "m", "implementation": "mgx_mlir.integrations.mlserver_runtime.MgxRuntime",
     "parameters": {"uri": "./model.onnx", "extra": {"target": "cpu"}}}

This is the content of model-settings.json, beside the model. `extra` has the target and the options
of `mgx_mlir.compile`.
"""

# mlserver is an optional dependency
# pyright: reportMissingImports=false
from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
from mlserver import MLModel
from mlserver.codecs import NumpyCodec, StringCodec
from mlserver.errors import InferenceError
from mlserver.types import (
    InferenceRequest,
    InferenceResponse,
    MetadataTensor,
)
from mlserver.utils import get_model_uri

import mgx_mlir
from mgx_mlir.compiler.compiled import CompiledProgram
from mgx_mlir.core.errors import MgxError, UsageError
from mgx_mlir.integrations.v2.datatypes import BYTES, DTYPES, datatype_of
from mgx_mlir.integrations.v2.models import PLATFORM, Entry, ServedModel
from mgx_mlir.programs.signature import Port


class MgxRuntime(MLModel):
    """A model that MLServer serves. A wrong request (MgxError) is a 400 with its text."""

    async def load(self) -> bool:
        """Compile the model, or load a .mxr, run it once, and fill in the metadata."""
        uri = await get_model_uri(self._settings)
        given = dict((self._settings.parameters and self._settings.parameters.extra) or {})
        loop = asyncio.get_running_loop()
        self._served: ServedModel = await loop.run_in_executor(None, _loaded, uri, given)
        signature = self._served.program.signature
        self.inputs = [_tensor(p) for p in signature.given_inputs]
        self.outputs = [_tensor(p) for p in signature.outputs]
        self._settings.platform = self._settings.platform or PLATFORM
        return True

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        """Answer a request."""
        program = self._served.program
        try:
            feed = {i.name: _array(i) for i in payload.inputs}
            wanted = [o.name for o in payload.outputs or []]
            self._served.checked(feed, wanted)
            loop = asyncio.get_running_loop()
            found = await loop.run_in_executor(None, program.run, feed)
        except MgxError as e:
            raise InferenceError(str(e)) from None
        by_name = dict(zip(program.output_names, found, strict=True))
        outputs = []
        for name in wanted or by_name:
            value = by_name[name]
            codec: Any = StringCodec if value.dtype == object else NumpyCodec
            held = value.reshape(-1).tolist() if value.dtype == object else value
            row = codec.encode_output(name, held)
            row.shape = list(value.shape)
            outputs.append(row)
        return InferenceResponse(
            model_name=self.name, model_version=self.version, id=payload.id, outputs=outputs
        )

    async def unload(self) -> bool:
        """Release the code and the weights."""
        self._served.program.close()
        return True


def _loaded(uri: str, given: dict[str, Any]) -> ServedModel:
    from pathlib import Path

    limits = {k: given[k] for k in ("max_run_seconds", "max_run_memory") if k in given}
    found: Any = (
        mgx_mlir.load(uri, **limits) if uri.endswith(".mxr")
        else mgx_mlir.compile(uri, given.pop("target", None), **given)
    )  # fmt: skip
    program = found if isinstance(found, CompiledProgram) else found.compiled
    served = ServedModel(Entry("model", "1", Path(uri)), program)
    served.warm_up()
    return served


def _tensor(port: Port) -> MetadataTensor:
    datatype = datatype_of(port)
    if datatype == "BF16":
        raise UsageError(f"MLServer has no type for '{port.name}': {port.dtype}")
    return MetadataTensor(name=port.name, datatype=datatype, shape=list(port.dims))


def _array(given: Any) -> np.ndarray:
    """Return a request's tensor as an array. Errors: UsageError where the data do not fit the
    dims.
    """
    datatype = str(getattr(given.datatype, "value", given.datatype))
    data = getattr(given.data, "root", given.data)
    try:
        if datatype == BYTES:
            texts = [v.decode() if isinstance(v, bytes) else str(v) for v in data]
            return np.array(texts, object).reshape(given.shape)
        return np.array(data, DTYPES[datatype]).reshape(given.shape)
    except (ValueError, TypeError, OverflowError, UnicodeDecodeError) as e:
        raise UsageError(f"input '{given.name}' expected {datatype}{given.shape}: {e}") from None
