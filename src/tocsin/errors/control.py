"""T82: control messages, by which topics are discovered."""

from __future__ import annotations

from tocsin.errors.access import QuotaReached
from tocsin.errors.root import TocsinError


class BadControlMessage(TocsinError):
    """A control message is invalid: its topic, to whom it goes, or how far. It was not sent.

    Topics are `Services/Discovery/Topics`, `Services/Discovery/TopicDiscoveryNode`, both also with
    the id of a topic discovery node after them, and `Entity/ID`.
    """

    code = "T821"


class ControlRateReached(QuotaReached):
    """Somebody, or a neighbour, sends more control messages a second than it may.

    What is too much is dropped: nothing keeps control messages for later. Wait, or raise one of
    `control_rate_entity`, `control_rate_neighbour` and `control_rate_total` in [overlay].
    """

    code = "T822"


class ControlFull(TocsinError):
    """A control message was dropped, as too much waits already, or too many are remembered.

    Somebody reads too slowly, or too much is sent. Send it again later, or raise a limit of control
    messages in [overlay].
    """

    code = "T823"
    http_status = 503


class NoEntity(TocsinError):
    """Who asks has not proved to be an entity, and only an entity gets messages.

    An entity is whoever has a certain key. Connect with a client certificate of that key, or sign
    in by proving that you have it.
    """

    code = "T824"
    http_status = 403
    exit_code = 4
