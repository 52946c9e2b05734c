"""What an adapter may ask of files: how big, how they end, what is in them. Never an error."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

FILE_BYTES_MAX = 64 << 10  # of a workflow's file sent as text
TAIL_BYTES_MAX = 4_096  # of a log that is sent with a failure
VERSION_DIGITS = 16  # of a SHA-256
HASHED_BYTES_MAX = 16 << 20  # a workflow's own files are small; data is not hashed here


class Files(Protocol):
    """Answers are None for what is not there, not a file, or not to be read."""

    def size(self, path: str) -> int | None: ...

    def is_below(self, path: str, directory: str) -> bool:
        """True if it lies in that directory, wherever links lead."""

    def tail(self, path: str, bytes_max: int) -> str | None: ...

    def content(self, path: str) -> tuple[str, str | None] | None:
        """Its SHA-256, and its text if it is one and short enough."""


def tails_of(files: Files, paths: Iterable[str]) -> list[str]:
    """The ends of these files, as far as they can be read."""
    return [text for path in paths if (text := files.tail(path, TAIL_BYTES_MAX))]


class NoFiles:
    """For recordings, whose files are gone."""

    def size(self, path: str) -> int | None:
        return None

    def is_below(self, path: str, directory: str) -> bool:
        return False

    def tail(self, path: str, bytes_max: int) -> str | None:
        return None

    def content(self, path: str) -> tuple[str, str | None] | None:
        return None


class DiskFiles:
    """Files of this machine; relative paths are of `root`."""

    def __init__(self, root: str | Path) -> None:
        self.root = Path(root)

    def size(self, path: str) -> int | None:
        try:
            status = os.stat(self.root / path)
        except (OSError, ValueError):
            return None
        return status.st_size if stat.S_ISREG(status.st_mode) else None

    def is_below(self, path: str, directory: str) -> bool:
        try:
            whole = os.path.realpath(self.root / path)
            root = os.path.realpath(directory)
        except (OSError, ValueError):
            return False
        return root != os.sep and whole.startswith(root + os.sep)

    def tail(self, path: str, bytes_max: int) -> str | None:
        size = self.size(path)
        if size is None:
            return None
        try:
            with open(self.root / path, "rb") as file:
                file.seek(max(size - bytes_max, 0))
                return file.read(bytes_max).decode("utf-8", "replace")
        except (OSError, ValueError):
            return None

    def content(self, path: str) -> tuple[str, str | None] | None:
        size = self.size(path)
        if size is None or size > HASHED_BYTES_MAX:
            return None
        try:
            data = (self.root / path).read_bytes()
        except (OSError, ValueError):
            return None
        digest = hashlib.sha256(data).hexdigest()
        if len(data) > FILE_BYTES_MAX or b"\0" in data:
            return digest, None
        try:
            return digest, data.decode()
        except UnicodeDecodeError:
            return digest, None


def main_script() -> str | None:
    """The program that runs, if it is a file."""
    path = getattr(sys.modules.get("__main__"), "__file__", None)
    return os.path.abspath(path) if path else None


def script_facts(path: str | None, files: Files) -> tuple[str | None, str | None]:
    """A program as the pair WorkflowFile, and the version that its content makes."""
    found = files.content(path) if path else None
    if path is None or found is None:
        return None, None
    digest, text = found
    listed = [{"path": os.path.basename(path), "sha256": digest, "text": text}]
    return json.dumps(listed, ensure_ascii=False), digest[:VERSION_DIGITS]
