"""Files of recorded runs, plain or gzipped, read a line at a time and within limits."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, cast

from tocsin.errors import BadRunsFile
from tocsin.monitor.estimate.recorded import Recorded, parse_run

LINE_BYTES_MAX = 64 * 1024 * 1024  # a run of 200,000 tasks is about half of it
FILE_BYTES_MAX = 2 * 1024**3  # unpacked: a small file may unpack to more than a machine has
RUNS_MAX = 20_000
GZIP_MAGIC = b"\x1f\x8b"


def read_runs(path: Path) -> dict[str, list[Recorded]]:
    """Every run of a file, by application."""
    found: dict[str, list[Recorded]] = {}
    count = 0
    for number, line in _lines(path):
        if not line.strip():
            continue
        count += 1
        if count > RUNS_MAX:
            raise BadRunsFile(
                f"{path} has more than {RUNS_MAX:,} runs", remedy="Split the file by application."
            )
        where = f"line {number} of {path.name}"
        recorded = parse_run(_json(line, where), where)
        found.setdefault(recorded.application, []).append(recorded)
    return found


def _json(line: bytes, where: str) -> object:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        raise BadRunsFile(
            f"{where} is no JSON", remedy="Give one JSON object a line, in UTF-8."
        ) from None


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    try:
        with _opened(path) as file:
            read = number = 0
            while line := file.readline(LINE_BYTES_MAX + 1):
                number += 1
                read += len(line)
                if len(line) > LINE_BYTES_MAX or read > FILE_BYTES_MAX:
                    raise BadRunsFile(
                        f"{path} is too large at line {number}",
                        remedy=f"A line may have {LINE_BYTES_MAX:,} bytes, "
                        f"a file {FILE_BYTES_MAX:,}, both unpacked.",
                    )
                yield number, line
    except (EOFError, gzip.BadGzipFile, zlib.error):
        raise BadRunsFile(
            f"{path} is a damaged gzip file", remedy="Copy it again, or unpack it by hand."
        ) from None
    except OSError as error:
        raise BadRunsFile(
            f"{path} cannot be read: {error.strerror or error}",
            remedy="Give the path of a file of runs, as *.jsonl or *.jsonl.gz.",
        ) from None


def _opened(path: Path) -> IO[bytes]:
    with path.open("rb") as file:
        packed = file.read(len(GZIP_MAGIC)) == GZIP_MAGIC
    return cast(IO[bytes], gzip.open(path, "rb")) if packed else path.open("rb")
