"""T80: links between brokers of an overlay, and the routing tables."""

from __future__ import annotations

from tocsin.errors.root import TocsinError


class BadLinkMessage(TocsinError):
    """A neighbour sent what is no message of the link protocol, or one out of its turn.

    The connection is closed. Look whether something that is no broker connects to the link port,
    and whether both brokers have versions that fit each other.
    """

    code = "T801"


class LinkVersion(TocsinError):
    """The neighbour speaks another version of the link protocol, or stores another data format.

    Update the older of the two brokers. Until then they are not connected; nothing is lost.
    """

    code = "T802"


class LinkCycle(TocsinError):
    """The link would close a cycle: its two ends are connected already, by way of other brokers.

    An overlay is a tree, so that an event takes one way to each broker. Remove this --peer, or
    another link on the way; `tocsin overlay` shows them. If the other way fails, the link comes
    about by itself at the next attempt.
    """

    code = "T803"


class LinkToItself(TocsinError):
    """The other side has this broker's own id: it is this broker, or a copy of its data directory.

    Remove the --peer that names this broker's own address. A second broker begins with an empty
    data directory.
    """

    code = "T804"


class LinkTwice(TocsinError):
    """There is another connection to the same broker, and that one is used.

    It happens when two brokers connect to each other at the same moment, or one connects again
    before the others have noticed that its old connection is dead: nothing needs to be done. If it
    stays, somebody has copied the broker's data directory: start the copy with an empty one.
    """

    code = "T805"


class RoutingTableFull(TocsinError):
    """A routing table has as many entries as it may have, or a neighbour sent more than its share.

    What did not fit is not routed: those subscribers miss events of other brokers. Raise the limit
    in [overlay], or use fewer and wider subscriptions.
    """

    code = "T806"
    http_status = 429


class NoSuchBroker(TocsinError):
    """The routing tables do not know this broker. `tocsin overlay` lists those that they know."""

    code = "T807"
    http_status = 404
    exit_code = 5


class BrokerStillThere(TocsinError):
    """A broker that is connected to the overlay cannot be forgotten. Stop it first."""

    code = "T808"
    http_status = 409


class NotAcknowledged(TocsinError):
    """A neighbour was sent events, and did not say in time that they are on its disk.

    The link is made anew, and the events are sent again. If it goes on, look at that broker: its
    disk may be stuck. What it has not acknowledged after delivery.backlog_age_s is dropped.
    """

    code = "T810"


# What can be done at the side that was refused, for each code of the other.
_REFUSED_REMEDIES = {
    "T802": "Update the older of the two brokers.",
    "T803": "Remove one --peer on the way; or make it a standby, as in --peer FIRST,STANDBY.",
    "T804": "--peer names this broker itself, or a copy of its data directory: remove it, or start "
    "the copy with an empty one.",
    "T805": "If it stays, a data directory was copied: start the copy with an empty one.",
    "T811": "If this broker was restored from a backup, run `tocsin overlay forget ID` there.",
}


class LinkRefused(TocsinError):
    """The other broker refused the link. Its code is in the message; `tocsin explain` has it."""

    code = "T809"
    http_status = 502

    refusal_code = ""  # of the other broker's error

    @classmethod
    def by(cls, refusal_code: str, reason: str) -> LinkRefused:
        """What the other broker said."""
        refusal = cls(
            f"the other broker refused the link: {reason} [{refusal_code}]",
            remedy=_REFUSED_REMEDIES.get(
                refusal_code, "Its log has more about it. This broker tries again by itself."
            ),
        )
        refusal.refusal_code = refusal_code
        return refusal


class NeighbourNotProved(TocsinError):
    """Somebody connects with the id of a known neighbour and does not prove to be that broker.

    Two neighbours give each other a token when they first meet, and keep it in their data
    directories. If the neighbour was restored from a backup that is older, or its data was lost,
    run `tocsin overlay forget ID` here, while it is away. Else find out who uses its id.
    """

    code = "T811"
    http_status = 403
