"""Files with secrets: read only if nobody else can, and written so that nobody else can.

The rule is that of PostgreSQL, one for tokens, logins and keys: 0600, or 0640 if the file is root's
and we are not, as are files that a group of services shares, and what is mounted into containers.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from typing import Final

from tocsin.errors import BadCredential

FILE_BYTES_MAX: Final = 1 << 20
_OTHERS: Final = 0o077
_OTHERS_OF_ROOT: Final = 0o037  # the group of its file may read it

Stamp = tuple[int, int, int]


def stamp_of(found: os.stat_result) -> Stamp:
    """Another one when the file is another."""
    return found.st_ino, found.st_mtime_ns, found.st_size


def stamp_at(path: str) -> Stamp | None:
    """The same of a path; None if nothing is there."""
    try:
        return stamp_of(os.stat(path))
    except OSError:
        return None


def check_private(path: str, what: str) -> os.stat_result:
    """What `stat` says of it; BadCredential if somebody else can read or write it."""
    try:
        found = os.stat(path)
    except OSError as error:
        raise _unreadable(path, what, error) from None
    must_be_private(path, what, found)
    return found


def read_private(path: str, what: str) -> tuple[str, os.stat_result]:
    """Its text, and what `stat` said of the very file that was read."""
    try:
        with open(path, "rb") as file:
            found = os.fstat(file.fileno())
            must_be_private(path, what, found)
            data = file.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        raise _unreadable(path, what, error) from None
    if len(data) > FILE_BYTES_MAX:
        raise BadCredential(f"{what} {path} is far too long", remedy="Name another file.")
    try:
        return data.decode(), found
    except UnicodeDecodeError:
        raise BadCredential(f"{what} {path} is not text", remedy="Name another file.") from None


def write_private(path: str, text: str) -> None:
    """Replace a file at once, readable and writable by its owner alone."""
    directory = os.path.dirname(path) or "."
    name = os.path.basename(path)
    temporary = os.path.join(directory, f".{name}.{os.getpid()}.{os.urandom(4).hex()}")
    try:
        os.makedirs(directory, mode=0o700, exist_ok=True)
        # Never there with more rights than these, not even for a moment.
        number = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with open(number, "wb") as file:
                file.write(text.encode())
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
            _sync(directory)
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(temporary)
            raise
    except OSError as error:
        raise BadCredential(
            f"{path} cannot be written: {error.strerror or error}",
            remedy="Check the rights of its directory, and the space on its disk.",
        ) from None


def _sync(directory: str) -> None:
    """What was just named is found there after a power cut, too."""
    number = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def must_be_private(path: str, what: str, found: os.stat_result) -> None:
    """Raise BadCredential if somebody else can use the file, of which `stat` said this."""
    if stat.S_ISDIR(found.st_mode):
        raise BadCredential(f"{what} {path} is a directory", remedy="Name a file.")
    if not stat.S_ISREG(found.st_mode):
        return  # a pipe, such as that of <(pass show tocsin), is gone when it was read
    is_root_s = found.st_uid == 0 and os.geteuid() != 0
    if found.st_mode & (_OTHERS_OF_ROOT if is_root_s else _OTHERS):
        raise BadCredential(
            f"{what} {path} can be read or changed by others (its mode is "
            f"{stat.S_IMODE(found.st_mode):04o})",
            remedy=f"chmod 600 {path}",
        )


def _unreadable(path: str, what: str, error: OSError) -> BadCredential:
    return BadCredential(
        f"{what} {path} cannot be read: {error.strerror or error}",
        remedy="Check the name of the file, and whose it is.",
    )
