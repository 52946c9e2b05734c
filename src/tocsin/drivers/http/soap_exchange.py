"""SOAP over HTTP: one request in, the dispatcher's answer out."""

from __future__ import annotations

import asyncio
import re
from math import inf

import msgspec

from tocsin.drivers.http import answers
from tocsin.drivers.http.connection import Connection
from tocsin.drivers.http.request import Request
from tocsin.drivers.http.session import SOAP, soap_session
from tocsin.drivers.listeners.private_transport import is_private
from tocsin.errors import TocsinError
from tocsin.safexml import carried_as
from tocsin.services.publishing.content_encoding import decoded
from tocsin.services.soap.call import Answer, SoapCall
from tocsin.wire.soap.multipart import is_multipart

_CHARSET = re.compile(r";\s*charset\s*=\s*[\"']?([\w.:-]{1,40})", re.IGNORECASE)


class SoapExchange:
    """A SOAP message and its answer."""

    takes_over = False
    is_long_lived = True  # consumers may wait at a box

    def __init__(self, connection: Connection, request: Request, answer: Answer, base: str) -> None:
        self.name = f"SOAP {request.path[:200]}"
        self._connection = connection
        self._request = request
        self._answer = answer
        self._base = base
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        request, server = self._request, self._connection.server
        headers = request.headers
        body = request.body
        refused: TocsinError | None = None
        coding = headers.get(b"content-encoding")
        if coding is not None:
            try:
                body = decoded(body, coding, server.limits.body_bytes_max)
            except TocsinError as error:
                refused = error
        session = msgspec.structs.replace(self._connection.session, endpoint=SOAP)
        try:
            session = soap_session(self._connection, headers)
        except TocsinError as error:
            refused = error
        kind = headers.get(b"content-type", b"").decode("latin-1")
        charset = None if is_multipart(kind) else _CHARSET.search(kind)
        # UTF-8 without a declaration is what nearly everybody sends: nothing to do.
        if (
            charset
            and not is_multipart(kind)
            and not (charset[1].lower() == "utf-8" and body[:2] != b"<?")
        ):
            body = carried_as(body, charset[1])
        call = SoapCall(
            body=body,
            content_type=kind,
            soap_action=headers.get(b"soapaction", b"").decode("latin-1"),
            path=request.path,
            query=request.query.decode("latin-1"),
            base=self._base,
            session=session,
            refused=refused,
            is_private=is_private(self._connection.transport, session.peer),
        )
        self._task = server.loop.create_task(self._run(call))

    async def _run(self, call: SoapCall) -> None:
        answer = await self._answer(call)
        connection, request = self._connection, self._request
        if connection.transport is None:
            if answer.receipt is not None:
                answer.receipt.lost()
            return
        kind = answer.content_type.encode("latin-1", "replace")
        head = b"content-type: %b\r\n" % kind if kind else b""
        connection.write(
            b"%b%b%b%bcontent-length: %d\r\n%b\r\n%b"
            % (
                answers.status_line(answer.status),
                connection.server.response_heads.date,
                answers.SERVER,
                head,
                len(answer.body),
                request.connection_header,
                answer.body,
            )
        )
        if answer.receipt is not None:
            connection.receipts.add(answer.receipt, connection.transport)
        connection.finished(keep_alive=request.keep_alive)

    def received(self, data: bytes) -> None:
        raise AssertionError("this exchange takes over nothing")

    def writable(self) -> None:
        """Answers are small: there is nothing more to write."""

    def ended_by_client(self) -> None:
        """It may still read the answer."""

    def lost(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def tick(self) -> float:
        return inf

    def stop(self) -> None:
        """An answer in progress may end by itself; who waits at a box is answered by the broker."""
