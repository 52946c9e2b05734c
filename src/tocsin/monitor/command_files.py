"""The files that a command names, as far as its text shows: shell commands and Python code."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from typing import Final

COMMAND_CHARS_MAX: Final = 64 << 10  # of one command; the rest of a longer one is not read
WORD_CHARS_MAX: Final = 1_024

_REDIRECTED: Final = re.compile(r"[0-9&]?>{1,2}[|&]?\s*[^\s;|&<>()]+")
_BETWEEN: Final = re.compile(r"""[\s"'`;|&<>()\[\]=,\\]+""")
# Filled in when it runs, by the engine or the shell, so that the name is not known here.
_OPEN: Final = re.compile(r"[{}$*?~]|://")
_PROGRAM: Final = (
    *(".awk", ".bash", ".groovy", ".ipynb", ".jl", ".js", ".lua", ".m", ".pl", ".py"),
    *(".r", ".rb", ".rmd", ".sas", ".scm", ".sed", ".sh", ".sql", ".tcl", ".zsh"),
)


def named_files(command: str) -> Iterator[str]:
    """What may be names of files that the command reads or runs, in its order, each once.

    Any plain word may be one; who calls knows which of them exist. What the command writes to with
    `>` is left out.
    """
    text = _REDIRECTED.sub(" ", command[:COMMAND_CHARS_MAX])
    words = (word for word in _BETWEEN.split(text) if 0 < len(word) <= WORD_CHARS_MAX)
    plain = (word for word in words if not word.startswith("-") and not _OPEN.search(word))
    yield from dict.fromkeys(map(posixpath.normpath, plain))


def is_program(path: str) -> bool:
    """By its ending: something that an interpreter runs, not data."""
    return path.lower().endswith(_PROGRAM)
