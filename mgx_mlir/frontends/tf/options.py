"""The options of reading a TensorFlow model, with MIGraphX's names and meanings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mgx_mlir.core.errors import UsageError
from mgx_mlir.frontends.dims import Dim, DynamicDim
from mgx_mlir.frontends.options import ReadOptions


@dataclass(frozen=True)
class TfOptions(ReadOptions):
    """Options of reading a TensorFlow model, on top of ReadOptions."""

    # layout of layout-sensitive nodes that state no data_format: NHWC, else NCHW
    is_nhwc: bool = True
    # size of every dim that the file leaves dynamic; None keeps such dims dynamic
    batch_size: int | None = 1
    # results: "node", "node:1", or an output's name of the signature. By default, results are the
    # signature's outputs, or every node that no other uses.
    output_names: Sequence[str] = ()
    # signature to read in a SavedModel; default: "serving_default", or the only one
    signature: str = ""
    tags: Sequence[str] = ("serve",)  # tags of the graph to read in a SavedModel
    # inputs of rank 4 and results are channels first, as MIGraphX has them for channels-last graphs
    migraphx_layout: bool = False

    def __post_init__(self) -> None:
        if self.batch_size is not None and self.batch_size < 0:
            raise UsageError(f"batch_size is {self.batch_size}, expected 0 or more")
        if isinstance(self.output_names, str):
            raise UsageError("output_names expected a list of names, got a string")
        super().__post_init__()

    def dynamic_dim(self) -> Dim:
        """Return what a dim that the file leaves dynamic becomes."""
        if self.default_dyn_dim_value is not None:
            fixed = self.default_dyn_dim_value.fixed
            return self.default_dyn_dim_value if fixed is None else fixed
        if self.batch_size is not None:
            return self.batch_size
        return DynamicDim(0, None, ())
