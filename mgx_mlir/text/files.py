"""Files of a folder beside its weights: JSON objects, and the parts of a tokenizer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mgx_mlir.core.errors import FileError
from mgx_mlir.text.packages import imported, quiet

# files of tokenizers that transformers converts
_OLDER = ("tokenizer.model", "spiece.model", "vocab.json", "tokenizer.tiktoken")
_FLAGS = ("single_word", "lstrip", "rstrip", "normalized", "special")  # an added token has


def read_json(path: Path, missing: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return an object of a JSON file. Raises FileError."""
    if missing is not None and not path.is_file():
        return missing
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as e:
        raise FileError(f"cannot be read as JSON: {e}", location=str(path)) from e
    except RecursionError:
        raise FileError("cannot be read as JSON: it nests too deep", location=str(path)) from None
    if not isinstance(found, dict):
        raise FileError("expected a JSON object", location=str(path))
    return found


def templates_of(folder: Path, config: Mapping[str, Any]) -> dict[str, str]:
    """Return the templates of a chat by name: `default`, and others such as `tool_use`.

    config: content of tokenizer_config.json. Raises FileError.
    """
    stated = config.get("chat_template")
    rows: list[Any] = stated if isinstance(stated, list) else []
    found = {t["name"]: t["template"] for t in rows if isinstance(t, dict)
             if isinstance(t.get("name"), str) and isinstance(t.get("template"), str)}  # fmt: skip
    if isinstance(stated, str):
        found["default"] = stated
    elif stated is not None and not isinstance(stated, list):
        raise FileError(f"expected a text as chat_template, got {type(stated).__name__}",
                        location=str(folder / "tokenizer_config.json"))  # fmt: skip
    more = sorted((folder / "additional_chat_templates").glob("*.jinja"))
    beside = {"default": folder / "chat_template.jinja", **{file.stem: file for file in more}}
    for name, file in beside.items():
        if file.is_file():
            try:
                found[name] = file.read_text(encoding="utf-8")
            except (OSError, ValueError) as e:
                raise FileError(f"cannot be read: {e}", location=str(file)) from e
    return found


def special_texts(folder: Path, config: Mapping[str, Any]) -> dict[str, str]:
    """Return the texts of special tokens by name, such as bos_token. Raises FileError."""
    own = config.get("extra_special_tokens")
    rows = {**read_json(folder / "special_tokens_map.json", missing={}), **config,
            **(own if isinstance(own, dict) else {})}  # fmt: skip
    texts = {name: value.get("content") if isinstance(value, dict) else value
             for name, value in rows.items() if name.endswith("_token")}  # fmt: skip
    return {name: text for name, text in texts.items() if isinstance(text, str)}


def add_tokens(inner: Any, folder: Path, config: Mapping[str, Any]) -> None:
    """Add tokens to a tokenizer that other files state, and tokenizer.json does not.

    Raises FileError for a token whose number would be another than the stated one.
    """
    place = folder / "tokenizer_config.json"
    rows = _stated_tokens(config, str(place))
    if "added_tokens_decoder" not in config:
        place = folder / "added_tokens.json"
        for text, number in read_json(place, missing={}).items():
            if isinstance(number, int):
                rows.setdefault(number, {"content": text})
    known = {t.content for t in inner.get_added_tokens_decoder().values()}
    token = imported("tokenizers").AddedToken
    for number, row in sorted(rows.items()):
        text = row["content"]
        if text in known:
            continue
        flags = {name: bool(row[name]) for name in _FLAGS if name in row}
        inner.add_tokens([token(text, **{"normalized": False, **flags})])
        if (got := inner.token_to_id(text)) != number:
            raise FileError(f"{text!r:.80} expected the token {number}, and is {got}",
                            location=str(place))  # fmt: skip


def _stated_tokens(config: Mapping[str, Any], place: str) -> dict[int, Mapping[str, Any]]:
    """Return the entries of added_tokens_decoder by number. Raises FileError."""
    found: dict[int, Mapping[str, Any]] = {}
    rows = config.get("added_tokens_decoder", {})
    for key, row in rows.items() if isinstance(rows, dict) else [("", rows)]:
        text = row.get("content") if isinstance(row, dict) else None
        if not key.isascii() or not key.isdecimal() or not isinstance(text, str) or not text:
            raise FileError("added_tokens_decoder expected objects with a 'content', by number, "
                            f"got {row!r:.80}", location=place)  # fmt: skip
        found[int(key)] = row
    return found


def converted(folder: Path) -> Any:
    """Return the tokenizer of a folder's older files, which transformers converts.

    Raises FileError where there is none, or transformers or sentencepiece cannot read it.
    """
    if not any((folder / name).is_file() for name in _OLDER):
        raise FileError("expected a tokenizer: the folder has no tokenizer.json, nor "
                        f"{', '.join(_OLDER)}", location=str(folder))  # fmt: skip
    transformers = imported("transformers")
    try:
        with quiet():
            found = transformers.AutoTokenizer.from_pretrained(
                str(folder), local_files_only=True, trust_remote_code=False
            )
            return found.backend_tokenizer
    except Exception as e:  # transformers raises exceptions of many kinds
        why = " ".join(str(e).split())[:200] or type(e).__name__
        raise FileError(
            f"the folder has no tokenizer.json, and transformers cannot make one: {why}",
            location=str(folder), notes=["pip install sentencepiece protobuf for tokenizer.model"],
        ) from e  # fmt: skip
