"""MIGraphX's environment variables: those with an effect here, and why others have none."""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass

from mgx_mlir.rewrite.pipeline import did_you_mean
from mgx_mlir.tools.driver.progress import say, warn

PREFIX = "MIGRAPHX_"


@dataclass(frozen=True)
class Variable:
    """A variable: whether it has an effect, and which, or why not."""

    honoured: bool
    text: str


def _yes(text: str) -> Variable:
    return Variable(True, text)


def _no(text: str) -> Variable:
    return Variable(False, text)


_ONE_COMPILER = "IREE compiles one form of each kernel"
_NO_STREAMS = "a program runs on one queue, in the order that its kernels need"
_FUSED = "always on: normalisations are one kernel"
_MATCHES = "MIGRAPHX_TRACE_MATCHES_FOR shows the matches of one pattern"
_TESTS = "a variable of MIGraphX's own tests"

VARIABLES: dict[str, Variable] = {
    # traces
    "TRACE_COMPILE": _yes("1: the program before the first pass and after each one"),
    "TRACE_PASSES": _yes("1: the name of each pass as it starts"),
    "TIME_PASSES": _yes("1: the milliseconds of each pass"),
    "DISABLE_PASSES": _yes("a,b: passes to leave out"),
    "TRACE_EVAL": _yes("1: each instruction with its time; 2: its values in short; 3: in full"),
    "TRACE_MATCHES": _yes("1: each rewrite that is applied; 2: also why the others are not"),
    "TRACE_MATCHES_FOR": _yes("text: only rewrites with the text in their name"),
    "TRACE_ONNX_PARSER": _yes("1: each ONNX node as it is read"),
    "TRACE_PROPAGATE_CONSTANT": _yes("1: each operation that is replaced by its value"),
    "TRACE_QUANTIZATION": _yes("1: the program after each of --fp16, --bf16, --int8, --fp8 and "
                                "--int4-weights"),
    "TRACE_MLIR": _yes("1: the module that the backend gets"),
    "MLIR_DUMP": _yes("DIR: a .mlir file for each kernel, as the backend gets it"),
    "MLIR_DUMP_TO_MXR": _yes("DIR: a .mxr file for each kernel, a program of its own"),
    "GPU_DUMP_ASM": _yes("1: the assembly of each kernel, on cpu too"),
    "GPU_DUMP_SRC": _yes("1: each kernel as the backend gets it"),
    "DEBUG_SAVE_TEMP_DIR": _yes("1: the backend's files are kept, and their folder is named"),
    "TRACE_BENCHMARKING": _yes("1: the times of each comparison of --exhaustive-tune"),
    "LOG_LEVEL": _yes("none to trace, or 0 to 5: the same as --log-level"),
    "TRACE_FINALIZE": _no("nothing is finalised: the code and the weights are loaded as one"),
    "TRACE_ELIMINATE_CONTIGUOUS": _no(_MATCHES),
    "TRACE_SCHEDULE": _no(_NO_STREAMS),
    "TIME_MATCHERS": _no("MIGRAPHX_TIME_PASSES times passes, mgx-opt --mlir-pass-statistics counts"
                         " matches"),
    "VALIDATE_MATCHES": _no("mgx-opt verifies the program behind every pass"),
    "TRACE_HIPRTC": _no("no kernel is compiled by hiprtc"),
    "TRACE_NARY": _no("the reference computes whole arrays"),
    "TRACE_CMD_EXECUTE": _no("IREE runs in a child process, not as a command"),
    "DEBUG_MEMORY_COLORING": _no("the backend plans the memory"),
    "LOG_CK_GEMM": _no(_ONE_COMPILER),
    "CK_DEBUG": _no(_ONE_COMPILER),
    "8BITS_QUANTIZATION_PARAMS": _no("mgx-driver quantize --save-ranges writes the ranges"),
    # variables of a compile
    "SPLIT_REDUCE_SIZE": _yes("N: reductions of at least N elements are split; -1: none is"),
    "DISABLE_POINTWISE_FUSION": _yes("1: each pointwise operation is a kernel"),
    "DISABLE_REDUCE_FUSION": _yes("1: reductions are kernels without the ops around them"),
    "DISABLE_MULTI_OUTPUT_FUSION": _yes("1: no kernel has several results"),
    "ENABLE_NHWC": _yes("0: convolutions keep their layout; channels are last otherwise"),
    "ENABLE_REWRITE_DOT": _yes("0: batched dots stay as they are; they are rewritten otherwise"),
    "REWRITE_LRN": _yes("1: lrn as a pooling along the channels"),
    "FLASH_DECODING_ENABLED": _yes("1: on gpu an attention over many keys is done in parts"),
    "FLASH_DECODING_NUM_SPLITS": _yes("N: number of parts; 0: as many as fit"),
    "FLASH_DECODING_MIN_CHUNK_SIZE": _yes("N: least keys of a part (32)"),
    "FLASH_DECODING_MAX_SPLITS": _yes("N: most parts (16)"),
    "FLASH_DECODING_THRESHOLD": _yes("N: least keys for a split (32)"),
    "GPU_OPTIMIZE": _yes("O0 to O3: the backend's level on gpu"),
    "GPU_DEBUG": _yes("1: kernels of a gpu with debug information"),
    "GPU_DEBUG_SYM": _no("MIGRAPHX_GPU_DEBUG names kernels and lines"),
    "GPU_COMPILE_PARALLEL": _yes("1: the backend compiles in one thread; otherwise in all"),
    "GPU_HIP_FLAGS": _no("no kernel is compiled by hipcc"),
    "DISABLE_MLIR": _no("everything is compiled through MLIR; --kernel-boundaries off leaves the "
                        "fusion to the backend"),
    "MLIR_USE_SPECIFIC_OPS": _no(_ONE_COMPILER),
    "ENABLE_EXTRA_MLIR": _no(_ONE_COMPILER),
    "ENABLE_MLIR_INPUT_FUSION": _no("always on where it pays"),
    "ENABLE_MLIR_REDUCE_FUSION": _no("always on where it pays"),
    "ENABLE_MLIR_GEG_FUSION": _no("two matmuls are fused only in attention"),
    "MLIR_ENABLE_SPLITK": _no("the backend splits deep matmuls itself"),
    "MLIR_TUNING_DB": _no("solutions are kept in the file that MIGRAPHX_PROBLEM_CACHE names"),
    "MLIR_TUNING_CFG": _no("solutions are kept in the file that MIGRAPHX_PROBLEM_CACHE names"),
    "SET_GEMM_PROVIDER": _no("no library is called"),
    "ENABLE_GEMM_TUNING": _no("no library is called"),
    "ENABLE_HIP_GEMM_TUNING": _no("no library is called"),
    "ENABLE_CK": _no("no library is called"),
    "TUNE_CK": _no("no library is called"),
    "ENABLE_CK_WORKAROUNDS": _no("no library is called"),
    "ENABLE_MIOPEN_POOLING": _no("no library is called"),
    "DISABLE_MIOPEN_FUSION": _no("no library is called"),
    "ENABLE_LAYERNORM_FUSION": _no(_FUSED),
    "USE_FAST_SOFTMAX": _no("softmax subtracts the largest value in every case"),
    "DISABLE_FP32_SOFTMAX": _no("16-bit floats are computed in 32 bits in every case"),
    "DISABLE_FP16_INSTANCENORM_CONVERT": _no("16-bit floats are computed in 32 bits in every case"),
    "ENABLE_FULL_DYNAMIC": _no("always on: programs with dynamic dims are compiled directly"),
    "DISABLE_SCHEDULE_PASS": _no(_NO_STREAMS),
    "NSTREAMS": _no(_NO_STREAMS),
    "ENABLE_NULL_STREAM": _no(_NO_STREAMS),
    "COPY_LITERALS": _no("weights are loaded once, in place where the device shares the memory"),
    "DISABLE_DNNL_POST_OPS_WORKAROUND": _no("no library is called"),
    # tuning
    "PROBLEM_CACHE": _yes("FILE: the tuning file, which --exhaustive-tune writes and compiles "
                          "read"),
    "SKIP_BENCHMARKING": _yes("1: --exhaustive-tune takes the first choice without timing it"),
    "BENCHMARKING_NRUNS": _yes("N: calls of each side of a comparison (default: half a second)"),
    "MLIR_TUNE_EXHAUSTIVE": _yes("1: as --exhaustive-tune"),
    "MLIR_TUNE_LIMIT": _yes("N: most choices that --exhaustive-tune tries"),
    "BENCHMARKING_BUNDLE": _no("a call is timed by itself"),
    "GPU_DUMP_BENCHMARK_MXR": _no("MIGRAPHX_MLIR_DUMP_TO_MXR writes kernels"),
    # verify
    "VERIFY_ENABLE_ALLCLOSE": _yes("1: atol is taken literally; 0: no elementwise test"),
    "VERIFY_DUMP_DIFF": _yes("1: both sides of an output that fails are printed"),
    "TRACE_TEST": _no(_TESTS),
    "TRACE_TEST_COMPILE": _no(_TESTS),
    "DUMP_TEST": _no(_TESTS),
}  # fmt: skip


def check_environment() -> None:
    """Name the variables in use, and warn about those that are unknown or without effect."""
    for name in sorted(os.environ):
        if name.startswith(PREFIX):
            known = VARIABLES.get(name.removeprefix(PREFIX))
            if known is None or not known.honoured:
                _warned(name)
            else:
                say(f"{name}={os.environ[name]}", "debug")


@functools.cache  # once in a process
def _warned(name: str) -> None:
    known = VARIABLES.get(name.removeprefix(PREFIX))
    if known is not None:
        warn(f"{name} has no effect: {known.text}")
        return
    hints = did_you_mean(name, [PREFIX + v for v in VARIABLES])
    warn("".join([f"unknown variable {name}", *(f", {hint}" for hint in hints)]))
