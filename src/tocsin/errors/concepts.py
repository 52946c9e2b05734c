"""T32: the ontology, and what is known of workflow runs."""

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
