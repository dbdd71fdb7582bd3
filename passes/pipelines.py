"""The pipeline of each target, written out from top to bottom, the condition beside the step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mgx_mlir.core.errors import PipelineError
from mgx_mlir.rewrite.passes import pipeline_name

NAMING = ("name_dynamic_dims", "forget_dynamic_dims")  # passes between them see names


@dataclass(frozen=True)
class PipelineOptions:
    """Options of a compile that decide about its steps."""

    fast_math: bool = True  # rewrites may change rounding
    fuse: bool = True  # kernels are formed by passes; without it, IREE decides the fusion
    vector_kernels: bool = True  # CPU kernels may be vector loops of this package
    # types whose matmuls and convolutions run in f32, because the loops do not multiply them
    widened: tuple[str, ...] = ()
    fnuz: bool = False  # GPU multiplies 8-bit floats of the FNUZ types alone
    # values that a model quantises and dequantises are not rounded where no matmul takes them in 8
    # bits, as in MIGraphX
    remove_qdq_pairs: bool = False
    byte_tables: bool = False  # CPU looks bytes up in registers
    byte_dots: bool = False  # CPU has an instruction that sums four 8-bit multiplications

    @property
    def loops(self) -> bool:
        """Return whether kernels may become vector loops of our own."""
        return self.fuse and self.vector_kernels


def ref(o: PipelineOptions) -> tuple[str, ...]:
    """`ref` interprets each op by its reference: no rewrite may stand between it and the model."""
    return ("normalize_ops", "dead_code_elimination")


def cpu(o: PipelineOptions) -> tuple[str, ...]:
    """Return the steps for CPUs, which compute in f32 whatever the type."""
    return _steps(
        # one spelling for each op, nothing that does nothing
        "simplify_dyn_ops",
        "normalize_ops",
        "eliminate_identity",
        "dead_code_elimination",
        _step("rewrite_rnn", vector=o.loops or None),
        "inline_module",
        "dead_code_elimination",
        "eliminate_contiguous",
        "merge_steps",
        # equal ops that make sizes, which get one name each
        "eliminate_common_subexpression",
        # from here on dynamic dims count as known
        "name_dynamic_dims",
        "dead_code_elimination",
        _step("rewrite_resize", affine_only=True),
        _step("simplify_reshapes", fast_math=o.fast_math),
        "eliminate_pad",
        "dead_code_elimination",
        "rewrite_pooling",
        # 8-bit dots are faster than in f32, and so are convolutions that our loops take; others
        # are 4 times slower. The rounding of other values is kept, which costs nothing.
        _step(
            "simplify_qdq",
            products="dot,convolution" if o.loops else "dot",
            pairs=o.remove_qdq_pairs,
            mixed=o.loops,
            widened=o.loops,
            vector=o.loops or None,
            requantised=(o.loops and o.fast_math) or None,
            tables=(o.loops and o.byte_tables) or None,
        ),
        # weights of few bits stay that: products widen them
        _step("pack_weights", when=o.loops),
        # no rewrite_gelu: tanh takes less than an exponential and a division (3 % in f32, 18 % in
        # f16); no rewrite_topk: a topk of one thread takes no less in groups
        _step("optimize_module", fast_math=o.fast_math),
        _step("rewrite_reduce", wide_values=True),
        # convert 1x1 convolutions to matmuls and merge gathers before the last simplification;
        # transposed convolutions go first, because layout propagation moves their transposes
        "rewrite_convolution",
        _step("layout_convolution", groups=o.loops or None),
        "fuse_horizontal",
        _step(
            "rewrite_dot",
            dynamic_images=o.loops or None,
            strided=False if o.loops else None,
            exact_bytes=(o.loops and not o.byte_dots) or None,
        ),
        _step("optimize_module", fast_math=o.fast_math),
        "split_reduce",
        # our loops pad what they read; elsewhere a pad inside of a kernel costs half as much again
        # as one ahead of it
        _step("insert_pad", dense=True, leave="vector" if o.loops else None),
        # a block of queries at a time; below eight the dots alone are faster
        _step("fuse_attention", when=o.loops, fast_math=o.fast_math, min_queries=8),
        # types that the CPU cannot multiply; attention widens what it reads by itself
        _step(
            "eliminate_data_type",
            when=o.loops and bool(o.widened),
            types=",".join(o.widened),
            unsupported_ops="dot,convolution",
        ),
        _step("propagate_constant", when=o.loops and bool(o.widened)),
        # quantising joins the kernels around it as what it consists of; late, since a division by a
        # scale that became a product would round otherwise
        _step("rewrite_quantization", when=o.loops),
        _step("eliminate_convert", when=o.loops),
        # each fused op becomes one dispatch; readers of one tensor may have been given equal pads
        "eliminate_common_subexpression",
        "dead_code_elimination",
        _step("fuse_concat", when=o.loops),
        _step(
            "fuse_pointwise_reduce",
            when=o.fuse,
            weighted=o.loops,
            computed=(o.loops and o.byte_dots) or None,
        ),
        "dead_code_elimination",
        "forget_dynamic_dims",
        "dead_code_elimination",
        _step("fuse_layout", when=o.loops),
        "dead_code_elimination",
    )


def gpu(o: PipelineOptions) -> tuple[str, ...]:
    """Return the steps for AMD GPUs."""
    return _steps(
        # one spelling for each op, nothing that does nothing
        "simplify_dyn_ops",
        "normalize_ops",
        "eliminate_identity",
        "dead_code_elimination",
        "rewrite_rnn",
        "inline_module",
        "dead_code_elimination",
        "eliminate_contiguous",
        "merge_steps",
        # equal ops that make sizes, which get one name each
        "eliminate_common_subexpression",
        # from here on dynamic dims count as known
        "name_dynamic_dims",
        "dead_code_elimination",
        _step("rewrite_resize", affine_only=True),
        _step("simplify_reshapes", fast_math=o.fast_math),
        "eliminate_pad",
        "dead_code_elimination",
        "rewrite_pooling",
        _step("fp8_ocp_to_fnuz", when=o.fnuz),
        # 8-bit products as they are
        _step("simplify_qdq", pairs=o.remove_qdq_pairs),
        # weights of few bits stay that: products widen them
        _step("pack_weights", gpu=True, when=o.fuse),
        _step("rewrite_gelu", fast_math=o.fast_math),
        _step("optimize_module", fast_math=o.fast_math),
        "rewrite_reduce",
        "rewrite_topk",
        "rewrite_low_precision",
        "propagate_precision",
        # transposed ones as products of all phases, not of windows that are zeros but for one tap;
        # their order of axes moves to the graph's edges, too, before it is part of another move
        "rewrite_convolution",
        "layout_convolution",
        # a 1x1 convolution is a dot of pixels: its tiles then are of pixels, not of lines of them
        "fuse_horizontal",
        _step("rewrite_dot", convolutions=True, strided=False),
        _step("optimize_module", fast_math=o.fast_math),
        "split_reduce",
        _step("insert_pad", dense=True, leave="windows"),  # kernels pad what they read
        # its kernel knows a factor and a mask of the scores
        _step("fuse_attention", when=o.fuse, fast_math=o.fast_math, flash=True),
        # quantising joins the kernels around it as what it consists of
        _step("rewrite_quantization", when=o.fuse),
        # each fused op becomes one dispatch; an 8-bit product together with what follows it
        "eliminate_common_subexpression",
        "dead_code_elimination",
        _step("fuse_concat", when=o.fuse),
        _step("fuse_pointwise_reduce", when=o.fuse, quantized=True),
        "dead_code_elimination",
        "forget_dynamic_dims",
        "dead_code_elimination",
        # convolutions of few channels read their image in whatever form it is
        _step("fuse_layout", when=o.fuse, gathered=True),
        "dead_code_elimination",
    )


PIPELINES: dict[str, Callable[[PipelineOptions], tuple[str, ...]]] = {
    "ref": ref, "cpu": cpu, "gpu": gpu,
}  # fmt: skip


def pipeline(
    target: str,
    *,
    fast_math: bool = True,
    fuse: bool = True,
    vector_kernels: bool = True,
    widened: tuple[str, ...] = (),
    fnuz: bool = False,
    remove_qdq_pairs: bool = False,
    byte_tables: bool = False,
    byte_dots: bool = False,
) -> tuple[str, ...]:
    """Return the pipeline of a target under the options of a compile (PipelineOptions).

    Raises PipelineError for an unknown target.
    """
    found = PIPELINES.get(target)
    if found is None:
        raise PipelineError(f"no pipeline for target '{target}', known: {', '.join(PIPELINES)}")
    options = PipelineOptions(
        fast_math,
        fuse,
        vector_kernels,
        widened,
        fnuz,
        remove_qdq_pairs,
        byte_tables,
        byte_dots,
    )
    return found(options)


def _steps(*steps: str) -> tuple[str, ...]:
    """Return the steps that are taken."""
    return tuple(s for s in steps if s)


def _step(name: str, *, when: bool = True, **options: object) -> str:
    """Return a pass with its options as text, without those that are None; empty unless `when`."""
    if not when:
        return ""
    given = {k: v for k, v in options.items() if v is not None and (v or k != "fast_math")}
    if not given:
        return name
    texts = (f"{k.replace('_', '-')}={str(v).lower()}" for k, v in given.items())
    return f"{pipeline_name(name)}{{{' '.join(texts)}}}"


FEWER_NAMES = _step(NAMING[0], made=False)  # in place of the first: of inputs' sizes alone
