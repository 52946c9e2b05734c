"""The door itself: SOAP.TCP connections come in, and get their answers."""

from __future__ import annotations

import asyncio
import ssl
import traceback

from tocsin.config import SoapTcpSettings
from tocsin.drivers.soap.call import Answer
from tocsin.drivers.soap_tcp.destination import SCHEME
from tocsin.drivers.soap_tcp.session import Session
from tocsin.drivers.stream_door import Note, StreamDoor, hang_up, socket_name
from tocsin.errors import BadFrame, TooSlow


class SoapTcpDoor(StreamDoor[Session]):
    """An open door."""

    flag = "--soap-tcp"
    name = "SOAP.TCP"

    def __init__(self, answer: Answer, limits: SoapTcpSettings, note: Note) -> None:
        super().__init__(limits.connections_max, note)
        self._answer = answer
        self._limits = limits

    def _session(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Session:
        return Session(
            reader,
            writer,
            answer=self._answer,
            limits=self._limits,
            base=f"{SCHEME}://{self._base_address(writer)}",
            peer=socket_name(writer.get_extra_info("peername")),
        )

    def _base_address(self, writer: asyncio.StreamWriter) -> str:
        """Where the peer reached us: of all our addresses the one that it can reach again."""
        return socket_name(writer.get_extra_info("sockname")) or self.address

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
            await hang_up(writer)


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
