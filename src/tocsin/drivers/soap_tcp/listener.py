"""SoapTcpListener: accepts SOAP.TCP connections and answers their messages."""

from __future__ import annotations

import asyncio
import ssl
import traceback

from tocsin.access.session import Session as AccessSession
from tocsin.config import LimitSettings, SoapTcpSettings
from tocsin.drivers.listeners.budget import ReceiveBudget
from tocsin.drivers.listeners.stream_listener import (
    PeerConnected,
    StreamListener,
    hang_up,
    socket_name,
)
from tocsin.drivers.logger import WriteLog
from tocsin.drivers.soap_tcp.destination import SCHEME
from tocsin.drivers.soap_tcp.session import Session
from tocsin.errors import BadFrame, Busy, TooSlow
from tocsin.services.soap.call import Answer


class SoapTcpListener(StreamListener[Session]):
    """A listener that is open."""

    flag = "--soap-tcp"
    endpoint = "soap-tcp"
    name = "SOAP.TCP"

    def __init__(
        self,
        answer: Answer,
        limits: SoapTcpSettings,
        note: WriteLog,
        budget: ReceiveBudget,
        per_peer_max: int,
        peer_connected: PeerConnected,
    ) -> None:
        super().__init__(limits.connections_max, per_peer_max, note, peer_connected)
        self._answer = answer
        self._limits = limits
        self._budget = budget

    def _session(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, caller: AccessSession
    ) -> Session:
        return Session(
            reader,
            writer,
            answer=self._answer,
            limits=self._limits,
            base=f"{SCHEME}://{self._base_address(writer)}",
            caller=caller,
            share=self._budget.share(),
        )

    def _base_address(self, writer: asyncio.StreamWriter) -> str:
        """Where the peer reached us: of all our addresses the one that it can reach again."""
        return socket_name(writer.get_extra_info("sockname")) or self.address

    async def _serve(self, session: Session, writer: asyncio.StreamWriter) -> None:
        try:
            await session.run()
        except (BadFrame, TooSlow, Busy) as error:
            self._note("warning", error.problem, code=error.code, peer=session.peer)
        except OSError:
            pass  # the peer has closed the connection
        except Exception as error:
            # A bug. It ends this connection and is logged; the others go on.
            where = traceback.extract_tb(error.__traceback__)[-1]
            self._note(
                "error",
                "a SOAP.TCP connection failed",
                error=f"{type(error).__name__}: {error}",
                where=f"{where.name}:{where.lineno}",
                peer=session.peer,
            )
        finally:
            await hang_up(writer)


async def listen(
    answer: Answer,
    address: str,
    limits: SoapTcpSettings,
    note: WriteLog,
    *,
    tls: ssl.SSLContext | None = None,
    budget: ReceiveBudget | None = None,
    per_peer_max: int | None = None,
    peer_connected: PeerConnected = lambda host: None,
) -> SoapTcpListener:
    """Open the listener; `answer` gets every call. Without the `budget` of other listeners it has
    one of its own."""
    own = budget or ReceiveBudget(LimitSettings().receiving_bytes_max, note)
    per_peer_max = per_peer_max or LimitSettings().connections_per_peer_max
    listener = SoapTcpListener(answer, limits, note, own, per_peer_max, peer_connected)
    await listener.open(address, tls)
    return listener
