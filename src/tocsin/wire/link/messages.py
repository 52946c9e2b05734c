"""The messages between two brokers of an overlay: a handshake, routing tables, and events.

Each side begins with Hello, and answers the other's with Welcome or Refuse. Then each sends what it
knows: all advertisements and Synced, and once it has those of the other side, all subscriptions
that they let through and Synced. What the receiver still holds of an earlier connection and is not
named before Synced, is gone. From then on only changes are sent.

A subscription or an advertisement is named by the broker it was made at and an id of that broker. A
filter is in the language of `event.filter_text`; the empty text is every event.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from tocsin.event.control_topic import BODY_BYTES_MAX, TOPIC_CHARS_MAX
from tocsin.event.event import Event

PROTOCOL_VERSION = 1
DATA_FORMAT = 1  # of the events in messages

BROKERS_MAX = 10_000  # in one message; also the most that one overlay can have
FILTER_CHARS_MAX = 64 << 10  # as much as a request of a subscription may be
ENTRY_ID_CHARS_MAX = 256
EVENTS_MAX = 10_000  # in one batch
BATCHES_MAX = 8  # sent and not yet acknowledged
UNACKNOWLEDGED_BYTES_MAX = 16 << 20  # and of those batches together, or one that is larger
HOPS_MAX = 255  # a path through an overlay is no longer; what has come further, has gone in circles
TDNS_MAX = 16  # topic discovery nodes at one broker

BrokerId = Annotated[str, msgspec.Meta(pattern=r"\A[A-Za-z0-9._:-]{1,64}\Z")]
EntryId = Annotated[str, msgspec.Meta(min_length=1, max_length=ENTRY_ID_CHARS_MAX)]
FilterText = Annotated[str, msgspec.Meta(max_length=FILTER_CHARS_MAX)]
REASON_CHARS_MAX = 1024
Text = Annotated[str, msgspec.Meta(max_length=REASON_CHARS_MAX)]
Number = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
Hops = Annotated[int, msgspec.Meta(ge=0, le=HOPS_MAX)]
Brokers = Annotated[tuple[BrokerId, ...], msgspec.Meta(max_length=BROKERS_MAX)]
Paths = Annotated[dict[BrokerId, BrokerId], msgspec.Meta(max_length=BROKERS_MAX)]
"""Broker id -> the last broker before it on the way there. The sender is not among the keys."""


class MessageBase(
    msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=str.lower
):
    """An array whose first element is the name of the message in lower case."""


class Hello(MessageBase, frozen=True):
    """The first message of both sides."""

    protocol: Number
    broker: BrokerId
    log: BrokerId  # the id of its log: another one after its data was lost
    data_format: Number
    agent: Text  # tocsin/VERSION
    instance: BrokerId = "-"  # another one after each start: tells a restart from a copy
    behind: Paths = {}
    """The brokers that the receiver will reach through the sender."""
    leaving: Annotated[str, msgspec.Meta(pattern=r"\A[A-Za-z0-9._:-]{0,64}\Z")] = ""
    """A neighbour whose link the sender ends once it is welcome here: a standby peer."""
    nonce: BrokerId = "-"  # another one for each connection


class Welcome(MessageBase, frozen=True):
    """The other side's Hello was accepted: the link is up once both have sent this."""

    proof: Annotated[str, msgspec.Meta(pattern=r"\A([0-9a-f]{64})?\Z")] = ""
    """That the sender has the token that it was given; empty if it has none of the receiver."""


class IssueToken(MessageBase, frozen=True):
    """From now on the receiver proves by this token that it is who it is. Sent after Welcome until
    it was answered by TokenKept."""

    token: BrokerId


class TokenKept(MessageBase, frozen=True):
    """The token that the sender was given is on its disk."""


class Refuse(MessageBase, frozen=True):
    """The link cannot be; the sender closes the connection. An error's code, and its words."""

    code: Text
    reason: Text


class Heartbeat(MessageBase, frozen=True):
    """Sent in regular intervals. The time is the sender's own, and comes back as it is."""

    sent_ns: Number


class HeartbeatReply(MessageBase, frozen=True):
    """Answers a Heartbeat, so that its sender knows the round-trip time."""

    sent_ns: Number


class Behind(MessageBase, frozen=True):
    """What changed in the set of brokers behind the sender since its Hello or the last Behind."""

    added: Paths = {}
    removed: Brokers = ()


class PlacesKept(MessageBase, frozen=True):
    """Where these brokers are, as the receiver has said, is on the disks of those, which are the
    sender or behind it. Passed on to where each broker is."""

    brokers: Brokers
    at: Brokers


class Advertise(MessageBase, frozen=True):
    """Events that pass this filter may come from the sender's side."""

    origin: BrokerId
    id: EntryId
    filter: FilterText


class Unadvertise(MessageBase, frozen=True):
    """The advertisement does not count any more on this link."""

    origin: BrokerId
    id: EntryId


class Subscribe(MessageBase, frozen=True):
    """Somebody on the sender's side wants the events that pass this filter."""

    origin: BrokerId
    id: EntryId
    filter: FilterText


class Unsubscribe(MessageBase, frozen=True):
    """The subscription does not count any more on this link."""

    origin: BrokerId
    id: EntryId


class Synced(MessageBase, frozen=True):
    """All entries of this table have been sent since the link came up."""

    table: Literal["advertisements", "subscriptions"]


class Ignored(MessageBase, frozen=True):
    """Entries that the receiver sent were not taken: so many since the link came up, the last for
    this reason. Said of the first, the second, the fourth, and so on."""

    count: Number
    code: Text
    reason: Text


class Reached(MessageBase, frozen=True):
    """The subscription holds at these brokers now. Goes back the way the subscription came."""

    origin: BrokerId
    id: EntryId
    brokers: Brokers


class Forget(MessageBase, frozen=True):
    """A broker is gone for good, as was first said so long ago: clocks need not agree. Goes to
    everybody; who has seen the broker since does not believe it."""

    broker: BrokerId
    age_ns: Number


class Relayed(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """An event on its way. Its origin and the number it has there tell it from all others."""

    origin: BrokerId
    origin_log: BrokerId
    number: Number  # in the log of its origin
    received_ns: Number  # by its origin, on that broker's clock
    hops: Hops
    event: Event


class Events(MessageBase, frozen=True):
    """What the receiver wants out of the sender's log, as far as `through`: often nothing."""

    through: Number
    events: Annotated[tuple[Relayed, ...], msgspec.Meta(max_length=EVENTS_MAX)] = ()


class Acknowledge(MessageBase, frozen=True):
    """All that was sent as far as `through` is on the disk of whoever sends this."""

    through: Number


class NotStored(MessageBase, frozen=True):
    """What was sent and is not acknowledged is not on the disk of whoever sends this, for this
    reason, and is not kept. Nor will be what comes before a Resume."""

    code: Text
    reason: Text


class Resume(MessageBase, frozen=True):
    """Answers NotStored, after a while: what was not acknowledged follows again."""


class Handover(MessageBase, frozen=True):
    """Events that were kept for a broker while it could not be reached, and that the brokers
    between may have already. Passed on towards `to`, and answered from there."""

    source: BrokerId
    to: BrokerId
    id: EntryId  # of the source,
    number: Number  # and another one for each message
    hops: Hops
    events: Annotated[tuple[Relayed, ...], msgspec.Meta(max_length=EVENTS_MAX)]


class HandedOver(MessageBase, frozen=True):
    """The Handover of this number is on the disk of the sender; passed on towards `source`."""

    source: BrokerId
    id: EntryId
    number: Number
    hops: Hops


class Direct(MessageBase, frozen=True):
    """In place of Hello: this connection carries results of discovery to the broker `to`, which
    need not be a neighbour of the sender. Nothing is answered."""

    protocol: Number
    broker: BrokerId
    to: BrokerId


class Control(MessageBase, frozen=True):
    """A control message on its way: it is in no log, and nothing keeps it for later."""

    id: BrokerId  # of its origin
    topic: Annotated[str, msgspec.Meta(min_length=1, max_length=TOPIC_CHARS_MAX)]
    origin: BrokerId
    to: Annotated[str, msgspec.Meta(pattern=r"\A([A-Za-z0-9._:-]{0,64}|\*)\Z")]
    """A broker; `*`, all of them; or empty, those with the topic discovery nodes that are meant."""
    ttl: Annotated[int, msgspec.Meta(ge=1, le=HOPS_MAX)]  # links that it may cross, this among them
    sent_ns: Number  # by the clock of its origin
    kind: Annotated[str, msgspec.Meta(pattern=r"\A[a-z0-9.-]{1,64}\Z")]
    body: Annotated[bytes, msgspec.Meta(max_length=BODY_BYTES_MAX)] = b""


class Serves(MessageBase, frozen=True):
    """These topic discovery nodes are at the broker, which is the sender or behind it. None: it has
    none any more, or cannot be reached by way of the sender. A larger number is newer."""

    broker: BrokerId
    number: Number
    tdns: Annotated[tuple[BrokerId, ...], msgspec.Meta(max_length=TDNS_MAX)] = ()


class Bye(MessageBase, frozen=True):
    """The sender closes the connection in good order: it stops, or uses another peer."""

    reason: Text = ""


Message = (
    Hello
    | Welcome
    | IssueToken
    | TokenKept
    | Refuse
    | Heartbeat
    | HeartbeatReply
    | Behind
    | PlacesKept
    | Advertise
    | Unadvertise
    | Subscribe
    | Unsubscribe
    | Synced
    | Ignored
    | Reached
    | Forget
    | Events
    | Acknowledge
    | NotStored
    | Resume
    | Handover
    | HandedOver
    | Direct
    | Control
    | Serves
    | Bye
)
