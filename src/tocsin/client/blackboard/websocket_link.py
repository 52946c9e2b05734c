"""WebSocketLink: a broker's blackboard over WebSockets; the profile is pushed, not asked for."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from itertools import count
from threading import Condition, Thread
from typing import Any, Self

import msgspec

from tocsin.client.blackboard.http_stream import delivered
from tocsin.client.blackboard.kept_up import KeptUp
from tocsin.client.blackboard.link import Delivered
from tocsin.client.blackboard.requests import in_requests
from tocsin.client.blackboard.socket_line import SocketLine, was_lost
from tocsin.client.transport.address import Address, broker_address
from tocsin.client.transport.connection import cannot_reach
from tocsin.client.transport.refusal import refusal
from tocsin.errors import TocsinError
from tocsin.wire.blackboard.messages import Message, Profile

PUBLISH_TIMEOUT_S = 10.0
READ_S = 1.0

_encode = msgspec.json.Encoder().encode


def socket_address(address: str | Address | None) -> Address:
    """Of ws:// and wss:// as well, which differ from http:// and https:// in name only."""
    if isinstance(address, Address):
        return address
    if address is not None and address.startswith(("ws://", "wss://")):
        address = f"http{address.removeprefix('ws')}"
    return broker_address(address)


class WebSocketLink:
    """One socket for publishing and the profile, read by a thread; one for each subscription."""

    is_remote = True

    def __init__(self, broker: str | Address | None = None) -> None:
        self.address = socket_address(broker)
        if self.address.tls:
            # Here, and not in a thread at the first request: a fork meanwhile would hang the child.
            import ssl  # noqa: F401
        self._changed = Condition()
        self._line: SocketLine | None = None
        self._lost: TocsinError | None = None
        self._refs = count(1)
        self._asked = 0
        self._answers: dict[int, dict[str, Any]] = {}
        self._profile: Profile | None = None
        self._interruptions = 0

    @property
    def name(self) -> str:
        return str(self.address)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def publish(self, messages: Sequence[Message]) -> int:
        return sum(self._publish(body) for body in in_requests(messages))

    def _publish(self, body: bytes) -> int:
        with self._changed:
            line, ref = self._open(), next(self._refs)
            self._asked = ref
        line.send(_encode({"publish": msgspec.Raw(body), "ref": ref}).decode())
        with self._changed:
            self._await(line, lambda: ref in self._answers, PUBLISH_TIMEOUT_S)
            answer = self._answers.pop(ref, None)
        if answer is None:
            # Whatever it says later would belong to nobody.
            line.interrupt()
            raise cannot_reach(self.address, "it does not answer")
        if "problem" in answer:
            problem = answer["problem"]
            raise refusal(int(problem.get("status", 400)), _encode(problem))
        return int(answer["accepted"]) - int(answer.get("duplicates", 0))

    def profile(self, *, after: int | None = None, wait_s: float = 0.0) -> Profile:
        with self._changed:
            line = self._open()
            if self._profile is None:
                self._await(line, lambda: self._profile is not None, PUBLISH_TIMEOUT_S)
            if after is not None and wait_s > 0:
                self._await(line, lambda: self._version() != after, wait_s)
            if self._profile is None:
                raise cannot_reach(self.address, "it does not answer")
            return self._profile

    def _version(self) -> int | None:
        return None if self._profile is None else self._profile.version

    def _await(self, line: SocketLine, come: Callable[[], bool], wait_s: float) -> None:
        """Wait for it, with the lock held; raises why the line broke meanwhile."""
        deadline = time.monotonic() + wait_s
        interruptions = self._interruptions
        while not come():
            if self._line is not line:
                raise was_lost(self._lost or cannot_reach(self.address, "it was closed"))
            left_s = deadline - time.monotonic()
            if left_s <= 0 or self._interruptions != interruptions:
                return
            self._changed.wait(left_s)

    def _open(self) -> SocketLine:
        """The socket that is open, or another; the lock is held."""
        if self._line is None:
            line = SocketLine(self.address)
            line.send('{"register":true}')
            self._line, self._lost = line, None
            self._answers.clear()
            self._profile = None
            Thread(target=self._listen, args=(line,), name="tocsin-socket", daemon=True).start()
        return self._line

    def _listen(self, line: SocketLine) -> None:
        try:
            while self._line is line:
                for text in line.read(READ_S):
                    self._take(msgspec.json.decode(text))
        except (TocsinError, msgspec.DecodeError) as error:
            with self._changed:
                if self._line is line:
                    self._line = None
                    self._lost = was_lost(error)
                self._changed.notify_all()
        finally:
            line.close()

    def _take(self, said: Any) -> None:
        with self._changed:
            if isinstance(said, dict) and isinstance(said.get("profile"), dict):
                self._profile = msgspec.convert(said["profile"], Profile)
            elif isinstance(said, dict) and isinstance(said.get("ref"), int):
                self._answers[said["ref"]] = said
            elif isinstance(said, dict) and "problem" in said:
                # What could not be read at all has no number, and was the last that we sent.
                self._answers[self._asked] = said
            self._changed.notify_all()

    def subscribe(
        self, concepts: Iterable[str], *, after: int | None = None
    ) -> WebSocketSubscription:
        return WebSocketSubscription(self.address, tuple(concepts), after).begun()

    def interrupt(self) -> None:
        with self._changed:
            self._interruptions += 1
            self._changed.notify_all()
            line = self._line
        if line is not None:
            line.interrupt()

    def reopened(self) -> WebSocketLink:
        return WebSocketLink(self.address)

    def close(self) -> None:
        with self._changed:
            line, self._line = self._line, None
            self._changed.notify_all()
        if line is not None:
            line.interrupt()


class WebSocketSubscription(KeptUp):
    """Has a socket of its own."""

    def __init__(self, address: Address, concepts: tuple[str, ...], after: int | None) -> None:
        super().__init__(address, concepts, after)
        self._line: SocketLine | None = None

    def _read(self, wait_s: float) -> list[Delivered]:
        if self._line is None:
            line = SocketLine(self._address)
            asked = {"subscribe": self._concepts, "ref": 0}
            if self._after is not None:
                asked["after"] = self._after
            line.send(_encode(asked).decode())
            self._line = line
        came: list[Delivered] = []
        for text in self._line.read(wait_s):
            told = delivered(text)
            if told is None:
                self._heed(text)
            elif told.seq > (self._after or 0):
                self._after = told.seq
                came.append(told)
        return came

    def _heed(self, text: str) -> None:
        """An answer to our request, not a message."""
        try:
            said = msgspec.json.decode(text)
        except msgspec.DecodeError as error:
            raise cannot_reach(self._address, error) from None
        if not isinstance(said, dict):
            return
        if isinstance(said.get("problem"), dict):
            problem = said["problem"]
            raise refusal(int(problem.get("status", 400)), _encode(problem))
        if "subscribed" in said:
            self._in_force = True
            # A socket that breaks before its first message must know where to go on.
            if self._after is None and isinstance(said.get("after"), int):
                self._after = said["after"]

    def _hang_up(self) -> None:
        line, self._line = self._line, None
        if line is not None:
            line.close()

    def close(self) -> None:
        self._closed = True
        line = self._line
        if line is not None:
            line.interrupt()
            line.close()
