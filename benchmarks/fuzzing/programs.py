"""Runs passes on a program in the migraphx dialect, and interprets what they leave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mgx_mlir.core.errors import MgxError
from mgx_mlir.frontends.onnx.importer import parse_onnx_buffer
from mgx_mlir.passes.pipelines import NAMING, pipeline
from mgx_mlir.programs.interpreter import Interpreter
from mgx_mlir.programs.program_ir import ProgramIR, argument_names
from mgx_mlir.rewrite.passes import PASSES, pipeline_name, run_pipeline

# passes that change types or the signature, or need what another tool adds
NOT_KEEPING = frozenset(
    (
        "lower_to_linalg", "autocast_fp8_pass", "quantize_8bits", "quantize_int4", "truncate_float",
        "fp_to_double", "capture_arguments", "eliminate_data_type", "eliminate_data_type_for_gpu",
        "fp8_ocp_to_fnuz", "split_single_dyn_dim", "rewrite_low_precision", "propagate_precision",
    )
)  # fmt: skip
# passes that form kernels; only clean-up follows them
KERNELS = ("fuse_attention", "fuse_concat", "fuse_pointwise_reduce", "fuse_layout", "insert_pad",
           "split_reduce", "fuse_pointwise", "fuse_reduce", "fuse_ops")  # fmt: skip


class Unstable(MgxError):
    """A second run of a pipeline changed the program."""


def shuffled_steps(seed: int) -> list[str]:
    """A random order of some of the passes; those that form kernels come last."""
    rng = np.random.default_rng([seed, 77])
    apart = (*KERNELS, "name_dynamic_dims", "forget_dynamic_dims")
    names = [n for n in sorted(PASSES) if n not in NOT_KEEPING and n not in apart]
    steps = [names[int(i)] for i in rng.permutation(len(names))[: rng.integers(3, 14)]]
    last = [KERNELS[int(i)] for i in rng.permutation(len(KERNELS))[: rng.integers(0, 4)]]
    if rng.random() < 0.5:
        steps, last = _named([*steps, *last]), []
    found = [
        "normalize_ops",
        *steps,
        *last,
        *(["dead_code_elimination"] if rng.random() < 0.5 else []),
    ]
    return [_with_options(n, rng) for n in found]


def _named(steps: Sequence[str]) -> list[str]:
    """Give dynamic dims names while those passes run that a pipeline runs under names."""
    told = [s.partition("{")[0].removeprefix("mgx-").replace("-", "_") for s in pipeline("cpu")]
    first, last = (told.index(n) for n in NAMING)
    under = [s for s in steps if s in told[first:last]]
    kernels = [s for s in steps if s in KERNELS and s not in under]
    others = [s for s in steps if s not in under and s not in kernels]
    return [*others, NAMING[0], *under, NAMING[1], *kernels]


def _with_options(name: str, rng: np.random.Generator) -> str:
    if name == "simplify_qdq":  # without its pairs a value keeps its rounding
        return "mgx-simplify-qdq{products=dot pairs=false widened=false}"
    fields = getattr(PASSES[name], "__dataclass_fields__", {})
    if "fast_math" in fields and rng.random() < 0.5:
        return f"{pipeline_name(name)}{{fast-math=true}}"
    return name


def _after(data: bytes, steps: Sequence[str]) -> ProgramIR:
    """A model after passes."""
    program = parse_onnx_buffer(data)
    with np.errstate(all="ignore"):
        run_pipeline(program.module, steps, store=program.store, verify=True)
    return program


class Interpreted:
    """A model after passes: those of the cpu pipeline, or shuffled ones.

    Unstable where a second run of the cpu pipeline changes the program.
    """

    def __init__(
        self, data: bytes, seed: int, *, fast_math: bool = False, shuffled: bool = False
    ) -> None:
        steps = shuffled_steps(seed) if shuffled else list(pipeline("cpu", fast_math=fast_math))
        try:
            self.program = _after(data, steps)
        except Exception as first:  # retry without dim names, as a compile does
            steps = [step for step in steps if step not in NAMING]
            try:
                self.program = _after(data, steps)
            except MgxError as error:
                raise (Unstable(f"pass '{steps}': {error}") if shuffled else error) from first
        self.steps = steps
        with self.program.ctx:
            self.input_names = set(argument_names(self.program.main()))

    def run(self, feeds: Mapping[str, np.ndarray]) -> list[Any]:
        with np.errstate(all="ignore"):
            return Interpreter(self.program.module, self.program.store).run(dict(feeds))
