"""What `tocsin pipeline` does, as far as it is not shown by other modules."""

from __future__ import annotations

import math
import os
import re
import signal
import sys
import time
import traceback
from argparse import Namespace
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from tocsin.cli.pipeline.session import session_for, started
from tocsin.cli.render import say, show_json, table
from tocsin.errors.pipeline import BadPipelineOption, PipelineFailed

if TYPE_CHECKING:
    from tocsin.config import Settings
    from tocsin.pipeline.job import Done, Job
    from tocsin.pipeline.stream import Progress

STEPS: Final = 16  # about so many things are done one after another


def tables_directory(named: str | None) -> Path:
    """The directory named, or where the settings have the tables. Raises BadPipelineOption."""
    if named is not None:
        place = _not_empty(named, "--tables")
        # As `--archive` takes it. What is then no path from the root names another machine.
        return Path(_of_this_machine(re.sub(r"^file://(?=/)", "", place), "--tables"))
    settings = _settings()
    place = settings.pipeline.tables or os.path.join(settings.log.directory, "tables")
    return Path(_of_this_machine(place, "pipeline.tables"))


def _of_this_machine(place: str, option: str) -> str:
    if "://" not in place:
        return place
    from tocsin.pipeline.locations import shown

    raise BadPipelineOption(
        f"{option} {shown(place)} is not a local directory",
        remedy="Name a directory of this machine, and send the tables elsewhere with --publish.",
    )


def _settings() -> Settings:
    from tocsin.config import find_file, load

    return load({}, os.environ, find_file(None, os.environ))[0]


def _not_empty(text: str, option: str) -> str:
    """An empty text is a variable that was not set, and not the directory we are in."""
    if not text:
        raise BadPipelineOption(f"{option} is empty", remedy="Name a place, or leave it out.")
    return text


def archive_place(named: str | None) -> str:
    """An address as it is; else the archive's directory, which must be there.

    Raises BadPipelineOption if the address has a password in it: it is kept with the tables, and
    named in errors and in rows.
    """
    if named is not None and "://" in named:
        _refuse_password(named)
        return named
    from tocsin.cli.archive.location import find_archive

    return os.path.abspath(find_archive(named))


def _refuse_password(address: str) -> None:
    from tocsin.pipeline.locations import has_password

    if has_password(address):
        # The address is not printed: how much of it is the password is not known for sure.
        raise BadPipelineOption(
            "the address given with --archive contains a user name or password",
            remedy="Leave it out: to a broker give --token-file. To a store or to Kafka it is "
            "given by settings, as --conf spark.hadoop.fs.s3a.secret.key=... or "
            "spark.tocsin.kafka.*.",
        )


def run(arguments: Namespace) -> int:
    begun_s = time.monotonic()
    job = _job(arguments)
    from tocsin.cli.pipeline.publish import TablePublisher
    from tocsin.cli.progress import Progress
    from tocsin.pipeline.job import already_made
    from tocsin.pipeline.job import run as run_job

    current = already_made(job) if arguments.publish is None else None
    if current is not None:
        _print_result(arguments, current, job, None, time.monotonic() - begun_s)
        return 0
    quiet = arguments.json and not arguments.verbose
    with Progress("Spark", STEPS, quiet=quiet) as progress:
        progress.step("starting Spark")
        spark = session_for(arguments, job)
        started_s = time.monotonic() - begun_s
        try:
            out = TablePublisher(spark, job, arguments.publish)
            done = _run_traced(
                lambda: run_job(spark, job, progress.step), verbose=arguments.verbose
            )
            sent = out.send_held()
        finally:
            spark.stop()
    _print_result(arguments, done, job, started_s, time.monotonic() - begun_s, out.report(sent))
    if not arguments.json:
        out.say(sent)
    return 0


def _print_result(
    arguments: Namespace,
    done: Done,
    job: Job,
    started_s: float | None,
    took_s: float,
    sent: Mapping[str, Any] = MappingProxyType({}),
) -> None:
    """`started_s` is None if Spark was not needed."""
    if arguments.json:
        show_json(_done_json(done, started_s or 0.0, took_s) | dict(sent))
    else:
        _print_done(done, job, started_s, took_s)


def _job(arguments: Namespace) -> Job:
    from tocsin.cli.archive.replay import is_ago
    from tocsin.drivers.site_ontology import use_ontology
    from tocsin.pipeline.job import Job
    from tocsin.pipeline.locations import KafkaLocation, is_kafka

    for name in ("archive", "publish"):
        if getattr(arguments, name) is not None:
            _not_empty(getattr(arguments, name), f"--{name}")
    archive = archive_place(arguments.archive)
    if is_kafka(archive):
        KafkaLocation.parse(archive)  # before Java is started for nothing
        use_ontology(_settings().blackboard.ontology)  # no broker has read these messages for us
    asked = {name: getattr(arguments, name, None) for name in ("since", "until")}
    since, until = (_moment(text, f"--{name}") for name, text in asked.items())
    if since is not None and until is not None and since >= until:
        raise BadPipelineOption(
            f"--since {asked['since']} is not before --until {asked['until']}",
            remedy="Exchange them, or leave one out.",
        )
    return Job(
        archive,
        tables_directory(arguments.tables).absolute(),
        since=since,
        until=until,
        rebuild=arguments.rebuild,
        silence_s=_settings().monitor.silence_s,
        moves=any(text is not None and is_ago(text) for text in asked.values()),
    )


def _moment(text: str | None, option: str) -> datetime | None:
    """A moment. One that goes with the time is that of the beginning of its hour, or of its day:
    so that who asks twice asks for the same."""
    if text is None:
        return None
    from tocsin.cli.archive.replay import is_ago, read_moment_ns

    try:
        moment = datetime.fromtimestamp(read_moment_ns(text, option) / 1e9, UTC)
    except (ValueError, OverflowError) as error:
        raise BadPipelineOption(
            f"{option} {text!r} is out of range", remedy="Write a moment of the years 1 to 9999."
        ) from error
    if not is_ago(text):
        return moment
    hour = moment.replace(minute=0, second=0, microsecond=0)
    return hour.replace(hour=0) if "d" in text.lower() else hour


def _run_traced(work: Callable[[], Any], *, verbose: bool) -> Any:
    try:
        return work()
    except PipelineFailed as error:
        if verbose and error.__cause__ is not None:
            traceback.print_exception(error.__cause__, file=sys.stderr)
        raise


def _done_json(done: Done, started_s: float, took_s: float) -> dict[str, Any]:
    manifest = done.manifest
    return {
        "version": manifest.version,
        "new": done.is_new,
        "through": manifest.through,
        "as_of": None if manifest.as_of is None else manifest.as_of.isoformat(),
        "counts": manifest.counts,
        "tables": {name: facts.rows for name, facts in manifest.tables.items()},
        "bad_files": [{"file": each.path, "reason": each.reason} for each in done.bad_files],
        "started_s": round(started_s, 3),
        "seconds": round(took_s, 3),
    }


def _print_done(done: Done, job: Job, started_s: float | None, took_s: float) -> None:
    manifest = done.manifest
    if done.is_new:
        table(
            ("table", "rows", "KiB"),
            [
                (name, f"{facts.rows:,}", f"{facts.bytes / 1024:,.0f}")
                for name, facts in manifest.tables.items()
            ],
        )
        counts = manifest.counts
        summary = ", ".join(
            f"{counts[name]:,} {word}"
            for name, word in (
                ("events", "events"),
                ("duplicates", "duplicates left out"),
                ("late", "late"),
                ("clock_off", "with a wrong clock"),
                ("missing", "missing in the archive (archive verify)"),
                ("unread", "in files that cannot be read"),
                ("set_aside", "set aside (pipeline show quarantine)"),
            )
            if counts.get(name)
        )
        say(f"version {manifest.version} in {job.tables}: {summary or 'nothing yet'}")
    else:
        say(f"nothing new: version {manifest.version} in {job.tables} has everything")
    for each in done.bad_files[:10]:
        say(f"set aside: {each.path}: {each.reason}")
    start = "" if started_s is None else f", of which {started_s:.1f} s to start Spark"
    say(f"{took_s:.1f} s{start}")


def stream(arguments: Namespace) -> int:
    job = _job(arguments)
    for name in ("trigger", "refresh", "rows", "watermark"):
        if not 0 < getattr(arguments, name) < math.inf:
            raise BadPipelineOption(
                f"--{name} must be a number above zero", remedy="Give another number."
            )
    from tocsin.cli.pipeline.publish import TablePublisher
    from tocsin.pipeline.stream import Pace, StreamJob

    pace = Pace(
        trigger_s=arguments.trigger,
        refresh_s=arguments.refresh,
        rows_max=arguments.rows,
        watermark_s=arguments.watermark,
        once=arguments.once,
    )
    if not arguments.json:
        say("starting Spark")
    spark = session_for(arguments, job)
    out = TablePublisher(spark, job, arguments.publish)
    show_progress = _print_progress_json if arguments.json else _print_progress
    streaming = StreamJob(spark, job, pace, show_progress, out.send_or_report)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: streaming.stop())
    try:
        _run_traced(streaming.run, verbose=arguments.verbose)
        out.require_sent()
    finally:
        spark.stop()
    return 0


def _print_progress(progress: Progress) -> None:
    age = "" if progress.age_s is None else f", {_in_short(progress.age_s)} old"
    if progress.kind == "tables":
        say(
            f"tables: version {progress.version} of {progress.events:,} events through "
            f"{progress.through:,}{age}; made in {progress.took_s:.1f} s"
        )
        return
    rate = progress.events / progress.took_s if progress.took_s else 0.0
    say(f"{progress.events:,} events through {progress.through:,}{age}; {rate:,.0f} a second")


def _in_short(seconds: float) -> str:
    days, rest = divmod(seconds, 86_400)
    return f"{days:,.0f} d {rest / 3_600:.0f} h" if days else f"{seconds:,.1f} s"


def _print_progress_json(progress: Progress) -> None:
    import msgspec

    show_json(msgspec.to_builtins(progress))
    sys.stdout.flush()


def show(arguments: Namespace) -> int:
    from tocsin.cli.pipeline.show import show as show_rows
    from tocsin.tables.published import require

    directory = tables_directory(arguments.tables)
    if arguments.table is None:
        return _show_tables(require(directory), as_json=arguments.json)
    show_rows(
        directory,
        arguments.table,
        limit=arguments.limit,
        where=arguments.where or "",
        sort=arguments.sort or "",
        columns=arguments.columns or "",
        json=arguments.json,
    )
    return 0


def _show_tables(found: Any, *, as_json: bool) -> int:
    import msgspec

    from tocsin.cli.format import window_text

    if as_json:
        show_json(msgspec.to_builtins(found.manifest))
        return 0
    rows = [(name, f"{facts.rows:,}", f"{facts.bytes:,}") for name, facts in found.tables.items()]
    table(("table", "rows", "bytes"), rows)
    made = f"{found.made:%Y-%m-%d %H:%M:%S} UTC"
    summary = [f"version {found.version}", f"made {made}", f"through event {found.through:,}"]
    say(", ".join([*summary, *window_text(found.manifest.since, found.manifest.until)]))
    return 0


def quality(arguments: Namespace) -> int:
    from tocsin.tables.published import require

    directory = tables_directory(arguments.tables)
    require(directory)  # before Java is started for nothing
    from tocsin.pipeline.quality import current_findings

    spark = started(arguments, "fast", {})
    try:
        checks = _run_traced(lambda: current_findings(spark, directory), verbose=arguments.verbose)
    finally:
        spark.stop()
    if arguments.json:
        for each in checks:
            row = {"table": each.table, "check": each.sentence, "broken": each.count}
            show_json({**row, "rows": list(each.rows)})
    else:
        table(
            ("", "table", "check", "rows that violate it"),
            [("ok" if c.holds else "BROKEN", c.table, c.sentence, c.count) for c in checks],
        )
        for each in checks:
            for text in each.rows:
                say(f"{each.table}: {text}")
    return 0 if all(each.holds for each in checks) else 1


def report(arguments: Namespace) -> int:
    from tocsin.cli.report import TITLE
    from tocsin.cli.report import report as make_report

    out = None if arguments.html is None else Path(_not_empty(arguments.html, "--html"))
    if out is not None and out.is_dir():
        raise BadPipelineOption(f"--html {out} is a directory", remedy="Name a file in it.")
    try:
        page = make_report(
            tables_directory(arguments.tables),
            out=out,
            title=arguments.title or TITLE,
            now=datetime.now(UTC),
        )
    except OSError as error:
        raise BadPipelineOption(
            f"the report cannot be written to {out}: {error.strerror or error}",
            remedy="Name a file in a directory that is there, with --html.",
        ) from error
    if arguments.json:
        summary = {"file": None if out is None else str(out), "bytes": len(page.encode())}
        show_json(summary if out is not None else {**summary, "html": page})
    elif out is None:
        sys.stdout.write(page)
    else:
        say(f"{out}: {len(page.encode()) / 1024:,.0f} KiB; open it in a browser")
    return 0
