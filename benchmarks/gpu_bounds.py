"""Lower bounds on a model's time on an AMD GPU, from the instructions of emulated calls: IREE
alone, and mgx_mlir.

    python benchmarks/gpu_bounds.py MODEL.onnx [--arch gfx942] [--form plain sliced ours]

Forms of the model, in f16: `plain`, as iree-import-onnx and iree-compile take it; `sliced`, the
same with strided 1x1 convolutions as a slice and a convolution without strides; `ours`, what
mgx-driver compiles of it. For each: dispatches, kernels with scratch memory, kernels with matrix
instructions, instructions of waves, and bounds in us, each the sum over kernels of the busiest of
matrix, vector and LDS units:

* `first`: LDS accesses taken as 4 bytes a lane, and a kernel's launches counted twice over, once
  in its instructions and once in its rounds (so k launches weigh k^2). An early prototype did so;
  it is here to compare figures with that one's.
* `once`: the same without that mistake.
* `bytes`: LDS accesses by the bytes that they move, as `report --gpu --emulate` has it.

The emulator is needed (docs/emulator.md). `plain` takes minutes.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from mgx_mlir.debug.executed import executed
from mgx_mlir.hardware.chips import CHIPS, Chip
from mgx_mlir.targets import emulator
from mgx_mlir.targets.assembly import Mix
from mgx_mlir.targets.report import gpu_report

# calls the one function of a module on zeros, in a process whose end writes the counts
CALL = """
import sys
import numpy as np
import iree.runtime as rt
device = rt.get_device("hip")
config = rt.Config(device=device)
module = rt.VmModule.copy_buffer(config.vm_instance, open(sys.argv[1], "rb").read())
context = rt.SystemContext(config=config)
context.add_vm_module(module)
name = next(n for n in module.function_names if not n.startswith("__") and "$async" not in n)
dims = [int(d) for d in sys.argv[2].split("x")]
x = np.random.default_rng(0).standard_normal(dims).astype(np.float16) / 4
context.modules[module.name][name](rt.asdevicearray(device, x)).to_host()
"""
_MATRIX = re.compile(r"_(\d+)x(\d+)x(\d+)(?:_(\d+)b)?")


def narrowed(model: onnx.ModelProto) -> onnx.ModelProto:
    """A model of f32 in f16."""
    small = onnx.ModelProto()
    small.CopyFrom(model)
    for w in small.graph.initializer:
        if w.data_type == TensorProto.FLOAT:
            w.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(w).astype(np.float16), w.name))
    for port in (*small.graph.input, *small.graph.output):
        if port.type.tensor_type.elem_type == TensorProto.FLOAT:
            port.type.tensor_type.elem_type = TensorProto.FLOAT16
    del small.graph.value_info[:]
    return small


def sliced(model: onnx.ModelProto) -> onnx.ModelProto:
    """With strided 1x1 convolutions as a slice and a convolution without strides."""
    out = onnx.ModelProto()
    out.CopyFrom(model)
    del out.graph.node[:]
    for node in model.graph.node:
        own = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        strides = own.get("strides", [1, 1])
        if node.op_type != "Conv" or set(own.get("kernel_shape", [0])) != {1} or max(strides) == 1:
            out.graph.node.append(node)
            continue
        name = f"{node.output[0]}_steps"
        rows = {"starts": [0, 0], "ends": [2**31 - 1] * 2, "axes": [2, 3], "steps": list(strides)}
        for key, values in rows.items():
            array = np.asarray(values, np.int64)
            out.graph.initializer.append(numpy_helper.from_array(array, f"{name}_{key}"))
        inputs = [node.input[0], *(f"{name}_{key}" for key in rows)]
        out.graph.node.append(helper.make_node("Slice", inputs, [name]))
        own["strides"] = [1, 1]
        read = [name, *node.input[1:]]
        out.graph.node.append(helper.make_node("Conv", read, list(node.output), **own))
    return out


def by_iree(model: onnx.ModelProto, arch: str, folder: Path) -> tuple[bytes, dict[str, Any]]:
    """The module that IREE alone makes of a model, and what a call of it executes."""
    source, imported, vmfb = folder / "m.onnx", folder / "m.mlir", folder / "m.vmfb"
    onnx.save(model, source)
    tools = Path(sys.executable).parent
    run([tools / "iree-import-onnx", source, "-o", imported])
    run([tools / "iree-compile", imported, "-o", vmfb, "--iree-hal-target-device=hip",
         f"--iree-rocm-target={arch}"])  # fmt: skip
    dims = "x".join(str(d.dim_value) for d in model.graph.input[0].type.tensor_type.shape.dim)
    return vmfb.read_bytes(), counted([sys.executable, "-c", CALL, vmfb, dims], folder)


def by_us(path: str, arch: str, folder: Path) -> tuple[bytes, dict[str, Any]]:
    """The same for what mgx-driver makes of the model in f16."""
    driver = [sys.executable, "-m", "mgx_mlir.tools.driver"]
    saved, vmfb = folder / "m.mxr", folder / "m.vmfb"
    for out in (saved, vmfb):
        run([*driver, "compile", "--gpu", "--arch", arch, "--fp16", path, "-o", out])
    call = [*driver, "run", saved, "--gpu", "--arch", arch, "--emulate"]
    return vmfb.read_bytes(), counted(call, folder)


def counted(command: list[Any], folder: Path) -> dict[str, Any]:
    """Return the emulator's counts of a process."""
    counts = folder / "counts.json"
    library = str(emulator.activate())
    env = {"IREE_HIP_DYLIB_PATH": library, "MGX_EMULATE_STATS": str(counts)}
    run(command, env)
    return json.loads(counts.read_text())


def run(command: list[Any], env: Mapping[str, str] | None = None) -> None:
    words = [str(w) for w in command]
    done = subprocess.run(words, capture_output=True, text=True, env={**os.environ, **(env or {})})
    if done.returncode:
        raise SystemExit(f"{' '.join(words[:3])} failed:\n{done.stderr[-2000:]}")


def early_bounds(statistics: Mapping[str, Any], chip: Chip) -> tuple[float, float]:
    """The first two bounds of the table, us."""
    launches: Counter[str] = Counter()
    groups: Counter[str] = Counter()
    for one in statistics["launches"]:
        launches[one["kernel"]] += 1
        groups[one["kernel"]] += one["groups"]
    mixes: dict[str, Mix] = {name: Mix() for name in launches}
    operations: Counter[str] = Counter()
    for one in statistics["executed"]:
        name, mnemonic = one["function"], one["text"].split()[0]
        if name in mixes:
            mixes[name].count(mnemonic, one["count"])
            m = _MATRIX.search(mnemonic) if mnemonic.startswith(("v_mfma", "v_wmma")) else None
            if m is not None:
                sizes = [int(n or 1) for n in m.groups()]
                operations[name] += 2 * int(np.prod(sizes)) * one["count"]
    twice = once = 0.0
    for name, count in launches.items():
        rounds = -(-groups[name] // (count * chip.units))
        mix = mixes[name]
        clocks = max(
            operations[name] / chip.matrix,
            mix.vector * 4 / chip.simds,
            mix.lds * 64 * 4 / 128,
        )  # fmt: skip
        us = clocks / groups[name] * rounds * count / (chip.ghz * 1e3)
        once += us
        twice += us * count
    return twice, once


def _row(form: str, *figures: object) -> str:
    return f"{form:7}" + "".join(f"{f!s:>10}" for f in figures)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--arch", default="gfx942", choices=sorted(CHIPS))
    parser.add_argument("--form", nargs="+", default=["plain", "sliced", "ours"])
    args = parser.parse_args()
    chip = CHIPS[args.arch]
    small = narrowed(onnx.load(args.model))
    head = ("launches", "kernels", "scratch", "matrix", "M instr", "first", "once", "bytes")
    print(_row("form", *head))
    for form in args.form:
        with tempfile.TemporaryDirectory(prefix="mgx-bounds-") as name:
            folder = Path(name)
            if form == "ours":
                vmfb, counts = by_us(args.model, args.arch, folder)
            else:
                model = small if form == "plain" else sliced(small)
                vmfb, counts = by_iree(model, args.arch, folder)
        ran = executed(counts, chip)
        kernels = [k for k in gpu_report(vmfb).kernels if k.name in ran]
        instructions = sum(e.instructions for e in ran.values()) / 1e6
        bounds = (*early_bounds(counts, chip), sum(e.bound_us for e in ran.values()))
        scratch = sum(k.scratch > 0 for k in kernels)
        matrix = sum(e.operations > 0 for e in ran.values())
        figures = (len(counts["launches"]), len(kernels), scratch, matrix, f"{instructions:.1f}")
        print(_row(form, *figures, *(f"{us:.0f}" for us in bounds)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
