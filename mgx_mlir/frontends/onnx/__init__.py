"""ONNX models as programs.

`onnx_op` registers an importer for an operator, of a domain of one's own too: docs/onnx.md.
"""

from mgx_mlir.core.errors import ModelError
from mgx_mlir.frontends.onnx.registry import onnx_op
from mgx_mlir.frontends.problems import NotSupported
from mgx_mlir.programs.build import Builder

__all__ = ["Builder", "ModelError", "NotSupported", "onnx_op"]
