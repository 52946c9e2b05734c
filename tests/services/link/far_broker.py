"""A broker that takes results directly, played by a test."""

from __future__ import annotations

from collections.abc import Callable

from tocsin.access.session import anonymous
from tocsin.services.link.transport import Receiver, Transport
from tocsin.wire.link.codec import LinkMessage, LinkReader, encode
from tocsin.wire.link.messages import Heartbeat, HeartbeatReply

ADDRESS = "far.example:8403"


class FarEnd:
    """One connection to it; a Transport."""

    def __init__(self, far: FarBroker) -> None:
        self.peer = ADDRESS
        self.session = anonymous("link", ADDRESS)
        self.waiting = 0
        self.heard: list[LinkMessage] = []
        self.is_over = False
        self.receiver: Receiver | None = None
        self._far = far
        self._reader = LinkReader()

    def write(self, data: bytes) -> None:
        if self.is_over or self._far.is_away:
            self.waiting += len(data)
            return
        for message in self._reader.read(data):
            if isinstance(message, Heartbeat):
                self._far.questions.append((self, message))
            else:
                self.heard.append(message)

    def close(self) -> None:
        self.is_over = True

    def abort(self) -> None:
        self.is_over = True

    def say(self, *messages: LinkMessage) -> None:
        for message in messages:
            if self.receiver is not None and not self.is_over:
                self.receiver.received(encode(message))

    def break_off(self, reason: str = "the connection was reset") -> None:
        self.is_over = True
        assert self.receiver is not None
        self.receiver.ended(reason)


class FarBroker:
    """A Connector to it. While it `is_away`, what is sent goes nowhere and nobody says so."""

    def __init__(self) -> None:
        self.ends: list[FarEnd] = []
        self.questions: list[tuple[FarEnd, Heartbeat]] = []
        self.is_away = False

    async def connect(self, address: str, opened: Callable[[Transport], Receiver]) -> None:
        end = FarEnd(self)
        self.ends.append(end)
        end.receiver = opened(end)

    def crash(self) -> None:
        """It is back at once, and knows nothing of the connections that there were."""
        for end in self.ends:
            end.is_over = True

    def answer(self) -> None:
        """It has read everything."""
        while self.questions:
            end, question = self.questions.pop(0)
            end.say(HeartbeatReply(question.sent_ns))

    def got(self, kind: type[LinkMessage]) -> list[LinkMessage]:
        """What came of this kind, by whichever connection."""
        return [each for end in self.ends for each in end.heard if isinstance(each, kind)]
