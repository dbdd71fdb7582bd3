"""The copies between host and device in the listing of a gpu program: --enable-offload-copy."""

from __future__ import annotations

from mgx_mlir.printers.device_lines import CONTEXT, SCRATCH, WEIGHT, renumber
from mgx_mlir.printers.instructions import ListedInstruction, Listing, Numbering

TO_GPU, FROM_GPU = "hip::copy_to_gpu", "hip::copy_from_gpu"
_HEAD = ("@param", "@literal", CONTEXT, SCRATCH, WEIGHT)


def add_copies(listing: Listing, numbering: Numbering) -> None:
    """Show the copy of each parameter ahead of what reads it, and of each result behind it.

    A call makes them: arguments and results are in host memory.
    """
    main = listing.main
    head = [i for i in main.instructions if i.op in _HEAD]
    rest = main.instructions[len(head) :]
    copies = {id(i): _copy(TO_GPU, i) for i in head if i.op == "@param"}
    for i in rest:
        i.inputs = [copies.get(id(x), x) for x in i.inputs]
    end = rest[-1] if rest and rest[-1].op == "@return" else None
    body = rest[:-1] if end is not None else rest
    results: list[ListedInstruction] = []
    if end is not None:
        results = [_copy(FROM_GPU, x) for x in end.inputs]
        end.inputs = list(results)
    tail = [] if end is None else [end]
    main.instructions = [*head, *copies.values(), *body, *results, *tail]
    renumber(main.instructions, numbering)


def _copy(op: str, source: ListedInstruction) -> ListedInstruction:
    return ListedInstruction("", op, inputs=[source], shape=source.shape)
