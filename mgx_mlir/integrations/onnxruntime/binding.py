"""IOBinding: inputs and outputs of a session that are bound once for many runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mgx_mlir.compiler.given_outputs import is_same
from mgx_mlir.core.errors import MgxError
from mgx_mlir.integrations.onnxruntime.errors import BindingError
from mgx_mlir.integrations.onnxruntime.values import OrtDevice, OrtValue, array_at

if TYPE_CHECKING:
    from mgx_mlir.integrations.onnxruntime.options import RunOptions
    from mgx_mlir.integrations.onnxruntime.session import InferenceSession


class IOBinding:
    """Bound inputs and outputs of a session. It holds references to bound arrays and values.

    Errors: BindingError, a RuntimeError, for names that the model does not have, and for a run
    whose inputs or output memory do not fit.
    """

    def __init__(self, session: InferenceSession) -> None:
        self._session = session
        self._inputs: dict[str, Any] = {}
        self._places: dict[str, np.ndarray | None] = {}
        self._results: list[OrtValue] = []

    def bind_cpu_input(self, name: str, arr_on_cpu: Any) -> None:
        """Bind an input to an array."""
        self._inputs[self._input(name)] = arr_on_cpu

    def bind_input(
        self, name: str, device_type: str, device_id: int, element_type: Any,
        shape: Sequence[int], buffer_ptr: int,
    ) -> None:  # fmt: skip
        """Bind an input to host memory that the caller keeps alive."""
        _on_host(device_type, device_id)
        self._inputs[self._input(name)] = array_at(buffer_ptr, shape, element_type)

    def bind_ortvalue_input(self, name: str, ortvalue: OrtValue) -> None:
        """Bind an input to an OrtValue."""
        self._inputs[self._input(name)] = OrtValue.of(ortvalue)._value

    def synchronize_inputs(self) -> None:
        """Do nothing: inputs are in host memory when they are bound."""

    def bind_output(
        self, name: str, device_type: str = "cpu", device_id: int = 0, element_type: Any = None,
        shape: Sequence[int] | None = None, buffer_ptr: int | None = None,
    ) -> None:  # fmt: skip
        """Bind an output to memory that the caller keeps alive, or to a new array in each run.

        On a GPU results are copied to host memory, whatever device is named.
        """
        OrtDevice.make(device_type, device_id)
        place = None
        if buffer_ptr is not None:
            _on_host(device_type, device_id)
            if element_type is None or shape is None:
                raise ValueError("expected 'element_type' and 'shape' with 'buffer_ptr'")
            place = array_at(buffer_ptr, shape, element_type)
        self._places[self._output(name)] = place

    def bind_ortvalue_output(self, name: str, ortvalue: OrtValue) -> None:
        """Bind an output to the memory of a value."""
        self._places[self._output(name)] = OrtValue.of(ortvalue).numpy()

    def synchronize_outputs(self) -> None:
        """Do nothing: outputs are complete when the run returns."""

    def get_outputs(self) -> list[OrtValue]:
        """Return the outputs of the last run, in binding order."""
        return list(self._results)

    def get_outputs_as_ortvaluevector(self) -> list[OrtValue]:
        """Return the outputs of the last run, in binding order."""
        return list(self._results)

    def copy_outputs_to_cpu(self) -> list[Any]:
        """Return the outputs of the last run as arrays."""
        return [v._value for v in self._results]

    def clear_binding_inputs(self) -> None:
        """Drop the bound inputs."""
        self._inputs.clear()

    def clear_binding_outputs(self) -> None:
        """Drop the bound outputs and their values."""
        self._places.clear()
        self._results = []

    def run(self, options: RunOptions | None) -> None:
        """Run the session on the bound inputs and outputs."""
        if not self._places:
            raise BindingError("expected an output to be bound, got none")
        try:
            found = self._session._into(list(self._places), self._inputs, options, self._shared())
        except MgxError as e:
            raise BindingError(f"the run failed: {e}") from e
        results: list[OrtValue] = []
        for (name, place), value in zip(self._places.items(), found, strict=True):
            if place is None:
                results.append(OrtValue(value))
                continue
            if place.shape != value.shape or place.dtype != value.dtype:
                raise BindingError(
                    f"output '{name}' is {value.dtype.name}{list(value.shape)}, the memory bound "
                    f"to it is {place.dtype.name}{list(place.shape)}"
                )
            if not place.flags.writeable:
                raise BindingError(f"the memory bound to output '{name}' is read-only")
            if value is not place:
                place[...] = value
            results.append(OrtValue(place))
        self._results = results

    def _shared(self) -> dict[str, np.ndarray] | None:
        """Return outputs whose memory is also an input's, as for KV caches; None if there is
        none.
        """
        inputs = [a for a in self._inputs.values() if isinstance(a, np.ndarray)]
        found = {
            name: place
            for name, place in self._places.items()
            if place is not None and place.nbytes and any(is_same(place, a) for a in inputs)
        }
        return found or None

    def _input(self, name: str) -> str:
        model = self._session._programs.model
        _check("input", name, [a.name for a in (*model.inputs, *model.overridable)])
        return name

    def _output(self, name: str) -> str:
        _check("output", name, [a.name for a in self._session.get_outputs()])
        return name


def _check(what: str, name: str, known: Sequence[str]) -> None:
    if name not in known:
        raise BindingError(f"unknown {what} '{name}', expected one of {', '.join(known)}")


def _on_host(device_type: str, device_id: int) -> None:
    if OrtDevice.make(device_type, device_id).device_type() != 0:
        raise BindingError(f"expected host memory, got memory of '{device_type}'")
