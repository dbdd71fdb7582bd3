"""The pipeline of each target: its passes in order, with their conditions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mgx_mlir.core.errors import PipelineError
from mgx_mlir.rewrite.passes import pipeline_name

NAMING = ("name_dynamic_dims", "forget_dynamic_dims")  # passes between them see named dynamic dims


@dataclass(frozen=True)
class PipelineOptions:
    """Options of a compile that the pipeline depends on."""

    fast_math: bool = True  # rewrites may change rounding
    fuse: bool = True  # kernels are formed by passes; without it, IREE decides the fusion
    vector_kernels: bool = True  # CPU kernels may be vector loops of this package
    # types whose matmuls and convolutions run in f32, because the loops do not multiply them
    widened: tuple[str, ...] = ()
    fnuz: bool = False  # GPU multiplies only FNUZ 8-bit floats
    # values that a model quantises and dequantises are not rounded where no matmul takes them in 8
    # bits, as in MIGraphX
    remove_qdq_pairs: bool = False
    byte_tables: bool = False  # CPU looks bytes up in registers
    byte_dots: bool = False  # CPU has an instruction that sums four 8-bit multiplications
    tile_registers: bool = False  # CPU multiplies bf16 in them, many times as fast as f32
    few_threads: bool = False  # one image has enough work for all threads of a run

    @property
    def loops(self) -> bool:
        """Return whether kernels may become vector loops of our own."""
        return self.fuse and self.vector_kernels


def ref(o: PipelineOptions) -> tuple[str, ...]:
    """Return the steps for `ref`, which interprets the model's ops without rewrites."""
    return ("normalize_ops", "dead_code_elimination")


def cpu(o: PipelineOptions) -> tuple[str, ...]:
    """Return the steps for CPUs, which compute in f32 whatever the type."""
    return _steps(
        # canonical ops, without no-ops
        "simplify_dyn_ops",
        "normalize_ops",
        "eliminate_identity",
        "dead_code_elimination",
        _step("rewrite_rnn", vector=o.loops or None),
        "inline_module",
        "dead_code_elimination",
        "eliminate_contiguous",
        "merge_steps",
        # merge equal ops that compute sizes, so that each gets one name
        "eliminate_common_subexpression",
        # many threads share the images of a batch instead
        _step("loop_images", when=o.loops and o.few_threads),
        # from here on dynamic dims count as known
        "name_dynamic_dims",
        "dead_code_elimination",
        _step("rewrite_resize", affine_only=True),
        _step("simplify_reshapes", fast_math=o.fast_math),
        "eliminate_pad",
        "dead_code_elimination",
        "rewrite_pooling",
        # 8-bit dots, and convolutions by our loops, are faster than f32; others are 4 times slower.
        # Other quantised values keep their rounding, which is cheap.
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
        # keep weights of few bits packed; matmuls widen them
        _step("pack_weights", when=o.loops),
        # ahead of merged matmuls: queries of selected rows, keys and values of all
        _step("select_rows", when=o.loops),
        # no rewrite_gelu: tanh takes less than an exponential and a division (3 % in f32, 18 % in
        # f16); no rewrite_topk: a topk of one thread takes no less in groups
        _step("optimize_module", fast_math=o.fast_math),
        _step("rewrite_reduce", wide_values=not (o.loops and o.tile_registers)),
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
        # our loops pad their input; in other kernels a pad inside costs 1.5 times one before it
        _step("insert_pad", dense=True, leave="vector" if o.loops else None),
        # attention in blocks of queries; below eight queries separate dots are faster
        _step("fuse_attention", when=o.loops, fast_math=o.fast_math, min_queries=8),
        _step("fuse_cache_rows", when=o.fuse),
        # types that the CPU cannot multiply; attention widens what it reads by itself
        _step(
            "eliminate_data_type",
            when=o.loops and bool(o.widened),
            types=",".join(o.widened),
            unsupported_ops="dot,convolution",
        ),
        _step("propagate_constant", when=o.loops and bool(o.widened)),
        # decompose quantisation, so that it is fused; late, as a division by a scale that became a
        # multiplication would round differently
        _step("rewrite_quantization", when=o.loops),
        _step("eliminate_convert", when=o.loops),
        # each fused op becomes one dispatch; readers of one tensor may have equal pads
        "eliminate_common_subexpression",
        "dead_code_elimination",
        _step("fuse_concat", when=o.loops),
        _step(
            "fuse_pointwise_reduce",
            when=o.fuse,
            weighted=o.loops,
            computed=(o.loops and o.byte_dots) or None,
        ),
        # tile registers multiply many rows as they are
        _step("fuse_rows", when=o.loops and o.fast_math and o.byte_dots and not o.tile_registers),
        "dead_code_elimination",
        "forget_dynamic_dims",
        "dead_code_elimination",
        _step("fuse_layout", when=o.loops),
        "dead_code_elimination",
    )


def gpu(o: PipelineOptions) -> tuple[str, ...]:
    """Return the steps for AMD GPUs."""
    return _steps(
        # canonical ops, without no-ops
        "simplify_dyn_ops",
        "normalize_ops",
        "eliminate_identity",
        "dead_code_elimination",
        "rewrite_rnn",
        "inline_module",
        "dead_code_elimination",
        "eliminate_contiguous",
        "merge_steps",
        # merge equal ops that compute sizes, so that each gets one name
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
        # multiply 8-bit operands without dequantising them
        _step("simplify_qdq", pairs=o.remove_qdq_pairs),
        # keep weights of few bits packed; matmuls widen them
        _step("pack_weights", gpu=True, when=o.fuse),
        _step("rewrite_gelu", fast_math=o.fast_math),
        _step("optimize_module", fast_math=o.fast_math),
        "rewrite_reduce",
        "rewrite_topk",
        "rewrite_low_precision",
        "propagate_precision",
        # transposed convolutions as matmuls of all phases, not of windows of mostly zeros; first,
        # because layout propagation moves their transposes
        "rewrite_convolution",
        "layout_convolution",
        # 1x1 convolutions as dots of pixels, whose tiles are not bound to image lines
        "fuse_horizontal",
        _step("rewrite_dot", convolutions=True, strided=False, shared_heads=True),
        _step("optimize_module", fast_math=o.fast_math),
        "split_reduce",
        _step("insert_pad", dense=True, leave="windows"),  # kernels pad what they read
        # the attention kernel supports a scale and a mask of the scores; of few queries in f32 it
        # has too few workgroups, and no matrix instruction
        _step("fuse_attention", when=o.fuse, fast_math=o.fast_math, flash=True, min_wide=16),
        # RoPE stays a kernel of its own: as a part of the update it is no launch less
        _step("fuse_cache_rows", when=o.fuse, turned=False),
        # decompose quantisation, so that it is fused
        _step("rewrite_quantization", when=o.fuse),
        # each fused op becomes one dispatch, also 8-bit matmuls with their epilogues
        "eliminate_common_subexpression",
        "dead_code_elimination",
        # IREE's devices for HIP and CUDA bind 16 buffers to a kernel at most
        _step("fuse_concat", when=o.fuse, dynamic=True, max_inputs=15),
        _step("fuse_pointwise_reduce", when=o.fuse, quantized=True, max_buffers=16),
        "dead_code_elimination",
        "forget_dynamic_dims",
        "dead_code_elimination",
        # convolutions of few channels read their image in any layout
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
    tile_registers: bool = False,
    few_threads: bool = False,
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
        tile_registers,
        few_threads,
    )
    return found(options)


def _steps(*steps: str) -> tuple[str, ...]:
    """Return the steps whose condition holds."""
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


FEWER_NAMES = _step(NAMING[0], made=False)  # replaces the first: names of input sizes only
