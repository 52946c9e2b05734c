"""T31 to T34: the directory, the ontology, workflow runs and workflow files."""

from __future__ import annotations

from tocsin.errors.root import TocsinError


class UnknownConcept(TocsinError):
    """A key of a message or a profile is not a concept of the loaded ontology."""

    code = "T320"


class BadOntology(TocsinError):
    """A file of concepts cannot be used: invalid Turtle, too large, or in conflict with others."""

    code = "T321"
    exit_code = 2


class NoSuchRun(TocsinError):
    """No run, activity or workflow has this name: it never existed, or was removed by age."""

    code = "T322"
    http_status = 404
    exit_code = 5


class NothingToEstimate(TocsinError):
    """The time left cannot be estimated: no past run, and no activity of this one has ended."""

    code = "T323"
    http_status = 409


class NoSuchPublisher(TocsinError):
    """There is no publisher or subscriber of the blackboard with this id or address."""

    code = "T324"
    http_status = 404
    exit_code = 5


class MonitorOff(TocsinError):
    """This broker does not record workflow runs: it is turned off, or has no usable database."""

    code = "T325"
    http_status = 409


class BadRegistration(TocsinError):
    """A registration for the directory is invalid. Nothing was changed."""

    code = "T310"


class NoSuchEntry(TocsinError):
    """The directory has no such entry: it never existed, was withdrawn, or its lease has ended.

    A producer or consumer whose lease has ended registers again.
    """

    code = "T311"
    http_status = 404
    exit_code = 5


class DirectoryFull(TocsinError):
    """The directory has as many entries, or as many bytes, as it may have.

    Entries are removed when they are withdrawn, or when their leases end: ask for shorter
    leases.
    """

    code = "T312"
    http_status = 429


class BadRunsFile(TocsinError):
    """A file of runs cannot be used: it is damaged, a line is not a run, or it has too few of
    them.

    It has one JSON object a line, plain or gzipped: app, makespan, machines, cores, and for each
    task its type, runtime, parents and external_bytes. docs/estimates.md has an example.
    """

    code = "T340"
    exit_code = 2


class BadWorkflowFile(TocsinError):
    """A workflow file is invalid, or refers to a file outside of the allowed directory.

    Files are read, never run. What they include must lie in the workflow's directory, or in the one
    that --root names, because the text of what is recorded is published.
    """

    code = "T330"
    exit_code = 2
