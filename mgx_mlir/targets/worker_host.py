"""Compile libraries of kernels, host modules that contain them, small modules, in a worker.

A host module is compiled up to the point that needs its kernels. The libraries' bytes are inserted
after the last pass that inspects external variants (worker_kernels.py).

This file imports nothing of the package, as the worker that loads it.
"""

from __future__ import annotations

import array
import io
import os
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mgx_mlir.targets import worker_kernels as parts
    from mgx_mlir.targets import worker_link as link
else:
    # the worker has loaded them from beside this file
    import worker_kernels as parts
    import worker_link as link

Stage, bindings, walk = parts.Stage, parts.bindings, parts.walk
# an external variant names its own format; this target only makes the back end start
_EXTERNAL_FLAG = "--iree-rocm-target=gfx942"
# LLVM's ops whose code calls the C library; IREE expands most of f32 and f16 ahead of them
_LIBRARY_CALLS = frozenset((
    "llvm.frem",
    *(f"llvm.intr.{name}" for name in (
        "acos", "asin", "atan", "atan2", "cos", "cosh", "exp", "exp10", "exp2", "log", "log10",
        "log2", "pow", "powi", "sin", "sincos", "sinh", "tan", "tanh",
    )),
))  # fmt: skip
# links IREE's own kernels into one executable
_LINK = "iree-llvmcpu-link-executables{target=llvm-cpu}"
_UNLINKED = "executable-targets"  # IREE's phase that its pass over all kernels follows


def run_to(
    source: bytes, flags: Sequence[str], phase: str, change: Callable[[Any, Any], object]
) -> bytes | None:
    """Run IREE's phases up to `phase`, and apply `change` to the module; None where a phase fails.

    Errors: ValueError for a flag.
    """
    stage = Stage(source, flags, verify=False)
    try:
        if not stage.read or not stage.run("", phase):
            return None
        change(bindings(), stage.module)
        buffer = io.BytesIO()
        stage.module.write_bytecode(buffer)
        return buffer.getvalue()
    finally:
        stage.close()


def whole(source: bytes, flags: Sequence[str], *, verify: bool) -> bytes | None:
    """Compile a small module with its kernels; None where it fails.

    Between phases IREE frees its passes, which takes a tenth less time than all phases at once. The
    kernels are linked by `worker_link`.
    """
    with tempfile.TemporaryDirectory() as folder:
        try:
            return _whole(source, flags, os.path.join(folder, "kernels.o"), verify=verify)
        except _NotLinked:  # the kernels need more of the C library
            return _whole(source, flags, None, verify=verify)


class _NotLinked(Exception):
    """The object of a static library cannot be linked."""


def _whole(source: bytes, flags: Sequence[str], path: str | None, *, verify: bool) -> bytes | None:
    """Compile as `whole`. path: for the object of the kernels; None: IREE links them.

    Errors: _NotLinked.
    """
    stage = Stage(source, flags, verify=verify)
    try:
        if not stage.read or not stage.run("", "flow") or not stage.run("flow", _UNLINKED):
            return None
        if not stage.invocation.execute_text_pass_pipeline(_LINK):
            return None
        format_ = None if path is None else _write_object(stage.module, path)
        if not stage.run(_UNLINKED, "hal"):
            return None
        if path is not None and format_ is not None:
            _insert_linked(stage.module, path, format_)
        return _bytecode(stage)
    finally:
        stage.close()


def _write_object(module: Any, path: str) -> str | None:
    """Have IREE write the kernels as a static library's object; return the format of its files.

    None, and nothing is changed, where there is no single executable for IREE's ELF loader, and
    where its kernels call the C library, which that object lacks.
    """
    ir = bindings()
    variants = walk(ir, module, ["hal.executable.variant"])
    target = str(variants[0].attributes["target"]) if len(variants) == 1 else ""
    found = re.match(r'#hal\.executable\.target<"llvm-cpu", "(embedded-elf-\w+)", \{', target)
    if found is None or walk(ir, module, _LIBRARY_CALLS):
        return None
    options = f'link_embedded = false, link_static = true, static_library_output = "{path}", '
    with module.context:
        changed = target[: found.end()] + options + target[found.end() :]
        variants[0].attributes["target"] = ir.Attribute.parse(changed)
    return found[1]


def _insert_linked(module: Any, path: str, format_: str) -> None:
    """Link the object, and put the file in the place of the library's name. Errors: _NotLinked."""
    ir = bindings()
    [binary] = walk(ir, module, ["hal.executable.binary"])
    with module.context, ir.Location.unknown():
        name = bytes(memoryview(ir.DenseElementsAttr(binary.attributes["data"])))
        code = link.linked(path, name.rstrip(b"\0").decode())
        if code is None:
            raise _NotLinked
        _set_data(binary, code, "application/x-elf")
        binary.attributes["format"] = ir.StringAttr.get(format_)


def _set_data(binary: Any, code: bytes, kind: str) -> None:
    """Set the bytes of a hal.executable.binary. kind: their MIME type."""
    ir = bindings()
    data = array.array("b", code)
    of_bytes = ir.VectorType.get([len(data)], ir.IntegerType.get_signless(8))
    binary.attributes["data"] = ir.DenseElementsAttr.get(data, type=of_bytes)
    binary.attributes["mime_type"] = ir.StringAttr.get(kind)


def _bytecode(stage: Any) -> bytes | None:
    """Return the program of a module behind the phase `hal`; None where it is invalid."""
    from iree.compiler.api import Output

    if not stage.run("hal", "end") or not stage.module.verify():
        return None
    output = Output.open_membuffer()
    with output:
        stage.invocation.output_vm_bytecode(output)
        return bytes(output.map_memory())


class Host(parts.Stage):
    """A host module whose functions launch kernels of libraries."""

    def __init__(
        self, source: bytes, flags: Sequence[str], *, verify: bool, resources: str = "",
        start: str = "",
    ) -> None:  # fmt: skip
        """Read the bytes of `Program.host`. start: the phase behind which it was taken apart."""
        # flags for a GPU make the back end of external variants start
        more = [] if start else [_EXTERNAL_FLAG]
        self.start, self.keys = start, dict[str, str]()
        super().__init__(source, [*flags, *more], verify=verify)
        if self.read and resources:
            ir = bindings()

            with self.module.context:
                self.module.attributes["stream.resources"] = ir.Attribute.parse(resources)

    def launch(self, keys: dict[str, str]) -> bool:
        """Compile up to the point where the libraries are needed. keys: of the kernels' names."""
        self.keys = keys
        if not self.run(self.start, "executable-targets"):
            return False
        if self.start:
            return True  # launches need the counts of workgroups
        self._rename(keys)
        # the pass over all back ends would fail on external variants, which are empty
        if not self.invocation.execute_text_pass_pipeline(_LINK):
            return False
        return self.run("executable-targets", "hal")

    def _rename(self, keys: dict[str, str]) -> None:
        """Rename exports to the libraries' names. Reports before this have the program's names."""
        ir = bindings()
        with self.module.context, ir.Location.unknown():
            for export in walk(ir, self.module, ["hal.executable.export"]):
                name = ir.StringAttr(export.attributes["sym_name"]).value
                if name not in keys:
                    continue
                export.attributes["sym_name"] = ir.StringAttr.get(parts.exported(keys[name]))
            for op in walk(ir, self.module, ["stream.cmd.dispatch"]):
                head, _, name = str(op.attributes["entry_points"]).strip("[]").rpartition("::@")
                if name in keys:
                    target = f"[{head}::@{parts.exported(keys[name])}]"
                    op.attributes["entry_points"] = ir.Attribute.parse(target)

    def _launch_counted(self, counts: Mapping[str, Sequence[int]]) -> bool:
        """Compile launches of kernels whose workgroups their libraries have counted."""
        ir = bindings()
        with self.module.context, ir.Location.unknown():
            for export in walk(ir, self.module, ["hal.executable.export"]):
                # IREE has renumbered the exports
                key = self.keys.get(ir.StringAttr(export.attributes["sym_name"]).value)
                if key is not None:
                    parts.count_workgroups(ir, export.regions[0].blocks[0], counts[key])
        self._rename(self.keys)
        return self.run("executable-targets", "hal")

    def finish(
        self, libraries: Sequence[bytes], counts: Mapping[str, Sequence[int]]
    ) -> bytes | None:
        """Insert the libraries, and return the module as bytecode; None where it is invalid.

        counts: workgroups of each kernel by its key, where code generation counts them.
        """
        ir = bindings()
        if self.start and not self._launch_counted(counts):
            return None
        with self.module.context, ir.Location.unknown():
            for view in self.module.regions[0].blocks[0].operations:
                op = view.operation
                if op.name != "hal.executable":
                    continue
                name = ir.StringAttr(op.attributes["sym_name"]).value
                number = name.removeprefix(parts.LIBRARY)
                if number == name or not number.isdecimal():
                    continue
                binary = op.regions[0].blocks[0].operations[0].operation
                kind = "application/x-flatbuffers" if self.start else "application/x-elf"
                _set_data(binary, libraries[int(number)], kind)
        return _bytecode(self)


def _counts(ir: Any, module: Any) -> list[list[int]] | None:
    """Return the workgroups of each export in order; None where a count is no number."""
    found: dict[int, list[int]] = {}
    for export in walk(ir, module, ["hal.executable.export"]):
        *body, last = [o.operation for o in export.regions[0].blocks[0].operations]
        if any(o.name != "arith.constant" for o in body):
            return None
        ordinal = ir.IntegerAttr(export.attributes["ordinal"]).value
        values = [v.owner.operation.attributes["value"] for v in last.operands]
        found[ordinal] = [ir.IntegerAttr(v).value for v in values]
    return [found[i] for i in sorted(found)]


Made = tuple[str, bytes, list[list[int]]]


def library(source: bytes, flags: Sequence[str], *, verify: bool) -> Made | None:
    """Compile a module of `library_text`: the binary's format and bytes, counts of workgroups.

    None where it fails.
    """
    format_ = link.format_of(flags)
    if format_ is None:
        return _library(source, flags, verify=verify)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "kernels.o")
        made = _library(source, [*flags, *link.object_flags(path)], verify=verify)
        if made is None:
            return None
        name = made[1].rstrip(b"\0").decode()
        code = link.linked(path, name)
    if code is None:
        return _library(source, flags, verify=verify)
    return format_, code, made[2]


def _library(source: bytes, flags: Sequence[str], *, verify: bool) -> Made | None:
    """Compile as `library`, to the binary that the flags ask for."""
    ir = bindings()

    stage = Stage(source, flags, verify=verify)
    try:
        if not stage.read or not stage.run("stream", "executable-targets"):
            return None
        counts = _counts(ir, stage.module)
        if counts is None or not stage.run("executable-targets", "hal"):
            return None
        executable = stage.module.regions[0].blocks[0].operations[0].operation
        binary = executable.regions[0].blocks[0].operations[0].operation
        data = ir.DenseElementsAttr(binary.attributes["data"])
        return ir.StringAttr(binary.attributes["format"]).value, bytes(memoryview(data)), counts
    finally:
        stage.close()


__all__ = ["Host", "library", "run_to", "whole"]
