"""Does the tasks of PyPI packages with our runtime in onnxruntime's place, and compares answers.

    pip install magika rapidocr-onnxruntime nudenet scikit-image silero-vad --target build/tasks
    PYTHONPATH=build/tasks python benchmarks/shipped_tasks.py
    PYTHONPATH=build/tasks python benchmarks/shipped_tasks.py magika
    PYTHONPATH=build/tasks python benchmarks/shipped_tasks.py --int8 rapidocr silero
    PYTHONPATH=build/tasks python benchmarks/shipped_tasks.py --int8 --peer rapidocr

The packages' own code prepares inputs and reads outputs; models are compiled with their dims
dynamic. Scores are compared to three places, places in a picture to a pixel. With `--int8` products
are in 8 bits, with zero points and corrected means, by what the models are given for six other
signals; texts and the number of spans are compared, and spans to two windows of sound. `--peer` has
the models quantised by onnxruntime's static quantiser, by the same samples, and run by onnxruntime.
Exit code 1 where an answer differs or a task fails; a package that is not installed is said to be
missing.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import os
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import onnxruntime

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import mgx_mlir  # noqa: E402
from mgx_mlir.integrations.onnxruntime.models import Model  # noqa: E402
from mgx_mlir.integrations.onnxruntime.programs import Settings  # noqa: E402
from mgx_mlir.onnxruntime import InferenceSession  # noqa: E402

OracleSession: Any = onnxruntime.InferenceSession


@dataclass(frozen=True)
class Task:
    """A task of a package: `make` returns the function that answers a signal."""

    package: str
    module: str
    session: str  # the name that the package makes its sessions by
    make: Callable[[Any], Callable[[Any], Any]]
    signals: Callable[[], list[tuple[str, Any]]]
    others: Callable[[], list[tuple[str, Any]]] | None = None  # to judge 8 bits by
    alike: Callable[[Any, Any], bool] | None = None  # compares two answers

    def answers(self, signals: list[tuple[str, Any]], session: Any) -> list[Any]:
        """Return the answers to the signals with sessions of a class."""
        module = importlib.import_module(self.module)
        with mock.patch(self.session, side_effect=session) as made:
            answer = self.make(module)
        if not made.called:
            raise RuntimeError(f"{self.package} made no session by {self.session}")
        return [answer(signal) for _, signal in signals]


# ---- signals -----------------------------------------------------------------------------------

SOURCES = {
    "c": "#include <stdio.h>\n\nint main(void) {\n    for (int i = 0; i < 9; i++)\n"
    '        printf("%d\\n", i * i);\n    return 0;\n}\n',
    "json": '{"name": "rows", "values": [1, 2, 3.5], "nested": {"a": null, "b": true}}\n',
    "html": "<!DOCTYPE html>\n<html><head><title>A page</title></head>\n"
    "<body><h1>Words</h1><p>A paragraph of them.</p></body></html>\n",
    "sql": "SELECT name, COUNT(*) AS n FROM orders JOIN users ON users.id = orders.user_id\n"
    "WHERE orders.total > 10 GROUP BY name ORDER BY n DESC;\n",
    "shell": '#!/bin/sh\nset -e\nfor f in *.txt; do\n    echo "$f"\n    wc -l < "$f"\ndone\n',
    "empty": "",
    "short": "ab",
}


def sources() -> list[tuple[str, Any]]:
    """Return pieces of source code of several languages, and this file."""
    written = [(name, text.encode()) for name, text in SOURCES.items()]
    return [*written, ("python", Path(__file__).read_bytes()), ("random", bytes(range(256)) * 9)]


PAGES = [
    "Invoice 20391",
    "The quick brown fox jumps over the lazy dog",
    "Total: 1,284.50 EUR\nDue on 14 March\nPaid by card",
    "Graph compilers fuse kernels, and keep what they know of every extent.",
    "Opening hours\nMonday 9:00 - 17:30\nTuesday closed\nSaturday 10:00 - 14:00",
    "",
]


OTHER_PAGES = [
    "Boarding pass\nGate B22 Seat 14C", "Batteries not included", "Room 301\nPlease knock",
    "Chapter 7: The harbour at night", "Serial no. 88-410-7763", "Fresh bread every morning",
    "No parking between 8 and 18", "Platform 9\nDeparts 16:42", "Warranty ends in March 2031",
    "Mix flour, salt and water", "Keep refrigerated at 4 degrees", "Signal lost. Try again",
    "Account 5523 0917\nBalance 310.75", "Handle with care", "The museum is closed on Mondays",
    "Version 2.16 of the library", "Left lane must turn left", "Two tickets, one return",
    "Weather: rain, later sun", "Page 118 of 240",
]  # fmt: skip


def pages(texts: Sequence[str] = PAGES) -> list[tuple[str, Any]]:
    """Return pictures of text in several sizes."""
    image, draw, font = (importlib.import_module(f"PIL.{n}") for n in ("Image", "ImageDraw",
                                                                       "ImageFont"))  # fmt: skip
    found = []
    for number, text in enumerate(texts):
        size = 22 + 6 * (number % 6)
        lines = [w for row in text.splitlines() for w in textwrap.wrap(row, 30)]
        width = 60 + max((len(w) for w in lines), default=4) * size * 6 // 10
        paper = image.new("RGB", (width, 60 + len(lines) * size * 3 // 2), "white")
        for i, line in enumerate(lines):
            at = (30, 30 + i * size * 3 // 2)
            draw.Draw(paper).text(at, line, fill="black", font=font.load_default(size))
        found.append((" ".join(text.split())[:20] or "blank", np.asarray(paper)))
    return found


def photographs() -> list[tuple[str, Any]]:
    """Return photographs of scikit-image's data, as blue, green and red."""
    data = importlib.import_module("skimage.data")
    names = ("astronaut", "coffee", "chelsea", "rocket", "camera", "coins", "text", "page")
    found = []
    for name in names:
        try:
            picture = np.asarray(getattr(data, name)())
        except (OSError, ImportError, ValueError):  # downloads, or needs more packages
            continue
        rgb = picture if picture.ndim == 3 else np.repeat(picture[..., None], 3, -1)
        found.append((name, np.ascontiguousarray(rgb[..., 2::-1])))
    return found


FORMANTS = [  # (hertz, width) of three resonances of four vowels
    [(700, 90), (1220, 110), (2600, 160)], [(300, 60), (2300, 120), (3000, 180)],
    [(450, 70), (800, 90), (2500, 160)], [(530, 80), (1850, 110), (2500, 150)],
]  # fmt: skip


def vowel(pitch: float, number: int, count: int, rate: int) -> np.ndarray:
    """Return samples of a vowel: harmonics of a falling pitch, louder near its resonances."""
    t = np.arange(count) / rate
    f = pitch * (1 + 0.08 * np.sin(8 * np.pi * t) + 0.1 * np.linspace(1, -1, count))
    phase = 2 * np.pi * np.cumsum(f) / rate
    out = np.zeros(count)
    for k in range(1, 40):
        loud = sum(1 / (1 + ((k * f - at) / width) ** 2) for at, width in FORMANTS[number])
        out += loud / k**0.5 * np.sin(k * phase) * (k * f < 0.47 * rate)
    return out * np.hanning(count) ** 0.4


def speech(seed: int, seconds: Sequence[float], rate: int) -> np.ndarray:
    """Return vowels with noise between them for every second of the spans, silence for others."""
    rng = np.random.default_rng(seed)
    parts: list[np.ndarray] = []
    for i, span in enumerate(seconds):
        left = int(span * rate)
        if i % 2 == 0:
            parts.append(np.zeros(left))
            continue
        while left > 0:
            n = min(left, int(rng.uniform(0.09, 0.22) * rate))
            parts.append(0.3 * vowel(rng.uniform(100, 180), int(rng.integers(4)), n, rate))
            left -= n
            if left > 0 and rng.random() < 0.6:
                n = min(left, int(rng.uniform(0.03, 0.08) * rate))
                hiss = np.diff(rng.standard_normal(n + 1))
                parts.append(0.05 * hiss * np.hanning(n))
                left -= n
    out = np.concatenate(parts)
    return (out + 0.002 * rng.standard_normal(out.size)).astype(np.float32)


def recordings() -> list[tuple[str, Any]]:
    """Return speech-like sound at two rates: (rate, samples)."""
    spans = [(0.6, 1.5, 1.0, 0.8, 0.5), (0.2, 3.0, 0.4), (1.0, 0.3, 0.7, 0.3, 1.5, 2.0), (1.5,)]
    return [
        (f"{rate // 1000} kHz, {len(s) // 2} spans", (rate, speech(i, s, rate)))
        for rate in (16000, 8000)
        for i, s in enumerate(spans)
    ]


def wide_recordings() -> list[tuple[str, Any]]:
    """Return those of 16 kHz."""
    return [s for s in recordings() if s[1][0] == 16000]


def other_recordings(rates: Sequence[int] = (16000,)) -> list[tuple[str, Any]]:
    """Return 20 more, of one to four spans, at these rates in turn."""
    r = np.random.default_rng(17)
    lengths = [r.uniform(0.4, 1.6, 2 * r.integers(1, 5) + 1).tolist() for _ in range(20)]
    each = [(s, rates[i % len(rates)]) for i, s in enumerate(lengths)]
    return [
        (f"{len(s) // 2} spans, {i}", (rate, speech(100 + i, s, rate)))
        for i, (s, rate) in enumerate(each)
    ]


# ---- tasks -------------------------------------------------------------------------------------


def magika(module: Any) -> Callable[[bytes], Any]:
    tool = module.Magika()

    def label(data: bytes) -> Any:
        found = tool.identify_bytes(data)
        return [str(found.output.label), str(found.dl.label), round(float(found.score), 3)]

    return label


def rapidocr(module: Any) -> Callable[[np.ndarray], Any]:
    tool = module.RapidOCR()

    def words(picture: np.ndarray) -> Any:
        rows, _ = tool(picture)
        return [[text, round(float(score), 3)] for _, text, score in rows or []]

    return words


def nudenet(module: Any) -> Callable[[np.ndarray], Any]:
    tool = module.NudeDetector()

    def boxes(picture: np.ndarray) -> Any:
        found = [[d["class"], round(float(d["score"]), 3), *d["box"]] for d in tool.detect(picture)]
        return sorted(found, key=str)

    return boxes


def silero(module: Any, opset: int = 16) -> Callable[[tuple[int, np.ndarray]], Any]:
    tool = module.load_silero_vad(onnx=True, opset_version=opset)
    torch = importlib.import_module("torch")

    def segments(sound: tuple[int, np.ndarray]) -> Any:
        rate, samples = sound
        found = module.get_speech_timestamps(
            torch.from_numpy(samples), tool, sampling_rate=rate, return_seconds=False
        )
        return [[int(d["start"]), int(d["end"])] for d in found]

    return segments


def same_words(a: Any, b: Any) -> bool:
    """Return whether the texts of a picture are the same, whatever the scores."""
    return [text for text, _ in a] == [text for text, _ in b]


def same_spans(a: Any, b: Any) -> bool:
    """Return whether spans of speech are the same, to two windows of 512 samples."""
    return len(a) == len(b) and bool(np.all(np.abs(np.subtract(a, b)) <= 1024))


ENGINE = "rapidocr_onnxruntime.utils.infer_engine.InferenceSession"
ORT = "onnxruntime.InferenceSession"
TASKS = [
    Task("magika", "magika", ORT, magika, sources),
    Task("rapidocr-onnxruntime", "rapidocr_onnxruntime", ENGINE, rapidocr, pages,
         partial(pages, OTHER_PAGES), same_words),
    # all layers are in the two branches of an If, one for each rate
    Task("silero-vad", "silero_vad", ORT, silero, recordings,
         partial(other_recordings, (16000, 8000)), same_spans),
    Task("silero-vad of 16 kHz", "silero_vad", ORT, partial(silero, opset=15), wide_recordings,
         other_recordings, same_spans),
    Task("nudenet", "nudenet", ORT, nudenet, photographs),
]  # fmt: skip


def same(a: Any, b: Any) -> bool:
    """Return whether answers agree: texts exactly, scores to 0.0015, places to a pixel."""
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, float) and isinstance(b, float):
        return abs(a - b) <= 1.5e-3
    if isinstance(a, int | np.integer) and isinstance(b, int | np.integer):
        return abs(int(a) - int(b)) <= 1
    return bool(a == b)


# ---- in 8 bits ---------------------------------------------------------------------------------


FEEDS: dict[bytes, list[dict[str, Any]]] = {}  # inputs of recorded sessions, by model


class Recorded:
    """A session of onnxruntime that keeps what it is given."""

    def __init__(self, model: Any, *args: Any, **options: Any) -> None:
        self._session = OracleSession(model, *args, **options)
        self._feeds = FEEDS.setdefault(key_of(model), [])

    def run(self, names: Any, feed: dict[str, Any], *options: Any) -> Any:
        self._feeds.append({k: np.array(v) for k, v in feed.items()})
        return self._session.run(names, feed, *options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)


def key_of(model: Any) -> bytes:
    """Return the digest of a model's file."""
    return hashlib.sha256(model if isinstance(model, bytes) else Path(model).read_bytes()).digest()


def in_8_bits(settings: Settings, model: Model, names: tuple[str, ...] = ()) -> Any:
    """Return the program of a model in 8 bits, in place of `Settings.compile`."""
    made = mgx_mlir.program.of(mgx_mlir.read_model(model.source, dict(model.options)))
    feeds = FEEDS[key_of(model.source)]
    few = feeds[:: -(-len(feeds) // 64)]
    count = mgx_mlir.quantize_int8(
        made, mgx_mlir.get_target(settings.target), few, asymmetric=True, bias_correction=True
    )
    print(f"    {len(few)} samples: {len(count.names)} matmuls in 8 bits", flush=True)
    if not count.names:
        raise RuntimeError("no product is in 8 bits")
    return mgx_mlir.compile(made, settings.target, **settings.options)


def quantised_by_peer(model: Any, *args: Any, **options: Any) -> Any:
    """Return onnxruntime's session of a model that its static quantiser made of it."""
    quantization = importlib.import_module("onnxruntime.quantization")
    feeds = FEEDS[key_of(model)]
    left = iter(feeds[:: -(-len(feeds) // 64)])

    class Reader(quantization.CalibrationDataReader):  # type: ignore[name-defined, misc]
        def get_next(self) -> dict[str, Any] | None:
            return next(left, None)

    with tempfile.TemporaryDirectory() as folder:
        source, ready, made = (Path(folder, f"{n}.onnx") for n in ("source", "ready", "made"))
        source.write_bytes(model if isinstance(model, bytes) else Path(model).read_bytes())
        quantization.quant_pre_process(
            source, ready, skip_symbolic_shape=True, skip_optimization=True
        )
        quantization.quantize_static(ready, made, Reader(), per_channel=True)
        return OracleSession(made.read_bytes(), *args, **options)


def compare(task: Task, eight: bool, peer: bool) -> bool:
    """Print a line for a task, and what differs; return whether all answers agree."""
    signals = task.signals()
    if eight and (task.others is None or task.alike is None):
        return True
    if eight and task.others is not None:
        task.answers(signals[:6], Recorded)
        signals = task.others()
    alike = task.alike if eight and task.alike is not None else same
    start = time.perf_counter()
    wanted = task.answers(signals, OracleSession)
    middle = time.perf_counter()
    try:
        with mock.patch.object(Settings, "compile", in_8_bits) if eight else nullcontext():
            found = task.answers(signals, quantised_by_peer if peer else InferenceSession)
    except Exception as e:  # the packages wrap what a runtime raises in errors of their own
        print(f"{task.package:24} FAILED  {type(e).__name__}: {str(e).strip()[-400:]}", flush=True)
        return False
    rows = zip(signals, wanted, found, strict=True)
    wrong = [(name, w, f) for (name, _), w, f in rows if not alike(w, f)]
    told = sum(bool(w) for w in wanted)
    verdict = "same" if not wrong else "DIFFERS"
    end = time.perf_counter()
    print(f"{task.package:24} {verdict:8} {len(signals) - len(wrong):3} of {len(signals)} signals, "
        f"{told} with an answer  "
          f"onnxruntime {middle - start:5.1f} s, with compiles {end - middle:5.1f} s",
          flush=True)  # fmt: skip
    for name, w, f in wrong:
        print(
            f"    {name}: expected {str(w)[:300]}\n    {' ' * len(name)}       got {str(f)[:300]}"
        )
    return not wrong


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("words", nargs="*", help="only packages whose name contains one of these")
    parser.add_argument("--int8", action="store_true", help="matmuls in 8 bits")
    parser.add_argument("--peer", action="store_true", help="with --int8: by onnxruntime instead")
    arguments = parser.parse_args(argv)
    if arguments.peer and not arguments.int8:
        parser.error("--peer expected --int8 beside it")
    right = True
    for task in TASKS:
        if arguments.words and not any(w in task.package for w in arguments.words):
            continue
        try:
            importlib.import_module(task.module)
        except ImportError as e:
            print(f"{task.package:24} missing  {e}")
            continue
        right = compare(task, arguments.int8, arguments.peer) and right
    return int(not right)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as cache:
        os.environ.setdefault("MGX_CACHE_DIR", cache)
        raise SystemExit(main())
