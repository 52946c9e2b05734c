"""Where the archive is that a command is about."""

from __future__ import annotations

import os

from tocsin.archive.file_names import FRESH, parse_date
from tocsin.errors.archive import NoArchive

USUAL = "archive"


def find_archive(named: str | None) -> str:
    """The directory named, or the one in a data directory named; without one, the settings'."""
    place = named if named is not None else _by_settings()
    for directory in (place, os.path.join(place, USUAL)):
        if _is_archive(directory):
            return directory
    raise NoArchive(
        f"there is no archive in {place}",
        remedy="Name its directory; a broker has it as `archive` in its data directory.",
    )


def _is_archive(directory: str) -> bool:
    try:
        names = os.listdir(directory)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except PermissionError as error:
        raise NoArchive(
            f"{directory} cannot be read: {error.strerror}",
            remedy="Run the command as a user who may read it.",
        ) from None
    return any(name == FRESH or parse_date(name) for name in names)


def _by_settings() -> str:
    from tocsin.config import find_file, load

    settings, _ = load({}, os.environ, find_file(None, os.environ))
    return settings.archive.directory or os.path.join(settings.log.directory, USUAL)
