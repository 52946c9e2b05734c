"""The files of a workflow: each read once, none outside of one directory, none without a limit."""

from __future__ import annotations

import hashlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from tocsin.errors.services import BadWorkflowFile

FILE_BYTES_MAX = 1 << 20  # a workflow that people write is a hundredth of this
FILES_MAX = 500
WHOLE_BYTES_MAX = 8 << 20
ATTACHED_BYTES_MAX = 16 << 20  # of a script or a notebook, which is not read but compared
LINE_CHARS_MAX = 100_000  # Python's tokenizer takes quadratic time over hostile lines


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One file as it was when it was read; `path` is relative to the root."""

    path: str
    sha256: str
    text: str | None  # None for what is attached and no text, or a long one


class Sources:
    """Reads files under `root`, and remembers what was read."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self._read: dict[Path, SourceFile] = {}
        self._bytes = 0

    @property
    def files(self) -> tuple[SourceFile, ...]:
        """All that were read, as they were met."""
        return tuple(self._read.values())

    def place(self, name: str, beside: Path) -> Path:
        """Where a file that another one names is, links followed; BadWorkflowFile if outside."""
        if "\0" in name or len(name) > 4_096:
            raise BadWorkflowFile(
                f"{beside.name} has an invalid file name",
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

    def read(self, path: Path) -> str:
        """The text of a file that `place` found."""
        name = self._name(path)
        known = self._read.get(path)
        if known is not None and known.text is not None:
            return known.text
        data = _bytes(path, name, FILE_BYTES_MAX)
        text = _text(data, name)
        self._keep(path, SourceFile(name, hashlib.sha256(data).hexdigest(), text), len(data))
        return text

    def attach(self, path: Path) -> SourceFile | None:
        """A file that belongs to the workflow and is run by it; None if it is not there."""
        known = self._read.get(path)
        if known is not None or not path.is_file():
            return known
        name = self._name(path)
        data = _bytes(path, name, ATTACHED_BYTES_MAX)
        try:
            text = _text(data, name) if len(data) <= FILE_BYTES_MAX else None
        except BadWorkflowFile:
            text = None
        file = SourceFile(name, hashlib.sha256(data).hexdigest(), text)
        self._keep(path, file, len(text or ""))
        return file

    def _name(self, path: Path) -> str:
        return str(path.relative_to(self.root))

    def _keep(self, path: Path, file: SourceFile, size: int) -> None:
        self._bytes += size
        if len(self._read) >= FILES_MAX or self._bytes > WHOLE_BYTES_MAX:
            raise BadWorkflowFile(
                f"the workflow has more than {FILES_MAX} files, or {WHOLE_BYTES_MAX} bytes of them",
                remedy="Record its parts.",
            )
        self._read[path] = file


def _bytes(path: Path, name: str, bytes_max: int) -> bytes:
    try:
        # Not blocking, so that a named pipe without a writer does not hold us for ever.
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise BadWorkflowFile(
                    f"{name} is not a regular file", remedy="Name a workflow file."
                )
            data = file.read(bytes_max + 1)
    except OSError as error:
        raise _unreadable(name, error) from None
    if len(data) > bytes_max:
        raise BadWorkflowFile(
            f"{name} has more than {bytes_max} bytes",
            remedy="A workflow file is text that a person wrote; name that one.",
        )
    return data


def _text(data: bytes, name: str) -> str:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadWorkflowFile(
            f"{name} is not text: byte {error.start} is not UTF-8", remedy="Name a workflow file."
        ) from None
    if "\0" in text:
        raise BadWorkflowFile(
            f"{name} is not text: it has a NUL byte", remedy="Name a workflow file."
        )
    if max(map(len, text.splitlines()), default=0) > LINE_CHARS_MAX:
        raise BadWorkflowFile(
            f"{name} has a line of more than {LINE_CHARS_MAX} characters",
            remedy="A workflow file is text that a person wrote; name that one.",
        )
    return text


def _unreadable(name: str, error: OSError | RuntimeError) -> BadWorkflowFile:
    why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return BadWorkflowFile(f"cannot read {name}: {why}", remedy="Correct the name, or the file.")
