"""Times text generation beside llama.cpp, onnxruntime-genai and OpenVINO GenAI, in pairs.

    python benchmarks/text.py --gguf model.gguf                       # ours, llama.cpp, OpenVINO
    python benchmarks/text.py --gguf model.gguf --genai folder        # onnxruntime-genai too
    python benchmarks/text.py --gguf model.gguf --threads 2 --tokens want.json
    python benchmarks/text.py --gguf model.gguf --python llama_cpp=/venv/bin/python

Each engine loads the model in a process of its own, and answers one request at a time, in turn with
the others: a round has one answer of each. A figure is the median over rounds, a ratio the median
of the ratios of each round. With one thread CPU time is compared, else wall clock. Prompts are
drawn anew for each round, so that no engine finds one in a cache. Eight streams are one batch of
eight answers. `--python` names the Python that has a peer, where it is not this one.
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
Together = Callable[[list[list[int]], int], None]


# ---- engines, each in a process of its own -----------------------------------------------------


def ours(args: argparse.Namespace) -> tuple[Answer, Together]:
    from mgx_mlir import text

    options: dict[str, Any] = {"weights": args.weights} if args.weights else {}
    options |= {"row_bits": args.row_bits}
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


def llama_cpp(args: argparse.Namespace) -> tuple[Answer, Together]:
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

    return answer, llama_batches(model, args.threads)


def llama_batches(model: Any, threads: int) -> Together:
    """Greedy answers of several sequences in one batch of llama.cpp's own functions."""
    import llama_cpp as own

    made: list[Any] = []  # the context, made with the first batch

    def context() -> Any:
        if not made:
            how = own.llama_context_default_params()
            how.n_ctx, how.n_seq_max, how.n_batch = 2048 * STREAMS, STREAMS, 2048
            how.n_threads = how.n_threads_batch = threads
            made.append(own.llama_init_from_model(model._model.model, how))
        return made[0]

    def together(prompts: list[list[int]], count: int) -> None:
        held = context()
        own.llama_memory_clear(own.llama_get_memory(held), True)
        size = own.llama_vocab_n_tokens(model._model.vocab)
        batch = own.llama_batch_init(sum(map(len, prompts)), 0, 1)
        rows, starts = prompts, [0] * len(prompts)
        for _ in range(count):
            last = []
            batch.n_tokens = 0
            for i, row in enumerate(rows):
                for k, token in enumerate(row):
                    at = batch.n_tokens
                    batch.token[at], batch.pos[at] = token, starts[i] + k
                    batch.n_seq_id[at], batch.seq_id[at][0] = 1, i
                    batch.logits[at] = k == len(row) - 1
                    batch.n_tokens += 1
                last.append(batch.n_tokens - 1)
            assert own.llama_decode(held, batch) == 0
            starts = [a + len(row) for a, row in zip(starts, rows, strict=True)]
            logits = [np.ctypeslib.as_array(own.llama_get_logits_ith(held, at), (size,))
                      for at in last]  # fmt: skip
            rows = [[int(x.argmax())] for x in logits]
        own.llama_batch_free(batch)

    return together


def onnxruntime_genai(args: argparse.Namespace) -> tuple[Answer, Together]:
    import onnxruntime_genai as og

    if args.genai is None:
        raise ValueError("reads no .gguf: --genai names a folder that its model builder wrote")
    config = og.Config(str(args.genai))
    session = {"intra_op_num_threads": args.threads, "session.intra_op.allow_spinning": "0"}
    config.overlay(json.dumps({"model": {"decoder": {"session_options": session}}}))
    model = og.Model(config)

    def run(prompts: list[list[int]], count: int) -> Any:
        params = og.GeneratorParams(model)
        total = len(prompts[0]) + count
        params.set_search_options(
            max_length=total, min_length=total, do_sample=False, batch_size=len(prompts)
        )
        generator = og.Generator(model, params)
        generator.append_tokens(np.array(prompts, np.int32))
        for _ in range(count):
            generator.generate_next_token()
        return generator

    def answer(prompt: list[int], count: int) -> list[int]:
        return list(run([prompt], count).get_sequence(0))[len(prompt) :]

    def together(prompts: list[list[int]], count: int) -> None:
        run(prompts, count)

    return answer, together


def openvino_genai(args: argparse.Namespace) -> tuple[Answer, Together]:
    import openvino as ov
    import openvino_genai as genai

    pipe = genai.LLMPipeline(str(args.gguf), "CPU", INFERENCE_NUM_THREADS=args.threads)

    def run(prompts: list[list[int]], count: int) -> Any:
        config = genai.GenerationConfig(max_new_tokens=count, ignore_eos=True, do_sample=False)
        ids = np.array(prompts, np.int64)
        inputs = genai.TokenizedInputs(ov.Tensor(ids), ov.Tensor(np.ones_like(ids)))
        return pipe.generate(inputs, config).tokens

    def answer(prompt: list[int], count: int) -> list[int]:
        return list(run([prompt], count)[0])

    def together(prompts: list[list[int]], count: int) -> None:
        run(prompts, count)

    return answer, together


ENGINES: dict[str, Callable[[argparse.Namespace], tuple[Answer, Together]]] = {
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
    begin = clock()
    try:
        answer, together = ENGINES[args.engine](args)
    except Exception as e:
        say(error=f"{type(e).__name__}: {e}")
        return 0
    loaded = clock() - begin
    first = clock()
    answer(list(range(10, 10 + SHORT)), 1)
    say(load=loaded, first=clock() - first)
    array = summed() if args.engine == "ours" else np.ones(1, np.float32)
    for line in sys.stdin:
        row = json.loads(line)
        start, found = clock(), None
        if row["do"] == "answer":
            found = [int(t) for t in answer(row["prompt"], row["count"])]
        elif row["do"] == "together":
            try:
                together(row["prompts"], row["count"])
            except Exception as e:
                say(refused=f"{type(e).__name__}: {e}")
                continue
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

    def __init__(self, name: str, arguments: Sequence[str], python: str) -> None:
        self.name = name
        self.refused: str | None = None  # message of eight streams
        command = [python, str(Path(__file__)), "--engine", name, *arguments]
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
        self._process.wait(600)


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
            if e.refused is None:
                firsts = e.ask(do="together", prompts=many, count=1)
                again = [[p[-1], *p] for p in many]
                all_ = e.ask(do="together", prompts=again, count=NEW)
                e.refused = firsts.get("refused") or all_.get("refused")
                if e.refused is None:
                    each = (all_["seconds"] - firsts["seconds"]) / (NEW - 1) / STREAMS
                    note(e, "together", each)
            if e.name == "ours":
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
        if "together" in measures:
            row["together_s"] = 1 / median(measures["together"])
            pairs = zip(measures["token"], measures["together"], strict=True)
            row["together"] = median(one / each for one, each in pairs)
        rows.append(row)
        print(
            f"{name:18} {row['tokens_s']:7.1f} tokens/s, {LONG} tokens read in "
            f"{row['prefill_s'] * 1e3:6.0f} ms, {row['memory'] / 1e6:5.0f} MB"
            + (f"; ours by it {row['speed']:.2f}, {row['prefill']:.2f}" if own else "")
        )
        if "together" in row:
            print(f"{'':18} {STREAMS} streams: {row['together_s']:7.1f} tokens/s, "
                  f"{row['together']:.2f} times one's")  # fmt: skip
    if own:
        moved = zip(own["sum"], own["token"], strict=True)
        rows[0]["of_bandwidth"] = median(size * s / t / (4 * _SUMMED) for s, t in moved)
        print(f"a token reads the file's bytes at {rows[0]['of_bandwidth']:.2f} of a sum's rate")
    return rows


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--gguf", type=Path, required=True, help="a .gguf file")
    parser.add_argument("--genai", type=Path, help="a folder of onnxruntime-genai's builder")
    parser.add_argument(
        "--weights", choices=("int4", "int8", "f16", "bf16"), help="round ours further"
    )
    parser.add_argument(
        "--row-bits", type=int, default=16, choices=(8, 16), help="of the numbers of ours' prompts"
    )
    parser.add_argument("--engines", nargs="*", choices=ENGINES, default=list(ENGINES))
    parser.add_argument(
        "--python", nargs="*", default=[], metavar="ENGINE=PATH", help="the Python that has a peer"
    )
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
    passed += ["--row-bits", str(args.row_bits)]
    pythons = dict(row.split("=", 1) for row in args.python)
    engines = [Engine(name, passed, pythons.get(name, sys.executable)) for name in args.engines]
    ready = [e for e in engines if "error" not in e.start]
    for e in engines:
        if e not in ready:
            print(f"{e.name}: {e.start['error'][:300]}")
        else:
            print(
                f"{e.name}: loaded in {e.start['load']:.2f} s, first token {e.start['first']:.3f} s"
            )
    rows = report(measured(ready, args.rounds), args.gguf.stat().st_size)
    for e in ready:
        if e.refused is not None:
            print(f"{e.name}: {STREAMS} streams: {e.refused[:300]}")
    for e, row in zip(ready, rows, strict=True):
        row["load"], row["first"] = e.start["load"], e.start["first"]
    if args.tokens:
        for e, row in zip(ready, rows, strict=True):
            row["wrong"], row["compared"] = wrong_tokens(e, args.tokens)
            print(f"{e.name}: {row['wrong']} of {row['compared']} greedy tokens differ")
    if args.json:
        write_json(args.json, rows)
    for e in ready:
        e.close()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
