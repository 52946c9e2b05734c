"""Where the workflow's own files lie in a crate: as they lay to each other, and never outside it.

A path comes from whoever published it. It may be absolute, lead upwards, or be no path at all; what
comes out is a relative one of plain segments, and no two are the same on any file system.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

ROOT: Final = "workflow"
SEGMENT_BYTES_MAX: Final = 120  # file systems take 255; a suffix and an encoding must fit as well
SEGMENTS_MAX: Final = 40  # a whole path has to stay under 4,096 bytes

# Characters that some file system, shell or archive gives a meaning of its own.
_UNFIT: Final = re.compile(r'[\x00-\x1f\x7f<>:"|?*\\%]')
_DRIVE: Final = re.compile(r"[A-Za-z]:(?=[\\/])")


@dataclass(frozen=True, slots=True)
class Layout:
    """Places of the files, in their order, and the place that stands for the working directory."""

    places: tuple[str, ...]
    working_directory: str


def layout(paths: Sequence[str], main: int, working_directory: str | None) -> Layout:
    """Where each path lies in the crate. `main` is the number of the one that the workflow is."""
    here = _absolute(working_directory or "/", "/")
    whole = [_absolute(path, here) for path in paths]
    roots = [posixpath.dirname(path) for path in whole]
    # The directory is part of the picture if the workflow lies in it; else only the files are.
    is_home = working_directory is not None and _is_below(whole[main], here)
    if is_home:
        roots.append(here)
    top = posixpath.commonpath(roots)
    files: set[str] = set()
    directories: set[str] = {ROOT}
    places = [_free(_place(path, top, "unnamed"), files, directories) for path in whole]
    return Layout(tuple(places), _place(here, top) if is_home else ROOT)


def _absolute(path: str, here: str) -> str:
    """The path with nothing in it that leads elsewhere; above the top there is nothing."""
    slashed = _DRIVE.sub("", path, count=1).replace("\\", "/")
    return "/" + posixpath.normpath(posixpath.join(here, slashed)).lstrip("/")


def _is_below(path: str, directory: str) -> bool:
    return posixpath.commonpath([path, directory]) == directory


def _place(path: str, top: str, nameless: str = "") -> str:
    parts = [part for part in posixpath.relpath(path, top).split("/") if part not in ("", ".")]
    segments = parts[-SEGMENTS_MAX:] or [part for part in (nameless,) if part]
    return "/".join([ROOT, *map(_segment, segments)])


def _segment(text: str) -> str:
    fit = _UNFIT.sub(lambda found: f"%{ord(found[0]):02X}", text)
    fit = fit.encode("utf-8", "replace").decode()
    # Some systems drop a dot or a space at the end, and two files would become one.
    if fit[-1:] in (".", " "):
        fit = f"{fit[:-1]}%{ord(fit[-1]):02X}"
    if len(fit.encode()) <= SEGMENT_BYTES_MAX:
        return fit
    digest = sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return fit.encode()[: SEGMENT_BYTES_MAX - 17].decode(errors="ignore") + "-" + digest


def _free(place: str, files: set[str], directories: set[str]) -> str:
    """The place, or one like it: what is a file is no directory, and no two files share a place."""
    *parents, last = place.split("/")
    free = ""
    for parent in parents:
        free = _unlike(f"{free}{parent}", files) + "/"
        directories.add(free[:-1].casefold())
    free = _unlike(f"{free}{last}", files | directories)
    files.add(free.casefold())
    return free


def _unlike(place: str, taken: set[str]) -> str:
    directory, _, name = place.rpartition("/")
    stem, dot, suffix = name.rpartition(".")
    other, number = place, 1
    while other.casefold() in taken:
        number += 1
        another = f"{stem}~{number}{dot}{suffix}" if stem else f"{name}~{number}"
        other = posixpath.join(directory, another)
    return other
