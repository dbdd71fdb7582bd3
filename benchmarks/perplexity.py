"""Perplexity of a text by a .gguf file or a folder: ours beside transformers and llama.cpp.

    python benchmarks/perplexity.py MODEL                       # blocks of the file, int8, int4
    python benchmarks/perplexity.py MODEL --weights file int4 --peers transformers llama.cpp
    python benchmarks/perplexity.py MODEL --text book.txt --window 512 --most 4096
    python benchmarks/perplexity.py MODEL --most 2048 --page docs/data/perplexity.md

The text is cut into windows of so many tokens. In each every token behind the first is scored by
those ahead of it; a figure is exp of the mean of their negative log-probabilities, computed in f64
from each engine's logits. int8 and int4 round the weights that the file's tensors stand for, so
that they lose on top of what the file lost already. transformers computes in f32, f16 as
transformers with weights rounded to f16. llama.cpp reads the same file: its products round
activations to 8 bits. Without --text it is this project's own documentation, which no model has
been trained on. An engine that is not installed has its message as its figure.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from mgx_mlir.text.checkpoint import checkpoint_of  # noqa: E402

PAGES = ("tutorial", "architecture", "quantization", "serving", "caches", "debugging")
Score = Callable[[list[int]], np.ndarray]  # logits {tokens, vocabulary} of a window


def windows(tokens: list[int], size: int) -> Iterator[list[int]]:
    """The windows, each of `size` tokens."""
    for at in range(0, len(tokens) - size + 1, size):
        yield tokens[at : at + size]


def perplexity(score: Score, tokens: list[int], size: int) -> float:
    """The perplexity of a text by an engine."""
    losses = []
    for window in windows(tokens, size):
        logits = np.asarray(score(window))[:-1].astype(np.float64)
        logits -= logits.max(axis=1, keepdims=True)
        chosen = logits[np.arange(size - 1), window[1:]]
        losses.append(np.log(np.exp(logits).sum(axis=1)) - chosen)
    return math.exp(float(np.concatenate(losses).mean()))


def ours(path: Path, weights: str, window: int) -> Score:
    """Our program: with the file's weights, or rounded ones."""
    from mgx_mlir.text import load

    if weights == "file":
        model = load(path, max_length=window, slots=1)
    else:
        # blocks of a file are kept as they are: the wide weights are rounded anew
        with tempfile.TemporaryDirectory() as folder:
            checkpoint_of(path).model().save_pretrained(folder)
            checkpoint_of(path).tokenizer().inner.save(f"{folder}/tokenizer.json")
            model = load(folder, weights=weights, max_length=window, slots=1)  # type: ignore[arg-type]
    decoder: Any = model.decoder
    return lambda tokens: decoder.scores(0, tokens, 0)


def of_transformers(path: Path, kind: str) -> Score:
    """Eager PyTorch in f32, with weights rounded to f16 where `kind` says so."""
    import torch

    model = checkpoint_of(path).model()
    if kind == "f16":
        with torch.no_grad():
            for p in model.parameters():
                p.copy_(p.half().float())

    def score(tokens: list[int]) -> np.ndarray:
        with torch.no_grad():
            return model(torch.tensor([tokens])).logits[0].numpy()

    return score


def of_llama(path: Path, window: int) -> Score:
    """llama.cpp on the same file."""
    from llama_cpp import Llama

    model = Llama(str(path), n_ctx=window, n_batch=window, logits_all=True, verbose=False)

    def score(tokens: list[int]) -> np.ndarray:
        model.reset()
        model.eval(tokens)
        return np.array(model.scores[: len(tokens)])

    return score


NAMES = {
    "f32": "transformers, f32", "f16": "transformers, weights rounded to f16",
    "llama.cpp": "llama.cpp on the same file, which rounds activations to 8 bits",
    "file": "ours, the weights of the file",
}  # fmt: skip


def page(args: argparse.Namespace, count: int, figures: Sequence[tuple[str, str]]) -> str:
    """Return the page of the figures."""
    options = f"--window {args.window} --most {args.most}"
    kinds = [f"--weights {' '.join(args.weights)}", f"--peers {' '.join(args.peers)}"]
    lines = [
        "# Perplexity",
        "",
        f"<!-- written by `python benchmarks/perplexity.py MODEL {options} --page {args.page}` -->",
        "",
        f"`{args.model.name}`, on {count * args.window} tokens of "
        f"{args.text.name if args.text else 'this documentation'} in windows of {args.window}. "
        "Lower is better.",
        "",
        "```",
        f"python benchmarks/perplexity.py MODEL {options} {kinds[0]} \\",
        f"    {kinds[1]} --page {args.page}",
        "```",
        "",
        "| | perplexity | by f32 |",
        "|---|---:|---:|",
    ]
    base = next((float(v) for k, v in figures if k == "f32" and is_figure(v)), None)
    for kind, value in figures:
        name = NAMES.get(kind, f"ours, the widened weights rounded anew to {kind}")
        part = f"{float(value) / base:.4f}" if base and is_figure(value) else ""
        lines.append(f"| {name} | {value} | {part} |")
    return "\n".join([*lines, ""])


def is_figure(value: str) -> bool:
    """Return whether an engine gave a figure, and no message."""
    return value.replace(".", "", 1).isdigit()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("--weights", nargs="*", default=["file", "int8", "int4"])
    parser.add_argument("--peers", nargs="*", default=["f32", "f16", "llama.cpp"])
    parser.add_argument("--text", type=Path)
    parser.add_argument("--window", type=int, default=512)
    parser.add_argument("--most", type=int, default=4096, help="tokens of the text")
    parser.add_argument("--page", type=Path, help="write the figures as a page")
    args = parser.parse_args()
    pages = [args.text] if args.text else [ROOT / "docs" / f"{p}.md" for p in PAGES]
    text = "\n".join(p.read_text(encoding="utf-8") for p in pages)
    tokens = checkpoint_of(args.model).tokenizer().encode(text)[: args.most]
    count = len(tokens) // args.window
    print(f"{count} windows of {args.window} tokens")
    figures: list[tuple[str, str]] = []
    for kind in [*args.peers, *args.weights]:
        start = time.perf_counter()
        try:
            score = engine(args, kind)
        except ImportError as e:  # peers are no dependencies
            found = f"not measured: {e}"
        else:
            found = f"{perplexity(score, tokens, args.window):.3f}"
        figures.append((kind, found))
        print(f"{kind:18} {found}   {time.perf_counter() - start:.0f} s", flush=True)
    if args.page:
        args.page.write_text(page(args, count, figures), encoding="utf-8")


def engine(args: argparse.Namespace, kind: str) -> Score:
    """The engine of a row. Errors: ImportError."""
    if kind == "llama.cpp":
        return of_llama(args.model, args.window)
    if kind in args.peers:
        return of_transformers(args.model, kind)
    return ours(args.model, kind, args.window)


if __name__ == "__main__":
    main()
