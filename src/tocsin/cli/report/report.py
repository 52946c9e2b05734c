"""Report: reads one version of the tables, and writes the page whole or not at all."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path

from tocsin.cli.report.page import page
from tocsin.cli.report.period import report_period
from tocsin.cli.report.sections.activities import activities
from tocsin.cli.report.sections.costs import costs
from tocsin.cli.report.sections.deliveries import deliveries, discoveries
from tocsin.cli.report.sections.durations import durations
from tocsin.cli.report.sections.estimates import estimates
from tocsin.cli.report.sections.failures import failures
from tocsin.cli.report.sections.quality import quality
from tocsin.cli.report.sections.usage import usage
from tocsin.cli.report.sections.versions import trends
from tocsin.cli.report.sections.workflows import workflows
from tocsin.cli.report.source import Source
from tocsin.tables.published import read_current

TITLE = "Workflow report"


def report(tables_dir: Path, *, out: Path | None = None, title: str = TITLE, now: datetime) -> str:
    """The page as HTML, written to `out` if given. Raises NoTables if there is nothing to read."""
    html = read_current(tables_dir, lambda found: _render(Source(found), title, now))
    if out is not None:
        _write(out, html)
    return html


def _render(source: Source, title: str, now: datetime) -> str:
    period = report_period(source)
    sections = [
        workflows(source, period),
        activities(source),
        failures(source, period),
        durations(source),
        usage(source, period),
        trends(source),
        costs(source),
        estimates(source),
        deliveries(source),
        discoveries(source),
        quality(source),
    ]
    return page(source, title, now, period, sections)


def _write(out: Path, html: str) -> None:
    """Under another name first: who has the page open never sees half of it."""
    unfinished = out.with_name(f".{out.name}.{os.getpid()}")
    try:
        unfinished.write_bytes(html.encode("utf-8", "replace"))
        unfinished.replace(out)
    finally:
        unfinished.unlink(missing_ok=True)
