"""What a message means to the side of a conversation that receives it."""

from __future__ import annotations

import msgspec

from tocsin.wire.gma import messages as m


class Subscription(msgspec.Struct, eq=False):
    """Events flow, or will. The peer's messages call it by `own_id`, ours by `peer_id`."""

    own_id: str
    parameters: m.Parameters
    filter: str | None = None
    options: m.Options | None = None  # of the request
    peer_id: str | None = None  # not known before the reply
    peer_role: str | None = None  # not known before somebody shows it
    agreed: m.Options | None = None  # of the reply


class SubscribeAsked(msgspec.Struct, frozen=True):
    """The peer wants to: call `accept` or `refuse`."""

    request: m.SubscribeRequest


class Subscribed(msgspec.Struct, frozen=True):
    """The peer agreed to what we asked."""

    subscription: Subscription
    detail: str | None


class Refused(msgspec.Struct, frozen=True):
    """The peer did not."""

    subscription: Subscription
    detail: str | None


class EventArrived(msgspec.Struct, frozen=True):
    """An event, or an error in its place. `settled`: only this shows that the peer produces."""

    subscription: Subscription
    message: m.EventMessage
    settled: bool = False


class Ended(msgspec.Struct, frozen=True):
    """The peer ended it: send the reply."""

    subscription: Subscription
    reply: m.UnsubscribeReply


class RequestReceived(msgspec.Struct, frozen=True):
    """The peer asks for an event, or which there are: send a reply, then call `replied`."""

    request: m.QueryRequest | m.EventNamesRequest


class Answered(msgspec.Struct, frozen=True):
    """The peer replied to what we asked, or to an event that we sent."""

    request: m.Request | m.EventMessage
    reply: m.Reply


class Refusal(msgspec.Struct, frozen=True):
    """What the peer asked cannot be: send the reply."""

    reply: m.Reply


class Stale(msgspec.Struct, frozen=True):
    """It is about what has ended, or is not for this side: nothing to do but send the `answer`.

    There is one if the peer agreed after we had given up: for the peer the subscription is open.
    """

    message: m.Message
    answer: m.UnsubscribeRequest | None = None


Received = (
    SubscribeAsked
    | Subscribed
    | Refused
    | EventArrived
    | Ended
    | RequestReceived
    | Answered
    | Refusal
    | Stale
)
