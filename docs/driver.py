"""Writes docs/driver.md: commands, options, variables. `python docs/driver.py > docs/driver.md`"""

# ruff: noqa: E501  (rows of tables)

from __future__ import annotations

from collections.abc import Iterator

from mgx_mlir.tools.driver.arguments import Option
from mgx_mlir.tools.driver.emit import SUFFIXES
from mgx_mlir.tools.driver.environment import PREFIX, VARIABLES
from mgx_mlir.tools.driver.main import COMMANDS, command_table

# the options of MIGraphX's driver page (its table 2), and those that version 2.16 has besides
SEED = (
    "--help", "--test", "--onnx", "--tf", "--migraphx", "--migraphx-json", "--batch", "--nhwc",
    "--nchw", "--skip-unknown-operators", "--trim", "--optimize", "--graphviz", "--brief", "--cpp",
    "--json", "--text", "--binary", "--output", "--fill0", "--fill1", "--input-dim",
    "--dyn-input-dim", "--default-dyn-dim", "--gpu", "--cpu", "--ref", "--enable-offload-copy",
    "--disable-fast-math", "--exhaustive-tune", "--fp16", "--int8", "--fp8", "--rms-tol", "--atol",
    "--rtol", "--per-instruction", "--reduce", "--iterations", "--list",
)  # fmt: skip
NEWER = (
    "--debug-symbols", "--trim-size", "--dim-param", "--output-names", "--apply-pass", "--mlir",
    "--replace-literals", "--strip-context", "--py", "--netron", "--load-arg", "--bf16",
    "--int4-weights", "--detailed", "--bisect", "--ref-use-double", "--compiled-model",
    "--log-level", "--log-file", "--version", "--ort-sha",
)  # fmt: skip

# differences from MIGraphX
DIFFERENT = {
    "--batch": "It is an error if all dims of a model are stated, except for the rate of `perf`.",
    "--nhwc": "A TensorFlow model keeps its layout; `--migraphx-layout` gives MIGraphX's.",
    "--nchw": "A TensorFlow model keeps its layout; `--migraphx-layout` gives MIGraphX's.",
    "--strip-context": "`read` then shows, and other commands then compile, what was compiled.",
    "--apply-pass": "MIGraphX's names, aliases too, and whatever `mgx-opt` takes.",
    "--graphviz": "All modules, a cluster each; MIGraphX draws main alone.",
    "--brief": "In colour.",
    "--text": "In `serve` it names a language model.",
    "--json": "In `perf` and `verify` it is their report, and no program is printed.",
    "--output": "The form goes by the name's ending, see below; MIGraphX's is binary always.",
    "--mlir": "Prints the program as MLIR. MIGraphX wraps it for rocMLIR; here all goes that way.",
    "--enable-offload-copy": "For `--gpu`. Arguments are in host memory and every call copies them, "
    "with the option and without; it shows the copies in the program. On `--cpu` and `--ref` "
    "nothing is copied, and it is an error.",
    "--disable-fast-math": "Leaves out rewrites that change rounding, on every target.",
    "--exhaustive-tune": "Compiles in several ways and keeps the fastest, see below.",
    "--dyn-input-dim": "Each optimal becomes a variant, see below.",
    "--default-dyn-dim": "Each optimal becomes a variant, see below.",
    "--rms-tol": "1e-5 where MIGraphX has 1e-3: that would pass a wrong weight.",
    "--atol": "5e-5 by default, checked in every run.",
    "--rtol": "5e-5 by default, checked in every run.",
    "--per-instruction": "All intermediate results of one run are compared.",
    "--reduce": "Leaves a minimal model on disk.",
    "--bisect": "Leaves a minimal model on disk.",
    "--load-arg": "Reads .npy, .npz and TensorProtos too.",
    "--list": "Without it `op`, `onnx` and `tf` list as well.",
    "--log-file": "Lines have MIGraphX's form; those on stderr have no time and no level.",
    "--ort-sha": "The version of the onnxruntime that `verify --ort` compares with.",
    "--version": "On stdout.",
}  # fmt: skip
TOP = ("--version", "--ort-sha")  # ahead of a command

HEAD = """\
# mgx-driver

<!-- written by `python docs/driver.py > docs/driver.md` -->

`mgx-driver COMMAND [OPTION...] FILE`. Commands, options and output are MIGraphX's; the tables below say what differs.
`mgx-driver COMMAND --help` explains a command; `source <(mgx-driver completion bash)` completes it (zsh,
fish and powershell too).
Programs and reports go to stdout, progress to stderr: on a terminal one line with the stage of a compile, its kernels
and the seconds, unless `MGX_PROGRESS=0`. Errors are one line and their notes.

| exit status | meaning |
|---|---|
| 0 | done |
| 1 | `verify` found a difference, `perf --compare` a slower run, `report` either |
| 2 | it could not be done |
| 130 | interrupted |

No option is accepted and ignored: one that would change nothing is an error that says why. A value is `--flag value`
or `--flag=value`. Lists (`NAME...`) take every word up to the next option, so the file comes ahead of them. A scalar
option given twice is an error.
"""

DIMS = """\
## Dims that a model leaves dynamic

| spelling | means |
|---|---|
| `--batch 4` | every dynamic dim is 4 (default 1) |
| `--input-dim @x 4 3 224 224 @y 4` | all dims of these inputs; where an input is dynamic, the size to run at |
| `--dim-param @batch 4 @seq "{min:1, max:128}"` | a named dim of an ONNX model, also as `"[{min:1, max:128}]"` |
| `--dynamic-dims` | every dynamic dim stays dynamic, under its name; runs are at `--batch` (1), or at `--input-dim`'s sizes |
| `--sizes 1 8`, `--sizes @batch 1 8` | `compile`, `run`, `time`, `verify`: a program of fixed size for each, compiled ahead, side by side; a call at `--batch` runs the next larger one where rows are proved to be independent |
| `--default-dyn-dim "{min:1, max:64, optimals:[1, 8]}"` | the range of every dynamic dim |
| `--dyn-input-dim @x "[{min:1, max:64}, 3, 224, 224]"` | ranges of one input's dims |

A range is `{min, max, optimals}`, or as in MIGraphX's files `{range:{min, max}, optimals, sym}`. Keys need no quotes;
`#` and `//` start comments.

The compiled program is general: it runs at any size in range. Each optimal adds a variant: a function of its own whose
dims are that size, compiled with the same passes as a static program, in the same file. A run calls the variant for
the inputs' sizes, else the general function; nothing is compiled at run time.

Dims of one symbol have one size, as have dims of one range without a symbol. Optimals of several dims make a variant
for each choice, 16 at most. `run`, `perf` and `compile` name the variants on stderr. Each one takes the time of a
compile, and packs the weights of its matmuls for itself when it is loaded.
"""

TUNING = """\
## --exhaustive-tune

For a whole program one choice after the other is compiled and timed in turns with the best so far, on the inputs of
`run`. It is kept if it is at least 2 % faster:

| target | choices for a program |
|---|---|
| `cpu` | one thread or all, kernels in our own vector loops or in linalg, data tiling, the backend's level O2 or O3, our kernel boundaries or the backend's |
| `gpu` | the backend's level O2 or O3, our kernel boundaries or the backend's; not searched without a device |

On `gpu` each matmul and convolution of the program comes first, with all that its kernel does: up to 12
choices of its tile, of parts of its depth, and the backend's own. Many are compiled as one module. A GPU's clock is
the judge. Without one (`compile` needs none, and with `--emulate`) it is the bound of the compiled code
([AMD GPUs](hip.md#tuning)).

Each choice and its time are printed on stderr. The best solution is kept in the tuning file: the one that
`MIGRAPHX_PROBLEM_CACHE` names, else `tuning.json` in the cache's folder (`mgx-driver env` says where). Its form is that
of MIGraphX's problem cache, an array of `[{name, problem}, solution]`. Every later compile of the same file with the
same options takes the solution from there, and says so. To search again, remove the file.

| name | problem | solution |
|---|---|---|
| `cpu::program`, `gpu::program` | digest of the file and its options, CPU or architecture, threads, compiler's version | `vector_kernels`, `boundaries`, `data_tiling`, `opt_level`, `threads` |
| `gpu::product` | architecture, compiler's version; `op` (`dot` or `convolution`), `dtype`, `dims`, `layout` of the weights, `batch` | `tile` (`size` in matrix instructions, `waves`, `steps`; null: the backend's), `split`; `us`, and how it was `judged`: `time` or `bound` |

A product's solution serves every program that has this product. A bound never replaces a time. The file is written to a
temporary file and renamed, under a lock. Rows that this version does not know stay.

`MGX_PROBLEM_CACHES` names files that are only read, below one's own: an administrator's or a project's. One's own
counts first, then the files in their order. `mgx-driver problems` lists, checks, merges and converts such files.
"""

SCRIPTS = """\
## Python scripts

`mgx-driver read build.py` runs a script and takes the program in its variable `p`, or the only program that it makes.
In a script `import migraphx` is this package. A script is code: run none that you do not trust.
"""


def table(head: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> str:
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    return "\n".join([*lines, *(f"| {' | '.join(_cell(c) for c in row)} |" for row in rows)]) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def commands() -> str:
    rows = ((f"`{name}`", text) for name, (text, _) in command_table().items())
    return table(("command", ""), rows)


def takers(flag: str) -> list[str]:
    """The commands that take an option."""
    return [
        name
        for name, (_, options) in command_table().items()
        if any(flag in o.flags for o in options)
    ]


def option_of(flag: str) -> Option | None:
    for _, options in command_table().values():
        for o in options:
            if flag in o.flags:
                return o
    return None


def migraphx_row(flag: str) -> tuple[str, ...]:
    """An option of MIGraphX: spellings, whether it is done, for which commands, what differs."""
    if flag in TOP:
        return (f"`{flag}`", "done", "ahead of a command", DIFFERENT[flag])
    option = option_of(flag)
    if option is None:
        raise KeyError(f"{flag} is an option of MIGraphX that no command takes")
    flags = ", ".join(f"`{f}`" for f in option.flags)
    return (flags, "done", _commands(takers(flag)), DIFFERENT.get(flag, ""))


_SETS = {
    "the rest": (
        "read", "params", "compile", "run", "perf", "time", "verify", "roctx", "report", "quantize",
    ),
}  # fmt: skip


def _commands(names: list[str]) -> str:
    if set(names) == {n for n in _SETS["the rest"] if n in COMMANDS and n != "params"}:
        return "all that read a model, but `params`"
    if set(names) >= set(COMMANDS):
        return "all"
    if set(names) == {n for n in _SETS["the rest"] if n in COMMANDS}:
        return "all that read a model"
    return ", ".join(names)


def own_rows() -> Iterator[tuple[str, ...]]:
    """The options that MIGraphX does not have."""
    seen: set[str] = set()
    for _, options in command_table().values():
        for o in options:
            known = any(f in (*SEED, *NEWER) for f in o.flags)
            if known or o.key in seen:
                continue
            seen.add(o.key)
            head = ", ".join(f"`{f}`" for f in o.flags)
            yield (head, _commands(takers(o.key)), o.help)


def variables(honoured: bool) -> Iterator[tuple[str, ...]]:
    for name, v in VARIABLES.items():
        if v.honoured is honoured:
            yield (f"`{PREFIX}{name}`", v.text)


def forms() -> Iterator[tuple[str, ...]]:
    for suffix, form in SUFFIXES.items():
        yield (f"`{suffix}`", "MIGraphX's binary form" if form == "msgpack" else form)
    yield ("any other", "MIGraphX's binary form; `.onnx` needs `--netron`, `.vmfb` is `compile`'s")


def text() -> str:
    """The page."""
    head = ("option", "", "commands", "what differs")
    parts = [
        HEAD,
        "## Commands\n",
        commands(),
        "## Options of MIGraphX's driver page\n",
        table(head, map(migraphx_row, SEED)),
        "## Options that MIGraphX 2.16 has besides\n",
        table(head, map(migraphx_row, NEWER)),
        "## Options of ours\n",
        table(("option", "commands", ""), own_rows()),
        "## Forms of --output, by the name's ending\n",
        table(("ending", "form"), forms()),
        DIMS,
        TUNING,
        SCRIPTS,
        "## Environment\n\nVariables of MIGraphX that have an effect here:\n",
        table(("variable", "effect"), variables(True)),
        "These have no effect. One that is set is warned about once, as is an unknown one:\n",
        table(("variable", "why"), variables(False)),
    ]
    return "\n".join(parts)


if __name__ == "__main__":
    print(text(), end="")
