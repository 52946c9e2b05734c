"""Control messages as the API answers with them, and sends them in a stream."""

from __future__ import annotations

import msgspec


class ControlMessage(msgspec.Struct, frozen=True):
    """A control message. `origin` is the broker that it was sent at: answers go there.

    `sent` is by the clock of that broker; `body` is in Base64.
    """

    id: str
    topic: str
    origin: str
    sent: str
    kind: str
    body: bytes


class ControlSent(msgspec.Struct, frozen=True):
    """A control message is on its way, and kept for nobody.

    `tdns` counts the brokers with topic discovery nodes that it is for, as far as they are known
    here, `neighbours` the brokers that it was sent on to, `dropped` those for which too much waits.
    """

    id: str
    tdns: int
    neighbours: int
    dropped: int
