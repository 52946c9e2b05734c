"""Files with private keys and tokens: written for their owner alone, and refused if others may
read them."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

from tocsin.credentials.files import must_be_private
from tocsin.errors import BadCredential

MODE = 0o600
DIRECTORY_MODE = 0o700


def check_private(path: Path, what: str) -> None:
    """Raise BadCredential if it is no file, or one that others may use, as `credentials` says."""
    try:
        found = path.stat()
    except OSError as error:
        raise _unreadable(path, what, error) from None
    if not stat.S_ISREG(found.st_mode):
        raise BadCredential(f"{what}, {path}, is not a file", remedy="Name a file.")
    must_be_private(str(path), what, found)


def read_private(path: Path, what: str) -> bytes:
    """The content of a file that only its owner may read. Raises BadCredential."""
    check_private(path, what)
    try:
        return path.read_bytes()
    except OSError as error:
        raise _unreadable(path, what, error) from None


def write_private(path: Path, content: bytes) -> None:
    """Write it whole, readable by its owner alone from the first byte. OSError if it cannot be."""
    write_whole(path, content, MODE)


def write_whole(path: Path, content: bytes, mode: int = 0o644) -> None:
    """Write a file so that nobody sees half of it. OSError if it cannot be."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    with suppress(FileNotFoundError):
        beside.unlink()
    number = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(number, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except BaseException:
        with suppress(OSError):
            beside.unlink()
        raise


def _unreadable(path: Path, what: str, error: OSError) -> BadCredential:
    return BadCredential(
        f"{what}, {path}, cannot be read: {error.strerror or error}",
        remedy="Name a file that exists and may be read.",
    )
