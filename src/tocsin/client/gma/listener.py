"""PeerListener and AcceptedPeer: what both sides that accept connections share, and their TLS."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import Any, ClassVar, Final, Generic, TypeVar

from tocsin.client.gma.address import PeerAddress
from tocsin.client.gma.connection import IdSource, PartialMessages, PeerConnection
from tocsin.client.gma.loop import LoopThread
from tocsin.client.transport.tls import VERSION_MIN
from tocsin.errors import BadSetting
from tocsin.wire.gma import conversation as c


class _Locked(Exception):
    """A key wants a password."""


def _no_password() -> str:
    raise _Locked


def listening_context(certificate: str, key: str) -> ssl.SSLContext | None:
    """How connections are accepted with TLS; None if no certificate is given."""
    if not certificate and not key:
        return None
    if not certificate or not key:
        missing = "tls_key" if certificate else "tls_certificate"
        raise BadSetting(
            f"TLS needs a certificate and its key; {missing} is missing",
            remedy="Give both, each as the name of a PEM file.",
        )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = VERSION_MIN
    try:
        # Asked for a password on the terminal, a service would wait for ever.
        context.load_cert_chain(certificate, key, password=_no_password)
    except _Locked:
        raise BadSetting(
            f"the key in {key} is encrypted with a password",
            remedy="Write it without a password: openssl pkey -in ENCRYPTED -out KEY.",
        ) from None
    except OSError as error:  # ssl.SSLError is one
        why = getattr(error, "reason", None) or error.strerror or error
        raise BadSetting(
            f"{certificate} and {key} cannot be used for TLS: {why}",
            remedy="Name the PEM file of a certificate and that of its own key.",
        ) from None
    return context


CONNECTIONS_MAX: Final = 1_000
HANDSHAKE_S_MAX: Final = 10.0
GOODBYE_S_MAX: Final = 2.0  # for everybody to reply to our goodbye
IDLE_S_MAX: Final = 300.0  # for a connection without subscriptions

log = logging.getLogger("tocsin.gma")


class AcceptedPeer(PeerConnection):
    """A peer that connected to us. Of the loop's thread alone."""

    role: ClassVar[str]  # of this side
    frame_bytes_max: ClassVar[int]
    in_turns: ClassVar[bool] = False

    def __init__(self, listener: PeerListener[Any]) -> None:
        super().__init__(
            listener.ids.conversation(self.role),
            frame_bytes_max=self.frame_bytes_max,
            accepted=True,
            in_turns=self.in_turns,
            partial_messages=listener.partial_messages,
        )
        self._listener = listener
        self._goodbyes = 0
        self._last_message_s = self._loop.time()
        self._idle_timer: asyncio.TimerHandle | None = None
        self.gone = asyncio.Event()

    def handle(self, received: c.Received) -> None:
        """The peer sent something that is about events."""
        raise AssertionError("each side handles its own")

    def send_close(self) -> None:
        """End all subscriptions; the connection is closed when the peer has replied."""
        conversation = self.conversation
        for subscription in conversation.subscriptions:
            self.send(conversation.unsubscribe(subscription))
            self._goodbyes += 1
        if not self._goodbyes:
            self.close(f"the {self.role} closes")

    # What happens on the connection

    def opened(self) -> None:
        if self._listener.admit(self):
            self._idle_timer = self._loop.call_later(IDLE_S_MAX, self._check_idle)
        else:
            self.abort("there is no room")

    def received(self, received: c.Received) -> None:
        self._last_message_s = self._loop.time()
        match received:
            case c.Refusal() | c.Stale():
                pass  # nothing to do
            case c.Answered():
                # Nothing but the end of its subscriptions is ever asked of an accepted peer.
                self._goodbyes -= 1
                if self._goodbyes == 0 and not self.conversation.subscriptions:
                    self.close(f"the {self.role} closes")
            case _:
                self.handle(received)

    def closed(self, why: str) -> None:
        log.debug("the peer %s is gone: %s", self.peer, why)
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        self._listener.forget(self)
        self.gone.set()

    def _check_idle(self) -> None:
        quiet_s = self._loop.time() - self._last_message_s
        is_used = bool(self.conversation.subscriptions)
        if not is_used and quiet_s >= IDLE_S_MAX:
            self.close("nothing was received for a long time")
            return
        left_s = IDLE_S_MAX if is_used else IDLE_S_MAX - quiet_s
        self._idle_timer = self._loop.call_later(left_s, self._check_idle)


P = TypeVar("P", bound=AcceptedPeer)


class PeerListener(Generic[P]):
    """Accepts peers. Of the loop's thread alone, but for what can only be read."""

    def __init__(self, thread: LoopThread, ids: IdSource, accept: Callable[[], P]) -> None:
        self.thread = thread
        self.ids = ids
        self.partial_messages = PartialMessages()
        self.address: PeerAddress | None = None
        self.peers: set[P] = set()
        self._accept = accept
        self._server: asyncio.Server | None = None

    async def open(self, address: PeerAddress, context: ssl.SSLContext | None) -> None:
        """Listen there; BadSetting if that cannot be. Then `address` has the port that it got."""
        try:
            self._server = await self.thread.loop.create_server(
                self._accept,
                address.host or None,
                address.port,
                ssl=context,
                ssl_handshake_timeout=None if context is None else HANDSHAKE_S_MAX,
            )
        except (OSError, UnicodeError) as error:
            raise BadSetting(
                f"cannot listen on {address.authority}: "
                f"{getattr(error, 'strerror', None) or error}",
                remedy="Choose another port, or 0 for any that is free.",
            ) from None
        port = self._server.sockets[0].getsockname()[1]
        self.address = address._replace(port=port, tls=context is not None)

    async def close(self) -> None:
        """Accept no more, say goodbye to everybody, and close what is left after a while."""
        if self._server is not None:
            self._server.close()
        leaving = list(self.peers)
        for peer in leaving:
            peer.send_close()
        with suppress(TimeoutError):
            async with asyncio.timeout(GOODBYE_S_MAX):
                await asyncio.gather(*(peer.gone.wait() for peer in leaving))
        for peer in list(self.peers):
            peer.abort("it is over")

    def admit(self, peer: P) -> bool:
        """False if there is no room for it."""
        if len(self.peers) >= CONNECTIONS_MAX:
            log.warning("refused a connection: there are %d", CONNECTIONS_MAX)
            return False
        self.peers.add(peer)
        return True

    def forget(self, peer: P) -> None:
        self.peers.discard(peer)
