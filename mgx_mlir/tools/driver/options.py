"""The options of mgx-driver by group, and those of MIGraphX that it does not take yet."""

from __future__ import annotations

from types import ModuleType

from mgx_mlir.tools.driver.arguments import Option, choice, level, number, positive, tolerance

HELP = Option(("-h", "--help"), "print this text", group="General")

LOADER = tuple(
    Option(flags, text, value, many, parse, "Model")  # type: ignore[arg-type]
    for flags, text, value, many, parse in (
        (("--test",), "use a built-in program, one dot of a{4,5} and b{5,3}", None, "", str),
        (("--onnx",), "read the file as ONNX whatever its name", None, "", str),
        (("--tf",), "read the file as a TensorFlow graph whatever its name", None, "", str),
        (("--migraphx",), "read the file as .mxr whatever its name", None, "", str),
        (("--migraphx-json",), "read the file as MIGraphX's JSON whatever its name", None, "", str),
        (("--strip-context",), "ignore the code in a saved program", None, "", str),
        (("--trust-code",), "run the code in a saved program, even if another user wrote it", None,
         "", str),
        (("--batch",), "size of every dimension that the model leaves dynamic (default 1)", "N", "",
         number(1)),
        (("--nhwc",), "channels are last where a TensorFlow node does not say (default)", None, "",
         str),
        (("--nchw",), "channels are first where a TensorFlow node does not say", None, "", str),
        (("--migraphx-layout",), ("inputs and outputs of a TensorFlow model are "
                                 "channels-first images, as in MIGraphX"), None, "", str),
        (("--output-names",), "results of a TensorFlow model (default: unread nodes)",
         "NAME...", "greedy", str),
        (("--input-dim",), "dimensions of inputs: @name d1 d2 ... @other d1 ...", "@NAME D...",
         "greedy", str),
        (("--dyn-input-dim",), "dynamic dimensions of inputs: @name '[{min:1,max:8}, 3]'",
         "@NAME DIMS", "greedy", str),
        (("--default-dyn-dim",), "range of every dimension that the model leaves dynamic, "
         "'{min:1,max:8,optimals:[4]}'", "DIM", "", str),
        (("--dynamic-dims",), "keep every dimension dynamic that the model leaves so: any size "
         "may be run", None, "", str),
        (("--dim-param",), "size or range of a named dimension: @symbol 4, @symbol '{min:1,max:4}'",
         "@SYMBOL DIM", "greedy", str),
        (("--skip-unknown-operators",), "keep unknown operators as 'unknown:NAME'", None, "", str),
        (("--debug-symbols",), "print the source nodes of each instruction", None, "", str),
        (("-t", "--trim"), "drop the last N instructions of the model", "N", "", number(1)),
        (("-s", "--trim-size"), "with --trim: keep only N operations before the cut", "N", "",
         number(1)),
        (("--replace-literals",), "make parameters literal:0, literal:1 ... of the constants",
         None, "", str),
        (("-O", "--optimize"), "run MIGraphX's simplifying passes on the model as it is read",
         None, "", str),
        (("-p", "--apply-pass"), "run these passes on the model as it is read, by name or as "
         "mgx-opt takes them", "PASS...", "greedy", str),
    )
)  # fmt: skip

EMIT = (
    Option(("--text",), "print MIGraphX's text form (default)", group="Output"),
    Option(
        ("--text-version",), "seed: parameters are not counted (default); 2.16: they are",
        "seed|2.16", parse=choice("seed", "2.16"), group="Output",
    ),
    Option(("--mlir",), "print the program as an MLIR module", group="Output"),
    Option(("--json",), "print MIGraphX's JSON form", group="Output"),
    Option(("--binary",), "print MIGraphX's binary form, that of .mxr files", group="Output"),
    Option(("--py", "--python"), "print Python code that builds the program", group="Output"),
    Option(("--cpp",), "print C++ code that builds the program", group="Output"),
    Option(("-g", "--graphviz"), "print a graph in the dot language", group="Output"),
    Option(("--netron",), "print an ONNX file for Netron, without the weights", group="Output"),
    Option(("--brief",), "with --graphviz: operator names alone", group="Output"),
    Option(
        ("-o", "--output"),
        "write to a file, its form by its name: .txt .mlir .json .mxr .py .cpp .dot; for any "
        "other name MIGraphX's binary form", "FILE",
        group="Output",
    ),
)  # fmt: skip

DATA = (
    Option(("--fill0",), "fill these inputs with 0", "NAME...", "greedy", group="Input data"),
    Option(("--fill1",), "fill these inputs with 1", "NAME...", "greedy", group="Input data"),
    Option(
        ("--load-arg",), "read inputs from files: @name FILE, an .npy, .npz, TensorProto (.pb) "
        "or what MIGraphX's argument.save wrote", "@NAME FILE", "greedy", group="Input data",
    ),
    Option(
        ("--seed",), "another draw of the other inputs (default 0: MIGraphX's numbers)", "N",
        parse=number(0), group="Input data",
    ),
)  # fmt: skip

TARGET = (
    Option(("--gpu",), "compile for a GPU (default where one is found)", group="Target"),
    Option(("--cpu",), "compile for this machine's CPU (default otherwise)", group="Target"),
    Option(("--ref",), "interpret each operator by its reference", group="Target"),
    Option(
        ("--arch",), "architectures or cards (gfx942,mi300x), a CPU's name with --cpu",
        "ARCH[,...]", "repeat", group="Target",
    ),
    Option(
        ("--threads",), "threads of a run on the CPU (default: all)", "N", parse=number(1),
        group="Target",
    ),
    Option(
        ("--enable-offload-copy",), "with --gpu: show the copies of inputs and results between "
        "host and device, which every call makes", group="Target",
    ),
    Option(("--disable-fast-math",), "no rewrites that change rounding", group="Target"),
    Option(
        ("--remove-qdq-pairs",), ("do not round values that a model quantises and"
                                 " dequantises, unless a matmul reads them in 8 "
                                 "bits, as in MIGraphX"), group="Target",
    ),
    Option(
        ("--exhaustive-tune",), "compile in several ways, keep the fastest, and write it to the "
        "tuning file, from which later compiles take it", group="Target",
    ),
    Option(
        ("--kernel-boundaries",), "off: leave fusion to the backend", "on|off",
        parse=choice("on", "off"), group="Target",
    ),
    Option(("--emulate",), "run gpu programs on the emulator of AMD GPUs", group="Target"),
    Option(
        ("--graph", "--hip-graph"), "make each call of a gpu program one launch of a HIP or CUDA "
        "graph; on NVIDIA it is the default", group="Target",
    ),
    Option(("--no-cache",), "neither look up nor keep compiled code", group="Target"),
    Option(
        ("--timeout",), ("stop compiling after this many seconds; by default the "
                        "backend gets 600 and 6 for each kernel, then the same again "
                        "without kernel boundaries"), "SECONDS",
        parse=tolerance, group="Target",
    ),
)  # fmt: skip

SIZES = Option(
    ("--sizes",), "compile ahead, side by side, for these sizes of a dimension that is dynamic; a "
    "call runs the program of its size, or the next larger one on padded inputs",
    "[@SYMBOL] N...", "greedy", group="Target",
)  # fmt: skip

QUANTIZE = (
    Option(
        ("--fp16",), "compute in half: constants too; inputs and outputs keep their types",
        group="Quantization",
    ),
    Option(("--bf16",), "compute in bf16, as --fp16", group="Quantization"),
    Option(
        ("--int8",), "compute dots and convolutions with constant weights in 8-bit integers",
        group="Quantization",
    ),
    Option(("--fp8",), "compute them in 8-bit floats (E4M3FN)", group="Quantization"),
    Option(
        ("--int4-weights",), ("round constant weights of dots and "
                             "convolutions to 4 bits, 32 weights of a dot "
                             "per scale"), group="Quantization",
    ),
    Option(
        ("--calibrate",), ("with --int8 and --fp8: samples by which "
                          "the ranges of activations are chosen (an"
                          " .npz of inputs, a folder of them, or a "
                          "folder of .npy or .pb files for each "
                          "input); without it each run finds its "
                          "own. With --int4-weights: samples for "
                          "GPTQ"), "PATH", group="Quantization",
    ),
    Option(
        ("--calibration-method",), ("how ranges are chosen: minmax (default of --fp8), "
                                   "percentile, entropy or mse (default of --int8)"), "METHOD",
        parse=choice("minmax", "percentile", "entropy", "mse"), group="Quantization",
    ),
)  # fmt: skip

ITERATIONS = Option(
    ("-n", "--iterations"), "timed calls (default 100)", "N", parse=number(1), group="Performance"
)
_ORT = (
    "compare with onnxruntime: verify its outputs instead of ref's, perf its time on as many "
    "threads"
)
PERF = (
    ITERATIONS,
    Option(
        ("--warm-up",), "untimed calls before the timed ones (default 1)", "N", parse=number(0),
        group="Performance",
    ),
    Option(
        ("--duration",), "continue timed calls for at least this many seconds", "SECONDS",
        parse=tolerance, group="Performance",
    ),
    Option(
        ("--concurrency",), "also time this many concurrent callers", "N", parse=number(1),
        group="Performance",
    ),
    Option(
        ("-d", "--detailed"), "summarise kernels by the types and dims of their operands too",
        group="Performance",
    ),
    Option(("--ort",), _ORT, group="Performance"),
    Option(
        ("--trace",), "write the times of calls and kernels as a trace that Chrome and Perfetto "
        "show", "FILE", group="Performance",
    ),
    Option(
        ("--compare",), "compare with the --json report of another run; exit status 1 where this "
        "one is slower than --threshold allows", "FILE", group="Performance",
    ),
    Option(
        ("--threshold",), "with --compare: how much slower the total may be, in percent (default "
        "10)", "PERCENT", parse=tolerance, group="Performance",
    ),
)  # fmt: skip

VERIFY = (
    Option(
        ("--verbose",), "also print the loaded program, those of both sides, and a line for each "
        "output", group="Output",
    ),
    Option(
        ("--migraphx-lines",), "print what scripts for migraphx-driver verify read: --verbose, "
        "MIGraphX's lines of outputs that fail, and its closing line", group="Output",
    ),
    Option(
        ("--rms-tol",), "limit of the rms error, relative to the largest magnitude", "X",
        parse=tolerance, group="Verification",
    ),
    Option(
        ("--atol",), "absolute part of the elementwise limit", "X", parse=tolerance,
        group="Verification",
    ),
    Option(
        ("--rtol",), "part of the elementwise limit relative to the reference", "X",
        parse=tolerance, group="Verification",
    ),
    Option(("--ort",), _ORT, group="Verification"),
    Option(
        ("--against",), "the reference side reads this model instead", "FILE",
        group="Verification",
    ),
    Option(("--ref-use-double",), "the reference computes in f64", group="Verification"),
    Option(
        ("-c", "--compiled-model"), "the target side is this compiled .mxr", "FILE",
        group="Verification",
    ),
    Option(
        ("-i", "--per-instruction"), "also list every instruction that is wrong on the target",
        group="Verification",
    ),
    Option(
        ("-b", "--bisect"), "where an output fails, find the first wrong instruction, and write a "
        "model of it that fails alone", group="Verification",
    ),
    Option(
        ("-r", "--reduce"), "where an output fails, write the smallest model that still does",
        group="Verification",
    ),
    Option(
        ("--minimal",), "what --bisect and --reduce write (default: NAME.minimal.mxr)", "FILE",
        group="Verification",
    ),
)  # fmt: skip

SAVE_OUTPUTS = Option(
    ("--save-outputs",), "write the outputs to an .npz file, by name, or the only one to an .npy "
    "file", "FILE", group="Output",
)  # fmt: skip
RUN_LIMITS = (
    Option(
        ("--max-run-seconds",), ("end a run that takes longer; for "
                                "perf, time and roctx this limits "
                                "one run before the timed ones"), "SECONDS",
        parse=positive, group="Target",
    ),
    Option(
        ("--max-run-memory",), "end a run that needs more MiB, without the weights", "N",
        parse=number(1), group="Target",
    ),
)  # fmt: skip
LIST = Option(("-l", "--list"), "list all operators", group="Operators")

LOADERS = (*LOADER, *EMIT)
TIME_REPORT = Option(
    ("--time-report",), "print the seconds of each phase of the compile to stderr, as a table "
    "(default) or as one line of JSON", "table|json", "optional", parse=choice("table", "json"),
    group="Output",
)  # fmt: skip
COMPILERS = (*LOADER, *EMIT, *TARGET, *QUANTIZE, TIME_REPORT)
RUNNERS = (*COMPILERS, *DATA, *RUN_LIMITS)
# perf and verify: their reports are what --json prints
REPORTERS = (
    *(o for o in RUNNERS if o.key != "--json"),
    Option(("--json",), "print the report as JSON and no program; --output writes it to a file",
           group="Output"),
)  # fmt: skip

LOG = (
    Option(
        ("--log-level",), "none, error, warn, info (default), debug, trace (each pass too), or 0 "
        "to 5", "LEVEL", parse=level, group="General",
    ),
    Option(("--load-plugin",), "register the operators, passes and importers of a Python file (or "
           "module) of yours", "FILE[,...]", "repeat", group="General"),
    Option(("--log-file",), "append what goes to stderr to these files too", "FILE...", "greedy",
           group="General"),
)  # fmt: skip


def options_of(command: ModuleType) -> tuple[Option, ...]:
    """Return all options of a command's module."""
    return (*(o for o in command.OPTIONS if o is not HELP), *LOG, HELP)


def refused_by(options: tuple[Option, ...], every: tuple[Option, ...]) -> dict[str, str]:
    """Return the flags a command refuses, those of other commands, each with the reason."""
    taken = {f for o in options for f in o.flags}
    no = "is not an option of this command"
    others = {f: no for o in every for f in o.flags}
    for command, of_command in (("perf", PERF), ("verify", VERIFY)):
        others |= {f: f"{no}, {command} takes it" for o in of_command for f in o.flags}
    return {f: why for f, why in others.items() if f not in taken}


EVERY = (HELP, *LOG, *RUNNERS, *PERF, *VERIFY, SIZES, SAVE_OUTPUTS, LIST)
