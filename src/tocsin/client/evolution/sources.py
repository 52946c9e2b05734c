"""The files of a workflow: each read once, none outside of one directory, none without a limit."""

from __future__ import annotations

import hashlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from tocsin.errors.evolution import BadWorkflowFile

FILE_BYTES_MAX = 1 << 20  # a workflow that people write is a hundredth of this
FILES_MAX = 500
WHOLE_BYTES_MAX = 8 << 20
LINE_CHARS_MAX = 100_000  # Python's tokenizer takes quadratic time over hostile lines


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One file as it was when it was read; `path` is relative to the root."""

    path: str
    sha256: str
    text: str


class Sources:
    """Reads files under `root`, and remembers what was read."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self._read: dict[Path, SourceFile] = {}
        self._bytes = 0

    @property
    def files(self) -> tuple[SourceFile, ...]:
        """All that were read, in the order of their paths."""
        return tuple(sorted(self._read.values(), key=lambda file: file.path))

    def place(self, name: str, beside: Path) -> Path:
        """Where a file that another one names is, links followed; BadWorkflowFile if outside."""
        if "\0" in name or len(name) > 4_096:
            raise BadWorkflowFile(
                f"{beside.name} names a file in a way that no file is named",
                remedy="Correct the name.",
            )
        try:
            found = (beside.parent / name).resolve()
        except (OSError, RuntimeError) as error:  # a link that leads to itself
            raise _unreadable(name, error) from None
        if not found.is_relative_to(self.root):
            raise BadWorkflowFile(
                f"{beside.name} points to {name}, which is not in {self.root}",
                remedy="If it belongs to the workflow, name a directory that has both with --root.",
            )
        return found

    def has_read(self, path: Path) -> bool:
        return path in self._read

    def read(self, path: Path) -> SourceFile:
        """The text of a file that `place` found, from memory the second time."""
        known = self._read.get(path)
        if known is not None:
            return known
        name = str(path.relative_to(self.root))
        if len(self._read) >= FILES_MAX:
            raise BadWorkflowFile(
                f"the workflow has more than {FILES_MAX} files", remedy="Record its parts."
            )
        data = _bytes(path, name)
        self._bytes += len(data)
        if self._bytes > WHOLE_BYTES_MAX:
            raise BadWorkflowFile(
                f"the files of the workflow have more than {WHOLE_BYTES_MAX} bytes",
                remedy="Record its parts.",
            )
        file = SourceFile(name, hashlib.sha256(data).hexdigest(), _text(data, name))
        self._read[path] = file
        return file


def _bytes(path: Path, name: str) -> bytes:
    try:
        # Not blocking, so that a named pipe without a writer does not hold us for ever.
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise BadWorkflowFile(f"{name} is no regular file", remedy="Name a workflow file.")
            data = file.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        raise _unreadable(name, error) from None
    if len(data) > FILE_BYTES_MAX:
        raise BadWorkflowFile(
            f"{name} has more than {FILE_BYTES_MAX} bytes",
            remedy="A workflow file is text that a person wrote; name that one.",
        )
    return data


def _text(data: bytes, name: str) -> str:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadWorkflowFile(
            f"{name} is no text: byte {error.start} is not UTF-8", remedy="Name a workflow file."
        ) from None
    if "\0" in text:
        raise BadWorkflowFile(f"{name} is no text: it has a NUL", remedy="Name a workflow file.")
    if max(map(len, text.splitlines()), default=0) > LINE_CHARS_MAX:
        raise BadWorkflowFile(
            f"{name} has a line of more than {LINE_CHARS_MAX} characters",
            remedy="A workflow file is text that a person wrote; name that one.",
        )
    return text


def _unreadable(name: str, error: OSError | RuntimeError) -> BadWorkflowFile:
    why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return BadWorkflowFile(f"cannot read {name}: {why}", remedy="Correct the name, or the file.")
