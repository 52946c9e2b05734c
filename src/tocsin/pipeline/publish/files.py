"""Sending files: an edition to an object store or a directory, seen by readers whole or not at all.

    URL/000007-20261116T120000Z/activity_stats/part-*.parquet     an edition, whole
    URL/_manifest.json                                            which one stands: `directory`

Where nothing can be renamed, a name is all that can be exchanged: a reader asks the manifest for
the directory, and what is in a directory that it names never changes.
"""

from __future__ import annotations

import logging
import re
from contextlib import suppress
from typing import Any, Final

import msgspec
import pyarrow as pa
from pyarrow import fs

from tocsin.pipeline.state import UNFINISHED
from tocsin.tables.published import MANIFEST, Manifest, Published

SCHEMES: Final = ("file", "s3", "s3a", "gs", "abfs", "abfss", "hdfs")
_EDITION: Final = re.compile(r"\d{6,}-\d{8}T\d{6}Z")


class _Sent(Manifest, frozen=True):
    """The manifest of an edition that was sent, and which directory it is in."""

    directory: str = ""


_log: Final = logging.getLogger(__name__)
_read_manifest: Final = msgspec.json.Decoder(_Sent).decode


def copy_files(found: Published, url: str) -> bool:
    """Copy an edition, then say that it stands. False if it stood there already. May OSError."""
    try:
        files, root = opened(url)
        current = _published(files, root)
        if current is not None and _same(current, found.manifest):
            return False
        before = None if current is None else current.directory
        name = f"{found.version:06d}-{found.made:%Y%m%dT%H%M%SZ}"
        try:
            _copy(found, files, f"{root}/{name}")
        except (OSError, pa.ArrowException):
            if name != before:
                _remove_half(files, f"{root}/{name}")
            raise
        # If this fails, the copy stays: a store may have taken what it did not acknowledge.
        _point_to(files, root, {**msgspec.to_builtins(found.manifest), "directory": name})
    except pa.ArrowException as error:
        raise OSError(str(error)) from error
    if before:  # else it is not known which one is being read, and the next time is soon enough
        _forget_others(files, root, {name, before})
    return True


def opened(url: str) -> tuple[fs.FileSystem, str]:
    """The file system of an address, and the path in it."""
    if "://" not in url:
        return fs.LocalFileSystem(), url.rstrip("/")
    files, path = fs.FileSystem.from_uri(re.sub(r"^s3a://", "s3://", url))
    return files, path.rstrip("/")


def _same(there: Manifest, here: Manifest) -> bool:
    return (there.version, there.made) == (here.version, here.made)


def _published(files: fs.FileSystem, root: str) -> _Sent | None:
    path = f"{root}/{MANIFEST}"
    if files.get_file_info(path).type == fs.FileType.NotFound:
        return None
    try:
        with files.open_input_stream(path) as stream:
            return _read_manifest(stream.read())
    except msgspec.DecodeError:
        return None  # it is none of ours, or half: it is written again


def _copy(found: Published, files: fs.FileSystem, target: str) -> None:
    files.create_dir(target, recursive=True)
    fs.copy_files(
        str(found.directory),
        target,
        source_filesystem=fs.LocalFileSystem(),
        destination_filesystem=files,
    )
    for name, facts in found.tables.items():
        infos = files.get_file_info([f"{target}/{name}/{each}" for each in facts.files])
        if sum(each.size or 0 for each in infos) != facts.bytes:
            raise OSError(f"of table {name}, not all bytes arrived")


def _point_to(files: fs.FileSystem, root: str, content: dict[str, Any]) -> None:
    path = f"{root}/{MANIFEST}"
    # An object is there whole or not at all; a file is not, unless it is renamed.
    is_local = isinstance(files, fs.LocalFileSystem)
    written = f"{root}/{UNFINISHED}{MANIFEST}" if is_local else path
    with files.open_output_stream(written) as stream:
        stream.write(msgspec.json.encode(content))
    if is_local:
        files.move(written, path)


def _remove_half(files: fs.FileSystem, directory: str) -> None:
    # It need not succeed: the next edition that is sent removes it as well.
    with suppress(OSError, pa.ArrowException):
        files.delete_dir(directory)


def _forget_others(files: fs.FileSystem, root: str, kept: set[str]) -> None:
    """Older editions go; what was copied half goes with them.

    Kept are the one that stands, and the one that stood before: of that, and of no other, somebody
    may be reading.
    """
    try:
        for each in files.get_file_info(fs.FileSelector(root)):
            if _EDITION.fullmatch(each.base_name) and each.base_name not in kept:
                files.delete_dir(f"{root}/{each.base_name}")
    except (OSError, pa.ArrowException) as error:
        # What was to be published is; that older ones stay is the smaller harm.
        _log.warning("old editions in %s could not be removed: %s", root, error)
