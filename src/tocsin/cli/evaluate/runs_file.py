"""Files of recorded runs, plain or gzipped, read a line at a time and within limits.

A file holds runs, one a line, or the log records of one run of Snakemake, one a line.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any, cast

from tocsin.cli.evaluate.recorded_log import APPLICATION, LogCase, case_of
from tocsin.errors import BadRunsFile
from tocsin.integrations.snakemake.recorded_log import is_recorded_log
from tocsin.monitor.evaluation.estimates import Case, Replayed, with_times
from tocsin.monitor.evaluation.recorded_runs import Recorded, parse_run

LINE_BYTES_MAX = 64 * 1024 * 1024  # a run of 200,000 tasks is about half of it
FILE_BYTES_MAX = 2 * 1024**3  # unpacked: a small file may unpack to more than a machine has
RUNS_MAX = 20_000
RECORDS_MAX = 1_000_000  # of one log
GZIP_MAGIC = b"\x1f\x8b"


def read_cases(paths: Sequence[Path]) -> tuple[dict[str, list[Case]], int]:
    """The runs of all files by application, and how many logs were of runs that did not complete.

    Runs of Snakemake's logs are in the order in which they began: a broker learns in that order.
    """
    found: dict[str, list[Case]] = {}
    logs: list[LogCase] = []
    left_out = 0
    for path in paths:
        if (records := _log_records(path)) is not None:
            case = case_of(records, path.name)
            left_out += case is None
            logs += [case] if case is not None else []
        else:
            for name, runs in read_runs(path).items():
                found.setdefault(name, []).extend(Replayed(with_times(each.run)) for each in runs)
    if logs:
        in_order = sorted(logs, key=lambda case: case.began_ns)
        found.setdefault(APPLICATION, []).extend(in_order)
    return found, left_out


def _log_records(path: Path) -> list[dict[str, Any]] | None:
    """The records of a log of Snakemake; None if the file is of another kind."""
    records: list[dict[str, Any]] = []
    for number, line in _lines(path):
        if not line.strip():
            continue
        where = f"line {number} of {path.name}"
        if not records and not is_recorded_log(_json_or_none(line)):
            return None
        record = _json(line, where)
        if not isinstance(record, dict) or len(records) >= RECORDS_MAX:
            raise BadRunsFile(
                f"{where} is not a record of Snakemake's log, or there are too many",
                remedy=f"Give one JSON object a record, at most {RECORDS_MAX:,}.",
            )
        records.append(record)
    return records or None


def _json_or_none(line: bytes) -> object:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def read_runs(path: Path) -> dict[str, list[Recorded]]:
    """Every run of a file of runs, by application."""
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
            f"{where} is not valid JSON", remedy="Give one JSON object a line, in UTF-8."
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
