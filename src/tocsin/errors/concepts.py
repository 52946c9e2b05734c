"""T32: the ontology, and what is known of workflow runs."""

from __future__ import annotations

from tocsin.errors.root import TocsinError


class UnknownConcept(TocsinError):
    """A key of a message or a profile is no concept of the ontology that the broker has loaded."""

    code = "T320"


class BadOntology(TocsinError):
    """A file of concepts cannot be used: no Turtle, too large, or at odds with what is there."""

    code = "T321"
    exit_code = 2


class NoSuchRun(TocsinError):
    """No run, activity or workflow of this name is known: it never was, or was let go by age."""

    code = "T322"
    http_status = 404
    exit_code = 5


class NothingToEstimate(TocsinError):
    """Nothing can be said about the time left: no past run, and nothing of this one has ended."""

    code = "T323"
    http_status = 409


class NoSuchPublisher(TocsinError):
    """There is no publisher or subscriber of the blackboard with this id or address."""

    code = "T324"
    http_status = 404
    exit_code = 5


class MonitorOff(TocsinError):
    """This broker keeps no account of workflow runs: by its settings, or for want of a database."""

    code = "T325"
    http_status = 409
