"""Lines about the device's memory in a compiled gpu program's text: scratch, and weights on it.

MIGraphX's compiled programs begin with instructions for these. Here loading does that work, so that
only listings show them; the scratch size comes from IREE's plan.
"""

from __future__ import annotations

from collections import Counter

from mgx_mlir.core import dtypes
from mgx_mlir.printers.instructions import ListedInstruction, Listing, Numbering, static_shape
from mgx_mlir.programs.layout import Shape
from mgx_mlir.programs.program_ir import DevicePlan

CONTEXT = "check_context::migraphx::gpu::context"
SCRATCH = "hip::hip_allocate_memory"
WEIGHT = "hip::hip_copy_literal"
# MIGraphX's types, and the bytes that their sizes are multiples of
_SCRATCH_TYPES = (("float", 4), ("int8", 1))


def add_device_lines(listing: Listing, plan: DevicePlan, numbering: Numbering) -> None:
    """Show the check of the device, the scratch, and the literals that are copied to the device."""
    main = listing.main
    ids = numbering == "2.16"
    lead = [ListedInstruction("", CONTEXT)]
    if plan.scratch:
        lead.append(_scratch(plan.scratch, "main:scratch" if ids else "scratch"))
    left = Counter(plan.weights)
    number = 0
    for line in main.instructions:
        if not line.is_literal:
            continue
        shape = static_shape(line.shape)
        key = (shape.dtype.size, shape.elements)
        if left[key]:
            left[key] -= 1
            line.op = WEIGHT
            line.attributes = {"id": f"main:@literal:{number}" if ids else f"@literal:{number}"}
            number += 1
    main.instructions = [*lead, *main.instructions]
    renumber(main.instructions, numbering)


def renumber(lines: list[ListedInstruction], numbering: Numbering) -> None:
    """Renumber the lines of main in order."""
    n = 0
    for line in lines:
        is_parameter = line.op == "@param"
        if not is_parameter:
            line.lhs = f"@{n}"
        if not is_parameter or numbering == "2.16":
            n += 1


def _scratch(size: int, name: str) -> ListedInstruction:
    kind, width = next((k, w) for k, w in _SCRATCH_TYPES if size % w == 0)
    shape = Shape.standard(dtypes.from_name(kind), (size // width,))
    return ListedInstruction("", SCRATCH, {"shape": shape, "id": name}, shape=shape)
