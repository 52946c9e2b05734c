"""The door itself: connections come in, are looked after, and leave when it closes."""

from __future__ import annotations

import asyncio
import ssl
import traceback
from collections.abc import Callable
from typing import Final

from tocsin.config import SoapTcpSettings
from tocsin.drivers.bind_address import host_and_port
from tocsin.drivers.soap.call import Answer
from tocsin.drivers.soap_tcp.destination import SCHEME
from tocsin.drivers.soap_tcp.session import READ_BYTES, Session
from tocsin.errors import BadFrame, BadSetting, TooSlow

BACKLOG: Final = 1_024
CLOSING_S: Final = 0.7  # for answers under way; whoever is not done then is cut off
TLS_HANDSHAKE_S: Final = 10.0

Note = Callable[..., None]
"""Writes to the broker's own log: level, message, then fields by name."""


class SoapTcpDoor:
    """An open door."""

    def __init__(self, answer: Answer, limits: SoapTcpSettings, note: Note) -> None:
        self._answer = answer
        self._limits = limits
        self._note = note
        self._sessions: dict[asyncio.Task[None], Session] = {}
        self._server: asyncio.Server | None = None
        self._closing = False
        self._full = False
        self.turned_away = 0
        self.host = ""
        self.port = 0

    @property
    def address(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    async def open(self, address: str, tls: ssl.SSLContext | None) -> None:
        self.host, port = host_and_port(address)
        try:
            self._server = await asyncio.start_server(
                self._welcome,
                self.host,
                port,
                limit=READ_BYTES,
                backlog=BACKLOG,
                ssl=tls,
                ssl_handshake_timeout=None if tls is None else TLS_HANDSHAKE_S,
            )
        except (OSError, UnicodeError) as error:
            raise BadSetting(
                f"cannot listen on {address}: {error}",
                remedy="Choose another address with --soap-tcp HOST:PORT; port 0 takes any free "
                "one, and --soap-tcp off does without this door.",
            ) from None
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Take no more messages, let those under way be answered, hang up."""
        self._closing = True
        if self._server is not None:
            self._server.close()
        for task, session in self._sessions.items():
            session.stopping = True
            if not session.answering:
                task.cancel()
        if self._sessions:
            await asyncio.wait(self._sessions, timeout=CLOSING_S)
        for task in self._sessions:
            task.cancel()
        if self._sessions:
            await asyncio.wait(self._sessions)

    def _welcome(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._closing or len(self._sessions) >= self._limits.connections_max:
            self._turn_away(writer)
            return
        session = Session(
            reader,
            writer,
            answer=self._answer,
            limits=self._limits,
            base=f"{SCHEME}://{self._base_address(writer)}",
            peer=_text(writer.get_extra_info("peername")),
        )
        task = asyncio.get_running_loop().create_task(self._serve(session, writer))
        self._sessions[task] = session
        task.add_done_callback(self._forget)

    def _turn_away(self, writer: asyncio.StreamWriter) -> None:
        self.turned_away += 1
        writer.transport.abort()
        if not self._full and not self._closing:
            self._full = True  # told once, and again when there was room in between
            self._note(
                "warning",
                "the SOAP.TCP door has as many connections as soap_tcp.connections_max allows",
                connections=len(self._sessions),
            )

    def _forget(self, task: asyncio.Task[None]) -> None:
        del self._sessions[task]
        self._full = False

    def _base_address(self, writer: asyncio.StreamWriter) -> str:
        """Where the peer reached us: of all our addresses the one that it can reach again."""
        return _text(writer.get_extra_info("sockname")) or self.address

    async def _serve(self, session: Session, writer: asyncio.StreamWriter) -> None:
        try:
            await session.run()
        except (BadFrame, TooSlow) as error:
            self._note("warning", error.problem, code=error.code, peer=session.peer)
        except OSError:
            pass  # the peer is gone, and with it whoever could be told
        except Exception as error:
            # A bug. It costs this connection and is told; the others go on.
            where = traceback.extract_tb(error.__traceback__)[-1]
            self._note(
                "error",
                "a SOAP.TCP connection failed",
                error=f"{type(error).__name__}: {error}",
                where=f"{where.name}:{where.lineno}",
                peer=session.peer,
            )
        finally:
            await _hang_up(writer)


async def _hang_up(writer: asyncio.StreamWriter) -> None:
    """Close, and wait only so long for a peer that does not read the rest."""
    writer.close()
    try:
        async with asyncio.timeout(CLOSING_S):
            await writer.wait_closed()
    except OSError:  # TimeoutError is one
        pass
    finally:
        writer.transport.abort()


def _text(name: object) -> str:
    """A socket's name as host:port."""
    if not isinstance(name, tuple) or len(name) < 2:
        return ""
    host, port = str(name[0]), name[1]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


async def listen(
    answer: Answer,
    address: str,
    limits: SoapTcpSettings,
    note: Note,
    *,
    tls: ssl.SSLContext | None = None,
) -> SoapTcpDoor:
    """Open the door; `answer` gets every call."""
    door = SoapTcpDoor(answer, limits, note)
    await door.open(address, tls)
    return door
