"""Facts about a run: who runs it where; sizes, hashes and texts of its files.

Files are read by the sender's thread: a file system that hangs holds up messages, not the workflow.
"""

from __future__ import annotations

import getpass
import hashlib
import json
import os
from collections.abc import Iterable

FILE_TEXT_BYTES_MAX = 64 * 1024
FILE_BYTES_MAX = 64 << 20  # of a larger one not even the hash is made

Paths = str | os.PathLike[str] | Iterable[object]


def paths_of(given: Paths | None) -> tuple[object, ...]:
    """Several paths, or the one that stands alone."""
    if given is None:
        return ()
    return (given,) if isinstance(given, str | os.PathLike) else tuple(given)


def total_bytes(paths: Iterable[str]) -> int | None:
    """The sizes together of those that are there; None if none is."""
    found = [size for path in paths if (size := _size(path)) is not None]
    return sum(found) if found else None


def _size(path: str) -> int | None:
    try:
        return os.stat(path).st_size
    except (OSError, ValueError):
        return None


def workflow_file(path: str) -> str | None:
    """A file of a workflow as a value: path, hash, and its text if it is small."""
    facts = _file(path)
    return None if facts is None else json.dumps([facts], ensure_ascii=False)


def _file(path: str) -> dict[str, str | None] | None:
    size = _size(path)
    if size is None or size > FILE_BYTES_MAX or not os.path.isfile(path):
        return None
    try:
        with open(path, "rb") as file:
            data = file.read(FILE_BYTES_MAX)
    except OSError:
        return None
    return {"path": path, "sha256": hashlib.sha256(data).hexdigest(), "text": _text(data)}


def _text(data: bytes) -> str | None:
    if len(data) > FILE_TEXT_BYTES_MAX:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def user_name() -> str:
    """Who runs this process."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a number without a name, as in some containers
        return str(os.getuid())


def working_directory() -> str:
    """Where it runs; empty if that was removed."""
    try:
        return os.getcwd()
    except OSError:
        return ""
