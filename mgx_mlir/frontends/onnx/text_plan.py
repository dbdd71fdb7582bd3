"""Steps ahead of a program that takes strings, and the inputs that they give it."""

from __future__ import annotations

from dataclasses import dataclass, field

from mgx_mlir.programs.text_steps import TextStep

DimSource = int | tuple[str, int] | None  # a size, that of an input's dim, or one of its own


@dataclass
class TextPlan:
    """The steps, and where the dims of the inputs come from that they make."""

    steps: list[TextStep] = field(default_factory=list[TextStep])
    inputs: dict[str, tuple[DimSource, ...]] = field(default_factory=dict)
