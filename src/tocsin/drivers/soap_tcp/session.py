"""Session: one connection of the SOAP.TCP listener. Messages are answered one by one, in order.

While one is answered nothing more is read, so a client that sends faster than we store is slowed
down by TCP itself, and what waits here is bounded.
"""

from __future__ import annotations

import asyncio

from tocsin.access.session import Session as AccessSession
from tocsin.config import SoapTcpSettings
from tocsin.drivers.listeners.budget import Share
from tocsin.drivers.listeners.delivery_receipts import PendingReceipts
from tocsin.drivers.listeners.private_transport import is_private
from tocsin.drivers.soap_tcp.destination import path_and_query
from tocsin.errors import TooSlow
from tocsin.services.soap.call import Answer, SoapCall
from tocsin.wire.dime import Decoder, DimeLimits, Message, envelope_message, read_envelope_message

READ_BYTES = 64 << 10
CONTENT_TYPES = {"1.1": "text/xml", "1.2": "application/soap+xml"}


class Session:
    """Reads calls from one peer and writes the answers."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        *,
        answer: Answer,
        limits: SoapTcpSettings,
        base: str,
        caller: AccessSession,
        share: Share,
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._answer = answer
        self._limits = limits
        self._base = base
        self._caller = caller
        self._share = share
        self._decoder = Decoder(DimeLimits(limits.message_bytes_max, limits.records_max))
        self._receipts = PendingReceipts()
        self.is_busy = False  # a call is under way, or its answer
        self.stopping = False

    @property
    def peer(self) -> str:
        return self._caller.peer

    async def run(self) -> None:
        """Until the peer closes, is silent for too long, or sends what cannot be read.

        Raises BadFrame, TooSlow and Busy; the connection is for the caller to close.
        """
        error: BaseException | None = None
        try:
            while not self.stopping and (message := await self._next_message()) is not None:
                self.is_busy = True
                try:
                    await self._answer_to(message)
                finally:
                    self.is_busy = False
                self._share.hold(self._decoder.held_bytes)  # what was answered is freed
                await asyncio.sleep(
                    0
                )  # many short messages may be buffered; other connections get a turn
        except BaseException as raised:
            error = raised
            raise
        finally:
            self._receipts.ended(error)
            error = None  # its traceback has this frame: together they would be a cycle
            self._share.hold(0)

    async def _next_message(self) -> Message | None:
        limits = self._limits
        loop = asyncio.get_running_loop()
        began_s, received_bytes = loop.time(), 0
        while (message := self._decoder.next_message()) is None:
            between = self._decoder.is_between_messages
            if between:
                until_s = began_s + limits.idle_s
            else:
                # A long message may take its time, as long as it flows.
                flow_s = received_bytes / limits.bytes_per_s_min
                until_s = began_s + limits.message_deadline_s + flow_s
            try:
                async with asyncio.timeout_at(until_s):
                    data = await self._read()
            except TimeoutError:
                if between:
                    return None
                raise TooSlow(
                    f"only {received_bytes} bytes of a message arrived in time",
                    remedy="Send it faster, or raise soap_tcp.message_deadline_s.",
                ) from None
            if not data:
                self._receipts.peer_closed()
                self._decoder.end()
                return None
            if between:
                began_s = loop.time()
            received_bytes += len(data)
            self._decoder.receive(data)
            if not self._share.hold(self._decoder.held_bytes):
                raise self._share.refuse()
        return message

    async def _read(self) -> bytes:
        """The next bytes. If they were not waiting already, the peer has read its last answer."""
        waited: list[bool] = []
        mark = asyncio.get_running_loop().call_soon(waited.append, True)
        data = await self._reader.read(READ_BYTES)
        mark.cancel()
        if data and waited:
            self._receipts.next_request()
        return data

    async def _answer_to(self, message: Message) -> None:
        soap, envelope = read_envelope_message(message)
        path, query = path_and_query(envelope)
        call = SoapCall(
            body=envelope,
            content_type=CONTENT_TYPES[soap],
            soap_action="",
            path=path,
            query=query,
            base=self._base,
            session=self._caller,
            is_private=is_private(self._writer.transport, self.peer),
        )
        answer = await self._answer(call)
        if answer.receipt is not None:
            self._receipts.add(answer.receipt, self._writer.transport)
        if not answer.body:
            return
        version = "1.2" if answer.content_type.startswith(CONTENT_TYPES["1.2"]) else "1.1"
        self._writer.write(envelope_message(version, answer.body))
        try:
            async with asyncio.timeout(self._limits.stalled_reader_s):
                await self._writer.drain()
        except TimeoutError:
            raise TooSlow(
                "the peer does not read its answers",
                remedy="Read them as they come, or raise soap_tcp.stalled_reader_s.",
            ) from None
