"""Reading a model with its progress line."""

from __future__ import annotations

from mgx_mlir.programs.program_ir import ProgramIR
from mgx_mlir.tools.driver.model import Model
from mgx_mlir.tools.driver.progress import say, working


def announce(model: Model) -> None:
    """Print the progress line of a model that is a file."""
    if model.path is not None:
        say(f"Reading: {model.path}")


def read(model: Model) -> ProgramIR:
    """Load the program of a model, announced on stderr."""
    announce(model)
    with working(f"Reading {model.name}"):
        return model.loaded
