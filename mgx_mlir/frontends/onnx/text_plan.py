"""Steps before a program that takes strings, and the inputs that they compute."""

from __future__ import annotations

from dataclasses import dataclass, field

from mgx_mlir.programs.text_steps import TextStep

DimSource = int | tuple[str, int] | None  # a size, an input's dim, or None for a new symbol


@dataclass
class TextPlan:
    """The steps, and the sources of the dims of the inputs that they compute."""

    steps: list[TextStep] = field(default_factory=list[TextStep])
    inputs: dict[str, tuple[DimSource, ...]] = field(default_factory=dict)
