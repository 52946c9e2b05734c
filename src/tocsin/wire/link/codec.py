"""Link messages as frames: the length in four bytes, then the message as MessagePack.

A message of resource discovery is the second element of an array whose first is `discovery`.

A frame that is too long is refused by its length, before any of it is kept. A message is taken as
it should be or not at all: an unknown name, a wrong type, a value out of its range and bytes left
over are all BadLinkMessage, after which the connection is closed.
"""

from __future__ import annotations

import msgspec

from tocsin.errors import BadLinkMessage, LinkVersion, TocsinError
from tocsin.wire.cloudevents.attributes import check_event
from tocsin.wire.cloudevents.limits import Limits
from tocsin.wire.framing import FrameSplitter, framed
from tocsin.wire.link.discovery_messages import DiscoveryMessage
from tocsin.wire.link.messages import (
    EVENTS_MAX,
    PROTOCOL_VERSION,
    Message,
    MessageBase,
    Number,
    Relayed,
)

FRAME_BYTES_MAX = 16 << 20  # a batch of events, or everything about 10,000 brokers
# Those of the frame: which events are too large, the broker decides that first accepted them.
EVENT_LIMITS = Limits(FRAME_BYTES_MAX, EVENTS_MAX, FRAME_BYTES_MAX)

LinkMessage = Message | DiscoveryMessage


class _FirstFields(msgspec.Struct, frozen=True, array_like=True):
    """What the first message of every version begins with, after its name; the rest is not read."""

    protocol: Number


class _Hello(_FirstFields, frozen=True, tag="hello"):
    """As a later version may have it."""


class _Direct(_FirstFields, frozen=True, tag="direct"):
    """As a later version may have it."""


class _Discovery(MessageBase, frozen=True, tag="discovery"):
    body: msgspec.Raw


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Message | _Discovery).decode
_decode_first = msgspec.msgpack.Decoder(_Hello | _Direct).decode
_decode_discovery = msgspec.msgpack.Decoder(DiscoveryMessage).decode


def encode(message: LinkMessage) -> bytes:
    """The message as a frame."""
    if isinstance(message, MessageBase):
        return framed(_encode(message))
    return framed(_encode(_Discovery(msgspec.Raw(_encode(message)))))


def decode(body: bytes) -> LinkMessage:
    """The message in a frame's body, else BadLinkMessage; or LinkVersion if it is the first one of
    another version of the protocol, which may have any form."""
    try:
        message: Message | _Discovery = _decode(body)
        if not isinstance(message, _Discovery):
            return message
        wrapped: DiscoveryMessage = _decode_discovery(message.body)
        return wrapped
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _other_version(body) or _invalid(str(error)) from None


def _other_version(body: bytes) -> LinkVersion | None:
    try:
        protocol = _decode_first(body).protocol
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return None if protocol == PROTOCOL_VERSION else other_version("the other side", protocol)


def check_relayed(relayed: Relayed) -> None:
    """BadEvent, BadTopic or TooLarge for an event that the log of this broker cannot keep.

    It is left out and counted; the link stays, or its neighbour would send the event for ever.
    """
    check_event(relayed.event, EVENT_LIMITS)


class LinkReader:
    """Takes the bytes of a connection as they come, and gives out the messages in them."""

    def __init__(self, frame_bytes_max: int = FRAME_BYTES_MAX) -> None:
        self._splitter = FrameSplitter(frame_bytes_max)
        self._refusal: BadLinkMessage | LinkVersion | None = None

    @property
    def waiting(self) -> int:
        """How many bytes of a message have come that is not yet whole."""
        return self._splitter.waiting

    @property
    def refusal(self) -> TocsinError | None:
        """What came after the messages that were given out, if it was none."""
        return self._refusal or self._splitter.refusal

    def read(self, data: bytes) -> list[LinkMessage]:
        """The messages that are whole now; BadFrame or BadLinkMessage if the next is none.

        If both, the messages come first: then `refusal` is set, and the next call raises it.
        """
        return [message for message, _ in self.read_sized(data)]

    def read_sized(self, data: bytes) -> list[tuple[LinkMessage, int]]:
        """The same, each with the number of its bytes."""
        if self._refusal is not None:
            raise self._refusal
        found: list[tuple[LinkMessage, int]] = []
        for body in self._splitter.split(data):
            try:
                found.append((decode(body), len(body)))
            except (BadLinkMessage, LinkVersion) as error:
                self._refusal = error
                if not found:
                    raise
                break
        return found


def other_version(who: str, protocol: int) -> LinkVersion:
    return LinkVersion(
        f"{who} speaks version {protocol} of the link protocol, and this broker version "
        f"{PROTOCOL_VERSION}",
        remedy="Update the older of the two.",
    )


def _invalid(problem: str) -> BadLinkMessage:
    return BadLinkMessage(
        f"invalid message on a link between brokers: {problem}",
        remedy="Both sides have to be Tocsin brokers of versions that fit each other.",
    )
