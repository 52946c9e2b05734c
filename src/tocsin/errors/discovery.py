"""T35: resource discovery between brokers."""

from __future__ import annotations

from tocsin.errors.root import TocsinError


class BadDiscovery(TocsinError):
    """A resource's registration, its values or a discovery request is invalid. Nothing changed.

    Resources and requests are conditions joined by `and`, each of them an attribute, one of
    =, <, <=, > and >=, and a value. A resource's values lie in what it advertised.
    """

    code = "T350"


class NoSuchResource(TocsinError):
    """No resource of this id is registered at this broker.

    It was never registered, was withdrawn, or its lease has ended: register it again. Or it is
    registered at another broker, which is the only one that changes and withdraws it.
    """

    code = "T351"
    http_status = 404
    exit_code = 5


class NoSuchDiscovery(TocsinError):
    """No continuous request of this id runs here: it never existed, has ended, or was cancelled."""

    code = "T352"
    http_status = 404
    exit_code = 5


class DiscoveryOff(TocsinError):
    """This process finds no resources: it serves message boxes, and nothing else."""

    code = "T354"
    http_status = 409


class DiscoveryFull(TocsinError):
    """This broker keeps as many resources or requests as it may. Try later, or raise the limit."""

    code = "T353"
    http_status = 503
