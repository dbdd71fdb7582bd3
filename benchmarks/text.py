"""Times text generation beside llama.cpp, onnxruntime-genai and OpenVINO GenAI, in pairs.

    python benchmarks/text.py --gguf model.gguf                       # ours, llama.cpp, OpenVINO
    python benchmarks/text.py --gguf model.gguf --genai folder        # onnxruntime-genai too
    python benchmarks/text.py --gguf model.gguf --threads 2 --tokens want.json

Each engine loads the model in a process of its own, and answers one request at a time, in turn with
the others: a round has one answer of each. A figure is the median over rounds, a ratio the median
of the ratios of each round. With one thread CPU time is compared, else wall clock. Prompts are
drawn anew for each round, so that no engine finds one in a cache.
A peer that is not installed, or refuses the file, is listed with its message.
`--tokens`: JSON of [{"prompt": [..], "tokens": [..]}], which greedy tokens are compared with.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.measure import write_json  # noqa: E402

LONG, SHORT, NEW = 512, 16, 65  # tokens of a long and a short prompt, and of an answer
STREAMS = 8
_SUMMED = 64 << 20  # numbers of four bytes
Answer = Callable[[list[int], int], list[int]]


# ---- engines, each in a process of its own -----------------------------------------------------


def ours(args: argparse.Namespace) -> tuple[Answer, Callable[[list[list[int]], int], None]]:
    from mgx_mlir import text

    options: dict[str, Any] = {"weights": args.weights} if args.weights else {}
    model = text.load(args.gguf, threads=args.threads, max_length=2048, slots=STREAMS, **options)
    engine = model.engine()

    def request(prompt: list[int], count: int) -> text.Request:
        return text.Request(prompt, count, stop_tokens=frozenset())

    def answer(prompt: list[int], count: int) -> list[int]:
        return [piece.token for piece in engine.submit(request(prompt, count))]

    def together(prompts: list[list[int]], count: int) -> None:
        for handle in [engine.submit(request(p, count)) for p in prompts]:
            assert len(list(handle)) == count

    return answer, together


def llama_cpp(args: argparse.Namespace) -> tuple[Answer, None]:
    from llama_cpp import Llama

    model = Llama(
        str(args.gguf), n_ctx=2048, n_threads=args.threads, n_threads_batch=args.threads,
        verbose=False,
    )  # fmt: skip

    def answer(prompt: list[int], count: int) -> list[int]:
        model.reset()
        found = []
        for token in model.generate(prompt, temp=0.0):
            found.append(token)
            if len(found) == count:
                break
        return found

    return answer, None


def onnxruntime_genai(args: argparse.Namespace) -> tuple[Answer, None]:
    import onnxruntime_genai as og

    if args.genai is None:
        raise ValueError("reads no .gguf: --genai names a folder that its model builder wrote")
    config = og.Config(str(args.genai))
    session = {"intra_op_num_threads": args.threads, "session.intra_op.allow_spinning": "0"}
    config.overlay(json.dumps({"model": {"decoder": {"session_options": session}}}))
    model = og.Model(config)

    def answer(prompt: list[int], count: int) -> list[int]:
        params = og.GeneratorParams(model)
        total = len(prompt) + count
        params.set_search_options(max_length=total, min_length=total, do_sample=False)
        generator = og.Generator(model, params)
        generator.append_tokens(np.array([prompt], np.int32))
        for _ in range(count):
            generator.generate_next_token()
        return list(generator.get_sequence(0))[len(prompt) :]

    return answer, None


def openvino_genai(args: argparse.Namespace) -> tuple[Answer, None]:
    import openvino as ov
    import openvino_genai as genai

    pipe = genai.LLMPipeline(str(args.gguf), "CPU", INFERENCE_NUM_THREADS=args.threads)

    def answer(prompt: list[int], count: int) -> list[int]:
        config = genai.GenerationConfig(max_new_tokens=count, ignore_eos=True, do_sample=False)
        ids = np.array([prompt], np.int64)
        inputs = genai.TokenizedInputs(ov.Tensor(ids), ov.Tensor(np.ones_like(ids)))
        return list(pipe.generate(inputs, config).tokens[0])

    return answer, None


ENGINES: dict[str, Callable[[argparse.Namespace], tuple[Answer, Any]]] = {
    "ours": ours, "llama_cpp": llama_cpp, "openvino_genai": openvino_genai,
    "onnxruntime_genai": onnxruntime_genai,
}  # fmt: skip


def summed() -> np.ndarray:
    """An array in large pages, more than caches hold."""
    from mgx_mlir.core.huge_pages import huge_empty

    array = huge_empty(4 * _SUMMED).view(np.float32)
    array[...] = 1
    return array


def serve(args: argparse.Namespace) -> int:
    """Answer requests of the parent's, one a line."""
    out = os.fdopen(os.dup(1), "w")  # libraries write to the other one
    os.dup2(2, 1)

    def say(**row: Any) -> None:
        print(json.dumps(row), file=out, flush=True)

    clock = time.process_time if args.threads == 1 else time.perf_counter
    begin = time.perf_counter()
    try:
        answer, together = ENGINES[args.engine](args)
    except Exception as e:
        say(error=f"{type(e).__name__}: {e}")
        return 0
    loaded = time.perf_counter() - begin
    first = time.perf_counter()
    answer(list(range(10, 10 + SHORT)), 1)
    say(load=loaded, first=time.perf_counter() - first)
    array = summed() if args.engine == "ours" else np.ones(1, np.float32)
    for line in sys.stdin:
        row = json.loads(line)
        start, found = clock(), None
        if row["do"] == "answer":
            found = [int(t) for t in answer(row["prompt"], row["count"])]
        elif row["do"] == "together":
            together(row["prompts"], row["count"])
        elif row["do"] == "sum":
            array.sum()
        seconds = clock() - start
        # the part that is there, in bytes; the array is none of the engine's
        held = int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
        say(seconds=seconds, tokens=found, memory=held - array.nbytes)
    return 0


# ---- the rounds --------------------------------------------------------------------------------


class Engine:
    """A process that has a model loaded."""

    def __init__(self, name: str, arguments: Sequence[str]) -> None:
        self.name = name
        command = [sys.executable, str(Path(__file__)), "--engine", name, *arguments]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True
        )
        self.start = self._read()

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        return json.loads(line) if line else {"error": f"ended with {self._process.wait()}"}

    def ask(self, **row: Any) -> dict[str, Any]:
        assert self._process.stdin is not None
        print(json.dumps(row), file=self._process.stdin, flush=True)
        found = self._read()
        if "error" in found:
            raise RuntimeError(f"{self.name}: {found['error']}")
        return found

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(60)


def measured(engines: Sequence[Engine], rounds: int) -> dict[str, dict[str, list[float]]]:
    """Return seconds by engine and measure, a number for each round."""
    rng = np.random.default_rng(5)
    found: dict[str, dict[str, list[float]]] = {e.name: {} for e in engines}

    def note(engine: Engine, measure: str, seconds: float) -> None:
        found[engine.name].setdefault(measure, []).append(seconds)

    for _ in range(rounds):
        long = rng.integers(100, 40000, LONG).tolist()
        short = rng.integers(100, 40000, SHORT).tolist()
        many = rng.integers(100, 40000, (STREAMS, SHORT)).tolist()
        for e in engines:
            note(e, "prefill", e.ask(do="answer", prompt=long, count=1)["seconds"])
            one = e.ask(do="answer", prompt=short, count=1)["seconds"]
            last = e.ask(do="answer", prompt=[short[-1], *short], count=NEW)
            note(e, "token", (last["seconds"] - one) / (NEW - 1))
            note(e, "memory", last["memory"])
            if e.name == "ours":
                firsts = e.ask(do="together", prompts=many, count=1)["seconds"]
                again = [[p[-1], *p] for p in many]
                all_ = e.ask(do="together", prompts=again, count=NEW)["seconds"]
                note(e, "together", (all_ - firsts) / (NEW - 1) / STREAMS)
                # the first sum behind other processes' work is slower than memory is
                note(e, "sum", min(e.ask(do="sum")["seconds"] for _ in range(5)))
    return found


def wrong_tokens(engine: Engine, path: Path) -> tuple[int, int]:
    """Return how many greedy tokens differ, and of how many."""
    wrong = count = 0
    for row in json.loads(path.read_text()):
        got = engine.ask(do="answer", prompt=row["prompt"], count=len(row["tokens"]))["tokens"]
        wrong += sum(a != b for a, b in zip(got, row["tokens"], strict=True))
        count += len(got)
    return wrong, count


def report(found: dict[str, dict[str, list[float]]], size: int) -> list[dict[str, Any]]:
    """Print a line for each engine; return the figures."""
    rows: list[dict[str, Any]] = []
    own = found.get("ours", {})
    for name, measures in found.items():
        row: dict[str, Any] = {"engine": name}
        row["tokens_s"] = 1 / median(measures["token"])
        row["prefill_s"] = median(measures["prefill"])
        row["memory"] = median(measures["memory"])
        if own:  # ours by theirs: of tokens a second, and of the time of a prompt
            pairs = zip(measures["token"], own["token"], strict=True)
            row["speed"] = median(theirs / mine for theirs, mine in pairs)
            pairs = zip(own["prefill"], measures["prefill"], strict=True)
            row["prefill"] = median(mine / theirs for mine, theirs in pairs)
        rows.append(row)
        print(
            f"{name:18} {row['tokens_s']:7.1f} tokens/s, {LONG} tokens read in "
            f"{row['prefill_s'] * 1e3:6.0f} ms, {row['memory'] / 1e6:5.0f} MB"
            + (f"; ours by it {row['speed']:.2f}, {row['prefill']:.2f}" if own else "")
        )
    if own:
        pairs = zip(own["token"], own["together"], strict=True)
        rows[0]["together"] = median(one / each for one, each in pairs)
        moved = zip(own["sum"], own["token"], strict=True)
        rows[0]["of_bandwidth"] = median(size * s / t / (4 * _SUMMED) for s, t in moved)
        print(f"{STREAMS} streams together: {rows[0]['together']:.2f} times one stream's tokens/s")
        print(f"a token reads the file's bytes at {rows[0]['of_bandwidth']:.2f} of a sum's rate")
    return rows


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--gguf", type=Path, required=True, help="a .gguf file")
    parser.add_argument("--genai", type=Path, help="a folder of onnxruntime-genai's builder")
    parser.add_argument(
        "--weights", choices=("int4", "int8", "f16", "bf16"), help="round ours further"
    )
    parser.add_argument("--engines", nargs="*", choices=ENGINES, default=list(ENGINES))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--tokens", type=Path, help="JSON of prompts and greedy tokens")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--engine", choices=ENGINES, help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    if args.engine:
        return serve(args)
    passed = ["--gguf", str(args.gguf), "--threads", str(args.threads)]
    passed += ["--genai", str(args.genai)] if args.genai else []
    passed += ["--weights", args.weights] if args.weights else []
    engines = [Engine(name, passed) for name in args.engines]
    ready = [e for e in engines if "error" not in e.start]
    for e in engines:
        if e not in ready:
            print(f"{e.name}: {e.start['error'][:300]}")
        else:
            print(
                f"{e.name}: loaded in {e.start['load']:.2f} s, first token {e.start['first']:.3f} s"
            )
    rows = report(measured(ready, args.rounds), args.gguf.stat().st_size)
    if args.tokens:
        for e, row in zip(ready, rows, strict=True):
            row["wrong"], row["compared"] = wrong_tokens(e, args.tokens)
            print(f"{e.name}: {row['wrong']} of {row['compared']} greedy tokens differ")
    for e in ready:
        e.close()
    if args.json:
        write_json(args.json, rows)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
