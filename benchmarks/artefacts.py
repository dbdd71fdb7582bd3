"""Compares the programs that two checkouts compile, byte by byte, and the compile time.

    python benchmarks/artefacts.py --tree ../before --out before.json
    python benchmarks/artefacts.py --against before.json

Twenty models, some with dynamic dims, are compiled for a CPU or a GPU without the cache. It
compares the program's text after the passes, IREE's module byte by byte, and the CPU seconds of
this process without IREE (the minimum of several runs). Exit code 1 if bytes differ. IREE runs on
one thread: on several threads some programs have two possible modules.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
BLOCKS = ("resnet", "bert", "gpt2", "llama_prefill", "llama_decode", "vit", "whisper_encoder")
Case = tuple[str, Callable[[], bytes], dict[str, Any]]


def cases() -> Iterator[Case]:
    """Return the models: a name, its bytes, and the options of compile."""
    from tests.emulator.blocks import BLOCKS as built
    from zoo import made

    small = ("conv_net", "transformer", "decoder", "prefill", "mlp", "shape_arithmetic")
    for name in small:
        make = getattr(made, name)
        yield f"{name}_cpu", lambda make=make: make().SerializeToString(), {"target": "cpu"}
    for name, dims in (("transformer", ("n", "t")), ("decoder", ("n", "p")), ("conv_net", ("n",))):
        make = getattr(made, name)
        yield (
            f"{name}_open_cpu",
            lambda make=make, dims=dims: make(*dims).SerializeToString(),
            {"target": "cpu"},
        )
    for i, name in enumerate(BLOCKS):
        make = built[name]
        arch = ("gfx942", "gfx1100")[i % 2]
        yield (
            f"{name}_{arch}",
            lambda make=make: make("f16", 0).model.SerializeToString(),
            {"target": "gpu", "arch": arch},
        )
    for name in ("conv_net", "transformer", "prefill", "mlp"):
        make = getattr(made, name)
        yield (
            f"{name}_gfx90a",
            lambda make=make: make().SerializeToString(),
            {"target": "gpu", "arch": "gfx90a"},
        )


def measure(rounds: int, only: str) -> dict[str, dict[str, Any]]:
    """Compile each model: digests of its text and module, and the CPU seconds of our part."""
    import mgx_mlir

    found: dict[str, dict[str, Any]] = {}
    for name, make, options in cases():
        if only not in name:
            continue
        model, seconds = make(), []
        for _ in range(rounds):
            start = time.process_time()
            program: Any = mgx_mlir.compile(model, cache=False, **options)
            seconds.append(time.process_time() - start)
        digests = {
            "text": program.module_text.encode(),
            "module": bytes(program.executable.vmfb),
            "kernels": "\n".join(k.name for k in program.kernels).encode(),
        }
        found[name] = {k: hashlib.sha256(v).hexdigest()[:16] for k, v in digests.items()}
        found[name]["seconds"] = min(seconds)
        print(name, found[name], flush=True)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tree", type=Path, default=ROOT, help="the checkout to measure")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="models whose name has this in it")
    parser.add_argument("--out", type=Path, help="write what was found as JSON")
    parser.add_argument("--against", type=Path, help="compare with what --out wrote")
    args = parser.parse_args()
    os.environ["MIGRAPHX_GPU_COMPILE_PARALLEL"] = "1"
    sys.path.insert(0, str(args.tree.resolve()))
    found = measure(args.rounds, args.only)
    if args.out:
        args.out.write_text(json.dumps(found, indent=1))
    if not args.against:
        return 0
    before = json.loads(args.against.read_text())
    shared = [n for n in found if n in before]
    differ = [
        f"{n}: {part}"
        for n in shared
        for part in ("text", "module", "kernels")
        if found[n][part] != before[n][part]
    ]
    ratios = [found[n]["seconds"] / before[n]["seconds"] for n in shared]
    print(f"{len(shared)} models, {len(differ)} differences {differ}")
    print(f"seconds after / before: median {statistics.median(ratios):.3f}")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
