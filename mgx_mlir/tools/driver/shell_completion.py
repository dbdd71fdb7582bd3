"""Completion scripts of shells, made of the tables of commands and options."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from mgx_mlir.tools.driver.arguments import Option

SHELLS = ("bash", "zsh", "fish")
Commands = Mapping[str, tuple[str, Sequence[Option]]]  # what each command does, and its options

# options whose value is no file, and the words that it can be
WORDS = {
    "--text-version": ("seed", "2.16"),
    "--kernel-boundaries": ("on", "off"),
    "--log-level": ("none", "error", "warn", "info", "debug", "trace"),
}
FILES = ("FILE", "[FILE]", "FILE...", "@NAME FILE", "PREFIX")


def script(shell: str, commands: Commands) -> str:
    """Return the completion script of a shell."""
    return {"bash": _bash, "zsh": _zsh, "fish": _fish}[shell](commands)


def _flags(options: Sequence[Option]) -> list[str]:
    return sorted(f for o in options for f in o.flags)


def _takes(commands: Commands, files: bool) -> list[str]:
    """Return the flags whose value is a file, or those whose value is none."""
    found = {
        f
        for _, options in commands.values()
        for o in options
        if o.value is not None and (o.value in FILES) == files and o.key not in WORDS
        for f in o.flags
    }
    return sorted(found)


def _words(commands: Commands) -> dict[str, tuple[str, ...]]:
    """Return the words after options, and after commands that take one of a few."""
    arch = _archs()
    found = {**WORDS, "--arch": arch, "--apply-pass": _passes(), "-p": _passes()}
    known = {f for _, options in commands.values() for o in options for f in o.flags}
    return {f: words for f, words in found.items() if f in known}


def _archs() -> tuple[str, ...]:
    # start-up: only what the command asks for is loaded
    from mgx_mlir.targets.flags import AMD_ARCHS

    return tuple(n for arch, names in AMD_ARCHS.items() for n in (arch, *names))


def _passes() -> tuple[str, ...]:
    import mgx_mlir.passes  # noqa: F401  (declares the passes)
    from mgx_mlir.rewrite.registry import PASSES

    return tuple(sorted(PASSES))


def _bash(commands: Commands) -> str:
    lines = [
        "# bash completion of mgx-driver",
        "_mgx_driver() {",
        '    local cur="${COMP_WORDS[COMP_CWORD]}" prev="${COMP_WORDS[COMP_CWORD-1]}" words=',
        "    COMPREPLY=()",
        '    if [ "$COMP_CWORD" -eq 1 ]; then',
        f'        COMPREPLY=($(compgen -W {shlex.quote(" ".join(commands))} -- "$cur"))',
        "        return",
        "    fi",
        '    case "$prev" in',
    ]
    for flag, words in _words(commands).items():
        quoted = shlex.quote(" ".join(words))
        lines.append(f'    {flag}) COMPREPLY=($(compgen -W {quoted} -- "$cur")); return ;;')
    others = [f for f in _takes(commands, False) if f not in _words(commands)]
    lines.append(f"    {'|'.join(others)}) return ;;")
    lines += ["    esac", '    case "${COMP_WORDS[1]}" in']
    for name, (_, options) in commands.items():
        lines.append(f"    {name}) words={shlex.quote(' '.join(_flags(options)))} ;;")
    lines += [
        "    esac",
        '    if [ "${COMP_WORDS[1]}" = completion ]; then',
        f'        COMPREPLY=($(compgen -W {shlex.quote(" ".join(SHELLS))} -- "$cur"))',
        '    elif [ "${cur:0:1}" = - ]; then',
        '        COMPREPLY=($(compgen -W "$words" -- "$cur"))',
        "    else",
        '        compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -f -- "$cur"))',
        "    fi",
        "}",
        "complete -F _mgx_driver mgx-driver",
    ]
    return "\n".join(lines)


def _zsh(commands: Commands) -> str:
    lines = ["#compdef mgx-driver", "_mgx_driver() {", "    local -a commands"]
    rows = " ".join(shlex.quote(f"{name}:{text}") for name, (text, _) in commands.items())
    lines += [
        f"    commands=({rows})",
        "    if (( CURRENT == 2 )); then _describe command commands; return; fi",
        '    case "$words[2]" in',
    ]
    for name, (_, options) in commands.items():
        lines.append(f"    {name})")
        specs = [_zsh_spec(f, o) for o in options for f in o.flags]
        if name == "completion":
            specs.append(shlex.quote(f"*:shell:({' '.join(SHELLS)})"))
        else:
            specs.append("'*:model:_files'")
        lines.append("        _arguments " + " ".join(specs) + " ;;")
    return "\n".join([*lines, "    esac", "}", "compdef _mgx_driver mgx-driver"])


def _zsh_spec(flag: str, option: Option) -> str:
    text = option.help.replace("[", "\\[").replace("]", "\\]").replace(":", "\\:")
    spec = f"*{flag}[{text}]"
    if option.value is not None:
        words = WORDS.get(option.key)
        what = f"({' '.join(words)})" if words else ("_files" if option.value in FILES else "")
        spec += f":{option.value.replace(':', ' ')}:{what}"
    return shlex.quote(spec)


def _fish(commands: Commands) -> str:
    lines = ["# fish completion of mgx-driver"]
    for name, (text, _) in commands.items():
        lines.append(
            f"complete -c mgx-driver -n __fish_use_subcommand -a {name} -d {shlex.quote(text)} -f"
        )
    for name, (_, options) in commands.items():
        head = f"complete -c mgx-driver -n '__fish_seen_subcommand_from {name}'"
        if name == "completion":
            lines.append(f"{head} -f -a {shlex.quote(' '.join(SHELLS))}")
        for o in options:
            flags = " ".join(
                f"-l {f[2:]}" if f.startswith("--") else f"-s {f[1:]}" for f in o.flags
            )
            takes = ""
            if o.value is not None:
                words = WORDS.get(o.key)
                takes = " -r"
                if words:
                    takes = f" -x -a {shlex.quote(' '.join(words))}"
                elif o.value not in FILES:
                    takes = " -x"
            lines.append(f"{head} {flags}{takes} -d {shlex.quote(o.help)}")
    return "\n".join(lines)
