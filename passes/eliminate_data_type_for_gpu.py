"""eliminate_data_type_for_gpu: eliminate_data_type with what MIGraphX's GPU kernels lack."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from mgx_mlir.core.dtypes import DTYPES
from mgx_mlir.core.ir import ir
from mgx_mlir.passes.eliminate_data_type import EliminateDataType
from mgx_mlir.rewrite.passes import Pass, option

_PRODUCTS = ("convolution", "quant_convolution", "dot", "quant_dot")
_FNUZ = ("fp8e4m3fnuz", "fp8e5m2fnuz")
_OCP = ("fp8e4m3fn", "fp8e5m2")
# kernels written by hand for these types only
_DEVICE_FUNCTIONS = (
    "logsoftmax", "nonzero", "prefix_scan_sum", "rnn_var_sl_shift_output", "multinomial",
    "argmax", "argmin",
)  # fmt: skip
_DEVICE_TYPES = ("float", "half", "bool", "int8", "uint8", "int32", "bf16")


@dataclass(frozen=True)
class EliminateDataTypeForGpu(Pass):
    """Replace the types that MIGraphX cannot compute on an architecture.

    bf16 on gfx1030; ui8 in quantised matmuls and pooling; f8 matmuls where the hardware has none
    (fnuz types: gfx94x, OCP types: gfx95x and gfx12x) and f8 pooling; 64- and 16-bit integers and
    f64 in matmuls; other types than f32, f16, bf16, bool, i8, ui8 and i32 in a few ops. It is not
    exact where integers become f32. No default pipeline has it, as IREE compiles these types.
    """

    name: ClassVar[str] = "eliminate_data_type_for_gpu"
    arch: str = option("gfx942", "the architecture")
    disable_64bit: bool = option(False, "f64, i64 and ui64 in 32 bits everywhere")

    def run(self, module: ir.Operation) -> bool:
        changed = [
            EliminateDataType(tuple(types), target, tuple(ops)).run(module)
            for types, target, ops in self._steps()
        ]
        return any(changed)

    def _steps(self) -> Iterator[tuple[Sequence[str], str, Sequence[str]]]:
        """Return (types, target type, ops), in order."""
        if self.arch.startswith("gfx1030"):
            yield ("bf16",), "float", ("all",)
        if self.disable_64bit:
            yield ("double",), "float", ("all",)
            yield ("int64",), "int32", ("all",)
            yield ("uint64",), "uint32", ("all",)
        yield ("uint8",), "float", ("quant_convolution", "quant_dot", "pooling")
        others = [d.short for d in DTYPES if d.short not in _DEVICE_TYPES]
        yield others, "float", _DEVICE_FUNCTIONS
        for types, homes in ((_FNUZ, ("gfx94",)), (_OCP, ("gfx95", "gfx12"))):
            yield types, "float", ("pooling",) if self.arch.startswith(homes) else (
                "pooling", *_PRODUCTS
            )  # fmt: skip
        wide = ("bool", "uint16", "int16", "int64", "uint64", "double")
        yield wide, "float", _PRODUCTS
