"""`tocsin wf provenance`: a run as W3C PROV or as an RO-Crate."""

from __future__ import annotations

import io
import os
import sys
import zipfile
from argparse import Namespace
from pathlib import Path

from tocsin.cli.format import Clock, size
from tocsin.cli.render import say, show, show_json
from tocsin.cli.rest import Rest, item
from tocsin.cli.wf.run_queries import find_run
from tocsin.client.requests import query
from tocsin.client.transport.refusal import refusal
from tocsin.errors import BadSetting

MISSING_SHOWN_MAX = 5
PROVENANCE_TIMEOUT_S = 600.0  # a run of very many activities takes its time to be written


def provenance(rest: Rest, arguments: Namespace, clock: Clock) -> int:
    """Where every file of a run comes from, in a form that others read."""
    run = find_run(rest, arguments.run)
    binary = arguments.format == "crate"
    if binary and arguments.output is None and (sys.stdout.isatty() or arguments.json):
        raise BadSetting(
            "a crate is a zip file, which cannot go to a terminal",
            remedy="Name a file: -o run.crate.zip",
        )
    target = f"{item('runs', run['id'])}/provenance{query(format=arguments.format)}"
    answer = rest.request("GET", target, timeout_s=PROVENANCE_TIMEOUT_S)
    if answer.status != 200:
        raise refusal(answer.status, answer.body)
    missing = _missing(answer.body) if binary else None
    if arguments.output is not None:
        _write(answer.body, arguments, missing)
        _say_missing(missing or [])
        return 0
    _say_missing(missing or [])
    if arguments.json and arguments.format != "prov-json":
        text = answer.body.decode("utf-8", "replace")
        show_json({"run": run["id"], "format": arguments.format, "text": text})
    elif sys.stdout.isatty():
        show(answer.body.decode("utf-8", "replace").rstrip("\n"))
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(answer.body)
    return 0


def _write(data: bytes, arguments: Namespace, missing: list[str] | None) -> None:
    """Written beside the file and renamed, so that no reader finds half of it."""
    target = Path(arguments.output)
    partial = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        partial.write_bytes(data)
        partial.replace(target)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise BadSetting(
            f"cannot write {target}: {error.strerror}", remedy="Name a file that can be written."
        ) from None
    if arguments.json:
        written = {"file": str(target), "bytes": len(data), "format": arguments.format}
        show_json(written if missing is None else {**written, "missing": missing})
    else:
        say(f"{target}: {size(len(data))}")


def _missing(crate: bytes) -> list[str]:
    """What the crate lacks to be run again, as its README has it."""
    from tocsin.monitor.provenance.crate.missing import missing_in
    from tocsin.monitor.provenance.crate.plan import README

    with zipfile.ZipFile(io.BytesIO(crate)) as archive:
        return missing_in(archive.read(README).decode("utf-8", "replace"))


def _say_missing(missing: list[str]) -> None:
    if missing:
        say("The crate alone is not enough to run the workflow again:")
        for reason in missing[:MISSING_SHOWN_MAX]:
            say(f"  {reason}")
        if len(missing) > MISSING_SHOWN_MAX:
            say(f"  and {len(missing) - MISSING_SHOWN_MAX:,} more: see README.md in the crate")
