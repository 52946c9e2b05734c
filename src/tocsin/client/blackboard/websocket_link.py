"""WebSocketLink: a broker's blackboard over WebSockets; the profile is pushed, not request for."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from itertools import count
from threading import Condition, Thread
from typing import Any, Unpack

import msgspec

from tocsin.client.blackboard.link import Delivered
from tocsin.client.blackboard.remote import ReconnectingSubscription, RemoteLink, delivered
from tocsin.client.transport.address import Address, broker_address
from tocsin.client.transport.refusal import refusal
from tocsin.client.transport.runtime import cannot_reach
from tocsin.client.transport.websocket import WebSocket
from tocsin.credentials.sign_in import SignIn
from tocsin.errors import CannotReachBroker, TocsinError
from tocsin.wire.blackboard.messages import Profile

PUBLISH_TIMEOUT_S = 10.0
READ_S = 1.0

_encode = msgspec.json.Encoder().encode


def websocket_address(address: str | Address | None, **sign_in: Unpack[SignIn]) -> Address:
    """Of ws:// and wss:// as well, which differ from http:// and https:// in name only."""
    if isinstance(address, Address):
        return address
    if address is not None and address.startswith(("ws://", "wss://")):
        address = f"http{address.removeprefix('ws')}"
    return broker_address(address, **sign_in)


def _open_socket(address: Address) -> WebSocket:
    return WebSocket(address, "/blackboard/socket", "blackboard.json")


def _copied(error: Exception) -> CannotReachBroker:
    """The same error, for another thread to raise."""
    if isinstance(error, CannotReachBroker):
        return CannotReachBroker(error.problem, remedy=error.remedy)
    return CannotReachBroker(str(error), remedy="Try again.")


class WebSocketLink(RemoteLink):
    """One socket for publishing and the profile, read by a thread; one for each subscription."""

    def __init__(self, broker: str | Address | None = None, **sign_in: Unpack[SignIn]) -> None:
        super().__init__(websocket_address(broker, **sign_in))
        self._changed = Condition()
        self._socket: WebSocket | None = None
        self._lost: TocsinError | None = None
        self._refs = count(1)
        self._request = 0
        self._answers: dict[int, dict[str, Any]] = {}
        self._profile: Profile | None = None
        self._interruptions = 0

    def _publish(self, body: bytes) -> int:
        with self._changed:
            socket, ref = self._open(), next(self._refs)
            self._request = ref
        socket.send(_encode({"publish": msgspec.Raw(body), "ref": ref}).decode())
        with self._changed:
            self._await(socket, lambda: ref in self._answers, PUBLISH_TIMEOUT_S)
            answer = self._answers.pop(ref, None)
        if answer is None:
            # Whatever it says later would belong to nobody.
            socket.interrupt()
            raise cannot_reach(self.address, "it does not answer")
        if "problem" in answer:
            problem = answer["problem"]
            raise refusal(int(problem.get("status", 400)), _encode(problem))
        return int(answer["accepted"]) - int(answer.get("duplicates", 0))

    def profile(self, *, after: int | None = None, wait_s: float = 0.0) -> Profile:
        with self._changed:
            socket = self._open()
            if self._profile is None:
                self._await(socket, lambda: self._profile is not None, PUBLISH_TIMEOUT_S)
            if after is not None and wait_s > 0:
                self._await(socket, lambda: self._version() != after, wait_s)
            if self._profile is None:
                raise cannot_reach(self.address, "it does not answer")
            return self._profile

    def _version(self) -> int | None:
        return None if self._profile is None else self._profile.version

    def _await(self, socket: WebSocket, come: Callable[[], bool], wait_s: float) -> None:
        """Wait for it, with the lock held; raises why the socket broke meanwhile."""
        deadline = time.monotonic() + wait_s
        interruptions = self._interruptions
        while not come():
            if self._socket is not socket:
                raise _copied(self._lost or cannot_reach(self.address, "it was closed"))
            left_s = deadline - time.monotonic()
            if left_s <= 0 or self._interruptions != interruptions:
                return
            self._changed.wait(left_s)

    def _open(self) -> WebSocket:
        """The socket that is open, or another; the lock is held."""
        if self._socket is None:
            socket = _open_socket(self.address)
            socket.send('{"register":true}')
            self._socket, self._lost = socket, None
            self._answers.clear()
            self._profile = None
            Thread(target=self._listen, args=(socket,), name="tocsin-socket", daemon=True).start()
        return self._socket

    def _listen(self, socket: WebSocket) -> None:
        try:
            while self._socket is socket:
                for text in socket.read(READ_S):
                    self._take(msgspec.json.decode(text))
        except (TocsinError, msgspec.DecodeError) as error:
            with self._changed:
                if self._socket is socket:
                    self._socket = None
                    self._lost = _copied(error)
                self._changed.notify_all()
        finally:
            socket.close()

    def _take(self, answer: Any) -> None:
        with self._changed:
            if isinstance(answer, dict) and isinstance(answer.get("profile"), dict):
                self._profile = msgspec.convert(answer["profile"], Profile)
            elif isinstance(answer, dict) and isinstance(answer.get("ref"), int):
                self._answers[answer["ref"]] = answer
            elif isinstance(answer, dict) and "problem" in answer:
                # What could not be read at all has no number, and was the last that we sent.
                self._answers[self._request] = answer
            self._changed.notify_all()

    def subscribe(
        self, concepts: Iterable[str], *, after: int | None = None
    ) -> WebSocketSubscription:
        return WebSocketSubscription(self.address, tuple(concepts), after).started()

    def interrupt(self) -> None:
        with self._changed:
            self._interruptions += 1
            self._changed.notify_all()
            socket = self._socket
        if socket is not None:
            socket.interrupt()

    def reopened(self) -> WebSocketLink:
        return WebSocketLink(self.address)

    def close(self) -> None:
        with self._changed:
            socket, self._socket = self._socket, None
            self._changed.notify_all()
        if socket is not None:
            socket.interrupt()


class WebSocketSubscription(ReconnectingSubscription):
    """Has a socket of its own."""

    def __init__(self, address: Address, concepts: tuple[str, ...], after: int | None) -> None:
        super().__init__(address, concepts, after)
        self._socket: WebSocket | None = None

    def _read(self, wait_s: float) -> list[Delivered]:
        if self._socket is None:
            socket = _open_socket(self._address)
            request = {"subscribe": self._concepts, "ref": 0}
            if self._after is not None:
                request["after"] = self._after
            socket.send(_encode(request).decode())
            self._socket = socket
        came: list[Delivered] = []
        for text in self._socket.read(wait_s):
            each = delivered(text)
            if each is None:
                self._read_answer(text)
            elif each.seq > (self._after or 0):
                self._after = each.seq
                came.append(each)
        return came

    def _read_answer(self, text: str) -> None:
        """An answer to our request, not a message."""
        try:
            answer = msgspec.json.decode(text)
        except msgspec.DecodeError as error:
            raise cannot_reach(self._address, error) from None
        if not isinstance(answer, dict):
            return
        if isinstance(answer.get("problem"), dict):
            problem = answer["problem"]
            raise refusal(int(problem.get("status", 400)), _encode(problem))
        if "subscribed" in answer:
            self._active = True
            # A socket that breaks before its first message must know where to go on.
            if self._after is None and isinstance(answer.get("after"), int):
                self._after = answer["after"]

    def _disconnect(self) -> None:
        socket, self._socket = self._socket, None
        if socket is not None:
            socket.close()

    def close(self) -> None:
        self._closed = True
        socket = self._socket
        if socket is not None:
            socket.interrupt()
            socket.close()
