"""T34: files of past runs."""

from __future__ import annotations

from tocsin.errors.root import TocsinError


class BadRunsFile(TocsinError):
    """A file of runs cannot be used: it is damaged, a line is not a run, or it has too few of
    them.

    It has one JSON object a line, plain or gzipped: app, makespan, machines, cores, and for each
    task its type, runtime, parents and external_bytes. docs/estimates.md has an example.
    """

    code = "T340"
    exit_code = 2
